//! One tiling of what some outputs are made of. What a block needs is found from its tiles of the outputs backwards; a
//! value of which different parts are wanted is computed once for each.

use super::cuts::{of_part, wanted};
use super::sizes::{Axes, Tilings};
use super::{is_outside, reduced};
use crate::terms::{GraphSignature, export};
use crate::terms::{TermKind, Terms, Val};
use std::collections::HashMap;
use yirage_ir::region::{Accumulate, CONTINUED, TileIn, TileOut, Tiled};
use yirage_ir::{Dim, Graph, Op, Region, Type, ValueSource};

/// A tiling that is tried.
pub(super) struct Tiling<'a> {
    pub(super) grid: [u32; 3],
    /// The dimension of the outputs that each axis of the grid cuts.
    pub(super) axes: Axes,
    pub(super) loops: u32,
    /// The contractions and reductions that the loop cuts.
    pub(super) looped: &'a [Val],
    pub(super) tilings: &'a Tilings,
}

/// A part of a value, computed in the loop or after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TilePart {
    v: Val,
    grid: Axes,
    by_loop: Option<u32>,
    in_body: bool,
}

struct Building<'a> {
    tiling: &'a Tiling<'a>,
    whole: &'a Terms,
    body: Terms,
    block: Terms,
    /// Tiles of the node's inputs, which are inputs of the body.
    tiles: Vec<(Val, TileIn)>,
    /// What the block reads: accumulators by their number, tiles by theirs behind [`TILES`].
    accumulators: Vec<Val>,
    reads: Vec<u32>,
    known: HashMap<TilePart, Val>,
}

/// Where the numbers of tiles begin among the inputs of the block's terms.
const TILES: u32 = 1 << 16;
/// Most tiles and accumulators of a region that is proposed.
const MOST: usize = 64;

impl Tiling<'_> {
    /// The region, and what the node reads; nothing where it cannot be.
    pub(super) fn built(&self, whole: &Terms, outputs: &[Val]) -> Option<(Region, Vec<Val>)> {
        let mut b = Building {
            tiling: self,
            whole,
            body: Terms::default(),
            block: Terms::default(),
            tiles: Vec::new(),
            accumulators: Vec::new(),
            reads: Vec::new(),
            known: HashMap::new(),
        };
        let part = |v: Val| TilePart { v, grid: self.axes, by_loop: None, in_body: false };
        let made = outputs.iter().map(|&v| b.part(part(v))).collect::<Option<Vec<Val>>>()?;
        let looped = self.loops > 1;
        if looped == b.accumulators.is_empty() || b.tiles.is_empty() {
            return None;
        }
        let (body, block) = (b.body_graph()?, b.block_graph(&made)?);
        let tiled = Tiled {
            grid: self.grid,
            loops: self.loops,
            ins: b.tiles.iter().map(|(_, cut)| *cut).collect(),
            outs: vec![TileOut { grid: self.axes }; outputs.len()],
            accumulators: vec![Accumulate::Continue; b.accumulators.len()],
            running: Vec::new(),
            reads: b.reads.clone(),
            block,
        };
        Some((Region::tiled(body, tiled), b.tiles.iter().map(|(v, _)| *v).collect()))
    }
}

impl Building<'_> {
    fn terms(&mut self, in_body: bool) -> &mut Terms {
        if in_body { &mut self.body } else { &mut self.block }
    }

    /// The type of a part; nothing where it does not divide.
    fn ty(&self, part: &TilePart) -> Option<Type> {
        let ty = self.whole.ty(part.v);
        let mut shape = ty.shape.clone();
        let cuts = part.grid.iter().copied().zip(self.tiling.grid).chain([(part.by_loop, self.tiling.loops)]);
        for (dim, by) in cuts.filter_map(|(dim, by)| Some((dim?, by))) {
            let size = shape.get_mut(dim as usize)?;
            match *size {
                Dim::Const(n) if n.is_multiple_of(by) && n > 0 => *size = Dim::Const(n / by),
                _ => return None,
            }
        }
        Some(Type::new(ty.dtype, shape))
    }

    fn part(&mut self, part: TilePart) -> Option<Val> {
        if let Some(&known) = self.known.get(&part) {
            return Some(known);
        }
        let made = if is_outside(self.whole, part.v) {
            self.tile(part)?
        } else if !part.in_body && self.tiling.looped.contains(&part.v) {
            self.accumulated(part)?
        } else {
            self.computed(part)?
        };
        self.known.insert(part, made);
        Some(made)
    }

    /// A tile of an input of the node.
    fn tile(&mut self, part: TilePart) -> Option<Val> {
        let (cut, ty) = (TileIn { grid: part.grid, by_loop: part.by_loop }, self.ty(&part)?);
        let outside = self.whole.ty(part.v);
        if !self.tiling.tilings.allows(cut.grid, cut.by_loop)
            || outside.activation_format.is_some()
            || !outside.dtype.is_plain()
        {
            return None;
        }
        let at = match self.tiles.iter().position(|tile| *tile == (part.v, cut)) {
            Some(at) => at,
            None => {
                self.tiles.push((part.v, cut));
                self.tiles.len() - 1
            }
        } as u32;
        if self.tiles.len() > MOST {
            return None;
        }
        if part.in_body {
            return Some(self.body.input(at, ty));
        }
        if !self.reads.contains(&at) {
            self.reads.push(at);
        }
        Some(self.block.input(TILES + at, ty))
    }

    /// What the loop makes of a contraction or reduction.
    fn accumulated(&mut self, part: TilePart) -> Option<Val> {
        let (_, dims) = reduced(self.whole, part.v)?;
        let (op, args) = self.whole.producing_op(part.v)?;
        let (op, args) = (op.clone(), args.to_vec());
        let mut ins = Vec::with_capacity(args.len());
        for (at, (&v, &dim)) in args.iter().zip(&dims).enumerate() {
            let grid = self.grid_of(&part, at)?;
            ins.push(self.part(TilePart { v, grid, by_loop: Some(dim), in_body: true })?);
        }
        if let Op::Reduce(_) = op {
            let tile = self.body.shape(ins[0])[dims[0] as usize].as_const()?;
            if !tile.is_multiple_of(CONTINUED) {
                return None;
            }
        }
        let made = self.body.op(op, &ins)?;
        let ty = self.ty(&part).filter(|ty| ty == self.body.ty(made))?;
        // One value may be wanted twice, and a value that is accumulated is given once.
        if self.accumulators.contains(&made) || self.accumulators.len() == MOST {
            return None;
        }
        self.accumulators.push(made);
        Some(self.block.input(self.accumulators.len() as u32 - 1, ty))
    }

    /// An op on parts.
    fn computed(&mut self, part: TilePart) -> Option<Val> {
        let (op, args) = self.whole.producing_op(part.v)?;
        let (op, args) = (op.clone(), args.to_vec());
        let mut ins = Vec::with_capacity(args.len());
        for (at, &v) in args.iter().enumerate() {
            let grid = self.grid_of(&part, at)?;
            let by_loop = match part.by_loop {
                Some(dim) => *wanted(self.whole, part.v, dim)?.get(at)?,
                None => None,
            };
            ins.push(self.part(TilePart { v, grid, by_loop, in_body: part.in_body })?);
        }
        // Dimensions are cut once: where the grid and the loop meet in one, parts of parts lie otherwise.
        let ty = self.ty(&part)?;
        let op = of_part(&op, &self.whole.ty(part.v).shape, &ty.shape)?;
        let made = self.terms(part.in_body).op(op, &ins)?;
        (*self.terms(part.in_body).ty(made) == ty).then_some(made)
    }

    /// How the grid cuts input `at` of a value.
    fn grid_of(&self, part: &TilePart, at: usize) -> Option<Axes> {
        let mut grid = [None; 3];
        for (axis, dim) in part.grid.iter().enumerate() {
            if let Some(dim) = dim {
                grid[axis] = *wanted(self.whole, part.v, *dim)?.get(at)?;
            }
        }
        Some(grid)
    }

    fn body_graph(&self) -> Option<Graph> {
        let inputs = self.tiles.iter().enumerate().map(|(at, (v, cut))| {
            let ty = self.ty(&TilePart { v: *v, grid: cut.grid, by_loop: cut.by_loop, in_body: true })?;
            Some((format!("i{at}"), ty, ValueSource::StepInput))
        });
        let outputs = (0..self.accumulators.len()).map(|at| format!("a{at}")).collect();
        let like = GraphSignature { name: "body".into(), inputs: inputs.collect::<Option<_>>()?, outputs };
        export(&like, &self.body, &self.accumulators, &self.body.reachable(&self.accumulators)).ok()
    }

    /// The graph of the block, whose inputs are the accumulators and then what it reads.
    fn block_graph(&self, made: &[Val]) -> Option<Graph> {
        let accumulators = self
            .accumulators
            .iter()
            .enumerate()
            .map(|(at, &v)| Some((at as u32, (format!("a{at}"), self.body.ty(v).clone(), ValueSource::StepInput))));
        let reads = self.reads.iter().map(|&at| {
            let (v, cut) = self.tiles[at as usize];
            let ty = self.ty(&TilePart { v, grid: cut.grid, by_loop: cut.by_loop, in_body: false })?;
            Some((TILES + at, (format!("i{at}"), ty, ValueSource::StepInput)))
        });
        let inputs: Vec<(u32, (String, Type, ValueSource))> = accumulators.chain(reads).collect::<Option<_>>()?;
        // The terms know inputs by number; here they have the places of the block's own.
        let mut placed = Terms::default();
        let mut is: HashMap<Val, Val> = HashMap::new();
        for term in self.block.reachable(made) {
            let old = self.block.term(Val { term, out: 0 });
            let new = match &old.kind {
                TermKind::Input(number) => {
                    let at = inputs.iter().position(|(n, _)| n == number)?;
                    placed.input(at as u32, old.types[0].clone())
                }
                TermKind::Node(kind) => {
                    let args: Vec<Val> = old.args.iter().map(|v| is[v]).collect();
                    Val { term: placed.node(kind.clone(), &args)?, out: 0 }
                }
            };
            is.insert(Val { term, out: 0 }, new);
        }
        let outputs: Vec<Val> = made.iter().map(|v| is[v]).collect();
        let names = (0..outputs.len()).map(|at| format!("o{at}")).collect();
        let like = GraphSignature {
            name: "block".into(),
            inputs: inputs.into_iter().map(|(_, input)| input).collect(),
            outputs: names,
        };
        export(&like, &placed, &outputs, &placed.reachable(&outputs)).ok()
    }
}
