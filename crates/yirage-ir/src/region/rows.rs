//! Regions of row-wise ops: whoever runs some rows runs all ops on them, one after the other.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::expr::is_float;
use crate::graph::{Graph, Node, NodeKind, ValueId, ValueSource};
use crate::op::Op;
use crate::types::Type;

/// The dimension that a row-wise node runs over; none for nodes that are not row-wise.
pub fn row_dim(graph: &Graph, node: &Node) -> Option<Dim> {
    let like = match &node.kind {
        NodeKind::Op(Op::KvAppend(_)) => node.ins.get(1)?,
        NodeKind::Op(op) if row_wise(graph, node, op) => node.outs.first()?,
        _ => return None,
    };
    graph.ty(*like).shape.first().copied()
}

fn row_wise(graph: &Graph, node: &Node, op: &Op) -> bool {
    let ins: Vec<Type> = node.ins.iter().map(|&i| row_type(graph, i)).collect();
    op.row_wise(&ins)
}

/// The type that rows are read as. The weights of a row-wise op lie in rows, which a device may hold as f32 and reads as
/// such, so f16 and bf16 count as f32. They stay what they are in weights that nothing but general products reads.
fn row_type(graph: &Graph, id: ValueId) -> Type {
    let ty = graph.ty(id);
    let weight = graph.value(id).source == ValueSource::Weight;
    if weight && is_float(ty.dtype) { Type { dtype: DType::F32, ..ty.clone() } } else { ty.clone() }
}

/// All ops are row-wise over one dimension, and what is made inside is read row by row.
pub(super) fn check(graph: &Graph) -> Result<(), String> {
    let mut rows = None;
    for node in &graph.nodes {
        let dim = row_dim(graph, node).ok_or_else(|| format!("`{}` is not row-wise", node.name()))?;
        if *rows.get_or_insert(dim) != dim {
            return Err(format!("`{}` runs over {dim} rows, others over {}", node.name(), rows.unwrap_or(dim)));
        }
        let NodeKind::Op(op) = &node.kind else { return Err("a region inside".into()) };
        for (i, &id) in node.ins.iter().enumerate() {
            let made = matches!(graph.value(id).source, ValueSource::Node { .. }) && graph.kv_cache_of(id).is_none();
            if made && op.whole(i, graph.ty(id)) {
                return Err(format!(
                    "`{}` reads all of `{}`, of which only some rows are made",
                    op.name(),
                    graph.value(id).name
                ));
            }
        }
    }
    Ok(())
}
