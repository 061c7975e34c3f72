//! A case as a graph that a device can run.
//!
//! An activation becomes a table that `embed` reads row by row; quantised activations are quantised again inside; results
//! that do not leave a device (quantised values, states) pass through another op. Inputs of general ops come from each
//! place in turn ([`general`]).

mod general;

pub(crate) use general::is_general;

use crate::setup::{GraphSetup, KvCacheSetup};
use std::collections::HashMap;
use std::fmt;
use yirage_hal::Record;
use yirage_ir::expr::Expr;
use yirage_ir::op::{Attention, Embed, Linear, Map, OpCase, Quantize, Role, StateUpdate};
use yirage_ir::{BuildError, DType, Dim, Dims, F32, Format, GraphBuilder, NodeKind, Op, Sym, Tensor, Type, ValueId};
use yirage_plan::Precision;

struct Wrapping {
    how: WrapOptions,
    builder: GraphBuilder,
    weights: HashMap<String, Tensor>,
    step_inputs: HashMap<String, Record>,
    kv_caches: Vec<KvCacheSetup>,
    dims: Dims,
}

/// Where an op finds an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OperandSource {
    /// Another op has computed it.
    Computed,
    /// It is given anew for each step.
    Slot,
    /// It is fixed after load.
    Weight,
}

impl OperandSource {
    /// Its role.
    fn role(self) -> Role {
        match self {
            OperandSource::Computed => Role::Activation,
            OperandSource::Slot => Role::StepInput(&[Sym::Tokens]),
            OperandSource::Weight => Role::Weight,
        }
    }

    /// All of them.
    pub const ALL: [OperandSource; 3] = [OperandSource::Computed, OperandSource::Slot, OperandSource::Weight];
}

/// How a case becomes a graph.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct WrapOptions {
    /// How plain weights lie.
    pub(crate) weight_strides: WeightStrides,
    /// An input that comes from elsewhere than in models.
    pub(crate) moved: Option<(usize, OperandSource)>,
    /// Whether all sizes are fixed, instead of a step's.
    pub(crate) fixed: bool,
    /// Where the inputs of a general op come from.
    pub(crate) from: GeneralInputScheme,
}

/// Where the inputs of a general op come from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum GeneralInputScheme {
    /// From where a model has them: the op is not general, or has no inputs.
    #[default]
    Model,
    /// Input i from place `i + n` of [`OperandSource::ALL`].
    Turn(usize),
    /// The first from a step input, with a symbolic outermost dimension.
    Symbol,
}

/// The ways to try a case.
pub(crate) fn wrap_options(case: &OpCase) -> Vec<WrapOptions> {
    let all = |from, lies: &[WeightStrides]| {
        lies.iter().map(|&lie| WrapOptions { weight_strides: lie, from, ..WrapOptions::default() }).collect::<Vec<_>>()
    };
    if !is_general(case) {
        return all(GeneralInputScheme::Model, &WeightStrides::ALL);
    }
    let mut ways = all(GeneralInputScheme::Turn(0), &[WeightStrides::Dense]);
    ways.extend(all(GeneralInputScheme::Turn(1), &[WeightStrides::Dense, WeightStrides::Transposed]));
    ways.extend(all(GeneralInputScheme::Turn(2), &[WeightStrides::Dense, WeightStrides::Gaps]));
    ways.extend(all(GeneralInputScheme::Symbol, &[WeightStrides::Dense]));
    ways
}

impl fmt::Display for WrapOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            GeneralInputScheme::Model => {}
            GeneralInputScheme::Turn(turn) => write!(f, " ({:?} first)", OperandSource::ALL[turn % 3])?,
            GeneralInputScheme::Symbol => f.write_str(" (symbol)")?,
        }
        if self.weight_strides == WeightStrides::Dense { Ok(()) } else { write!(f, " ({:?})", self.weight_strides) }
    }
}

/// How plain weights lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum WeightStrides {
    /// One row after the other.
    #[default]
    Dense,
    /// With gaps between rows and between elements.
    Gaps,
    /// The first dimension innermost.
    Transposed,
}

impl WeightStrides {
    const ALL: [WeightStrides; 3] = [WeightStrides::Dense, WeightStrides::Gaps, WeightStrides::Transposed];

    fn strides(self, shape: &[usize]) -> Option<Vec<u32>> {
        let (mut next, apart) = if self == WeightStrides::Gaps { (2, 3) } else { (1, 0) };
        let mut strides = vec![0; shape.len()];
        let from_last = |i: usize| if self == WeightStrides::Transposed { i } else { shape.len() - 1 - i };
        for axis in (0..shape.len()).map(from_last) {
            strides[axis] = next as u32;
            next = next * shape[axis].max(1) + apart;
        }
        (self != WeightStrides::Dense).then_some(strides)
    }
}

/// None where the case has no such variant.
pub(crate) fn wrap(case: &OpCase, how: WrapOptions) -> Result<Option<GraphSetup>, String> {
    let places = match how.from {
        GeneralInputScheme::Model => Vec::new(),
        from => match general::general_inputs(case, from) {
            Some(places) => places,
            None => return Ok(None),
        },
    };
    let quantised = case.ins.iter().any(|t| t.activation_format().is_some());
    let mut w = Wrapping {
        how,
        builder: GraphBuilder::new(case.op.name()),
        weights: HashMap::new(),
        step_inputs: HashMap::new(),
        kv_caches: Vec::new(),
        dims: Dims { tokens: 0, seqs: 1, blocks: 1, rows: 1 },
    };
    let results = w.op(case, &places).map_err(|e| e.to_string())?;
    results.into_iter().for_each(|r| w.builder.output(r));
    Ok(Some(GraphSetup {
        graph: w.builder.finish(),
        weights: w.weights,
        step_inputs: w.step_inputs,
        kv_caches: w.kv_caches,
        dims: w.dims,
        precision: if quantised { Precision::Fast } else { Precision::Exact },
    }))
}

impl Wrapping {
    fn op(&mut self, case: &OpCase, places: &[general::GeneralInput]) -> Result<Vec<ValueId>, BuildError> {
        let mut ins = Vec::new();
        for (i, t) in case.ins.iter().enumerate() {
            let moved = self.how.moved.filter(|(input, _)| *input == i).map(|(_, origin)| origin);
            ins.push(match moved.map_or(case.op.role(i, t), OperandSource::role) {
                Role::Activation => self.activation(&case.op, &format!("x{i}"), t)?,
                Role::Weight => self.weight(&format!("w{i}"), t)?,
                Role::StepInput(syms) => self.step_input(&format!("s{i}"), syms, t)?,
                Role::KvCache => self.kv_cache(case, t)?,
                Role::Any => self.any(&format!("x{i}"), t, places[i])?,
            });
        }
        let types: Vec<Type> = ins.iter().map(|&i| self.builder.ty(i).clone()).collect();
        let made = case.op.infer(&types).map_or(0, |outs| outs.len());
        let names: Vec<String> = (0..made).map(|i| format!("y{i}")).collect();
        let made = self.builder.node(NodeKind::Op(case.op.clone()), &ins, &names)?;
        if let Op::KvAppend(_) = &case.op {
            return Ok(vec![self.read_kv_cache(case, made[0])?]);
        }
        if let Some(state) = case.op.updates() {
            return self.step_again(case, ins, &made, state);
        }
        let read = |y| if self.builder.ty(y).activation_format.is_some() { self.read_quantised(y) } else { Ok(y) };
        made.into_iter().map(read).collect()
    }

    fn weight(&mut self, name: &str, t: &Tensor) -> Result<ValueId, BuildError> {
        self.weights.insert(name.into(), t.clone());
        let strides = if t.dtype == DType::F32 { self.how.weight_strides.strides(&t.shape) } else { None };
        self.builder.weight(name, Type { strides, ..t.ty() })
    }

    /// Rows of a table; quantised ones are quantised again, from the values they stand for.
    fn activation(&mut self, op: &Op, name: &str, t: &Tensor) -> Result<ValueId, BuildError> {
        let (rows, width) = (t.rows(), t.width());
        let mut values: Vec<f32> = (0..rows).flat_map(|r| t.row(r)).collect();
        values.resize(rows.max(1) * width, 0.0);
        let table = self.weight(&format!("{name}.table"), &Tensor::f32([rows.max(1), width], values))?;
        let numbers = Tensor::i32([rows], (0..rows as i32).collect());
        let ids = self.step_input(&format!("{name}.ids"), &[Sym::Tokens], &numbers)?;
        let x = self.builder.op(name, Embed { scale: F32(1.0) }, &[table, ids])?;
        let Some(layout) = t.activation_format() else {
            // What has 16 bits is what a table of 32 has of these values.
            let cast = Map { expr: Expr::input(0).cast(t.dtype) };
            return if t.dtype == DType::F32 { Ok(x) } else { self.builder.op(&format!("{name}.cast"), cast, &[x]) };
        };
        let parts = match op {
            Op::ExpertLinear(e) if !e.shared => e.top_k,
            _ => 1,
        };
        self.builder.op(&format!("{name}.q"), Quantize { layout, parts }, &[x])
    }

    fn step_input(&mut self, name: &str, syms: &[Sym], t: &Tensor) -> Result<ValueId, BuildError> {
        self.step_inputs.insert(name.into(), Record::of(&t.memory()));
        let mut shape: Vec<Dim> = t.shape.iter().map(|&n| Dim::Const(n as u32)).collect();
        // One row for all has no symbol, wherever it comes from.
        let one_row = t.dtype == DType::F32 && t.shape.len() == 1 && syms == [Sym::Tokens];
        let syms = if self.how.fixed || one_row { &[] } else { syms };
        for (dim, &sym) in shape.iter_mut().zip(syms) {
            self.dims.set(sym, dim.as_const().unwrap_or(0) as u32);
            *dim = Dim::Sym(sym);
        }
        self.builder.step_input(name, Type::new(t.dtype, shape))
    }

    fn kv_cache(&mut self, case: &OpCase, t: &Tensor) -> Result<ValueId, BuildError> {
        let k_width = match &case.op {
            Op::Attention(a) => a.k_width,
            Op::KvAppend(op) => (case.ins[1].width() / op.kv_heads as usize) as u32,
            _ => 0,
        };
        self.kv_caches.push(KvCacheSetup { name: "state".into(), values: t.clone(), k_width });
        self.builder.kv_cache("state", Type::new(t.dtype, t.shape[1..].iter().map(|&n| n as u32)))
    }

    /// Codes times scales, 127 times: the product with 127 on the diagonal, exact in Q8_0.
    fn read_quantised(&mut self, q: ValueId) -> Result<ValueId, BuildError> {
        let n = self.builder.ty(q).width().unwrap_or(0);
        let values: Vec<f32> = (0..n * n).map(|i| if i % (n + 1) == 0 { 127.0 } else { 0.0 }).collect();
        let mut blocks = vec![0; n * n / 32 * 34];
        if let Some(encode) = Format::Q8_0.info().encode {
            encode(&values, &mut blocks);
        }
        let diagonal = self.weight("diagonal", &Tensor::stored(Format::Q8_0, [n, n], blocks))?;
        self.builder.op("read", Linear { groups: 1 }, &[q, diagonal])
    }

    /// What the op makes, and what it makes in a second step that begins with the state which the first has left.
    fn step_again(
        &mut self,
        case: &OpCase,
        mut ins: Vec<ValueId>,
        made: &[ValueId],
        state: StateUpdate,
    ) -> Result<Vec<ValueId>, BuildError> {
        ins[state.input] = made[state.output];
        let names: Vec<String> = (0..made.len()).map(|i| format!("again{i}")).collect();
        let again = self.builder.node(NodeKind::Op(case.op.clone()), &ins, &names)?;
        let values = |made: &[ValueId]| {
            made.iter().enumerate().filter(|(at, _)| *at != state.output).map(|(_, &y)| y).collect::<Vec<_>>()
        };
        Ok([values(made), values(&again)].concat())
    }

    /// What attention over everything up to each token's own slot sees, blocks in the order of the pool.
    fn read_kv_cache(&mut self, case: &OpCase, state: ValueId) -> Result<ValueId, BuildError> {
        let Op::KvAppend(op) = &case.op else { return Ok(state) };
        let heads = op.kv_heads;
        let (k, latent) = (case.ins[1].width() as u32 / heads, case.ins.len() == 3);
        let v = if latent { k } else { case.ins[2].width() as u32 / heads };
        let tokens = self.dims.tokens as usize;
        let query: Vec<f32> = (0..tokens * (heads * k) as usize).map(|i| (i % 5) as f32 * 0.1 - 0.2).collect();
        let q = self.activation(&case.op, "query", &Tensor::f32([tokens, (heads * k) as usize], query))?;
        let positions = Record::of(&case.ins[case.ins.len() - 1].memory());
        let blocks = case.ins[0].shape[0];
        (self.dims.seqs, self.dims.blocks) = (1, blocks as u32);
        let per_token = || Type::new(DType::I32, [Sym::Tokens]);
        let at = self.builder.step_input("positions", per_token())?;
        let seqs = self.builder.step_input("seqs", per_token())?;
        let table = self.builder.step_input("table", Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]))?;
        self.step_inputs.insert("positions".into(), positions);
        self.step_inputs.insert("seqs".into(), Record::of(&vec![0i32; tokens]));
        self.step_inputs.insert("table".into(), Record::of(&(0..blocks as i32).collect::<Vec<_>>()));
        let attention = Attention {
            heads,
            kv_heads: heads,
            k_width: k,
            v_width: v,
            scale: F32(1.0),
            softcap: F32(0.0),
            window: 0,
            causal: true,
            cached: true,
            v_in_k: latent,
        };
        self.builder.op("read", attention, &[q, state, at, seqs, table])
    }
}
