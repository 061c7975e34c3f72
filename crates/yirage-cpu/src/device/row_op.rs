//! Row-wise ops bound to their operands.

use super::operand::{Env, Operand, StateRef, WeightRef};
use super::program::BoundOp;
use crate::activation::{Form, Layout};
use crate::isa::Isa;
use crate::rows;
use std::ops::Range;
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_ir::Op;
use yirage_ir::op::{Binary, BinaryKind, GluKind, MatMul, RmsNorm, Rope, Route, Scoring, TopK, UnaryKind};

/// A row-wise op.
pub(super) enum RowOp {
    Embed { table: Arc<WeightRef>, width: usize, scale: f32, ids: Operand, out: Operand },
    Quantize { x: Operand, out: Operand, parts: Option<usize> },
    RmsNorm { op: RmsNorm, weight: Option<Arc<WeightRef>>, x: Operand, out: Operand },
    LayerNorm { eps: f32, weight: Arc<WeightRef>, bias: Option<Arc<WeightRef>>, x: Operand, out: Operand },
    Softmax { x: Operand, out: Operand },
    Unary { kind: rows::UnaryKind, x: Operand, out: Operand },
    Binary { kind: rows::BinaryKind, a: Operand, b: Operand, out: Operand },
    Bias { kind: rows::BinaryKind, a: Operand, b: Arc<WeightRef>, out: Operand },
    Glu { kind: rows::GluKind, gate: Operand, up: Operand, out: Operand },
    MatMul { op: MatMul, a: Operand, b: Operand, out: Operand },
    TopK { op: TopK, x: Operand, values: Operand, indices: Operand },
    Concat { groups: usize, a: Operand, b: Operand, out: Operand },
    Rope { op: Rope, tables: [Operand; 2], positions: Option<Operand>, x: Operand, out: Operand },
    Hadamard { part: usize, x: Operand, out: Operand },
    KvAppend { state: Arc<StateRef>, k: Operand, v: Option<Operand>, slots: Operand },
    Route { op: Route, logits: Operand, bias: Option<Arc<WeightRef>>, weights: Operand, chosen: Operand },
    ExpertBias { ranks: usize, x: Operand, bias: Arc<WeightRef>, chosen: Operand, out: Operand },
    ExpertSum { ranks: usize, x: Operand, weights: Operand, out: Operand },
}

impl RowOp {
    pub(super) fn bind(bound: BoundOp) -> Result<RowOp, HalError> {
        let BoundOp { op, ins, outs, parts } = bound;
        let input = |i: usize| ins[i].clone();
        let out = || outs[0].clone();
        Ok(match op {
            Op::Embed(op) => {
                let Operand::Weight(table) = input(0) else {
                    return Err(HalError::Load("the table of embed is not a weight".into()));
                };
                table.get()?;
                RowOp::Embed { table, width: out().width(), scale: op.scale.0, ids: input(1), out: out() }
            }
            Op::Quantize(q) if q.parts as usize != parts.unwrap_or(1) => {
                let wanted = parts.unwrap_or(1);
                return Err(HalError::Load(format!("a quantised row of {} parts is read in {wanted}", q.parts)));
            }
            Op::Quantize(_) => RowOp::Quantize { x: input(0), out: out(), parts },
            Op::RmsNorm(op) => {
                let weight = ins.get(1).map(|w| w.weight_rows("a norm's weight")).transpose()?;
                RowOp::RmsNorm { op, weight, x: input(0), out: out() }
            }
            Op::LayerNorm(op) => {
                let bias = ins.get(2).map(|w| w.weight_rows("a norm's bias")).transpose()?;
                let weight = ins[1].weight_rows("a norm's weight")?;
                RowOp::LayerNorm { eps: op.eps.0, weight, bias, x: input(0), out: out() }
            }
            Op::Softmax(_) => RowOp::Softmax { x: input(0), out: out() },
            Op::Unary(op) => RowOp::Unary { kind: unary_kind(op.kind, op.c.0), x: input(0), out: out() },
            Op::Binary(op) => bind_binary(op, input(0), input(1), out())?,
            Op::Glu(op) => RowOp::Glu { kind: glu_kind(op.kind), gate: input(0), up: input(1), out: out() },
            Op::ConcatHeads(op) => RowOp::Concat { groups: op.groups as usize, a: input(0), b: input(1), out: out() },
            Op::MatMul(op) => RowOp::MatMul { op, a: input(0), b: input(1), out: out() },
            Op::TopK(op) => RowOp::TopK { op, x: input(0), values: out(), indices: outs[1].clone() },
            Op::Rope(op) => {
                let tables = [input(1), input(2)];
                for table in &tables {
                    table.want_table("cosines and sines")?;
                }
                RowOp::Rope { op, tables, positions: ins.get(3).cloned(), x: input(0), out: out() }
            }
            Op::Hadamard(op) => RowOp::Hadamard { part: op.part as usize, x: input(0), out: out() },
            Op::KvAppend(_) => {
                let Operand::State(state) = input(0) else {
                    return Err(HalError::Load("kv_append does not write a state".into()));
                };
                state.get()?;
                let v = if ins.len() == 4 { Some(input(2)) } else { None };
                RowOp::KvAppend { state, k: input(1), v, slots: input(ins.len() - 1) }
            }
            Op::Route(op) => {
                let bias = ins.get(1).map(|b| b.weight_rows("the router's bias")).transpose()?;
                RowOp::Route { op, logits: input(0), bias, weights: out(), chosen: outs[1].clone() }
            }
            Op::ExpertBias(op) => {
                let bias = ins[1].weight_rows("the experts' bias")?;
                RowOp::ExpertBias { ranks: op.top_k as usize, x: input(0), bias, chosen: input(2), out: out() }
            }
            Op::ExpertSum(op) => {
                RowOp::ExpertSum { ranks: op.top_k as usize, x: input(0), weights: input(1), out: out() }
            }
            other => return Err(HalError::Load(format!("`{}` is not row-wise on this device", other.name()))),
        })
    }

    /// Runs the rows of a range.
    ///
    /// # Safety
    /// Inputs of these rows are written; nobody else uses the outputs' rows of the range.
    pub(super) unsafe fn run(&self, env: &Env, isa: Isa, range: Range<usize>) {
        // SAFETY: the plan is verified, so each operand lies whole in the arena; the caller gives the rest.
        unsafe {
            match self {
                RowOp::Embed { table, width, scale, ids, out } => {
                    embed(env, isa, range, table, *width, *scale, ids, out)
                }
                RowOp::Quantize { x, out, parts } => quantize(env, isa, range, x, out, *parts),
                RowOp::RmsNorm { op, weight, x, out } => {
                    let norm = rows::RmsNorm {
                        row: x.width(),
                        width: op.width as usize,
                        eps: op.eps.0,
                        weight: weight.as_ref().map(|w| w.plain()),
                        unit_offset: op.unit_offset,
                    };
                    rows::rms_norm(isa, range, norm, x.src(env), out.dst(env));
                }
                RowOp::LayerNorm { eps, weight, bias, x, out } => {
                    let bias = bias.as_ref().map(|b| b.plain());
                    let norm = rows::LayerNorm { eps: *eps, weight: weight.plain(), bias };
                    rows::layer_norm(isa, range, norm, x.src(env), out.dst(env));
                }
                RowOp::Softmax { x, out } => rows::softmax(isa, range, x.width(), x.src(env), out.dst(env)),
                RowOp::Unary { kind, x, out } => rows::unary(isa, range, x.width(), *kind, x.src(env), out.dst(env)),
                RowOp::Binary { kind, a, b, out } => {
                    rows::binary(isa, range, a.width(), *kind, a.src(env), b.src(env), out.dst(env));
                }
                RowOp::Bias { kind, a, b, out } => {
                    rows::binary_row(isa, range, *kind, a.src(env), b.plain(), out.dst(env));
                }
                RowOp::Glu { kind, gate, up, out } => {
                    rows::glu(isa, range, gate.width(), *kind, gate.src(env), up.src(env), out.dst(env));
                }
                RowOp::MatMul { op, a, b, out } => {
                    let (m, n) = (op.m as usize, op.n as usize);
                    let sizes = rows::MatMul { m, k: a.width() / m, n };
                    rows::matmul(isa, range, sizes, a.src(env), b.src(env), out.dst(env));
                }
                RowOp::TopK { op, x, values, indices } => {
                    let top = rows::TopK { width: x.width(), k: op.k as usize, largest: op.largest, sorted: op.sorted };
                    let (values, indices) = (values.floats(env), indices.floats(env).cast::<i32>());
                    let (at, n) = (range.start * top.k, range.len() * top.k);
                    let values = std::slice::from_raw_parts_mut(values.add(at), n);
                    let indices = std::slice::from_raw_parts_mut(indices.add(at), n);
                    rows::top_k(isa, range, top, x.src(env), values, indices);
                }
                RowOp::Concat { groups, a, b, out } => concat(env, range, *groups, a, b, out),
                RowOp::Rope { op, tables: [cos, sin], positions, x, out } => {
                    let rope = rows::Rope {
                        heads: x.width() / op.width as usize,
                        width: op.width as usize,
                        rotary: op.rotary as usize,
                        interleaved: op.interleaved,
                        cos: cos.table(env),
                        sin: sin.table(env),
                    };
                    let positions = positions.as_ref().map(|p| p.ints(env));
                    rows::rope(isa, range, rope, positions, x.src(env), out.dst(env));
                }
                RowOp::Hadamard { part, x, out } => {
                    rows::hadamard(isa, range, x.width(), *part, x.src(env), out.dst(env));
                }
                RowOp::KvAppend { state, k, v, slots } => append(env, range, state, k, v.as_ref(), slots),
                RowOp::Route { op, logits, bias, weights, chosen } => {
                    let route = router(op, logits.width(), bias.as_ref().map(|b| b.plain()));
                    let (k, n) = (op.top_k as usize, range.len() * op.top_k as usize);
                    let at = range.start * k;
                    let weights = std::slice::from_raw_parts_mut(weights.floats(env).add(at), n);
                    let chosen = std::slice::from_raw_parts_mut(chosen.floats(env).cast::<i32>().add(at), n);
                    rows::route(isa, range, route, logits.src(env), weights, chosen);
                }
                RowOp::ExpertBias { ranks, x, bias, chosen, out } => {
                    let width = x.width() / ranks;
                    let (src, dst) = (x.src(env), out.dst(env));
                    rows::expert_bias(range, *ranks, width, src, bias.plain(), chosen.ints(env), dst);
                }
                RowOp::ExpertSum { ranks, x, weights, out } => {
                    rows::expert_sum(isa, range, *ranks, out.width(), x.src(env), weights.src(env), out.dst(env));
                }
            }
        }
    }
}

fn bind_binary(op: Binary, a: Operand, b: Operand, out: Operand) -> Result<RowOp, HalError> {
    let kind = match op.kind {
        BinaryKind::Add => rows::BinaryKind::Add,
        BinaryKind::Mul => rows::BinaryKind::Mul,
        BinaryKind::Sub => rows::BinaryKind::Sub,
        BinaryKind::Div => rows::BinaryKind::Div,
    };
    Ok(match b {
        Operand::Weight(_) => RowOp::Bias { kind, a, b: b.weight_rows("a bias")?, out },
        _ => RowOp::Binary { kind, a, b, out },
    })
}

fn unary_kind(kind: UnaryKind, c: f32) -> rows::UnaryKind {
    match kind {
        UnaryKind::Scale => rows::UnaryKind::Scale(c),
        UnaryKind::Silu => rows::UnaryKind::Silu,
        UnaryKind::GeluTanh => rows::UnaryKind::GeluTanh,
        UnaryKind::GeluErf => rows::UnaryKind::GeluErf,
        UnaryKind::Tanh => rows::UnaryKind::Tanh,
        UnaryKind::Sigmoid => rows::UnaryKind::Sigmoid,
        UnaryKind::Relu => rows::UnaryKind::Relu,
        UnaryKind::Softcap => rows::UnaryKind::Softcap(c),
        UnaryKind::Exp => rows::UnaryKind::Exp,
        UnaryKind::Square => rows::UnaryKind::Square,
        UnaryKind::Sqrt => rows::UnaryKind::Sqrt,
        UnaryKind::Rsqrt => rows::UnaryKind::Rsqrt(c),
    }
}

fn glu_kind(kind: GluKind) -> rows::GluKind {
    match kind {
        GluKind::Silu => rows::GluKind::Silu,
        GluKind::GeluTanh => rows::GluKind::GeluTanh,
        GluKind::GeluErf => rows::GluKind::GeluErf,
        GluKind::GptOss => rows::GluKind::GptOss,
    }
}

fn router<'a>(op: &Route, experts: usize, bias: Option<&'a [f32]>) -> rows::Route<'a> {
    rows::Route {
        experts,
        top_k: op.top_k as usize,
        scoring: match op.scoring {
            Scoring::Softmax => rows::Scoring::Softmax,
            Scoring::SoftmaxTopK => rows::Scoring::SoftmaxTopK,
            Scoring::Sigmoid => rows::Scoring::Sigmoid,
        },
        normalize: op.normalize,
        scale: op.scale.0,
        bias,
        groups: op.groups as usize,
        top_groups: op.top_groups as usize,
    }
}

/// Rows of a table, decoded exactly and scaled; ids outside it give NaN.
#[allow(clippy::too_many_arguments)]
unsafe fn embed(
    env: &Env,
    isa: Isa,
    range: Range<usize>,
    table: &WeightRef,
    width: usize,
    scale: f32,
    ids: &Operand,
    out: &Operand,
) {
    let Ok(table) = table.get() else { return };
    // SAFETY: the caller gives the rows; ids were written before.
    unsafe {
        let ids = ids.ints(env);
        for t in range {
            let row = std::slice::from_raw_parts_mut(out.floats(env).add(t * width), width);
            let id = usize::try_from(ids[t]).unwrap_or(usize::MAX);
            match (table.packed(), table.rows()) {
                (Some(packed), _) if id < packed.rows() => packed.unpack_row(isa, 0, id, row),
                (_, Some(values)) if id < values.len() / width => row.copy_from_slice(&values[id * width..][..width]),
                _ => row.fill(f32::NAN),
            }
            if scale != 1.0 {
                row.iter_mut().for_each(|x| *x *= scale);
            }
        }
    }
}

/// int8 blocks, in the tile order of products, or for experts token by token, each part of a row by itself.
unsafe fn quantize(env: &Env, isa: Isa, range: Range<usize>, x: &Operand, out: &Operand, parts: Option<usize>) {
    let (k, tokens) = (x.width(), x.rows().map_or(0, |d| d.get(env.dims)));
    // SAFETY: the target's storage size of quantised values is that of the layout.
    unsafe {
        let (from, to) = (x.floats(env).cast_const(), out.floats(env).cast::<u8>());
        if let Some(parts) = parts {
            let layout = Layout::new(Form::Q8, 1, k / parts);
            for p in range.start * parts..range.end * parts {
                layout.store(isa, from.add(p * layout.k()), k, 0..1, to.add(p * layout.bytes()));
            }
        } else {
            Layout::new(Form::Q8, tokens, k).store(isa, from, k, range, to);
        }
    }
}

unsafe fn concat(env: &Env, range: Range<usize>, groups: usize, a: &Operand, b: &Operand, out: &Operand) {
    let (m, n) = (a.width() / groups, b.width() / groups);
    for t in range {
        for g in 0..groups {
            // SAFETY: rows t of all three are whole; the caller keeps others off the output's.
            unsafe {
                let to = out.floats(env).add((t * groups + g) * (m + n));
                std::ptr::copy_nonoverlapping(a.floats(env).add((t * groups + g) * m), to, m);
                std::ptr::copy_nonoverlapping(b.floats(env).add((t * groups + g) * n), to.add(m), n);
            }
        }
    }
}

unsafe fn append(env: &Env, range: Range<usize>, state: &StateRef, k: &Operand, v: Option<&Operand>, slots: &Operand) {
    let cache = state.get().and_then(|s| s.cache(*s.stored()));
    // SAFETY: the caller gives the rows; the scheduler gives each token its own slot.
    let done = cache.map(|cache| unsafe {
        let v = v.map_or(k.src(env), |v| v.src(env));
        cache.append(range, k.src(env), v, slots.ints(env)).map_err(|e| e.to_string())
    });
    match done {
        Ok(Ok(())) => {}
        Ok(Err(why)) => env.fail(why),
        Err(e) => env.fail(e),
    }
}
