//! A case as a graph that a device can run.
//!
//! Devices take integers from outside and floats as weights only. So an activation becomes a table that `embed` reads
//! row by row; quantised activations are quantised again inside; results that are no floats pass through another op.

use std::collections::HashMap;
use yirage_ir::op::{Attention, Case, Embed, ExpertBias, Linear, Quantize};
use yirage_ir::tensor::Data;
use yirage_ir::{BuildError, DType, Dims, F32, Format, Graph, GraphBuilder, NodeKind, Op, Sym, Tensor, Type, ValueId};
use yirage_plan::Precision;

/// A case's graph and everything it reads.
pub(crate) struct Wrapped {
    pub(crate) graph: Graph,
    pub(crate) weights: HashMap<String, Tensor>,
    pub(crate) slots: HashMap<String, Vec<i32>>,
    /// The cache state, `[blocks, 32, heads, width]`, and how many elements of a head are its key.
    pub(crate) state: Option<(Tensor, u32)>,
    pub(crate) dims: Dims,
    pub(crate) precision: Precision,
}

impl Wrapped {
    /// What the reference gives for the graph.
    pub(crate) fn reference(&self) -> Result<Vec<f32>, String> {
        let mut tensors = self.weights.clone();
        for id in self.graph.inputs_of(yirage_ir::Source::Slot) {
            let v = self.graph.value(id);
            let shape: Vec<usize> = v.ty.shape.iter().map(|d| d.get(&self.dims)).collect();
            tensors.insert(v.name.clone(), Tensor::i32(shape, self.slots[&v.name].clone()));
        }
        if let Some((state, _)) = &self.state {
            tensors.insert("state".into(), state.clone());
        }
        let outs = yirage_ir::interp::evaluate(&self.graph, &mut tensors).map_err(|e| e.to_string())?;
        Ok(outs[0].floats().to_vec())
    }
}

/// What an input of an op is in a model.
enum Role {
    Activation,
    Weight,
    Slot,
    State,
}

fn role(op: &Op, i: usize, t: &Tensor) -> Role {
    let ints = matches!(t.data, Data::I32(_));
    match (op, i) {
        (Op::KvAppend(_), 0) => Role::State,
        (Op::Attention(a), 1) if a.cached => Role::State,
        _ if ints => Role::Slot,
        (Op::Embed(_), 0) => Role::Weight,
        (Op::Linear(_) | Op::ExpertLinear(_) | Op::ExpertBias(_) | Op::RmsNorm(_) | Op::Route(_), 1) => Role::Weight,
        (Op::LayerNorm(_) | Op::Rope(_), 1 | 2) => Role::Weight,
        (Op::Attention(_), 5) => Role::Weight,
        (Op::Binary(_), 1) if t.shape.len() == 1 => Role::Weight,
        _ => Role::Activation,
    }
}

struct Wrapping {
    builder: GraphBuilder,
    weights: HashMap<String, Tensor>,
    slots: HashMap<String, Vec<i32>>,
    state: Option<(Tensor, u32)>,
    dims: Dims,
}

pub(crate) fn wrap(case: &Case) -> Result<Wrapped, String> {
    let quantised = case.ins.iter().any(|t| t.dtype == DType::Q8A);
    let mut w = Wrapping {
        builder: GraphBuilder::new(case.op.name()),
        weights: HashMap::new(),
        slots: HashMap::new(),
        state: None,
        dims: Dims { tokens: 0, seqs: 1, blocks: 1, rows: 1 },
    };
    let result = w.op(case).map_err(|e| e.to_string())?;
    w.builder.output(result);
    Ok(Wrapped {
        graph: w.builder.finish(),
        weights: w.weights,
        slots: w.slots,
        state: w.state,
        dims: w.dims,
        precision: if quantised { Precision::Fast } else { Precision::Exact },
    })
}

impl Wrapping {
    fn op(&mut self, case: &Case) -> Result<ValueId, BuildError> {
        let mut ins = Vec::new();
        for (i, t) in case.ins.iter().enumerate() {
            ins.push(match role(&case.op, i, t) {
                Role::Activation => self.activation(&case.op, &format!("x{i}"), t)?,
                Role::Weight => self.weight(&format!("w{i}"), t)?,
                Role::Slot => self.slot(&case.op, &format!("s{i}"), i, t)?,
                Role::State => self.state(case, t)?,
            });
        }
        let outs =
            if matches!(case.op, Op::Route(_)) { vec!["y".to_string(), "chosen".into()] } else { vec!["y".into()] };
        let made = self.builder.node(NodeKind::Op(case.op.clone()), &ins, &outs)?;
        match &case.op {
            Op::Quantize(_) => self.read_quantised(made[0]),
            Op::KvAppend(_) => self.read_state(case, made[0]),
            Op::Route(op) => self.read_choice(made[0], made[1], op.top_k, case.ins[0].width() as u32),
            _ => Ok(made[0]),
        }
    }

    fn weight(&mut self, name: &str, t: &Tensor) -> Result<ValueId, BuildError> {
        self.weights.insert(name.into(), t.clone());
        self.builder.weight(name, Type::new(t.dtype, t.shape.iter().map(|&n| n as u32)))
    }

    /// Rows of a table; quantised ones are quantised again, from the values they stand for.
    fn activation(&mut self, op: &Op, name: &str, t: &Tensor) -> Result<ValueId, BuildError> {
        let (rows, width) = (t.rows(), t.width());
        self.dims.tokens = rows as u32;
        let mut values: Vec<f32> = (0..rows).flat_map(|r| t.row(r)).collect();
        values.resize(rows.max(1) * width, 0.0);
        let table = self.weight(&format!("{name}.table"), &Tensor::f32([rows.max(1), width], values))?;
        let ids = self.builder.slot(&format!("{name}.ids"), Type::new(DType::I32, [Sym::Tokens]))?;
        self.slots.insert(format!("{name}.ids"), (0..rows as i32).collect());
        let x = self.builder.op(name, Embed { scale: F32(1.0) }, &[table, ids])?;
        if t.dtype != DType::Q8A {
            return Ok(x);
        }
        let parts = match op {
            Op::ExpertLinear(e) if !e.shared => e.top_k,
            _ => 1,
        };
        self.builder.op(&format!("{name}.q"), Quantize { parts }, &[x])
    }

    fn slot(&mut self, op: &Op, name: &str, i: usize, t: &Tensor) -> Result<ValueId, BuildError> {
        self.slots.insert(name.into(), t.ints().to_vec());
        let ty = match (op, i) {
            (Op::Attention(a), 4) if a.cached => {
                (self.dims.seqs, self.dims.blocks) = (t.shape[0] as u32, t.shape[1] as u32);
                Type::new(DType::I32, [Sym::Seqs, Sym::Blocks])
            }
            (Op::Gather(_), _) => {
                self.dims.rows = t.shape[0] as u32;
                Type::new(DType::I32, [Sym::Rows])
            }
            (Op::ExpertLinear(_) | Op::ExpertBias(_), _) => {
                Type { dtype: DType::I32, ..Type::rows(Sym::Tokens, t.width() as u32) }
            }
            _ => {
                self.dims.tokens = t.shape[0] as u32;
                Type::new(DType::I32, [Sym::Tokens])
            }
        };
        self.builder.slot(name, ty)
    }

    fn state(&mut self, case: &Case, t: &Tensor) -> Result<ValueId, BuildError> {
        let k_width = match &case.op {
            Op::Attention(a) => a.k_width,
            Op::KvAppend(op) => (case.ins[1].width() / op.kv_heads as usize) as u32,
            _ => 0,
        };
        self.state = Some((t.clone(), k_width));
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

    /// Experts as numbers: a bias that is the expert's index, added to the weights.
    fn read_choice(
        &mut self,
        weights: ValueId,
        chosen: ValueId,
        top_k: u32,
        experts: u32,
    ) -> Result<ValueId, BuildError> {
        let index = Tensor::f32([experts as usize, 1], (0..experts).map(|e| e as f32 * 16.0).collect::<Vec<_>>());
        let index = self.weight("index", &index)?;
        self.builder.op("read", ExpertBias { top_k }, &[weights, index, chosen])
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
        let positions = self.slots[&format!("s{}", case.ins.len() - 1)].clone();
        let blocks = case.ins[0].shape[0];
        (self.dims.seqs, self.dims.blocks) = (1, blocks as u32);
        let per_token = || Type::new(DType::I32, [Sym::Tokens]);
        let at = self.builder.slot("positions", per_token())?;
        let seqs = self.builder.slot("seqs", per_token())?;
        let table = self.builder.slot("table", Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]))?;
        self.slots.insert("positions".into(), positions);
        self.slots.insert("seqs".into(), vec![0; tokens]);
        self.slots.insert("table".into(), (0..blocks as i32).collect());
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
