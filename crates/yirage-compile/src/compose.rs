//! Maps of maps become one map: a value that only another map reads is never in memory.
//!
//! Every function is still evaluated and rounded as before, so no bit changes. A map of a smaller shape stays, because
//! composed it would be computed again for each element that it meets.

use crate::Options;
use crate::error::CompileError;
use crate::readers::Readers;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::op::Map;
use yirage_ir::{Expr, Graph, Node, NodeKind, Op, ValueId};
use yirage_plan::Target;

/// An expression of values of the old graph.
#[derive(Clone)]
struct Composed {
    expr: Expr,
    ins: Vec<ValueId>,
}

pub(crate) fn run(graph: &Graph, _: &Target, options: &Options) -> Result<Graph, CompileError> {
    if !options.fuse {
        return Ok(graph.clone());
    }
    let readers = Readers::of(graph);
    let mut r = Rebuild::new(graph, |_| true)?;
    let mut inner: HashMap<ValueId, Composed> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let (Some(map), [out]) = (as_map(node), &node.outs[..]) else {
            let ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
            r.copy(n, &ins)?;
            continue;
        };
        let composed = compose(map, node, &inner);
        if let Some(reader) = readers.only(*out)
            && as_map(&graph.nodes[reader]).is_some()
            && graph.ty(graph.nodes[reader].outs[0]).shape == graph.ty(*out).shape
            && grows(graph, reader, &inner, &composed, *out)
        {
            inner.insert(*out, composed);
            continue;
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
