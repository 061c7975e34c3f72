//! What a step has to do at least: the bytes it has to read and the operations it has to compute, from a lowered graph
//! and the sizes of the step alone.
//!
//! It is a floor, not an estimate. Weights are counted once a step as the device stores them; of an embedding table only
//! the rows of the step's tokens; of experts those that so many tokens choose if they choose evenly; of a cache every
//! position that is seen, once. Activations, logits and what is written are not counted, nor is arithmetic other than
//! products and attention. Knows nothing of devices and of how fast they are.

use std::ops::AddAssign;
use yirage_ir::op::Attention;
use yirage_ir::{DType, Dim, Dims, Format, Graph, Node, NodeKind, Op, Source, Sym, Type, ValueId};

/// One sequence's part of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Positions before it, which are cached.
    pub start: u32,
    /// Positions it computes.
    pub tokens: u32,
    /// Of those, the ones whose logits are wanted.
    pub rows: u32,
}

/// Bytes and operations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Work {
    /// Bytes of weights that are read.
    pub weight_bytes: f64,
    /// Bytes of cached keys and values that are read.
    pub cache_bytes: f64,
    /// Operations of products by the format of their weights; a multiplication and its addition are two.
    pub products: Vec<(Format, f64)>,
    /// Operations that are f32 on any device: attention, and products with weights in slices.
    pub f32_ops: f64,
}

impl Work {
    /// All bytes.
    pub fn bytes(&self) -> f64 {
        self.weight_bytes + self.cache_bytes
    }

    /// All operations.
    pub fn ops(&self) -> f64 {
        self.f32_ops + self.products.iter().map(|(_, ops)| ops).sum::<f64>()
    }

    fn add_products(&mut self, format: Format, ops: f64) {
        match self.products.iter_mut().find(|(f, _)| *f == format) {
            Some((_, sum)) => *sum += ops,
            None => self.products.push((format, ops)),
        }
    }
}

impl AddAssign<&Work> for Work {
    fn add_assign(&mut self, other: &Work) {
        self.weight_bytes += other.weight_bytes;
        self.cache_bytes += other.cache_bytes;
        self.f32_ops += other.f32_ops;
        other.products.iter().for_each(|&(format, ops)| self.add_products(format, ops));
    }
}

/// The part of a graph's work that does not change from step to step.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Costs {
    /// Weights read as a whole: id, bytes, and the size that says whether they are read at all.
    whole: Vec<(ValueId, u64, Dim)>,
    /// Bytes of a table's row that each token reads.
    row_bytes: f64,
    products: Vec<Product>,
    experts: Vec<Experts>,
    attention: Vec<(Attention, f64)>,
}

#[derive(Clone, PartialEq, Debug)]
struct Product {
    rows: Dim,
    /// None is f32.
    format: Option<Format>,
    /// Operations of one row.
    ops: f64,
}

#[derive(Clone, PartialEq, Debug)]
struct Experts {
    /// How many there are, and how many a token chooses.
    of: f64,
    chosen: f64,
    /// Bytes and operations of one of them for one token.
    bytes: f64,
    ops: f64,
    format: Option<Format>,
}

/// What the weights and states of a graph take on a device.
pub trait Sizes {
    /// Bytes of the weight called `name`.
    fn weight(&self, name: &str) -> u64;
    /// Bytes of one position of the state called `name`.
    fn position(&self, name: &str) -> f64;
}

impl Costs {
    /// Adds up the nodes of a lowered graph.
    pub fn new(graph: &Graph, sizes: &dyn Sizes) -> Costs {
        let mut costs = Costs::default();
        let leaf = |id: ValueId| graph.state_of(id).or((graph.value(id).source == Source::Weight).then_some(id));
        costs.add_graph(graph, graph, &leaf, sizes);
        costs
    }

    /// Adds the nodes of `inner`, a region somewhere in `graph`; `leaf` gives the weight or state of `graph` that a value
    /// of it is.
    fn add_graph(
        &mut self,
        graph: &Graph,
        inner: &Graph,
        leaf: &dyn Fn(ValueId) -> Option<ValueId>,
        sizes: &dyn Sizes,
    ) {
        for node in &inner.nodes {
            match &node.kind {
                NodeKind::Op(op) => self.add_op(graph, inner, node, op, leaf, sizes),
                NodeKind::Region(region) => {
                    let nested = |id: ValueId| {
                        let id = region.graph.state_of(id).unwrap_or(id);
                        let at = region.graph.inputs.iter().position(|&input| input == id)?;
                        leaf(node.ins[at])
                    };
                    self.add_graph(graph, &region.graph, &nested, sizes);
                }
            }
        }
    }

    fn add_op(
        &mut self,
        graph: &Graph,
        inner: &Graph,
        node: &Node,
        op: &Op,
        leaf: &dyn Fn(ValueId) -> Option<ValueId>,
        sizes: &dyn Sizes,
    ) {
        let input = |i: usize| inner.ty(node.ins[i]);
        let rows = input(0).shape.first().copied().unwrap_or(Dim::Sym(Sym::Tokens));
        let weight = |i: usize| leaf(node.ins[i]).map(|id| (id, sizes.weight(&graph.value(id).name)));
        match op {
            Op::Embed(_) => {
                let bytes = weight(0).map_or(0, |(_, bytes)| bytes);
                self.row_bytes += bytes as f64 / first(input(0)).max(1.0);
            }
            Op::Linear(linear) => {
                let format = product_format(input(0), input(1)).filter(|_| linear.groups == 1);
                self.products.push(Product { rows, format, ops: 2.0 * elems(input(1)) });
                self.read_whole(weight(1), rows);
            }
            Op::ExpertLinear(expert) => {
                let of = first(input(1)).max(1.0);
                self.experts.push(Experts {
                    of,
                    chosen: f64::from(expert.top_k),
                    bytes: weight(1).map_or(0.0, |(_, bytes)| bytes as f64 / of),
                    ops: 2.0 * elems(input(1)) / of,
                    format: product_format(input(0), input(1)),
                });
            }
            Op::Attention(attention) => {
                let state = leaf(node.ins[1]).filter(|_| attention.cached);
                let bytes = state.map_or(0.0, |id| sizes.position(&graph.value(id).name));
                self.attention.push((attention.clone(), bytes));
            }
            // Appending reads nothing; of a table of rotations the same few rows are read in every layer.
            Op::KvAppend(_) | Op::Rope(_) => {}
            _ => (0..node.ins.len()).for_each(|i| {
                let is_weight = leaf(node.ins[i]).filter(|&id| graph.value(id).source == Source::Weight);
                self.read_whole(is_weight.and_then(|_| weight(i)), rows);
            }),
        }
    }

    /// A weight is read once a step, however many nodes use it.
    fn read_whole(&mut self, weight: Option<(ValueId, u64)>, rows: Dim) {
        let Some((id, bytes)) = weight else { return };
        match self.whole.iter_mut().find(|(other, ..)| *other == id) {
            // Every step has tokens, not every one has rows of logits.
            Some((.., of)) if *of == Dim::Sym(Sym::Rows) => *of = rows,
            Some(_) => {}
            None => self.whole.push((id, bytes, rows)),
        }
    }

    /// The work of one step over these sequences.
    pub fn step(&self, spans: &[Span]) -> Work {
        let sum = |of: fn(&Span) -> u32| spans.iter().map(of).sum::<u32>();
        let (tokens, rows) = (sum(|s| s.tokens), sum(|s| s.rows));
        let dims = Dims { tokens, seqs: spans.len() as u32, blocks: 0, rows };
        let mut work = Work { weight_bytes: self.row_bytes * f64::from(tokens), ..Work::default() };
        let read = self.whole.iter().filter(|(.., size)| size.get(&dims) > 0);
        work.weight_bytes += read.map(|(_, bytes, _)| *bytes as f64).sum::<f64>();
        for product in &self.products {
            work.add(product.format, product.ops * product.rows.get(&dims) as f64);
        }
        for experts in &self.experts {
            work.weight_bytes += experts.bytes * experts.met(tokens);
            work.add(experts.format, experts.ops * experts.chosen * f64::from(tokens));
        }
        for (attention, position_bytes) in &self.attention {
            for span in spans {
                work.cache_bytes += position_bytes * positions_read(attention, span);
                work.f32_ops += attention_ops(attention, span);
            }
        }
        work
    }
}

impl Work {
    fn add(&mut self, format: Option<Format>, ops: f64) {
        match format {
            Some(format) => self.add_products(format, ops),
            None => self.f32_ops += ops,
        }
    }
}

impl Experts {
    /// Experts that at least one of `tokens` tokens is expected to choose.
    fn met(&self, tokens: u32) -> f64 {
        self.of * (1.0 - (1.0 - self.chosen / self.of).max(0.0).powf(f64::from(tokens)))
    }
}

/// The format whose ceiling a product meets; none where a quantised weight meets f32 activations, as in slices of a row.
fn product_format(x: &Type, w: &Type) -> Option<Format> {
    let DType::Stored(format) = w.dtype else { return None };
    (x.dtype == DType::Q8A || format.info().block == 1).then_some(format)
}

fn first(ty: &Type) -> f64 {
    ty.shape.first().and_then(|d| d.as_const()).unwrap_or(1) as f64
}

fn elems(ty: &Type) -> f64 {
    ty.elems(&Dims::default()) as f64
}

/// Cached positions that a span's tokens see between them, each counted once.
fn positions_read(attention: &Attention, span: &Span) -> f64 {
    let end = f64::from(span.start) + f64::from(span.tokens);
    if span.tokens == 0 {
        return 0.0;
    }
    match attention.window {
        0 => end,
        window => end.min(f64::from(window) + f64::from(span.tokens) - 1.0),
    }
}

/// Multiplications and additions of scores and sums of values, for each pair of a token and a position that it sees.
fn attention_ops(attention: &Attention, span: &Span) -> f64 {
    let (start, tokens) = (u64::from(span.start), u64::from(span.tokens));
    let window = if attention.window == 0 { u64::MAX } else { u64::from(attention.window) };
    let pairs: u64 = match attention.causal {
        true => (start + 1..=start + tokens).map(|seen| seen.min(window)).sum(),
        false => tokens * tokens,
    };
    let width = f64::from(attention.k_width) + f64::from(attention.v_width);
    2.0 * pairs as f64 * f64::from(attention.heads) * width
}
