//! Whether a graph is fused: limits of its size, and a table of measured times.

use crate::array::HostArray;
use crate::bound::BoundGraph;
use crate::fusion::{CallShape, FusionDecision};
use crate::options::CacheOptions;
use yirage_ir::Dims;

/// What the options say of a call.
pub(crate) fn decide(options: &CacheOptions, graph: &BoundGraph, dims: &Dims, inputs: &[HostArray]) -> FusionDecision {
    let nodes = graph.graph.nodes.len();
    if nodes < options.min_nodes_for_fusion {
        return FusionDecision::FewNodes { nodes, least: options.min_nodes_for_fusion };
    }
    if let Some(most) = options.max_graph_size.filter(|&most| nodes > most) {
        return FusionDecision::ManyNodes { nodes, most };
    }
    let elements = graph.largest(dims);
    if elements < options.min_tensor_elements {
        return FusionDecision::FewElements { elements, least: options.min_tensor_elements };
    }
    let Some(profile) = &options.profile else { return FusionDecision::NoProfile };
    let shape = CallShape::of(inputs);
    match profile.nearest(shape) {
        None => FusionDecision::NotProfiled(shape),
        Some(row) if row.unfused > row.fused * (1.0 + profile.margin) => FusionDecision::Pays(*row),
        Some(row) => FusionDecision::DoesNotPay(*row),
    }
}
