//! Inside of tiled regions: maps become one and join the reductions and contractions beside them, so that nothing between
//! them is in a block's memory. What a region accumulates, and in which order, stays.

use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use crate::{CompileOptions, chains, compose};
use yirage_ir::region::Tiled;
use yirage_ir::{Graph, NodeKind, Region, RegionKind, ValueId};
use yirage_plan::Target;

pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    options: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    if !options.fuse {
        decisions.tell(Decision::fusion_is_off);
        return Ok(graph.clone());
    }
    if !target.runs_regions(RegionKind::Tiled) {
        return Ok(graph.clone());
    }
    let mut r = Rebuild::new(graph, |_| true)?;
    for (n, node) in graph.nodes.iter().enumerate() {
        let ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
        let NodeKind::Region(region) = &node.kind else {
            r.copy(n, &ins)?;
            continue;
        };
        let Some(tiled) = &region.tiled else {
            r.copy(n, &ins)?;
            continue;
        };
        let mut inside = |graph: &Graph| {
            let composed = compose::run(graph, target, options, decisions)?;
            chains::fused(&composed, decisions)
        };
        let tiled = Tiled { block: inside(&tiled.block)?, ..(**tiled).clone() };
        let region = Region::tiled(inside(&region.graph)?, tiled);
        let names: Vec<String> = node.outs.iter().map(|&o| graph.value(o).name.clone()).collect();
        let made = r.add(NodeKind::Region(Box::new(region)), &ins, &names)?;
        node.outs.iter().zip(made).for_each(|(&old, new)| r.bind(old, new));
    }
    Ok(r.finish())
}
