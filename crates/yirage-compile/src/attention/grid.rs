//! How attention is cut into blocks: heads apart, and the queries of a head into as many rows as a block has room for.

use super::find::AttentionMatch;
use crate::names;
use crate::terms::tiles::{Axes, block_fits, of_view, without_loop};
use crate::terms::{TermKind, Terms, Val};
use std::collections::HashMap;
use yirage_ir::op::{OpDef, Reduce, Softmax, View, ViewForm};
use yirage_ir::{Dim, Graph, Node, NodeKind, Op, Region, ValueId};
use yirage_plan::Target;

/// Most rows of a block: with more, fewer keys stay in the caches between one tile of rows and the next.
const MOST_ROWS: u32 = 64;
/// Fewest rows of a block of many queries: with fewer, reading the keys takes longer than multiplying them.
const LEAST_ROWS: u32 = 8;
/// Blocks that each worker finds at least, where there are as many queries.
const BLOCKS_PER_WORKER: u64 = 4;

/// Attention as a region.
pub(super) struct AttentionRegion {
    pub(super) region: Region,
    /// The values of the graph that the region reads.
    pub(super) reads: Vec<ValueId>,
    /// The views that are inside.
    pub(super) views: Vec<usize>,
    rows: u32,
    keys: Dim,
}

impl AttentionRegion {
    /// The blocks of an attention.
    ///
    /// # Errors
    /// Why it has none.
    pub(super) fn of(graph: &Graph, target: &Target, found: &AttentionMatch) -> Result<AttentionRegion, String> {
        let open = found.nodes.iter().flat_map(|&n| graph.nodes[n].ins.iter().chain(&graph.nodes[n].outs));
        if let Some(&id) = open.into_iter().find(|&&id| !graph.ty(id).is_fixed()) {
            let (value, ty) = (names::quoted(graph, id), graph.ty(id));
            let why = "blocks have fixed sizes, and those of a step are known with it alone";
            return Err(format!("{value} is {ty}: {why}"));
        }
        let (queries, heads) = axes(graph, found)?;
        let mut full = None;
        for views in &found.views {
            for rows in sizes(queries.size, heads.iter().map(|axis| u64::from(axis.size)).product(), target) {
                let (grid, cut) = grid(&queries, &heads, rows);
                let Some((region, reads)) = region(graph, found, views, grid, cut) else { continue };
                if block_fits(&region, target) {
                    let keys = graph.ty(graph.nodes[found.scores].outs[0]).shape.last().copied();
                    return Ok(AttentionRegion {
                        region,
                        reads,
                        views: views.clone(),
                        rows,
                        keys: keys.unwrap_or(Dim::Const(0)),
                    });
                }
                full = Some(full.map_or(rows, |least: u32| least.min(rows)));
            }
        }
        Err(match full {
            Some(rows) => format!("a block has no room for the scores of {rows} rows"),
            None => format!(
                "its {} queries are not cut into tiles: what is between its products reads across them, or no number of rows \
                 from {LEAST_ROWS} to {MOST_ROWS} divides them",
                queries.size
            ),
        })
    }

    /// Why it was done.
    pub(super) fn why(&self) -> String {
        let (rows, keys) = (self.rows, self.keys);
        format!(
            "blocks of {rows} rows keep their scores of {keys} keys; rows are whole, so each sum has the order of its op and \
             no bit changes"
        )
    }
}

/// The region with these views inside, and the values that it reads; nothing where it cannot be cut so.
fn region(
    graph: &Graph,
    found: &AttentionMatch,
    views: &[usize],
    grid: [u32; 3],
    cut: Axes,
) -> Option<(Region, Vec<ValueId>)> {
    let mut terms = Terms::default();
    let (out, given) = import(graph, found, views, &mut terms)?;
    let (region, reads) = without_loop(&terms, out, grid, cut)?;
    // What reads across rows would have the block compute its scores again, of all rows.
    let products = region.tiled.as_ref()?.block.nodes.iter().filter(|node| is_contraction(node)).count();
    if products != found.nodes.iter().filter(|&&n| is_contraction(&graph.nodes[n])).count() {
        return None;
    }
    let of = |v: &Val| match terms.term(*v).kind {
        TermKind::Input(at) => given.get(at as usize).copied(),
        TermKind::Node(_) => None,
    };
    let reads = reads.iter().map(of).collect::<Option<Vec<_>>>()?;
    Some((region, reads))
}

fn is_contraction(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Op(Op::Contract(_)))
}

/// A dimension of the region's output that blocks cut.
struct GridAxis {
    dim: u32,
    size: u32,
}

/// The dimension of queries, and at most two of heads: those that are largest.
fn axes(graph: &Graph, found: &AttentionMatch) -> Result<(GridAxis, Vec<GridAxis>), String> {
    let product = graph.ty(graph.nodes[found.value_matmul].outs[0]);
    let rank = product.shape.len();
    let behind = |dim: usize| {
        let after = found.nodes.iter().filter(|&&n| n > found.value_matmul);
        after.into_iter().try_fold(dim as u32, |dim, &n| match &graph.nodes[n].kind {
            NodeKind::Op(Op::View(view)) => of_view(&view.form, &graph.ty(graph.nodes[n].ins[0]).shape, dim),
            _ => Some(dim),
        })
    };
    let axis = |at: usize| {
        let size = product.shape[at].as_const().and_then(|n| u32::try_from(n).ok())?;
        Some(GridAxis { dim: behind(at)?, size })
    };
    let queries = rank.checked_sub(2).and_then(axis).ok_or("its queries are no dimension of the result")?;
    let mut heads: Vec<GridAxis> = (0..rank - 2).filter_map(axis).filter(|axis| axis.size > 1).collect();
    while heads.len() > 2 {
        let smallest = (0..heads.len()).min_by_key(|&at| heads[at].size).unwrap_or(0);
        heads.remove(smallest);
    }
    Ok((queries, heads))
}

/// Rows of a block, best first.
fn sizes(queries: u32, heads: u64, target: &Target) -> Vec<u32> {
    let mut all: Vec<u32> = (1..=MOST_ROWS.min(queries)).rev().filter(|rows| queries.is_multiple_of(*rows)).collect();
    all.retain(|&rows| rows >= LEAST_ROWS.min(queries));
    let shared = |rows: u32| heads * u64::from(queries / rows) >= BLOCKS_PER_WORKER * u64::from(target.workers);
    // Enough blocks for all workers first, then what there is.
    let (mut first, rest): (Vec<u32>, Vec<u32>) = all.into_iter().partition(|&rows| shared(rows));
    first.extend(rest);
    first
}

/// The grid: rows of one head follow each other, so that who has a block often finds its keys at hand.
fn grid(queries: &GridAxis, heads: &[GridAxis], rows: u32) -> ([u32; 3], Axes) {
    let mut all: Vec<(u32, u32)> = vec![(queries.size / rows, queries.dim)];
    all.extend(heads.iter().rev().map(|axis| (axis.size, axis.dim)));
    let (mut grid, mut axes) = ([1; 3], [None; 3]);
    for (at, (n, dim)) in all.into_iter().enumerate().filter(|(_, (n, _))| *n > 1) {
        (grid[at], axes[at]) = (n, Some(dim));
    }
    (grid, axes)
}

/// The terms of an attention and the values that are their inputs; nothing where a term does not take what it would read.
fn import(graph: &Graph, found: &AttentionMatch, views: &[usize], terms: &mut Terms) -> Option<(Val, Vec<ValueId>)> {
    let mut nodes: Vec<usize> = found.nodes.iter().chain(views).copied().collect();
    nodes.sort_unstable();
    let mut given: Vec<ValueId> = Vec::new();
    let mut is: HashMap<ValueId, Val> = HashMap::new();
    for n in nodes {
        let node = &graph.nodes[n];
        let mut args = Vec::with_capacity(node.ins.len());
        for &i in &node.ins {
            let v = *is.entry(i).or_insert_with(|| {
                given.push(i);
                terms.input(given.len() as u32 - 1, graph.ty(i).clone())
            });
            args.push(v);
        }
        let made = match &node.kind {
            NodeKind::Op(Op::Softmax(op)) => softmax(terms, op, args[0])?,
            NodeKind::Op(Op::View(View { form: ViewForm::Reshape(shape) })) => reshaped(terms, shape, args[0])?,
            NodeKind::Op(op) => terms.op(op.clone(), &args)?,
            NodeKind::Region(_) => return None,
        };
        is.insert(node.outs[0], made);
    }
    Some((is.get(&found.out(graph)).copied()?, given))
}

/// A value in another shape. One that was in another shape before is seen from there.
fn reshaped(terms: &mut Terms, shape: &[Dim], x: Val) -> Option<Val> {
    let from = match terms.view(x) {
        Some((ViewForm::Reshape(_), from)) => from,
        _ => x,
    };
    if terms.shape(from) == shape { Some(from) } else { terms.add_view(ViewForm::Reshape(shape.to_vec()), from) }
}

/// The softmax of rows, in general ops. Rows that are a reshaped matrix of each head are those of the heads.
fn softmax(terms: &mut Terms, op: &Softmax, x: Val) -> Option<Val> {
    let rows = terms.ty(x).clone();
    let heads = match terms.view(x) {
        Some((ViewForm::Reshape(_), from)) if terms.shape(from).last() == rows.shape.last() => Some(from),
        _ => None,
    };
    let form = op.lower(&[rows.dense()]).ok()?;
    let mut is: HashMap<ValueId, Val> = HashMap::from([(*form.inputs.first()?, heads.unwrap_or(x))]);
    for node in &form.nodes {
        let args = node.ins.iter().map(|i| is.get(i).copied()).collect::<Option<Vec<_>>>()?;
        let NodeKind::Op(general) = &node.kind else { return None };
        let last = terms.rank(args[0]).checked_sub(1)? as u32;
        let general = match general {
            Op::Reduce(reduce) => Op::Reduce(Reduce::new(reduce.kind, &[last], reduce.keep)),
            other => other.clone(),
        };
        is.insert(node.outs[0], terms.op(general, &args)?);
    }
    let made = is.get(form.outputs.first()?).copied()?;
    if heads.is_some() { reshaped(terms, &rows.shape, made) } else { Some(made) }
}
