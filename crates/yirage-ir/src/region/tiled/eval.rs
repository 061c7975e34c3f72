//! The meaning of a tiled region: block by block, iteration by iteration.

use super::flat::flat;
use super::{Accumulate, Tiled};
use crate::dim::Dims;
use crate::dtype::DType;
use crate::expr::{Scalar, is_float};
use crate::graph::{Graph, NodeKind, ValueSource};
use crate::op::{Concat, Op};
use crate::tensor::Tensor;
use crate::types::Type;

/// Evaluates a node. `op` evaluates one op, `run` a graph on tensors in the order of its inputs.
///
/// # Errors
/// What `run` says.
pub(crate) fn evaluate<E>(
    body: &Graph,
    tiled: &Tiled,
    inputs: &[&Tensor],
    op: impl Fn(&Op, &[&Tensor]) -> Vec<Tensor>,
    run: impl Fn(&Graph, Vec<Tensor>) -> Result<Vec<Tensor>, E>,
) -> Result<Vec<Tensor>, E> {
    let body = &*flat(body);
    let opened = LoopBodyGraph::of(body, tiled);
    let mut outs: Vec<TiledOutput> = tiled
        .block
        .outputs
        .iter()
        .zip(&tiled.outs)
        .map(|(&id, out)| TiledOutput::of(tiled, tiled.block.ty(id), &out.grid))
        .collect();
    let sources: Vec<Vec<Scalar>> = inputs.iter().map(|t| t.scalars()).collect();
    for at in 0..tiled.blocks().unwrap_or(0) as usize {
        let block = tiled.block_at(at);
        let tile = |i: usize, iteration: usize| {
            let sizes = sizes(body.ty(body.inputs[i]));
            let origin = tiled.ins[i].origin(&sizes, tiled.loops, block, iteration);
            let elements: Vec<Scalar> =
                tile_offsets(&sizes, &inputs[i].shape, &origin).into_iter().map(|p| sources[i][p]).collect();
            Tensor::from_scalars(inputs[i].dtype, sizes, &elements)
        };
        let mut held: Vec<AccumulatorValue> = tiled.accumulators.iter().map(|_| AccumulatorValue::default()).collect();
        for iteration in 0..tiled.loops as usize {
            let running = tiled.running.iter().map(|&r| {
                let id = body.outputs[r as usize];
                held[r as usize].read(tiled.accumulators[r as usize], body.ty(id))
            });
            let given = (0..inputs.len()).map(|i| tile(i, iteration)).chain(running).collect();
            opened.take(tiled, &run(&opened.graph, given)?, &mut held);
        }
        let accumulated = held.iter().zip(&tiled.accumulators).enumerate().map(|(a, (held, &how))| match how {
            Accumulate::Continue => held.joined(opened.node(body, a), &op),
            _ => held.read(how, body.ty(body.outputs[a])),
        });
        let given = accumulated.chain(tiled.reads.iter().map(|&i| tile(i as usize, 0))).collect();
        for (out, (made, lies)) in outs.iter_mut().zip(run(&tiled.block, given)?.into_iter().zip(&tiled.outs)) {
            out.write(&made, &lies.origin(&made.shape, block));
        }
    }
    Ok(outs.into_iter().map(|out| Tensor::from_scalars(out.dtype, out.shape, &out.elements)).collect())
}

fn sizes(ty: &Type) -> Vec<usize> {
    ty.shape.iter().map(|d| d.get(&Dims::default())).collect()
}

/// The body with the operands of what is continued among its outputs.
struct LoopBodyGraph {
    graph: Graph,
    /// Of each accumulator that is continued, its node and where its first operand stands among the outputs.
    continued: Vec<Option<(usize, usize)>>,
}

impl LoopBodyGraph {
    fn of(body: &Graph, tiled: &Tiled) -> LoopBodyGraph {
        let mut graph = body.clone();
        let continued = tiled.accumulators.iter().zip(&body.outputs).map(|(how, &id)| {
            let (Accumulate::Continue, ValueSource::Node { node, .. }) = (how, body.value(id).source) else {
                return None;
            };
            let first = graph.outputs.len();
            graph.outputs.extend(&body.nodes[node as usize].ins);
            Some((node as usize, first))
        });
        let continued = continued.collect();
        LoopBodyGraph { graph, continued }
    }

    /// The op of a continued accumulator.
    fn node<'a>(&self, body: &'a Graph, at: usize) -> &'a Op {
        let op = self.continued[at].map(|(node, _)| &body.nodes[node].kind);
        let Some(NodeKind::Op(op)) = op else { unreachable!("accumulator {at} has been checked to be an op's") };
        op
    }

    /// Takes in what an iteration has made.
    fn take(&self, tiled: &Tiled, made: &[Tensor], held: &mut [AccumulatorValue]) {
        for (a, held) in held.iter_mut().enumerate() {
            if let Some((node, first)) = self.continued[a] {
                let count = self.graph.nodes[node].ins.len();
                held.operands.resize(count, Vec::new());
                held.operands.iter_mut().zip(&made[first..]).for_each(|(all, x)| all.push(x.clone()));
                continue;
            }
            let factor = match tiled.accumulators[a] {
                Accumulate::Rescaled { by } => Some(&made[by as usize]),
                _ => None,
            };
            held.add(tiled.accumulators[a], &made[a], factor);
        }
    }
}

/// What a block has accumulated.
#[derive(Default)]
struct AccumulatorValue {
    /// None before the first iteration.
    elements: Option<Vec<f64>>,
    /// The operands of what is continued, iteration by iteration.
    operands: Vec<Vec<Tensor>>,
}

impl AccumulatorValue {
    fn add(&mut self, how: Accumulate, value: &Tensor, factor: Option<&Tensor>) {
        let x = value.scalars().into_iter().map(Scalar::as_f64);
        let Some(elements) = &mut self.elements else {
            self.elements = Some(x.collect());
            return;
        };
        let factors = factor.map(|f| spread(f, &value.shape));
        for (i, (held, x)) in elements.iter_mut().zip(x).enumerate() {
            *held = match how {
                Accumulate::Max if held.is_nan() || x.is_nan() => f64::NAN,
                Accumulate::Max => held.max(x),
                _ => factors.as_ref().map_or(*held, |f| *held * f[i]) + x,
            };
            // Whole numbers keep the low 32 bits.
            match value.dtype {
                DType::I32 => *held = f64::from(*held as i64 as i32),
                DType::U32 => *held = f64::from(*held as i64 as u32),
                _ => {}
            }
        }
    }

    /// As it is read.
    fn read(&self, how: Accumulate, ty: &Type) -> Tensor {
        let shape = sizes(ty);
        let none = match (how, ty.dtype) {
            (Accumulate::Max, DType::I32) => f64::from(i32::MIN),
            (Accumulate::Max, dtype) if is_float(dtype) => f64::NEG_INFINITY,
            _ => 0.0,
        };
        let scalar = |x: f64| match ty.dtype {
            DType::I32 => Scalar::from(x as i32),
            DType::U32 => Scalar::from(x as u32),
            _ => Scalar::from(x as f32),
        };
        let elements: Vec<Scalar> = match &self.elements {
            Some(held) => held.iter().map(|&x| scalar(x)).collect(),
            None => vec![scalar(none); shape.iter().product()],
        };
        Tensor::from_scalars(ty.dtype, shape, &elements)
    }

    /// The op on what it was given in all iterations.
    fn joined(&self, op: &Op, eval: impl Fn(&Op, &[&Tensor]) -> Vec<Tensor>) -> Tensor {
        let operands: Vec<Tensor> = self
            .operands
            .iter()
            .enumerate()
            .map(|(i, parts)| {
                let concat = Op::from(Concat { axis: super::joined_along(op, i, parts[0].shape.len()) });
                eval(&concat, &parts.iter().collect::<Vec<_>>()).remove(0)
            })
            .collect();
        eval(op, &operands.iter().collect::<Vec<_>>()).remove(0)
    }
}

/// The elements of a factor as they meet those of a shape.
fn spread(factor: &Tensor, shape: &[usize]) -> Vec<f64> {
    let x = factor.scalars();
    let first = shape.len() - factor.shape.len();
    let mut strides = vec![0; shape.len()];
    let mut next = 1;
    for (axis, &n) in factor.shape.iter().enumerate().rev() {
        strides[first + axis] = if n == 1 { 0 } else { next };
        next *= n;
    }
    walk(shape, &strides, 0).into_iter().map(|at| x[at].as_f64()).collect()
}

/// Where the elements of a tile lie in a dense value of this shape.
fn tile_offsets(tile: &[usize], shape: &[usize], origin: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let first = origin.iter().zip(&strides).map(|(o, s)| o * s).sum();
    walk(tile, &strides, first)
}

/// The places of all elements of a shape, in row-major order.
fn walk(shape: &[usize], strides: &[usize], first: usize) -> Vec<usize> {
    shape.iter().zip(strides).fold(vec![first], |places, (&n, &stride)| {
        places.into_iter().flat_map(|at| (0..n).map(move |i| at + i * stride)).collect()
    })
}

/// An output of the node while blocks write it.
struct TiledOutput {
    dtype: DType,
    shape: Vec<usize>,
    elements: Vec<Scalar>,
}

impl TiledOutput {
    fn of(tiled: &Tiled, tile: &Type, grid: &[Option<u32>; 3]) -> TiledOutput {
        let mut shape = sizes(tile);
        for (dim, &n) in grid.iter().zip(&tiled.grid) {
            if let Some(dim) = dim {
                shape[*dim as usize] *= n as usize;
            }
        }
        let elements = vec![Scalar::from(0i32); shape.iter().product()];
        TiledOutput { dtype: tile.dtype, shape, elements }
    }

    fn write(&mut self, tile: &Tensor, origin: &[usize]) {
        let places = tile_offsets(&tile.shape, &self.shape, origin);
        places.into_iter().zip(tile.scalars()).for_each(|(at, x)| self.elements[at] = x);
    }
}
