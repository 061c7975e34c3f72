//! Chains: maps and views around at most one reduction or contraction, or behind products with weights, computed in one
//! pass over memory.
//!
//! [`FusedChain::of`] gives the normal form: what is computed of which elements, with no word of how the ops were cut.
//! Nothing inside of a chain is ever whole: views are strides, maps are one expression.

use super::is_weight_matmul;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::expr::{Expr, is_float};
use crate::graph::{Graph, GraphBuilder, Node, NodeKind, ValueId, ValueSource};
use crate::op::{Op, Reduce, View};
use crate::strided::Strided;
use crate::types::Type;

/// An input of the chain as an expression reads it: where its elements lie for each element of the expression's shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChainRead {
    /// Position among the chain's inputs.
    pub input: usize,
    /// The elements, in the input's own memory.
    pub at: Strided,
}

/// An expression over elements of inputs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ElementExpr {
    /// The expression; its input i is `reads[i]`.
    pub expr: Expr,
    /// What it reads.
    pub reads: Vec<ChainRead>,
    /// The shape, which each of the reads has.
    pub shape: Vec<Dim>,
    /// The type of the expression's value.
    pub dtype: DType,
}

/// The op in the middle of a chain, with what it reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Core {
    /// None: the chain is an expression.
    None,
    /// A reduction.
    Reduce(Reduce, ElementExpr),
    /// A contraction of two.
    Contract(Box<[ElementExpr; 2]>),
    /// Products with weights, whose results have one type. Where there are several, the expression reads
    /// each as it is.
    Matmuls(Vec<ChainMatmul>),
}

/// A product with a weight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChainMatmul {
    /// The op.
    pub op: Op,
    /// Which of the chain's inputs it takes, as they are.
    pub ins: Vec<usize>,
}

impl Core {
    /// How many results it has.
    pub fn results(&self) -> usize {
        match self {
            Core::None => 0,
            Core::Reduce(..) | Core::Contract(_) => 1,
            Core::Matmuls(products) => products.len(),
        }
    }
}

/// The normal form of a chain.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FusedChain {
    /// The op in the middle.
    pub core: Core,
    /// What becomes of each element of the core's results, which are the first inputs of the expression (`reads` begins
    /// with the next). Its shape is the core's results', or the chain's where there is none. Dimensions of a single product's
    /// result may be divided in it: the elements are the same in the same order.
    pub after: ElementExpr,
    /// Where the elements of `after` go in the chain's dense output.
    pub out: Strided,
    /// The type of the core's results, where there is a core.
    pub core_dtype: Option<DType>,
}

/// A value inside of a chain.
#[derive(Clone)]
struct ChainValue {
    expr: Expr,
    reads: Vec<(ReadSource, Strided)>,
    shape: Vec<Dim>,
    dtype: DType,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadSource {
    Input(usize),
    /// A result of the core, by number.
    Core(usize),
}

type Middle = Option<(Core, Vec<Dim>, DType)>;

impl FusedChain {
    /// As [`FusedChain::of_node`], of a node whose inputs lie otherwise than its graph says: those of which `lies` has a type, as
    /// tiles lie within what they are cut from.
    ///
    /// # Errors
    /// Why one of them is none.
    pub fn of_node_where<'a>(
        graph: &Graph,
        node: &Node,
        lies: impl Fn(ValueId) -> Option<&'a Type>,
    ) -> Result<Vec<FusedChain>, String> {
        let mut lying = graph.clone();
        for id in &node.ins {
            if let Some(ty) = lies(*id) {
                lying.values[id.index()].ty = ty.clone();
            }
        }
        let NodeKind::Region(region) = &node.kind else { return FusedChain::of_node(&lying, node) };
        let mut inner = region.graph.clone();
        for (input, id) in region.graph.inputs.iter().zip(&node.ins) {
            inner.values[input.index()].ty = lying.ty(*id).clone();
        }
        FusedChain::each(&inner)
    }

    /// The normal form of each output of a node: a region of chains, or one op of one.
    ///
    /// # Errors
    /// Why one of them is none.
    pub fn of_node(graph: &Graph, node: &Node) -> Result<Vec<FusedChain>, String> {
        if let NodeKind::Region(region) = &node.kind {
            return FusedChain::each(&region.graph);
        }
        let mut alone = GraphBuilder::new("alone");
        let input = |at: usize, b: &mut GraphBuilder| {
            let v = graph.value(node.ins[at]);
            let source = if matches!(v.source, ValueSource::Node { .. }) { ValueSource::StepInput } else { v.source };
            b.declare(&format!("x{at}"), v.ty.clone(), source)
        };
        let ins = (0..node.ins.len()).map(|at| input(at, &mut alone)).collect::<Result<Vec<_>, _>>();
        let names: Vec<String> = (0..node.outs.len()).map(|at| format!("y{at}")).collect();
        let outs = ins.and_then(|ins| alone.node(node.kind.clone(), &ins, &names));
        outs.map_err(|e| e.to_string())?.into_iter().for_each(|o| alone.output(o));
        FusedChain::each(&alone.finish())
    }

    /// The normal form of a graph with one output.
    ///
    /// # Errors
    /// Why it is no chain.
    pub fn of(graph: &Graph) -> Result<FusedChain, String> {
        let [output] = graph.outputs[..] else { return Err(format!("{} outputs, one wanted", graph.outputs.len())) };
        FusedChain::to(graph, output)
    }

    /// The normal form of each output of a graph.
    ///
    /// # Errors
    /// Why one of them is no chain.
    pub fn each(graph: &Graph) -> Result<Vec<FusedChain>, String> {
        graph.outputs.iter().map(|&output| FusedChain::to(graph, output)).collect()
    }

    /// The normal form of one output.
    pub(super) fn to(graph: &Graph, output: ValueId) -> Result<FusedChain, String> {
        let mut made: Vec<Option<ChainValue>> = vec![None; graph.values.len()];
        let mut core: Middle = None;
        for node in producers(graph, output) {
            for &id in &node.ins {
                if let Some(at) = graph.inputs.iter().position(|&i| i == id)
                    && made[id.index()].is_none()
                {
                    made[id.index()] = Some(ChainValue::input(at, graph, id)?);
                }
            }
            let value = make(graph, node, &made, &mut core)?;
            let [out] = node.outs[..] else { return Err(format!("`{}` has several outputs", node.name())) };
            made[out.index()] = Some(value);
        }
        let last = made[output.index()].clone().ok_or("its output is not made")?;
        last.finish(core)
    }
}

/// The nodes that an output depends on, in order.
pub(super) fn producers(graph: &Graph, output: ValueId) -> Vec<&Node> {
    let mut wanted = vec![false; graph.values.len()];
    wanted[output.index()] = true;
    let mut nodes: Vec<&Node> = Vec::new();
    for node in graph.nodes.iter().rev() {
        if node.outs.iter().any(|o| wanted[o.index()]) {
            node.ins.iter().for_each(|i| wanted[i.index()] = true);
            nodes.push(node);
        }
    }
    nodes.reverse();
    nodes
}

impl ChainValue {
    fn input(at: usize, graph: &Graph, id: ValueId) -> Result<ChainValue, String> {
        if graph.value(id).source == ValueSource::KvCache {
            return Err(format!("`{}` is a state", graph.value(id).name));
        }
        let ty = graph.ty(id);
        // A weight is dense where a kernel reads it: its strides end when it is loaded.
        let lies =
            if graph.value(id).source == ValueSource::Weight { Strided::dense(&ty.shape) } else { Strided::of(ty) };
        let lies = lies.ok_or_else(|| format!("{ty}: only the outermost dimension may be symbolic"))?;
        Ok(ChainValue {
            expr: Expr::input(0),
            reads: vec![(ReadSource::Input(at), lies)],
            shape: ty.shape.clone(),
            dtype: ty.dtype,
        })
    }

    fn viewed(&self, view: &View, shape: &[Dim]) -> Result<ChainValue, String> {
        let see = |(from, at): &(ReadSource, Strided)| {
            let at = view.of(at).ok_or_else(|| format!("{} of what has gaps needs a copy", view.form))?;
            Ok((*from, at))
        };
        let reads = self.reads.iter().map(see).collect::<Result<_, String>>()?;
        Ok(ChainValue { reads, shape: shape.to_vec(), ..self.clone() })
    }

    /// As it meets others in a larger shape.
    fn expanded(&self, shape: &[Dim]) -> ChainValue {
        let first = shape.len() - self.shape.len();
        let expand = |at: &Strided| {
            let mut strides = vec![0; shape.len()];
            for (axis, dim) in self.shape.iter().enumerate() {
                strides[first + axis] = if *dim == shape[first + axis] { at.strides[axis] } else { 0 };
            }
            Strided { shape: shape.to_vec(), strides, offset: at.offset }
        };
        let reads = self.reads.iter().map(|(from, at)| (*from, expand(at))).collect();
        ChainValue { reads, shape: shape.to_vec(), ..self.clone() }
    }

    /// Without the result of a core: what goes into one.
    fn elements(self) -> Result<ElementExpr, String> {
        let read = |(from, at): (ReadSource, Strided)| match from {
            ReadSource::Input(input) => Ok(ChainRead { input, at }),
            ReadSource::Core(_) => Err("a reduction, contraction or product reads another one".to_string()),
        };
        let reads = self.reads.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(ElementExpr { expr: self.expr, reads, shape: self.shape, dtype: self.dtype })
    }

    fn finish(self, core: Middle) -> Result<FusedChain, String> {
        let Some((core, shape, dtype)) = core else {
            let out = Strided::dense(&self.shape).ok_or("its output is too large")?;
            return Ok(FusedChain { core: Core::None, after: self.elements()?, out, core_dtype: None });
        };
        let at = self.result_view(&core, &shape)?;
        let seen = ResultView::of(at, &shape, matches!(core, Core::Matmuls(_)));
        let (seen, shape) = seen.ok_or("the result is not seen whole, each element once")?;
        let turned = |at: &Strided| seen.turned(at, &shape).ok_or("what meets the result has gaps and needs a copy");
        let dense = Strided::dense(&self.shape).ok_or("its output is too large")?;
        // The core's results come first, the others behind them as they were.
        let others = self.reads.iter().filter_map(|(from, at)| match from {
            ReadSource::Input(input) => Some(turned(at).map(|at| ChainRead { input: *input, at })),
            ReadSource::Core(_) => None,
        });
        let reads = others.collect::<Result<_, _>>()?;
        let mut places = Vec::with_capacity(self.reads.len());
        let mut next = core.results();
        for (from, _) in &self.reads {
            places.push(if let ReadSource::Core(number) = from { *number } else { next });
            next += usize::from(matches!(from, ReadSource::Input(_)));
        }
        let expr = self.expr.substitute(|i| Expr::input(places[i as usize] as u32));
        let out = turned(&dense)?;
        let after = ElementExpr { expr, reads, shape, dtype: self.dtype };
        Ok(FusedChain { core, after, out, core_dtype: Some(dtype) })
    }
}

impl ChainValue {
    /// How it sees the results of a core, all of them alike.
    fn result_view(&self, core: &Core, shape: &[Dim]) -> Result<&Strided, String> {
        let of =
            |number| self.reads.iter().filter(move |(from, _)| *from == ReadSource::Core(number)).map(|(_, at)| at);
        let mut seen = None;
        for number in 0..core.results() {
            let mut reads = of(number);
            let [Some(at), None] = [reads.next(), reads.next()] else {
                return Err("the reduction, contraction or product is seen in two ways, or not at all".into());
            };
            if core.results() > 1 && Strided::dense(shape).as_ref() != Some(at) {
                return Err("one of several products is not read as it is".into());
            }
            seen.get_or_insert(at);
        }
        Ok(seen.ok_or("a core without results")?)
    }
}

/// How a view sees each element of a dense result once.
enum ResultView {
    /// For each dimension of the result, which dimension of the view runs along it; none for sizes of 1.
    Axes(Vec<Option<usize>>),
    /// In the result's own order, in other dimensions.
    InOrder,
}

impl ResultView {
    /// How `at` sees a result of this shape, and in which dimensions the result is seen then: in others than its own only
    /// if it `may_divide`. `None` where `at` sees an element twice, or not at all.
    fn of(at: &Strided, shape: &[Dim], may_divide: bool) -> Option<(ResultView, Vec<Dim>)> {
        if let Some(axes) = axes(at, shape) {
            return Some((ResultView::Axes(axes), shape.to_vec()));
        }
        if !may_divide {
            return (at.is_dense() && at.reshaped(shape).is_some()).then(|| (ResultView::InOrder, shape.to_vec()));
        }
        let mut order: Vec<usize> = (0..at.shape.len()).filter(|&a| at.shape[a] != Dim::Const(1)).collect();
        order.sort_by_key(|&a| std::cmp::Reverse(at.strides[a]));
        let divided: Vec<Dim> = order.iter().map(|&a| at.shape[a]).collect();
        let dense = Strided::dense(&divided)?;
        let whole = order.iter().zip(&dense.strides).all(|(&a, stride)| at.strides[a] == *stride) && at.offset == 0;
        (whole && dense.reshaped(shape).is_some())
            .then(|| (ResultView::Axes(order.into_iter().map(Some).collect()), divided))
    }

    /// What lies along the view, along the result of this shape; `None` where no strides tell that.
    fn turned(&self, at: &Strided, shape: &[Dim]) -> Option<Strided> {
        match self {
            ResultView::InOrder => at.reshaped(shape),
            ResultView::Axes(axes) => Some(Strided {
                shape: shape.to_vec(),
                strides: axes.iter().map(|a| a.map_or(0, |a| at.strides[a])).collect(),
                offset: at.offset,
            }),
        }
    }
}

/// For each dimension of a dense result, which dimension of a view of it runs along it; none for sizes of 1. `None` where
/// the view has not each element once.
fn axes(at: &Strided, shape: &[Dim]) -> Option<Vec<Option<usize>>> {
    let dense = Strided::dense(shape)?;
    let one = Dim::Const(1);
    let mut left: Vec<usize> = (0..at.shape.len()).filter(|&a| at.shape[a] != one).collect();
    let mut axes = Vec::with_capacity(shape.len());
    for (dim, stride) in shape.iter().zip(&dense.strides) {
        if *dim == one {
            axes.push(None);
            continue;
        }
        let found = left.iter().position(|&a| at.shape[a] == *dim && at.strides[a] == *stride)?;
        axes.push(Some(left.remove(found)));
    }
    (left.is_empty() && at.offset == 0).then_some(axes)
}

fn make(graph: &Graph, node: &Node, made: &[Option<ChainValue>], core: &mut Middle) -> Result<ChainValue, String> {
    let NodeKind::Op(op) = &node.kind else { return Err("a region inside".into()) };
    let find =
        |i: usize| made[node.ins[i].index()].clone().ok_or_else(|| format!("`{}` reads what is not made", op.name()));
    let out = node.outs.first().map(|&o| graph.ty(o)).ok_or_else(|| format!("`{}` gives nothing", op.name()))?;
    let middle = match op {
        Op::Map(map) => {
            let ins = (0..node.ins.len()).map(find).collect::<Result<Vec<_>, _>>()?;
            return Ok(mapped(&map.expr, &ins, &out.shape, out.dtype));
        }
        Op::View(view) => return find(0)?.viewed(view, &out.shape),
        Op::Reduce(reduce) => Core::Reduce(reduce.clone(), find(0)?.elements()?),
        Op::Contract(_) => Core::Contract(Box::new([find(0)?.elements()?, find(1)?.elements()?])),
        product if is_weight_matmul(node) => {
            let given = |id: &ValueId| graph.inputs.iter().position(|i| i == id);
            let ins = node.ins.iter().map(given).collect::<Option<_>>();
            let ins = ins.ok_or("a product reads what is made inside")?;
            Core::Matmuls(vec![ChainMatmul { op: product.clone(), ins }])
        }
        other => return Err(format!("`{}` is neither map nor view, reduction, contraction nor product", other.name())),
    };
    let number = add(core, middle, (&out.shape, out.dtype))?;
    let at = Strided::dense(&out.shape).ok_or("a result too large")?;
    Ok(ChainValue {
        expr: Expr::input(0),
        reads: vec![(ReadSource::Core(number), at)],
        shape: out.shape.clone(),
        dtype: out.dtype,
    })
}

/// Adds a core with a result of this type; the result's number. Products of one type are one core.
fn add(core: &mut Middle, middle: Core, (shape, dtype): (&[Dim], DType)) -> Result<usize, String> {
    match (core, middle) {
        (none @ None, middle) => {
            *none = Some((middle, shape.to_vec(), dtype));
            Ok(0)
        }
        (Some((Core::Matmuls(have), of, held)), Core::Matmuls(more)) if of[..] == *shape && *held == dtype => {
            have.extend(more);
            Ok(have.len() - 1)
        }
        (Some((Core::Matmuls(_), of, held)), Core::Matmuls(_)) => {
            let [a, b] = [(&of[..], *held), (shape, dtype)].map(|(shape, dtype)| Type::new(dtype, shape.to_vec()));
            Err(format!("products of two types, {a} and {b}"))
        }
        _ => Err("two reductions, contractions or products".into()),
    }
}

/// An expression of values that meet in `shape`. What is read twice in the same way is one read.
fn mapped(expr: &Expr, ins: &[ChainValue], shape: &[Dim], dtype: DType) -> ChainValue {
    let mut reads: Vec<(ReadSource, Strided)> = Vec::new();
    let mut inner: Vec<Expr> = Vec::with_capacity(ins.len());
    for value in ins {
        let value = value.expanded(shape);
        let mut names = Vec::with_capacity(value.reads.len());
        for read in value.reads {
            names.push(reads.iter().position(|r| *r == read).unwrap_or_else(|| {
                reads.push(read);
                reads.len() - 1
            }));
        }
        inner.push(value.expr.substitute(|i| Expr::input(names[i as usize] as u32)));
    }
    // A substitution may lose a read: what nothing depends on is not computed.
    ChainValue { expr: expr.substitute(|i| inner[i as usize].clone()), reads, shape: shape.to_vec(), dtype }
}

/// What a region of this kind must be: a chain whose expressions are within their limits.
pub(super) fn check(graph: &Graph) -> Result<(), String> {
    let chain = FusedChain::of(graph)?;
    if let Core::Matmuls(products) = &chain.core {
        let names: Vec<&str> = products.iter().map(|product| product.op.name()).collect();
        return Err(format!("`{}` belongs into a region of products", names.join("`, `")));
    }
    let inputs = |e: &ElementExpr| read_types(graph, e);
    match &chain.core {
        Core::None | Core::Matmuls(_) => {}
        Core::Reduce(_, x) => fits(x, &inputs(x))?,
        Core::Contract(sides) => {
            sides.iter().try_for_each(|x| fits(x, &inputs(x)))?;
            // Elements change where they are multiplied, as floats.
            let floats = |x: &ElementExpr| inputs(x).first().is_some_and(|&dtype| is_float(dtype));
            if !sides.iter().all(floats) || !is_float(chain.after.dtype) {
                return Err("a contraction's factors and what becomes of its result are floats".into());
            }
        }
    }
    fits_after(graph, &chain)
}

/// Whether what becomes of the core's results is an expression within its limits.
pub(super) fn fits_after(graph: &Graph, chain: &FusedChain) -> Result<(), String> {
    let results = chain.core_dtype.into_iter().flat_map(|dtype| std::iter::repeat_n(dtype, chain.core.results()));
    let types: Vec<DType> = results.chain(read_types(graph, &chain.after)).collect();
    fits(&chain.after, &types)
}

fn read_types(graph: &Graph, e: &ElementExpr) -> Vec<DType> {
    e.reads.iter().map(|r| graph.ty(graph.inputs[r.input]).dtype).collect()
}

fn fits(e: &ElementExpr, ins: &[DType]) -> Result<(), String> {
    e.expr.infer(ins).map(|_| ()).map_err(|why| why.to_string())
}
