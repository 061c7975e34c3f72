//! Maps of maps become one map: a value that only another map reads is never in memory.
//!
//! Every function is still evaluated and rounded as before, so no bit changes. A map of a smaller shape stays, because
//! composed it would be computed again for each element that it meets.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::names;
use crate::readers::ValueUses;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::op::Map;
use yirage_ir::{Expr, Graph, Node, NodeKind, Op, ValueId};
use yirage_plan::Target;

/// Why a map is computed apart from the map that reads it.
#[derive(Clone, Copy)]
enum Apart {
    /// Its value is wanted elsewhere.
    Shared,
    /// The reader's shape is larger.
    Shape,
    /// The expression would be too long.
    Limits,
}

/// An expression of values of the old graph.
#[derive(Clone)]
struct Composed {
    expr: Expr,
    ins: Vec<ValueId>,
}

pub(crate) fn run(
    graph: &Graph,
    _: &Target,
    options: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    if !options.fuse {
        decisions.tell(Decision::fusion_is_off);
        return Ok(graph.clone());
    }
    let readers = ValueUses::of(graph);
    let mut r = Rebuild::new(graph, |_| true)?;
    let mut inner: HashMap<ValueId, Composed> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let (Some(map), [out]) = (as_map(node), &node.outs[..]) else {
            let ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
            r.copy(n, &ins)?;
            continue;
        };
        let composed = compose(map, node, &inner);
        let reader = map_reading(graph, &readers, *out);
        let joins = reader.map(|reader| joins(graph, &readers, reader, &inner, &composed, *out));
        if let (Some(reader), Some(joins)) = (reader, joins) {
            decisions.tell(|| decision(graph, &readers, *out, reader, joins));
            if joins.is_ok() {
                inner.insert(*out, composed);
                continue;
            }
        }
        let ins: Vec<ValueId> = composed.ins.iter().map(|&i| r.get(i)).collect();
        let name = graph.value(*out).name.clone();
        let made = r.add(NodeKind::Op(Map { expr: composed.expr }.into()), &ins, &[name])?;
        r.bind(*out, made[0]);
    }
    Ok(r.finish())
}

fn as_map(node: &Node) -> Option<&Map> {
    if let NodeKind::Op(Op::Map(map)) = &node.kind { Some(map) } else { None }
}

/// The first map that reads a value.
fn map_reading(graph: &Graph, readers: &ValueUses, value: ValueId) -> Option<usize> {
    readers.all(value).iter().copied().find(|&n| as_map(&graph.nodes[n]).is_some())
}

/// Whether a map whose value is `out` becomes a part of the map that reads it.
///
/// # Errors
/// Why not.
fn joins(
    graph: &Graph,
    readers: &ValueUses,
    reader: usize,
    inner: &HashMap<ValueId, Composed>,
    composed: &Composed,
    out: ValueId,
) -> Result<(), Apart> {
    if readers.only(out) != Some(reader) {
        return Err(Apart::Shared);
    }
    if graph.ty(graph.nodes[reader].outs[0]).shape != graph.ty(out).shape {
        return Err(Apart::Shape);
    }
    if grows(graph, reader, inner, composed, out) { Ok(()) } else { Err(Apart::Limits) }
}

/// The expression of a map with those of its inputs in it.
fn compose(map: &Map, node: &Node, inner: &HashMap<ValueId, Composed>) -> Composed {
    let mut ins: Vec<ValueId> = Vec::new();
    let mut name = |id: ValueId| {
        let at = ins.iter().position(|&i| i == id).unwrap_or_else(|| {
            ins.push(id);
            ins.len() - 1
        });
        Expr::input(at as u32)
    };
    let parts: Vec<Expr> = node
        .ins
        .iter()
        .map(|id| match inner.get(id) {
            None => name(*id),
            Some(c) => {
                let names: Vec<Expr> = c.ins.iter().map(|&i| name(i)).collect();
                c.expr.substitute(|i| names[i as usize].clone())
            }
        })
        .collect();
    Composed { expr: map.expr.substitute(|i| parts[i as usize].clone()), ins }
}

fn decision(graph: &Graph, readers: &ValueUses, out: ValueId, reader: usize, joins: Result<(), Apart>) -> Decision {
    let what = format!("computed inside of the map {}", names::listed(&names::of_node(graph, reader)));
    let values = names::one(graph, out);
    match joins {
        Ok(()) => Decision::done(values, what, "nothing else reads it, and both have one shape"),
        Err(Apart::Shared) => Decision::refused(values, what, readers.wanted(graph, out, &[reader])),
        Err(Apart::Shape) => Decision::refused(values, what, "it is smaller and would be computed more than once"),
        Err(Apart::Limits) => Decision::refused(values, what, "the expression would be longer than expressions may be"),
    }
}

/// Whether the map that reads `out` is within the limits of expressions with this one in it.
fn grows(graph: &Graph, reader: usize, inner: &HashMap<ValueId, Composed>, composed: &Composed, out: ValueId) -> bool {
    let node = &graph.nodes[reader];
    let Some(map) = as_map(node) else { return false };
    let mut with = inner.clone();
    with.insert(out, composed.clone());
    let all = compose(map, node, &with);
    let types: Vec<_> = all.ins.iter().map(|&i| graph.ty(i).dtype).collect();
    all.expr.infer(&types).is_ok()
}
