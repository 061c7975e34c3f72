//! Random tiled regions, and the same graphs without tiles.
//!
//! What is drawn is well typed: values are found for ops, not ops for values. Numbers stay small, so that what is added up
//! in different orders stays comparable.

use crate::setup::GraphSetup;
use std::collections::HashMap;
use yirage_hal::Record;
use yirage_ir::op::{Concat, Contract, Cut, Map, Op, Reduce, ReduceKind, View, ViewForm};
use yirage_ir::region::{Accumulate, CONTINUED, TileIn, TileOut, Tiled, unrolled};
use yirage_ir::rng::Rng;
use yirage_ir::{
    BuildError, DType, Dim, Dims, Expr, Format, Graph, GraphBuilder, NodeKind, Region, Tensor, Type, ValueId,
    ValueSource,
};
use yirage_plan::Precision;

/// Most elements of a tile.
const MOST: u32 = 512;

/// A graph with a tiled region, and the graph that it means.
#[derive(Clone, Debug)]
pub struct RandomTiledGraph {
    /// With the region.
    pub tiled: GraphSetup,
    /// With the ops of all its tiles instead.
    pub plain: GraphSetup,
    /// Whether the region says that no order of additions is its own.
    pub keeps_order: bool,
    /// Whether something is rounded to 16 bits.
    pub narrow: bool,
}

impl RandomTiledGraph {
    /// The graphs of a seed.
    ///
    /// # Errors
    /// What of them is not well typed: a fault of the drawing.
    pub fn of_seed(seed: u64) -> Result<RandomTiledGraph, String> {
        let mut draw = TiledGraphGenerator::new(seed);
        let (graph, keeps_order) = draw.graph().map_err(|e| e.to_string())?;
        let plain = without_tiles(&graph)?;
        let narrow = yirage_ir::text::print(&graph).contains("f16");
        let setup = |graph: Graph| with_random_inputs(graph, seed);
        Ok(RandomTiledGraph { tiled: setup(graph), plain: setup(plain), keeps_order, narrow })
    }
}

/// The graph with the ops of all tiles in place of its tiled regions.
///
/// # Errors
/// A region that has no such graph.
pub fn without_tiles(graph: &Graph) -> Result<Graph, String> {
    let mut b = GraphBuilder::new(graph.name.clone());
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    let told = |e: BuildError| e.to_string();
    for &i in &graph.inputs {
        let v = graph.value(i);
        map.insert(i, b.declare(&v.name, v.ty.clone(), v.source).map_err(told)?);
    }
    for (n, node) in graph.nodes.iter().enumerate() {
        let ins: Vec<ValueId> = node.ins.iter().map(|i| map[i]).collect();
        let made = match &node.kind {
            NodeKind::Region(region) if region.tiled.is_some() => {
                let types: Vec<Type> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
                let inner = unrolled(region, &types).map_err(|e| e.to_string())?;
                let mut within: HashMap<ValueId, ValueId> = inner.inputs.iter().copied().zip(ins).collect();
                for op in &inner.nodes {
                    let ins: Vec<ValueId> = op.ins.iter().map(|i| within[i]).collect();
                    let names: Vec<String> = op.outs.iter().map(|&o| format!("n{n}.{}", inner.value(o).name)).collect();
                    let made = b.node(op.kind.clone(), &ins, &names).map_err(told)?;
                    within.extend(op.outs.iter().copied().zip(made));
                }
                inner.outputs.iter().map(|o| within[o]).collect()
            }
            kind => {
                let names: Vec<String> = node.outs.iter().map(|&o| graph.value(o).name.clone()).collect();
                b.node(kind.clone(), &ins, &names).map_err(told)?
            }
        };
        map.extend(node.outs.iter().copied().zip(made));
    }
    graph.outputs.iter().for_each(|o| b.output(map[o]));
    Ok(b.finish())
}

/// A graph of step inputs and weights with elements for all of them, the same for inputs of one name.
pub fn with_random_inputs(graph: Graph, seed: u64) -> GraphSetup {
    let (mut step_inputs, mut weights) = (HashMap::new(), HashMap::new());
    for &id in &graph.inputs {
        let v = graph.value(id);
        let mut rng = Rng::new(seed ^ v.name.bytes().fold(7, |h, b| h * 31 + u64::from(b)));
        let n = v.ty.storage_elems(&Dims::default());
        match (v.source, v.ty.dtype) {
            (ValueSource::Weight, _) => {
                let shape: Vec<usize> = v.ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
                weights.insert(v.name.clone(), Tensor::f32(shape, (0..n).map(|_| rng.signed_f32()).collect()));
            }
            (_, DType::I32) => {
                let x: Vec<i32> = (0..n).map(|_| rng.index(200) as i32 - 100).collect();
                step_inputs.insert(v.name.clone(), Record::of(&x));
            }
            (_, DType::Stored(format)) if format != Format::F32 => {
                let (x, mut bytes): (Vec<f32>, _) =
                    ((0..n).map(|_| rng.signed_f32()).collect(), vec![0; v.ty.storage_bytes(&Dims::default())]);
                if let Some(encode) = format.info().encode {
                    encode(&x, &mut bytes);
                }
                step_inputs.insert(v.name.clone(), Record::of(&bytes));
            }
            _ => {
                let x: Vec<f32> = (0..n).map(|_| rng.signed_f32()).collect();
                step_inputs.insert(v.name.clone(), Record::of(&x));
            }
        }
    }
    let dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };
    GraphSetup { graph, weights, step_inputs, kv_caches: Vec::new(), dims, precision: Precision::Exact }
}

type TileBuildResult<T> = Result<T, BuildError>;

struct TiledGraphGenerator {
    rng: Rng,
    grid: [u32; 3],
    loops: u32,
}

/// A graph of a tile while it is drawn.
struct TileGraphBuilder {
    b: GraphBuilder,
    values: Vec<ValueId>,
    node_count: usize,
}

impl TileGraphBuilder {
    fn new(name: &str) -> TileGraphBuilder {
        TileGraphBuilder { b: GraphBuilder::new(name), values: Vec::new(), node_count: 0 }
    }

    fn input(&mut self, ty: &Type) -> TileBuildResult<ValueId> {
        let id = self.b.step_input(&format!("i{}", self.values.len()), ty.clone())?;
        self.values.push(id);
        Ok(id)
    }

    fn op(&mut self, op: impl Into<Op>, ins: &[ValueId]) -> TileBuildResult<ValueId> {
        self.node_count += 1;
        let id = self.b.op(&format!("t{}", self.node_count), op, ins)?;
        self.values.push(id);
        Ok(id)
    }

    fn sizes(&self, id: ValueId) -> Vec<u32> {
        self.b.ty(id).shape.iter().map(|d| d.get(&Dims::default()) as u32).collect()
    }

    fn map(&mut self, expr: &str, ins: &[ValueId]) -> TileBuildResult<ValueId> {
        let expr: Expr = expr.parse().unwrap_or_else(|e| panic!("{expr}: {e}"));
        self.op(Map { expr }, ins)
    }

    fn is_float(&self, id: ValueId) -> bool {
        self.b.ty(id).dtype != DType::I32
    }
}

impl TiledGraphGenerator {
    fn new(seed: u64) -> TiledGraphGenerator {
        let mut rng = Rng::new(seed);
        let grid = [*rng.choose(&[1, 2, 3, 4]), *rng.choose(&[1, 1, 2, 3]), *rng.choose(&[1, 1, 1, 2])];
        let loops = *rng.choose(&[1, 2, 2, 3, 4, 5]);
        TiledGraphGenerator { rng, grid, loops }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.one_in(n)
    }

    fn graph(&mut self) -> TileBuildResult<(Graph, bool)> {
        let mut outer = GraphBuilder::new("drawn");
        let mut body = TileGraphBuilder::new("body");
        let (mut ins, mut cuts) = (Vec::new(), Vec::new());
        for at in 0..1 + self.rng.index(3) {
            let (tile, cut, whole) = self.tile(at);
            ins.push(self.outer(&mut outer, at, whole)?);
            body.input(&tile)?;
            cuts.push(cut);
        }
        let count = ins.len();
        // Running values are of the types of tiles, and what is accumulated in them too.
        let running: Vec<(ValueId, Accumulate)> = if self.one_in(3) {
            let like = body.values[self.rng.index(count)];
            let ty = body.b.ty(like).clone();
            let how = if self.one_in(2) { Accumulate::Max } else { Accumulate::Sum };
            vec![(body.input(&ty)?, how)]
        } else {
            Vec::new()
        };
        for _ in 0..self.rng.index(5) {
            self.any(&mut body)?;
        }
        let (accumulators, outputs, factors) = self.accumulated(&mut body, count, &running)?;
        outputs.iter().chain(&factors).for_each(|&o| body.b.output(o));
        let mut block = TileGraphBuilder::new("block");
        for &o in &outputs {
            let ty = body.b.ty(o).clone();
            block.input(&ty)?;
        }
        let mut reads = Vec::new();
        for (at, cut) in cuts.iter().enumerate() {
            if (cut.by_loop.is_none() || self.loops == 1) && self.one_in(3) {
                let ty = body.b.ty(body.values[at]).clone();
                block.input(&ty)?;
                reads.push(at as u32);
            }
        }
        for _ in 0..self.rng.index(4) {
            self.any(&mut block)?;
        }
        let mut outs = Vec::new();
        for _ in 0..1 + self.rng.index(2) {
            outs.push(self.block_output(&mut block)?);
        }
        let tiled = Tiled {
            grid: self.grid,
            loops: self.loops,
            ins: cuts,
            outs,
            accumulators,
            running: (0..running.len() as u32).collect(),
            reads,
            block: block.b.finish(),
        };
        let keeps = tiled.keeps_order();
        let names: Vec<String> = (0..tiled.outs.len()).map(|o| format!("y{o}")).collect();
        let made = outer.node(NodeKind::Region(Box::new(Region::tiled(body.b.finish(), tiled))), &ins, &names)?;
        for (at, &y) in made.iter().enumerate() {
            if *outer.ty(y) != Type::new(DType::I32, outer.ty(y).shape.clone()) && self.one_in(4) {
                let op = Map { expr: Expr::input(0).cast(DType::F32) };
                let after = outer.op(&format!("z{at}"), op, &[y])?;
                outer.output(after);
            }
            outer.output(y);
        }
        Ok((outer.finish(), keeps))
    }

    /// A tile's type, how it is cut, and the type of the whole.
    fn tile(&mut self, at: usize) -> (Type, TileIn, Type) {
        let rank = 1 + self.rng.index(3);
        let mut sizes: Vec<u32> = (0..rank).map(|_| *self.rng.choose(&[1, 2, 3, 4, 4, 5, 16, 33])).collect();
        if self.one_in(5) {
            sizes[rank - 1] = *self.rng.choose(&[64, 128]);
        }
        // Blocks stay within the smallest second-level cache.
        while sizes.iter().product::<u32>() > MOST {
            let largest = (0..rank - 1).max_by_key(|&axis| sizes[axis]).unwrap_or(0);
            sizes[largest] = (sizes[largest] / 2).max(1);
        }
        let dtype = if at > 0 && self.one_in(8) { DType::I32 } else { DType::F32 };
        let tile = Type::new(dtype, sizes.clone());
        let mut cut = TileIn::default();
        for axis in 0..3 {
            let dim = self.rng.index(rank) as u32;
            if !self.one_in(3) && !cut.grid.contains(&Some(dim)) {
                cut.grid[axis] = Some(dim);
                sizes[dim as usize] *= self.grid[axis];
            }
        }
        // The first is cut by the loop, so that one is.
        if (at == 0 && self.loops > 1) || !self.one_in(3) {
            let dim = self.rng.index(rank) as u32;
            cut.by_loop = Some(dim);
            sizes[dim as usize] *= self.loops;
        }
        (tile, cut, Type::new(dtype, sizes))
    }

    /// An input of the region: a step input, dense or not, a weight, or computed.
    fn outer(&mut self, b: &mut GraphBuilder, at: usize, ty: Type) -> TileBuildResult<ValueId> {
        let name = format!("x{at}");
        if ty.dtype == DType::I32 {
            return b.step_input(&name, ty);
        }
        match self.rng.index(4) {
            0 => b.weight(&name, ty),
            1 => {
                let (mut strides, mut next) = (Vec::new(), 1);
                for dim in ty.shape.iter().rev() {
                    strides.push(next);
                    next = next * dim.get(&Dims::default()) as u32 + 3;
                }
                strides.reverse();
                b.step_input(&name, Type { strides: Some(strides), ..ty })
            }
            2 => {
                let given = b.step_input(&name, ty)?;
                b.op(&format!("c{at}"), Map { expr: Expr::input(0).cast(DType::F32) }, &[given])
            }
            _ => b.step_input(&name, ty),
        }
    }

    /// A value that is made of others.
    fn any(&mut self, tile: &mut TileGraphBuilder) -> TileBuildResult<ValueId> {
        let x = *self.rng.choose(&tile.values.clone());
        let rank = tile.sizes(x).len();
        match self.rng.index(9) {
            0 | 1 if tile.is_float(x) => {
                let forms = ["silu(x0)", "tanh(mul(x0, 0.5))", "relu(x0)", "mul(x0, 0.75)", "square(tanh(x0))"];
                let expr = *self.rng.choose(&forms);
                tile.map(expr, &[x])
            }
            2 if tile.is_float(x) => {
                let to = *self.rng.choose(&[Format::F16, Format::BF16]);
                tile.op(Map { expr: Expr::input(0).cast(to.into()).cast(DType::F32) }, &[x])
            }
            3 => self.both(tile, x),
            4 if rank > 0 => self.reduction(tile, x),
            5 => self.view(tile, x),
            6 if tile.is_float(x) => self.contraction(tile, x),
            7 if rank > 0 => {
                let axis = self.rng.index(rank) as u32;
                tile.op(Concat { axis }, &[x, x])
            }
            _ => tile.map("x0", &[x]),
        }
    }

    /// A map of two values that meet.
    fn both(&mut self, tile: &mut TileGraphBuilder, x: ValueId) -> TileBuildResult<ValueId> {
        let sizes = tile.sizes(x);
        let meets = |y: &&ValueId| {
            let other = tile.sizes(**y);
            tile.is_float(**y) == tile.is_float(x)
                && other.len() <= sizes.len()
                && other.iter().rev().zip(sizes.iter().rev()).all(|(a, b)| a == b || *a == 1)
                && tile.b.ty(**y).dtype == tile.b.ty(x).dtype
        };
        let others: Vec<ValueId> = tile.values.iter().filter(meets).copied().collect();
        let y = *self.rng.choose(&others);
        let expr = if tile.is_float(x) {
            *self.rng.choose(&["add(x0, mul(x1, 0.5))", "mul(tanh(x0), tanh(x1))", "max(x0, x1)", "sub(x0, x1)"])
        } else {
            *self.rng.choose(&["add(x0, x1)", "max(x0, x1)", "mul(x0, x1)"])
        };
        tile.map(expr, &[x, y])
    }

    fn reduction(&mut self, tile: &mut TileGraphBuilder, x: ValueId) -> TileBuildResult<ValueId> {
        let rank = tile.sizes(x).len() as u32;
        let axes: Vec<u32> = (0..rank).filter(|_| self.rng.one_in(2)).collect();
        let axes = if axes.is_empty() { vec![rank - 1] } else { axes };
        let kinds = [ReduceKind::Mean, ReduceKind::Max, ReduceKind::MeanSquare, ReduceKind::Min, ReduceKind::Sum];
        let kind = if tile.is_float(x) {
            *self.rng.choose(&kinds)
        } else {
            *self.rng.choose(&[ReduceKind::Sum, ReduceKind::Max])
        };
        let keep = self.one_in(2);
        tile.op(Reduce::new(kind, &axes, keep), &[x])
    }

    fn view(&mut self, tile: &mut TileGraphBuilder, x: ValueId) -> TileBuildResult<ValueId> {
        let sizes = tile.sizes(x);
        let form = match self.rng.index(4) {
            0 => {
                let mut axes: Vec<u32> = (0..sizes.len() as u32).collect();
                self.rng.shuffle(&mut axes);
                ViewForm::Permute(axes)
            }
            1 => ViewForm::Reshape(vec![Dim::Const(sizes.iter().product())]),
            2 => {
                let cut = |&n: &u32| {
                    let start = self.rng.index(n as usize) as u32;
                    Cut { start, step: 1, size: Dim::Const(n - start) }
                };
                ViewForm::Slice(sizes.iter().map(cut).collect())
            }
            _ => ViewForm::Expand([vec![2], sizes].concat().into_iter().map(Dim::Const).collect()),
        };
        tile.op(View { form }, &[x])
    }

    /// A product with a value that can be turned so that it fits, or with itself turned.
    fn contraction(&mut self, tile: &mut TileGraphBuilder, x: ValueId) -> TileBuildResult<ValueId> {
        let a = self.matrix(tile, x)?;
        let k = tile.sizes(a)[1];
        for y in tile.values.clone() {
            if let ([n, l], true) = (&tile.sizes(y)[..], tile.b.ty(y).dtype == tile.b.ty(a).dtype) {
                if *l == k && self.one_in(2) {
                    let b = tile.op(View { form: ViewForm::Permute(vec![1, 0]) }, &[y])?;
                    return tile.op(Contract {}, &[a, b]);
                }
                if *n == k {
                    return tile.op(Contract {}, &[a, y]);
                }
            }
        }
        let b = tile.op(View { form: ViewForm::Permute(vec![1, 0]) }, &[a])?;
        let product = tile.op(Contract {}, &[a, b])?;
        // Numbers stay small.
        tile.map("tanh(mul(x0, 0.1))", &[product])
    }

    /// A value as a matrix of few rows.
    fn matrix(&mut self, tile: &mut TileGraphBuilder, x: ValueId) -> TileBuildResult<ValueId> {
        let sizes = tile.sizes(x);
        if sizes.len() == 2 {
            return Ok(x);
        }
        let (last, rows) = sizes.split_last().map_or((1, 1), |(last, outer)| (*last, outer.iter().product::<u32>()));
        tile.op(View { form: ViewForm::Reshape(vec![Dim::Const(rows), Dim::Const(last)]) }, &[x])
    }

    /// Accumulators, the values that they take, and what rescales them.
    fn accumulated(
        &mut self,
        tile: &mut TileGraphBuilder,
        tiles: usize,
        running: &[(ValueId, Accumulate)],
    ) -> TileBuildResult<(Vec<Accumulate>, Vec<ValueId>, Vec<ValueId>)> {
        let (mut how, mut values, mut rescaled, mut factors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &(before, accumulate) in running {
            let ty = tile.b.ty(before).clone();
            let like: Vec<ValueId> = tile.values[..tiles].iter().copied().filter(|&v| *tile.b.ty(v) == ty).collect();
            let x = *self.rng.choose(&like);
            // A value that depends on what there is; of a maximum it is minus infinity before the first iteration.
            let value = match (accumulate, tile.is_float(x)) {
                (Accumulate::Max, _) => tile.map("max(x0, x1)", &[x, before])?,
                (_, true) => tile.map("add(x0, mul(x1, 0.25))", &[x, before])?,
                (_, false) => tile.map("add(x0, x1)", &[x, before])?,
            };
            how.push(accumulate);
            values.push(value);
        }
        let drawn: Vec<ValueId> =
            tile.values.iter().copied().filter(|v| !running.iter().any(|(r, _)| r == v)).collect();
        for _ in 0..1 + self.rng.index(2) {
            let x = *self.rng.choose(&drawn);
            let (value, accumulate) = match self.rng.index(5) {
                0 | 1 => self.continued(tile, x)?,
                2 => (x, Accumulate::Max),
                3 if tile.is_float(x) => {
                    let first = tile.sizes(x);
                    let factor = if first.is_empty() || self.one_in(2) {
                        tile.map("tanh(x0)", &[x])?
                    } else {
                        let max = tile.op(Reduce::new(ReduceKind::Max, &[first.len() as u32 - 1], true), &[x])?;
                        tile.map("tanh(x0)", &[max])?
                    };
                    rescaled.push(how.len());
                    factors.push(factor);
                    (x, Accumulate::Rescaled { by: 0 })
                }
                _ => (x, Accumulate::Sum),
            };
            how.push(accumulate);
            values.push(value);
        }
        for (f, &at) in rescaled.iter().enumerate() {
            how[at] = Accumulate::Rescaled { by: (values.len() + f) as u32 };
        }
        Ok((how, values, factors))
    }

    /// A contraction or reduction that goes on; another accumulation where none can be made.
    fn continued(&mut self, tile: &mut TileGraphBuilder, x: ValueId) -> TileBuildResult<(ValueId, Accumulate)> {
        let sizes = tile.sizes(x);
        let whole = sizes.last().is_some_and(|n| n.is_multiple_of(CONTINUED as u32));
        if !sizes.is_empty() && (self.loops == 1 || whole) && self.one_in(2) {
            let kinds = [ReduceKind::Sum, ReduceKind::Mean, ReduceKind::MeanSquare, ReduceKind::Max];
            let kind = if tile.is_float(x) { *self.rng.choose(&kinds) } else { ReduceKind::Sum };
            let keep = self.one_in(2);
            let made = tile.op(Reduce::new(kind, &[sizes.len() as u32 - 1], keep), &[x])?;
            return Ok((made, Accumulate::Continue));
        }
        if !tile.is_float(x) {
            return Ok((x, Accumulate::Sum));
        }
        let a = self.matrix(tile, x)?;
        let b = tile.op(View { form: ViewForm::Permute(vec![1, 0]) }, &[a])?;
        let b = if self.one_in(2) { tile.map("tanh(x0)", &[b])? } else { b };
        let (a, b) = if self.one_in(3) {
            let to: DType = Format::BF16.into();
            let cast = Map { expr: Expr::input(0).cast(to) };
            (tile.op(cast.clone(), &[a])?, tile.op(cast, &[b])?)
        } else {
            (a, b)
        };
        let made = tile.op(Contract {}, &[a, b])?;
        tile.values.retain(|v| tile.b.ty(*v).dtype != DType::from(Format::BF16));
        Ok((made, Accumulate::Continue))
    }

    /// An output of the block, of f32 or i32, with a dimension for each axis of the grid.
    fn block_output(&mut self, tile: &mut TileGraphBuilder) -> TileBuildResult<TileOut> {
        let mut x = *self.rng.choose(&tile.values.clone());
        if tile.is_float(x) && tile.b.ty(x).dtype != DType::F32 {
            x = tile.op(Map { expr: Expr::input(0).cast(DType::F32) }, &[x])?;
        }
        let wide: Vec<usize> = (0..3).filter(|&axis| self.grid[axis] > 1).collect();
        let mut sizes = tile.sizes(x);
        if sizes.len() < wide.len() {
            let mut shape = vec![1; wide.len() - sizes.len()];
            shape.append(&mut sizes);
            sizes = shape;
            let form = ViewForm::Reshape(sizes.iter().map(|&n| Dim::Const(n)).collect());
            x = tile.op(View { form }, &[x])?;
        }
        let mut dims: Vec<u32> = (0..sizes.len() as u32).collect();
        self.rng.shuffle(&mut dims);
        let mut out = TileOut::default();
        for (&axis, &dim) in wide.iter().zip(&dims) {
            out.grid[axis] = Some(dim);
        }
        tile.b.output(x);
        Ok(out)
    }
}
