//! Plain attention without its matrix of scores: `softmax(q k^T) v` of contractions, views and maps becomes one tiled region.
//!
//! A block has some rows of queries of one head. It keeps their scores of all keys, makes them weights in place and
//! multiplies them with the values, so that scores never leave the block. Each row is whole: its largest score is known
//! before the first exponential, and nothing is rescaled. So every sum keeps the order of additions of its op, no bit
//! changes, and this is done in `exact` too. Rescaling while keys pass by (Milakov and Gimelshein, "Online normalizer
//! calculation for softmax", 2018) would change bits and saves a block nothing while its rows fit its memory.
//!
//! What stands between the two products may be anything that tiles hold: a scale, a bias, a mask, a softmax with or without
//! its shift. Views of queries, keys and values join, since they cost nothing where they are read.

mod find;
mod grid;

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::names;
use crate::readers::ValueUses;
use crate::rebuild::Rebuild;
use find::AttentionMatch;
use grid::AttentionRegion;
use yirage_ir::{Graph, NodeKind, RegionKind, ValueId};
use yirage_plan::Target;

const WHAT: &str = "attention without its matrix of scores";

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
    let readers = ValueUses::of(graph);
    let mut regions: Vec<(AttentionMatch, AttentionRegion)> = Vec::new();
    for found in find::all(graph, &readers) {
        let refused = |why: String| Decision::refused(names::of_nodes(graph, &found.nodes), WHAT, why);
        match fits(graph, target, &readers, &found) {
            Ok(blocks) => {
                decisions.tell(|| Decision::done(names::of_nodes(graph, &found.nodes), WHAT, blocks.why()));
                regions.push((found, blocks));
            }
            Err(why) => decisions.tell(|| refused(why)),
        }
    }
    if regions.is_empty() { Ok(graph.clone()) } else { rebuilt(graph, &readers, regions) }
}

/// The region of an attention.
///
/// # Errors
/// Why it is none.
fn fits(
    graph: &Graph,
    target: &Target,
    readers: &ValueUses,
    found: &AttentionMatch,
) -> Result<AttentionRegion, String> {
    if !target.runs_regions(RegionKind::Tiled) {
        return Err("no kernel of the target runs regions of this kind".into());
    }
    if !target.capabilities.flash_attention {
        return Err("the target's facts say that it has no attention without scores in memory".into());
    }
    if let Some(wanted) = found.wanted_elsewhere(graph, readers) {
        return Err(readers.wanted(graph, wanted, &found.nodes));
    }
    AttentionRegion::of(graph, target, found)
}

/// The graph with the regions in place of their nodes.
fn rebuilt(
    graph: &Graph,
    readers: &ValueUses,
    regions: Vec<(AttentionMatch, AttentionRegion)>,
) -> Result<Graph, CompileError> {
    let mut inside = vec![false; graph.nodes.len()];
    for (found, _) in &regions {
        found.nodes.iter().for_each(|&n| inside[n] = true);
    }
    // A view that regions alone read is no node any more.
    for (_, blocks) in &regions {
        for &n in blocks.views.iter().rev() {
            let out = graph.nodes[n].outs[0];
            inside[n] |= !readers.is_output(out) && readers.all(out).iter().all(|&reader| inside[reader]);
        }
    }
    let mut r = Rebuild::new(graph, |_| true)?;
    for (n, node) in graph.nodes.iter().enumerate() {
        if let Some((found, blocks)) = regions.iter().find(|(found, _)| found.last() == n) {
            let ins: Vec<ValueId> = blocks.reads.iter().map(|&i| r.get(i)).collect();
            let out = found.out(graph);
            let name = graph.value(out).name.clone();
            let made = r.add(NodeKind::Region(Box::new(blocks.region.clone())), &ins, &[name])?;
            r.bind(out, made[0]);
        } else if !inside[n] {
            let ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
            r.copy(n, &ins)?;
        }
    }
    Ok(r.finish())
}
