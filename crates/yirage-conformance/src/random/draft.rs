//! A graph being drawn: its values so far, and the inputs that are made when something wants one.

use super::choices::Choices;
use crate::setup::{GraphSetup, KvCacheSetup};
use std::collections::HashMap;
use yirage_hal::Record;
use yirage_ir::op::{Map, Op};
use yirage_ir::rng::Rng;
use yirage_ir::{BuildError, DType, Dim, Dims, Expr, Format, GraphBuilder, NodeKind, Sym, Tensor, Type, ValueId};
use yirage_plan::Precision;

pub(super) const F16: DType = DType::Stored(Format::F16);
pub(super) const BF16: DType = DType::Stored(Format::BF16);
pub(super) const FLOATS: [DType; 3] = [DType::F32, F16, BF16];
pub(super) const PLAIN: [DType; 6] = [DType::F32, F16, BF16, DType::I32, DType::U32, DType::Bool];
/// Most elements of a value under the sizes of the step.
pub(super) const MOST: usize = 600;

pub(super) struct Draft<'a> {
    pub(super) choices: Choices<'a>,
    pub(super) builder: GraphBuilder,
    /// What a node may read: dense values of plain types.
    pub(super) values: Vec<ValueId>,
    /// What nodes made.
    pub(super) node_outputs: Vec<ValueId>,
    weights: HashMap<String, Tensor>,
    step_inputs: HashMap<String, Record>,
    pub(super) kv_caches: Vec<KvCacheSetup>,
    pub(super) dims: Dims,
    /// Symbols whose values are decided.
    pub(super) taken: Vec<Sym>,
    numbers: Rng,
    names: usize,
    /// Nodes that did not type.
    pub(super) untyped: usize,
}

impl<'a> Draft<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Draft<'a> {
        let mut choices = Choices::new(bytes);
        let numbers = Rng::new(choices.seed());
        let mut dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };
        for sym in [Sym::Tokens, Sym::Rows] {
            dims.set(sym, choices.choose(&[3, 1, 2, 5, 17, 0]));
        }
        Draft {
            choices,
            builder: GraphBuilder::new("random"),
            values: Vec::new(),
            node_outputs: Vec::new(),
            weights: HashMap::new(),
            step_inputs: HashMap::new(),
            kv_caches: Vec::new(),
            dims,
            taken: Vec::new(),
            numbers,
            names: 0,
            untyped: 0,
        }
    }

    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    pub(super) fn ty(&self, id: ValueId) -> Type {
        self.builder.ty(id).dense()
    }

    pub(super) fn elems(&self, shape: &[Dim]) -> usize {
        shape.iter().map(|d| d.get(&self.dims)).product()
    }

    /// Adds a node with one output.
    pub(super) fn op(&mut self, op: impl Into<Op>, ins: &[ValueId]) -> Result<ValueId, BuildError> {
        Ok(self.node(op.into(), ins)?[0])
    }

    /// Adds a node.
    pub(super) fn node(&mut self, op: Op, ins: &[ValueId]) -> Result<Vec<ValueId>, BuildError> {
        let types: Vec<Type> = ins.iter().map(|&i| self.ty(i)).collect();
        let outs = op.infer(&types).map_or(1, |outs| outs.len());
        let names: Vec<String> = (0..outs).map(|_| self.name()).collect();
        let made = self.builder.node(NodeKind::Op(op), ins, &names)?;
        // A state is read by ops of states alone.
        let is_state = |id: ValueId| self.builder.graph().kv_cache_of(id).is_some();
        let plain = |id: &ValueId| PLAIN.contains(&self.builder.ty(*id).dtype) && !is_state(*id);
        let readable: Vec<ValueId> = made.iter().copied().filter(plain).collect();
        self.node_outputs.extend(&readable);
        self.values.extend(&readable);
        Ok(made)
    }

    /// A shape of a few elements: any rank, now and then of no elements, now and then symbolic.
    pub(super) fn shape(&mut self) -> Vec<Dim> {
        let rank = self.choices.choose(&[2, 2, 1, 3, 2, 0, 4, 5, 8]);
        let mut shape: Vec<Dim> = Vec::new();
        let mut room = 256;
        for _ in 0..rank {
            let size = self.choices.choose(&[4, 1, 2, 3, 7, 16, 5, 33, 64, 32, 2, 1, 0]).min(room);
            room /= size.max(1);
            shape.push(Dim::Const(size as u32));
        }
        if rank > 0 && self.choices.one_in(4) {
            shape[0] = self.symbol();
        }
        if self.elems(&shape) > MOST { vec![Dim::Const(4)] } else { shape }
    }

    /// A symbol as a dimension; its value is decided from now on.
    pub(super) fn symbol(&mut self) -> Dim {
        let sym = self.choices.choose(&[Sym::Tokens, Sym::Rows]);
        self.take(sym)
    }

    pub(super) fn take(&mut self, sym: Sym) -> Dim {
        self.taken.push(sym);
        sym.into()
    }

    /// One of the values that fit, or a new input of the type that `new` draws.
    pub(super) fn value(
        &mut self,
        fits: impl Fn(&Type) -> bool,
        new: impl FnOnce(&mut Self) -> Type,
    ) -> Result<ValueId, BuildError> {
        let known: Vec<ValueId> = self.values.iter().copied().filter(|&v| fits(&self.ty(v))).collect();
        if !known.is_empty() && !self.choices.one_in(5) {
            // The latest are the likeliest, so that chains grow.
            let near = known.len().min(3);
            let back = if self.choices.one_in(3) { self.choices.below(known.len()) } else { self.choices.below(near) };
            return Ok(known[known.len() - 1 - back]);
        }
        let ty = new(self);
        self.input(ty)
    }

    /// A new input: a step input, or a weight where its type allows, or what is computed from a step input of another type.
    pub(super) fn input(&mut self, ty: Type) -> Result<ValueId, BuildError> {
        let fixed = ty.shape.iter().all(|d| d.as_const().is_some());
        let narrow = matches!(ty.dtype, F16 | BF16);
        let float = narrow || ty.dtype == DType::F32;
        let id = if fixed && float && (narrow || self.choices.one_in(2)) {
            self.weight(ty)?
        } else if (narrow || ty.dtype == DType::Bool) && self.choices.one_in(2) {
            let words = if narrow { DType::F32 } else { DType::I32 };
            let wide = self.random_step_input(Type { dtype: words, ..ty.clone() })?;
            return self.op(Map { expr: Expr::input(0).cast(ty.dtype) }, &[wide]);
        } else {
            self.random_step_input(ty)?
        };
        self.values.push(id);
        Ok(id)
    }

    /// A step input, dense or strided; what lies in gaps is drawn as well.
    fn random_step_input(&mut self, ty: Type) -> Result<ValueId, BuildError> {
        let fixed: Option<Vec<usize>> = ty.shape.iter().map(|d| d.as_const()).collect();
        let strides = match fixed {
            Some(shape) if self.choices.one_in(4) => self.strides(&shape),
            _ => None,
        };
        let ty = Type { strides, ..ty };
        let n = ty.storage_elems(&self.dims);
        let words: Vec<i32> = (0..n).map(|_| self.word(ty.dtype)).collect();
        let given = match ty.dtype {
            DType::I32 | DType::U32 => Record::of(&words),
            DType::Bool => Record::of(&words.iter().map(|&word| (word & 1) as u8).collect::<Vec<_>>()),
            dtype => {
                let floats = words.into_iter().map(|word| f32::from_bits(word as u32)).collect();
                Record::of(&Tensor { dtype, ..Tensor::f32([n], floats) }.memory())
            }
        };
        self.step_input(ty, given)
    }

    /// A step input of these elements.
    pub(super) fn step_input(&mut self, ty: Type, elements: Record) -> Result<ValueId, BuildError> {
        let name = self.name();
        self.step_inputs.insert(name.clone(), elements);
        self.builder.step_input(&name, ty)
    }

    /// A weight of floats, dense or strided.
    pub(super) fn weight(&mut self, ty: Type) -> Result<ValueId, BuildError> {
        let shape: Vec<usize> = ty.shape.iter().map(|d| d.get(&self.dims)).collect();
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| self.float()).collect();
        let tensor = match ty.dtype {
            DType::Stored(format) => stored(format, shape.clone(), &values),
            _ => Tensor::f32(shape.clone(), values),
        };
        let strides = if ty.dtype == DType::F32 && self.choices.one_in(3) { self.strides(&shape) } else { None };
        self.weight_of_values(Type { strides, ..ty }, tensor)
    }

    /// A weight of these values.
    pub(super) fn weight_of_values(&mut self, ty: Type, values: Tensor) -> Result<ValueId, BuildError> {
        let name = self.name();
        self.weights.insert(name.clone(), values);
        self.builder.weight(&name, ty)
    }

    /// The dimensions in any order, with gaps between them.
    fn strides(&mut self, shape: &[usize]) -> Option<Vec<u32>> {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for i in (1..order.len()).rev() {
            let j = self.choices.below(i + 1);
            order.swap(i, j);
        }
        let mut strides = vec![0; shape.len()];
        let mut next = 1 + self.choices.below(2);
        for axis in order {
            strides[axis] = next as u32;
            next = next * shape[axis].max(1) + self.choices.below(3);
        }
        (!shape.is_empty()).then_some(strides)
    }

    /// Mostly small; now and then what arithmetic treats apart.
    pub(super) fn float(&mut self) -> f32 {
        const APART: [f32; 9] = [0.0, -0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, 1e30];
        if self.numbers.one_in(60) {
            return *self.numbers.choose(&APART);
        }
        self.numbers.signed_f32() * *self.numbers.choose(&[1.0, 4.0, 0.1])
    }

    fn word(&mut self, dtype: DType) -> i32 {
        match dtype {
            DType::I32 | DType::U32 if self.numbers.one_in(20) => self.numbers.next_u64() as i32,
            DType::I32 => self.numbers.below(19) as i32 - 9,
            DType::U32 => self.numbers.below(19) as i32,
            _ => self.float().to_bits() as i32,
        }
    }

    /// Numbers from `low` to below `high`.
    pub(super) fn ints(&mut self, n: usize, low: i32, high: i32) -> Vec<i32> {
        (0..n).map(|_| low + self.numbers.below((high - low).max(1) as u64) as i32).collect()
    }

    /// The graph with everything it reads, and the largest sizes that it is compiled for.
    pub(super) fn finish(mut self) -> (GraphSetup, Dims) {
        let wanted: Vec<ValueId> = self.node_outputs.clone();
        let last = wanted.len().saturating_sub(1);
        for (i, id) in wanted.into_iter().enumerate() {
            if i == last || self.choices.one_in(3) {
                self.builder.output(id);
            }
        }
        let mut bucket = self.dims;
        for sym in Sym::ALL {
            bucket.set(sym, self.dims.get(sym).max(1) + self.choices.below(4) as u32);
        }
        let setup = GraphSetup {
            graph: self.builder.finish(),
            weights: self.weights,
            step_inputs: self.step_inputs,
            kv_caches: self.kv_caches,
            dims: self.dims,
            precision: Precision::Exact,
        };
        (setup, bucket)
    }
}

/// Values in a stored format that encodes.
pub(super) fn stored(format: Format, shape: Vec<usize>, values: &[f32]) -> Tensor {
    let info = format.info();
    let mut bytes = vec![0; info.row_bytes(values.len())];
    if let Some(encode) = info.encode {
        encode(values, &mut bytes);
    }
    Tensor::stored(format, shape, bytes)
}
