//! Nodes as kernel graphs, by the builder that people use: floats of one type, up to four dimensions. What its operations do
//! not say is left out, with the reason.

use super::case::{Array, Element, OnnxCase, Values};
use super::general::{axes, axis};
use super::import::{Wanted, dtype};
use std::collections::HashMap;
use yirage_conformance::GraphSetup;
use yirage_graph::{GraphError, KernelGraph, SplitBy};
use yirage_hal::Record;
use yirage_ir::{Dims, Tensor, ValueId};
use yirage_plan::Precision;

/// A node being made.
struct KernelNode<'a> {
    case: &'a OnnxCase,
    graph: KernelGraph,
    step_inputs: HashMap<String, Record>,
}

/// The case as a kernel graph, with what its outputs must be.
///
/// # Errors
/// Why there is none.
pub(crate) fn import(case: &OnnxCase) -> Result<(GraphSetup, Vec<Wanted>), String> {
    let mut node = KernelNode { case, graph: KernelGraph::new(&case.name), step_inputs: HashMap::new() };
    let outputs = outputs(&mut node)?;
    let mut wanted = Vec::new();
    for (&output, array) in outputs.iter().zip(&case.outs) {
        let Values::F32(values) = &array.values else { return Err("results that are no floats".into()) };
        let sizes: Vec<i64> = array.shape.iter().map(|&n| n as i64).collect();
        let output = node.graph.reshape(output, &sizes).map_err(said)?;
        node.graph.mark_output(output, None).map_err(said)?;
        wanted.push(Wanted::F32(values.clone()));
    }
    let KernelNode { graph, step_inputs: slots, .. } = node;
    let (graph, dims) = (graph.finish().map_err(said)?, Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 });
    let (weights, states) = (HashMap::new(), Vec::new());
    Ok((
        GraphSetup { graph, weights, step_inputs: slots, kv_caches: states, dims, precision: Precision::Exact },
        wanted,
    ))
}

fn outputs(node: &mut KernelNode<'_>) -> Result<Vec<ValueId>, String> {
    if node.case.op == "Split" {
        return split(node);
    }
    let made = match node.case.op.as_str() {
        "Exp" => one(node, KernelGraph::exp),
        "Log" => one(node, KernelGraph::log),
        "Sqrt" => one(node, KernelGraph::sqrt),
        "Sigmoid" => one(node, KernelGraph::sigmoid),
        "Relu" => one(node, KernelGraph::relu),
        "Neg" => one(node, |g, x| g.mul_scalar(x, -1.0)),
        "Gelu" if node.case.attr("approximate", "none".to_string()) == "none" => one(node, KernelGraph::gelu),
        "Add" => two(node, KernelGraph::add),
        "Sub" => two(node, KernelGraph::sub),
        "Mul" => two(node, KernelGraph::mul),
        "Div" => two(node, KernelGraph::div),
        "Pow" => two(node, KernelGraph::pow),
        "Clip" => clip(node),
        "ReduceSum" => reduce(node, KernelGraph::reduction),
        "ReduceMax" => reduce(node, KernelGraph::max),
        "ReduceSumSquare" => sum_of_squares(node),
        "ReduceL2" => sum_of_squares(node).and_then(|y| node.graph.sqrt(y).map_err(said)),
        "ReduceMean" => mean(node),
        "Softmax" if node.case.opset >= 13 => softmax(node),
        "MatMul" => matmul(node),
        // The shape is known from the result.
        "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" => node.input(0),
        "Transpose" => transpose(node),
        "Concat" => concat(node),
        "RMSNormalization" => rms_norm(node),
        "LayerNormalization" => layer_norm(node),
        op => Err(format!("kernel graphs have no `{op}`")),
    };
    made.map(|y| vec![y])
}

impl KernelNode<'_> {
    fn array(&self, input: usize) -> Result<Array, String> {
        let array = self.case.ins.get(input).and_then(|(_, array)| array.as_ref());
        array.cloned().ok_or_else(|| format!("no input {input}"))
    }

    /// An input that is given for each call.
    fn input(&mut self, input: usize) -> Result<ValueId, String> {
        let Array { element, shape, values: Values::F32(values) } = self.array(input)? else {
            return Err("inputs that are no floats".into());
        };
        let (name, dtype) = (format!("x{input}"), dtype(element));
        let sizes: Vec<u32> = shape.iter().map(|&n| n as u32).collect();
        let id = self.graph.named_input(&name, &sizes, None, dtype).map_err(said)?;
        self.step_inputs.insert(name, Record::of(&Tensor { dtype, ..Tensor::f32(shape, values) }.memory()));
        Ok(id)
    }

    fn dims(&self, x: ValueId) -> Result<Vec<u32>, String> {
        self.graph.dims(x).map_err(said)
    }

    fn rank(&self, x: ValueId) -> Result<usize, String> {
        Ok(self.dims(x)?.len())
    }

    /// The dimensions from the attribute `axis` on, by default the last one alone.
    fn innermost(&self, x: ValueId) -> Result<Vec<u32>, String> {
        let dims = self.dims(x)?;
        let first = axis(self.case.attr("axis", -1), dims.len())?;
        Ok(dims[first..].to_vec())
    }
}

fn said(error: GraphError) -> String {
    error.to_string()
}

type Made = Result<ValueId, GraphError>;

fn one(node: &mut KernelNode<'_>, op: impl Fn(&mut KernelGraph, ValueId) -> Made) -> Result<ValueId, String> {
    let x = node.input(0)?;
    op(&mut node.graph, x).map_err(said)
}

/// Dimensions of size 1 are written out in front of the smaller rank.
fn two(node: &mut KernelNode<'_>, op: impl Fn(&mut KernelGraph, ValueId, ValueId) -> Made) -> Result<ValueId, String> {
    if node.case.opset < 7 {
        return Err("an old rule of broadcasting".into());
    }
    let ins = [node.input(0)?, node.input(1)?];
    let rank = node.rank(ins[0])?.max(node.rank(ins[1])?);
    let mut widened = Vec::new();
    for x in ins {
        let dims = node.dims(x)?;
        let sizes: Vec<i64> = [vec![1; rank - dims.len()], dims].concat().into_iter().map(i64::from).collect();
        widened.push(node.graph.reshape(x, &sizes).map_err(said)?);
    }
    op(&mut node.graph, widened[0], widened[1]).map_err(said)
}

/// The bounds were attributes before version 11.
fn clip(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let bound = |at: usize, name: &str, none: f32| match node.array(at) {
        Ok(Array { values: Values::F32(values), .. }) => values.first().copied().ok_or("an empty bound".to_string()),
        Ok(_) => Err("bounds that are no floats".into()),
        Err(_) => Ok(node.case.attr(name, none)),
    };
    let (low, high) = (bound(1, "min", f32::NEG_INFINITY)?, bound(2, "max", f32::INFINITY)?);
    node.graph.clamp(x, low, high).map_err(said)
}

fn reduced(node: &KernelNode<'_>, rank: usize) -> Result<Vec<usize>, String> {
    match node.case.whole("axes", 1).filter(|list| !list.is_empty()) {
        Some(list) => axes(&list, rank),
        None if node.case.attr("noop_with_empty_axes", 0) == 1 => Ok(Vec::new()),
        None => Ok((0..rank).collect()),
    }
}

/// One dimension after the other: sums of 16 bits would be rounded in between.
fn over(
    node: &mut KernelNode<'_>,
    x: ValueId,
    op: impl Fn(&mut KernelGraph, ValueId, i64) -> Made,
) -> Result<ValueId, String> {
    let list = reduced(node, node.rank(x)?)?;
    if list.len() > 1 && node.array(0)?.element != Element::F32 {
        return Err("several dimensions at once".into());
    }
    list.iter().try_fold(x, |y, &dim| op(&mut node.graph, y, dim as i64)).map_err(said)
}

fn reduce(node: &mut KernelNode<'_>, op: impl Fn(&mut KernelGraph, ValueId, i64) -> Made) -> Result<ValueId, String> {
    let x = node.input(0)?;
    over(node, x, op)
}

fn sum_of_squares(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let x = one(node, KernelGraph::square)?;
    over(node, x, KernelGraph::reduction)
}

fn mean(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let count: u32 = reduced(node, dims.len())?.iter().map(|&dim| dims[dim]).product();
    let sum = over(node, x, KernelGraph::reduction)?;
    node.graph.mul_scalar(sum, 1.0 / count as f32).map_err(said)
}

fn softmax(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    node.graph.softmax(x, node.case.attr("axis", -1)).map_err(said)
}

fn matmul(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let (a, b) = (node.input(0)?, node.input(1)?);
    node.graph.matmul(a, b).map_err(said)
}

fn transpose(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let rank = node.rank(x)?;
    let order = match node.case.ints("perm") {
        Some(list) => list.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let order: Vec<i64> = order.into_iter().map(|a| a as i64).collect();
    node.graph.permute(x, &order).map_err(said)
}

/// Before version 4 the axis could be left out.
fn concat(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let ins = (0..node.case.ins.len()).map(|i| node.input(i)).collect::<Result<Vec<_>, _>>()?;
    node.graph.concat(&ins, node.case.attr("axis", 1)).map_err(said)
}

/// Into given sizes, or into as many parts as there are outputs: of equal size, the last one smaller.
fn split(node: &mut KernelNode<'_>) -> Result<Vec<ValueId>, String> {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let dim = axis(node.case.attr("axis", 0), dims.len())?;
    let sizes = node.case.whole("split", 1).map(|list| list.iter().map(|&n| n as u32).collect::<Vec<_>>());
    let by = match &sizes {
        Some(sizes) => SplitBy::Sizes(sizes),
        None => SplitBy::Size(dims[dim].div_ceil(node.case.outs.len() as u32)),
    };
    node.graph.split(x, by, dim as i64).map_err(said)
}

fn rms_norm(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let (x, scale) = (node.input(0)?, node.input(1)?);
    let shape = node.innermost(x)?;
    node.graph.scaled_rms_norm(x, &shape, Some(scale), node.case.attr("epsilon", 1e-5)).map_err(said)
}

/// The first result; kernel graphs give no mean and no root beside it.
fn layer_norm(node: &mut KernelNode<'_>) -> Result<ValueId, String> {
    let (x, scale) = (node.input(0)?, node.input(1)?);
    let bias = if node.array(2).is_ok() { Some(node.input(2)?) } else { None };
    let shape = node.innermost(x)?;
    node.graph.layer_norm(x, &shape, Some(scale), bias, node.case.attr("epsilon", 1e-5)).map_err(said)
}
