//! Proposes tiled regions: the general ops that outputs are made of as one grid of blocks, with the loops and tile sizes
//! that are worth trying. Every loop continues the order of additions of the op that it cuts, so that a tiling alone
//! changes no bit.

mod build;
mod cuts;
mod sizes;

pub use cuts::of_view;
pub use sizes::Axes;
pub use sizes::Tilings;

use super::{TermKind, Terms, Val};
use build::Tiling;
use std::collections::{BTreeMap, HashSet};
use yirage_ir::expr::{Func, Term};
use yirage_ir::op::Map;
use yirage_ir::region::block_bytes;
use yirage_ir::{Dim, NodeKind, Op, Region};
use yirage_plan::Target;

/// The outputs as tiled regions make them, one list a tiling; `refused` counts those that are none.
pub fn proposals(
    terms: &mut Terms,
    outputs: &[Val],
    target: &Target,
    tilings: &Tilings,
    refused: &mut u64,
) -> Vec<Vec<Val>> {
    // All outputs are one region, which lays them out alike.
    let fixed =
        |v: &Val| terms.ty(*v).is_fixed() && is_general(terms, *v) && terms.shape(*v) == terms.shape(outputs[0]);
    if outputs.is_empty() || !outputs.iter().all(fixed) {
        return Vec::new();
    }
    let shape: Vec<u32> =
        terms.shape(outputs[0]).iter().filter_map(|d| d.as_const().and_then(|n| u32::try_from(n).ok())).collect();
    // One region of attention's two products is attention without its scores in memory.
    if !target.capabilities.flash_attention && is_attention(terms, outputs) {
        *refused += 1;
        return Vec::new();
    }
    let mut made = Vec::new();
    for looped in loops(terms, outputs) {
        let size = looped.first().and_then(|&v| reduced(terms, v)).map_or(1, |(size, _)| size);
        for (grid, axes) in tilings.grids(&shape) {
            for loops in tilings.loops(size, looped.is_empty()) {
                let tiling = Tiling { grid, axes, loops, looped: &looped, tilings };
                match tiling.built(terms, outputs) {
                    Some((region, _)) if !block_fits(&region, target) => *refused += 1,
                    None => *refused += 1,
                    Some((region, ins)) => match terms.node(NodeKind::Region(Box::new(region)), &ins) {
                        None => *refused += 1,
                        Some(term) => {
                            made.push((0..outputs.len() as u32).map(|out| Val { term, out }).collect());
                        }
                    },
                }
            }
        }
    }
    made
}

/// A value as a tiled region without a loop, and what the node reads: each axis of the grid cuts a dimension of the value.
/// Nothing where no parts of what it is made of make its parts.
pub fn without_loop(terms: &Terms, v: Val, grid: [u32; 3], axes: Axes) -> Option<(Region, Vec<Val>)> {
    Tiling { grid, axes, loops: 1, looped: &[], tilings: &Tilings::default() }.built(terms, &[v])
}

/// Whether a block of a tiled region has room on a target.
pub fn block_fits(region: &Region, target: &Target) -> bool {
    let needed =
        region.tiled.as_ref().and_then(|tiled| block_bytes(&region.graph, tiled, target.limits.right_side_piece));
    needed.is_some_and(|bytes| target.limits.block_bytes.is_none_or(|limit| bytes <= limit))
}

/// Whether a product reads exponentials of what another product made, as attention's second one does.
fn is_attention(terms: &Terms, outputs: &[Val]) -> bool {
    let (mut scores, mut exponentials) = (HashSet::new(), HashSet::new());
    for &term in &terms.reachable(outputs) {
        let v = Val { term, out: 0 };
        let Some((op, args)) = terms.producing_op(v).filter(|_| is_general(terms, v)) else { continue };
        let any = |of: &HashSet<u32>| args.iter().any(|arg| of.contains(&arg.term));
        match op {
            Op::Contract(_) if any(&exponentials) => return true,
            Op::Contract(_) => _ = scores.insert(term),
            Op::Map(map) if any(&scores) && has_exp(map) => _ = exponentials.insert(term),
            _ if any(&exponentials) => _ = exponentials.insert(term),
            _ if any(&scores) => _ = scores.insert(term),
            _ => {}
        }
    }
    false
}

fn has_exp(map: &Map) -> bool {
    map.expr.terms().iter().any(|term| matches!(term, Term::Call(Func::Exp, _)))
}

/// Whether a value is made by an op that tiles may hold.
fn is_general(terms: &Terms, v: Val) -> bool {
    let Some((op, _)) = terms.producing_op(v) else { return false };
    let general = matches!(
        op,
        Op::Map(_) | Op::Reduce(_) | Op::View(_) | Op::Contract(_) | Op::Concat(_) | Op::Fill(_) | Op::Iota(_)
    );
    general && terms.ty(v).is_fixed()
}

/// The size that a contraction or a reduction along one dimension sums over, and the dimension of each of its inputs.
fn reduced(terms: &Terms, v: Val) -> Option<(u32, Vec<u32>)> {
    let (op, args) = terms.producing_op(v)?;
    let dims = match op {
        Op::Contract(_) => vec![terms.rank(args[0]).checked_sub(1)? as u32, terms.rank(args[1]).checked_sub(2)? as u32],
        Op::Reduce(reduce) => match reduce.axes.0[..] {
            [axis] => vec![axis],
            _ => return None,
        },
        _ => return None,
    };
    match terms.shape(args[0])[dims[0] as usize] {
        Dim::Const(size) if size > 1 => Some((size, dims)),
        _ => None,
    }
}

/// Which contractions and reductions a loop may cut together: those over one size of which none depends on another, once
/// the first ones and once the last ones; and none.
fn loops(terms: &Terms, outputs: &[Val]) -> Vec<Vec<Val>> {
    let order = terms.reachable(outputs);
    let mut by_size: BTreeMap<u32, Vec<Val>> = BTreeMap::new();
    for v in order.iter().map(|&term| Val { term, out: 0 }).filter(|&v| is_general(terms, v)) {
        if let Some((size, _)) = reduced(terms, v) {
            by_size.entry(size).or_default().push(v);
        }
    }
    let mut sets: Vec<Vec<Val>> = vec![Vec::new()];
    for all in by_size.values() {
        let of_size: HashSet<u32> = all.iter().map(|v| v.term).collect();
        let first = independent(terms, &order, &of_size, true);
        let last = independent(terms, &order, &of_size, false);
        for terms in [first, last] {
            let set: Vec<Val> = all.iter().copied().filter(|v| terms.contains(&v.term)).collect();
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
    }
    sets
}

/// Of some terms those that depend on none of the others, or on which none does.
fn independent(terms: &Terms, order: &[u32], of: &HashSet<u32>, first: bool) -> HashSet<u32> {
    let mut reached: HashSet<u32> = HashSet::new();
    let mut kept = HashSet::new();
    let args = |term: u32| terms.term(Val { term, out: 0 }).args.iter().map(|v| v.term);
    if first {
        for &term in order {
            let behind = args(term).any(|arg| of.contains(&arg) || reached.contains(&arg));
            if behind {
                reached.insert(term);
            }
            if of.contains(&term) && !behind {
                kept.insert(term);
            }
        }
    } else {
        for &term in order.iter().rev() {
            let before = reached.contains(&term);
            if of.contains(&term) && !before {
                kept.insert(term);
            }
            if before || of.contains(&term) {
                reached.extend(args(term));
            }
        }
    }
    kept
}

/// Whether a term is an input or made by what tiles do not hold: a region reads it from memory.
fn is_outside(terms: &Terms, v: Val) -> bool {
    matches!(terms.term(v).kind, TermKind::Input(_)) || !is_general(terms, v)
}
