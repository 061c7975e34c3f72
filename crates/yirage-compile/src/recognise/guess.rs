//! Which named op a general subgraph may be, told by its last node.

use yirage_ir::expr::{Scalar, Term};
use yirage_ir::op::{Embed, LayerNorm, Linear, Map, MatMul, RmsNorm, Rope, Softmax, ViewForm};
use yirage_ir::{Dim, F32, Graph, Node, NodeKind, Op, Type, ValueId, ValueSource};

/// An op, and the types of what it would read.
pub(super) struct Guess {
    pub(super) op: Op,
    pub(super) types: Vec<Type>,
}

impl Guess {
    fn new(op: impl Into<Op>, types: impl Into<Vec<Type>>) -> Guess {
        Guess { op: op.into(), types: types.into() }
    }
}

pub(super) fn of(graph: &Graph, n: usize) -> Vec<Guess> {
    let node = &graph.nodes[n];
    match &node.kind {
        NodeKind::Op(Op::Map(map)) => {
            let mut guesses = norms(graph, map, node, ty(graph, node.outs[0]));
            if node.ins.iter().any(|&i| is_reduced(graph, i)) {
                guesses.push(Guess::new(Softmax {}, [ty(graph, node.outs[0])]));
            }
            guesses.extend(scaled_rows(graph, map, node));
            guesses
        }
        NodeKind::Op(Op::View(view)) if matches!(view.form, ViewForm::Reshape(_)) => {
            let Some(inner) = producer(graph, node.ins[0]) else { return Vec::new() };
            match &inner.kind {
                NodeKind::Op(Op::Map(map)) => norms(graph, map, inner, ty(graph, node.outs[0])),
                NodeKind::Op(Op::Contract(_)) => {
                    matmuls(graph, inner).into_iter().chain(grouped(graph, inner)).collect()
                }
                NodeKind::Op(Op::Concat(_)) => rotations(graph, node, inner),
                _ => Vec::new(),
            }
        }
        NodeKind::Op(Op::Contract(_)) => linear(graph, node),
        NodeKind::Op(Op::Gather(_)) => rows(graph, node, F32(1.0)),
        _ => Vec::new(),
    }
}

fn producer(graph: &Graph, id: ValueId) -> Option<&Node> {
    match graph.value(id).source {
        ValueSource::Node { node, .. } => graph.nodes.get(node as usize),
        _ => None,
    }
}

fn is_reduced(graph: &Graph, id: ValueId) -> bool {
    producer(graph, id).is_some_and(|node| matches!(node.kind, NodeKind::Op(Op::Reduce(_))))
}

/// Strides say where a weight lies, not what it is.
fn ty(graph: &Graph, id: ValueId) -> Type {
    graph.ty(id).dense()
}

fn constants(map: &Map) -> Vec<F32> {
    let float = |t: &Term| if let Term::Const(Scalar::F32(c)) = t { Some(*c) } else { None };
    map.expr.terms().iter().filter_map(float).collect()
}

/// Norms of a value of type `x` that end in `map`: each constant may be what is added to the mean.
fn norms(graph: &Graph, map: &Map, node: &Node, x: Type) -> Vec<Guess> {
    let Some(Dim::Const(width)) = graph.ty(node.outs[0]).shape.last().copied() else { return Vec::new() };
    let weights: Vec<Type> = node.ins.iter().skip(2).map(|&i| ty(graph, i)).collect();
    let types = [&[x], &weights[..]].concat();
    let guesses = |eps: F32| {
        let rms = |unit_offset| Guess::new(RmsNorm { eps, width, unit_offset }, types.clone());
        // A layer norm ends in what would be an RMS norm of the centred values.
        [Guess::new(LayerNorm { eps }, types.clone()), rms(false), rms(true)]
    };
    constants(map).into_iter().flat_map(guesses).collect()
}

/// Look-ups whose rows are scaled, or decoded.
fn scaled_rows(graph: &Graph, map: &Map, node: &Node) -> Vec<Guess> {
    let gather = match producer(graph, node.ins[0]) {
        Some(inner) if matches!(&inner.kind, NodeKind::Op(Op::Gather(_))) => inner,
        Some(inner) => match inner.ins.first().and_then(|&i| producer(graph, i)) {
            Some(gather) if matches!(&gather.kind, NodeKind::Op(Op::Gather(_))) => gather,
            _ => return Vec::new(),
        },
        None => return Vec::new(),
    };
    let scales = constants(map).into_iter().chain([F32(1.0)]);
    scales.flat_map(|scale| rows(graph, gather, scale)).collect()
}

fn rows(graph: &Graph, gather: &Node, scale: F32) -> Vec<Guess> {
    vec![Guess::new(Embed { scale }, [ty(graph, gather.ins[0]), ty(graph, gather.ins[1])])]
}

/// A product whose right side is a matrix seen the other way round, cast or not.
fn linear(graph: &Graph, contract: &Node) -> Vec<Guess> {
    let Some(view) = producer(graph, contract.ins[1]) else { return Vec::new() };
    let Some(&seen) = view.ins.first() else { return Vec::new() };
    let cast = producer(graph, seen).and_then(|node| node.ins.first().copied());
    let guess = |w: ValueId| Guess::new(Linear { groups: 1 }, [ty(graph, contract.ins[0]), ty(graph, w)]);
    [Some(seen), cast].into_iter().flatten().map(guess).collect()
}

/// A product by groups: the right side is a weight's rows in groups, each seen the other way round.
fn grouped(graph: &Graph, contract: &Node) -> Option<Guess> {
    let read = |id: ValueId| producer(graph, id).and_then(|view| view.ins.first().copied());
    let x = read(contract.ins[0])?;
    let rows = read(read(contract.ins[1])?)?;
    let [Dim::Const(groups), ..] = graph.ty(contract.ins[1]).shape[..] else { return None };
    Some(Guess::new(Linear { groups }, [ty(graph, x), ty(graph, rows)]))
}

/// Matrices in rows.
fn matmuls(graph: &Graph, contract: &Node) -> Vec<Guess> {
    let sides = [0, 1].map(|i| producer(graph, contract.ins[i]).and_then(|view| view.ins.first().copied()));
    let ([Some(a), Some(b)], [_, Dim::Const(m), Dim::Const(n)]) = (sides, &graph.ty(contract.outs[0]).shape[..]) else {
        return Vec::new();
    };
    vec![Guess::new(MatMul { m: *m, n: *n }, [ty(graph, a), ty(graph, b)])]
}

/// Rotations: heads put together again, whose first part was computed of pairs and of rows of tables.
fn rotations(graph: &Graph, node: &Node, concat: &Node) -> Vec<Guess> {
    let width_of = |id: ValueId| graph.ty(id).width().and_then(|width| u32::try_from(width).ok());
    let first = concat.ins.first().copied();
    let (Some(part), Some(width)) = (first, width_of(concat.outs[0])) else { return Vec::new() };
    let cos = rotated(graph, part).and_then(|map| map.ins.get(2)).and_then(|&cos| producer(graph, cos));
    let (Some(size), Some(&rows)) = (width_of(part), cos.and_then(|view| view.ins.first())) else { return Vec::new() };
    // Pairs that are neighbours are put beside each other before they are a part of a head.
    let interleaved = !producer(graph, part).is_some_and(|node| matches!(node.kind, NodeKind::Op(Op::Map(_))));
    let rotary = if interleaved { size } else { size.saturating_mul(2) };
    let x = ty(graph, node.outs[0]);
    let rope = |per_row| Rope { width, rotary, interleaved, per_row };
    let looked_up =
        producer(graph, rows).filter(|node| matches!(node.kind, NodeKind::Op(Op::Gather(_)))).map(|gather| {
            let [table, positions] = [0, 1].map(|i| ty(graph, gather.ins[i]));
            Guess::new(rope(false), [x.clone(), table.clone(), table, positions])
        });
    let of_rows = Guess::new(rope(true), [x.clone(), ty(graph, rows), ty(graph, rows)]);
    looked_up.into_iter().chain([of_rows]).collect()
}

/// The map that makes a value, whatever it is seen as since.
fn rotated(graph: &Graph, id: ValueId) -> Option<&Node> {
    let node = producer(graph, id)?;
    match &node.kind {
        NodeKind::Op(Op::Map(_)) => Some(node),
        NodeKind::Op(Op::View(_) | Op::Concat(_)) => rotated(graph, *node.ins.first()?),
        _ => None,
    }
}
