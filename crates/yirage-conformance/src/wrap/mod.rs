//! A case as a graph that a device can run.
//!
//! An activation becomes a table that `embed` reads row by row; quantised activations are quantised again inside; results
//! that do not leave a device (quantised values, states) pass through another op. Inputs of general ops come from each
//! place in turn ([`general`]).

mod general;

pub(crate) use general::is_general;

use crate::setup::{Setup, State};
use std::collections::HashMap;
use std::fmt;
use yirage_hal::Record;
use yirage_ir::op::{Attention, Case, Embed, Linear, Quantize, Role};
use yirage_ir::{BuildError, DType, Dim, Dims, F32, Format, GraphBuilder, NodeKind, Op, Sym, Tensor, Type, ValueId};
use yirage_plan::Precision;

struct Wrapping {
    how: How,
    builder: GraphBuilder,
    weights: HashMap<String, Tensor>,
    slots: HashMap<String, Record>,
    states: Vec<State>,
    dims: Dims,
}

/// Where an op finds an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// Another op has computed it.
    Computed,
    /// It is given anew for each step.
    Slot,
    /// It is fixed after load.
    Weight,
}

impl Origin {
    /// Its role.
    fn role(self) -> Role {
        match self {
            Origin::Computed => Role::Activation,
            Origin::Slot => Role::Slot(&[Sym::Tokens]),
            Origin::Weight => Role::Weight,
        }
    }

    /// All of them.
    pub const ALL: [Origin; 3] = [Origin::Computed, Origin::Slot, Origin::Weight];
}

/// How a case becomes a graph.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct How {
    /// How plain weights lie.
    pub(crate) lie: Lie,
    /// An input that comes from elsewhere than in models.
    pub(crate) moved: Option<(usize, Origin)>,
    /// Whether all sizes are fixed, instead of a step's.
    pub(crate) fixed: bool,
    /// Where the inputs of a general op come from.
    pub(crate) from: From,
}

/// Where the inputs of a general op come from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum From {
    /// From where a model has them: the op is not general, or has no inputs.
    #[default]
    Model,
    /// Input i from place `i + n` of [`Origin::ALL`].
    Turn(usize),
    /// The first from a slot, with a symbolic outermost dimension.
    Symbol,
}

/// The ways to try a case.
pub(crate) fn ways(case: &Case) -> Vec<How> {
    let all = |from, lies: &[Lie]| lies.iter().map(|&lie| How { lie, from, ..How::default() }).collect::<Vec<_>>();
    if !is_general(case) {
        return all(From::Model, &Lie::ALL);
    }
    let mut ways = all(From::Turn(0), &[Lie::Dense]);
    ways.extend(all(From::Turn(1), &[Lie::Dense, Lie::Transposed]));
    ways.extend(all(From::Turn(2), &[Lie::Dense, Lie::Gaps]));
    ways.extend(all(From::Symbol, &[Lie::Dense]));
    ways
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            From::Model => {}
            From::Turn(turn) => write!(f, " ({:?} first)", Origin::ALL[turn % 3])?,
            From::Symbol => f.write_str(" (symbol)")?,
        }
        if self.lie == Lie::Dense { Ok(()) } else { write!(f, " ({:?})", self.lie) }
    }
}

/// How plain weights lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Lie {
    /// One row after the other.
    #[default]
    Dense,
    /// With gaps between rows and between elements.
    Gaps,
    /// The first dimension innermost.
    Transposed,
}

impl Lie {
    const ALL: [Lie; 3] = [Lie::Dense, Lie::Gaps, Lie::Transposed];

    fn strides(self, shape: &[usize]) -> Option<Vec<u32>> {
        let (mut next, apart) = if self == Lie::Gaps { (2, 3) } else { (1, 0) };
        let mut strides = vec![0; shape.len()];
        let from_last = |i: usize| if self == Lie::Transposed { i } else { shape.len() - 1 - i };
        for axis in (0..shape.len()).map(from_last) {
            strides[axis] = next as u32;
            next = next * shape[axis].max(1) + apart;
        }
        (self != Lie::Dense).then_some(strides)
    }
}

/// None where the case has no such variant.
pub(crate) fn wrap(case: &Case, how: How) -> Result<Option<Setup>, String> {
    let places = match how.from {
        From::Model => Vec::new(),
        from => match general::places(case, from) {
            Some(places) => places,
            None => return Ok(None),
        },
    };
    let quantised = case.ins.iter().any(|t| t.layout().is_some());
    let mut w = Wrapping {
        how,
        builder: GraphBuilder::new(case.op.name()),
        weights: HashMap::new(),
        slots: HashMap::new(),
        states: Vec::new(),
        dims: Dims { tokens: 0, seqs: 1, blocks: 1, rows: 1 },
    };
    let results = w.op(case, &places).map_err(|e| e.to_string())?;
    results.into_iter().for_each(|r| w.builder.output(r));
    Ok(Some(Setup {
        graph: w.builder.finish(),
        weights: w.weights,
        slots: w.slots,
        states: w.states,
        dims: w.dims,
        precision: if quantised { Precision::Fast } else { Precision::Exact },
    }))
}

impl Wrapping {
    fn op(&mut self, case: &Case, places: &[general::Place]) -> Result<Vec<ValueId>, BuildError> {
        let mut ins = Vec::new();
        for (i, t) in case.ins.iter().enumerate() {
            let moved = self.how.moved.filter(|(input, _)| *input == i).map(|(_, origin)| origin);
            ins.push(match moved.map_or(case.op.role(i, t), Origin::role) {
                Role::Activation => self.activation(&case.op, &format!("x{i}"), t)?,
                Role::Weight => self.weight(&format!("w{i}"), t)?,
                Role::Slot(syms) => self.slot(&format!("s{i}"), syms, t)?,
                Role::State => self.state(case, t)?,
                Role::Any => self.any(&format!("x{i}"), t, places[i])?,
            });
        }
        let types: Vec<Type> = ins.iter().map(|&i| self.builder.ty(i).clone()).collect();
        let made = case.op.infer(&types).map_or(0, |outs| outs.len());
        let names: Vec<String> = (0..made).map(|i| format!("y{i}")).collect();
        let made = self.builder.node(NodeKind::Op(case.op.clone()), &ins, &names)?;
        if let Op::KvAppend(_) = &case.op {
            return Ok(vec![self.read_state(case, made[0])?]);
        }
        let read = |y| if self.builder.ty(y).layout.is_some() { self.read_quantised(y) } else { Ok(y) };
        made.into_iter().map(read).collect()
    }

    fn weight(&mut self, name: &str, t: &Tensor) -> Result<ValueId, BuildError> {
        self.weights.insert(name.into(), t.clone());
        let strides = if t.dtype == DType::F32 { self.how.lie.strides(&t.shape) } else { None };
        self.builder.weight(name, Type { strides, ..t.ty() })
    }

    /// Rows of a table; quantised ones are quantised again, from the values they stand for.
    fn activation(&mut self, op: &Op, name: &str, t: &Tensor) -> Result<ValueId, BuildError> {
        let (rows, width) = (t.rows(), t.width());
        let mut values: Vec<f32> = (0..rows).flat_map(|r| t.row(r)).collect();
        values.resize(rows.max(1) * width, 0.0);
        let table = self.weight(&format!("{name}.table"), &Tensor::f32([rows.max(1), width], values))?;
        let numbers = Tensor::i32([rows], (0..rows as i32).collect());
        let ids = self.slot(&format!("{name}.ids"), &[Sym::Tokens], &numbers)?;
        let x = self.builder.op(name, Embed { scale: F32(1.0) }, &[table, ids])?;
        let Some(layout) = t.layout() else { return Ok(x) };
        let parts = match op {
            Op::ExpertLinear(e) if !e.shared => e.top_k,
            _ => 1,
        };
        self.builder.op(&format!("{name}.q"), Quantize { layout, parts }, &[x])
    }

    fn slot(&mut self, name: &str, syms: &[Sym], t: &Tensor) -> Result<ValueId, BuildError> {
        self.slots.insert(name.into(), Record::of(&t.memory()));
        let mut shape: Vec<Dim> = t.shape.iter().map(|&n| Dim::Const(n as u32)).collect();
        // One row for all has no symbol, wherever it comes from.
        let one_row = t.dtype == DType::F32 && t.shape.len() == 1 && syms == [Sym::Tokens];
        let syms = if self.how.fixed || one_row { &[] } else { syms };
        for (dim, &sym) in shape.iter_mut().zip(syms) {
            self.dims.set(sym, dim.as_const().unwrap_or(0) as u32);
            *dim = Dim::Sym(sym);
        }
        self.builder.slot(name, Type::new(t.dtype, shape))
    }

    fn state(&mut self, case: &Case, t: &Tensor) -> Result<ValueId, BuildError> {
        let k_width = match &case.op {
            Op::Attention(a) => a.k_width,
            Op::KvAppend(op) => (case.ins[1].width() / op.kv_heads as usize) as u32,
            _ => 0,
        };
        self.states.push(State { name: "state".into(), values: t.clone(), k_width });
        self.builder.state("state", Type::new(t.dtype, t.shape[1..].iter().map(|&n| n as u32)))
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

    /// What attention over everything up to each token's own slot sees, blocks in the order of the pool.
    fn read_state(&mut self, case: &Case, state: ValueId) -> Result<ValueId, BuildError> {
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
        let at = self.builder.slot("positions", per_token())?;
        let seqs = self.builder.slot("seqs", per_token())?;
        let table = self.builder.slot("table", Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]))?;
        self.slots.insert("positions".into(), positions);
        self.slots.insert("seqs".into(), Record::of(&vec![0i32; tokens]));
        self.slots.insert("table".into(), Record::of(&(0..blocks as i32).collect::<Vec<_>>()));
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
