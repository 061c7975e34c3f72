//! A device beside the reference, op by op: each op's outputs against those of its reference on what the device itself
//! gave it, so that the first difference names the op that makes it.

use crate::setup::{GraphSetup, Trouble};
use crate::tolerance;
use std::collections::HashMap;
use std::fmt;
use yirage_compile::CompileOptions;
use yirage_hal::{Device, HostMemory};
use yirage_ir::interp::evaluate_node;
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Graph, NodeKind, Op, Tensor, ValueId, ValueSource};

/// The first value of a device that is not the reference's.
#[derive(Clone, PartialEq, Debug)]
pub struct OpDifference {
    /// Which op, counted in the graph's order.
    pub op: usize,
    /// Its name.
    pub name: String,
    /// The value that differs.
    pub value: String,
    /// Which element, and both values, in words.
    pub why: String,
}

impl fmt::Display for OpDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op {}, {} `{}`: {}", self.op, self.name, self.value, self.why)
    }
}

/// What a device made of each op alone.
pub(crate) struct EachOp {
    /// The values that may leave a device.
    pub(crate) values: Vec<(ValueId, Data)>,
    pub(crate) difference: Option<OpDifference>,
}

impl GraphSetup {
    /// The first op of the graph whose outputs on `device` are too far from those of its reference; every op is a step of
    /// its own. Nothing is wanted of ops behind number `stop_after`.
    ///
    /// # Errors
    /// What the compiler or the device says.
    pub fn first_difference(
        &self,
        device: &dyn Device,
        stop_after: Option<usize>,
    ) -> Result<Option<OpDifference>, Trouble> {
        let ops = stop_after.map_or(self.graph.nodes.len(), |last| last.saturating_add(1));
        Ok(self.each_op(device, self.dims, ops)?.difference)
    }

    /// Runs every op as a step of its own, and compares the first `ops` of them.
    pub(crate) fn each_op(&self, device: &dyn Device, bucket: Dims, ops: usize) -> Result<EachOp, Trouble> {
        let graph = &self.graph;
        let outs = graph.nodes.iter().take(ops).flat_map(|node| node.outs.iter().copied());
        let every: Vec<ValueId> = outs.filter(|&v| readable(graph, v)).collect();
        if every.is_empty() {
            return Ok(EachOp { values: Vec::new(), difference: None });
        }
        let mut all = self.clone();
        all.graph.outputs.clone_from(&every);
        let alone = all.run_in(device, bucket, &CompileOptions::new(self.precision).unfused())?;
        let tensors = every.iter().zip(&alone).map(|(&v, data)| (v, self.tensor(v, data))).collect();
        let difference = self.compare(&tensors, ops)?;
        Ok(EachOp { values: every.into_iter().zip(alone).collect(), difference })
    }

    /// A device's value as its type says.
    fn tensor(&self, value: ValueId, data: &Data) -> Tensor {
        let ty = self.graph.ty(value);
        let shape = ty.shape.iter().map(|d| d.get(&self.dims)).collect();
        Tensor { dtype: ty.dtype, shape, data: data.clone() }
    }

    fn compare(&self, made: &HashMap<ValueId, Tensor>, ops: usize) -> Result<Option<OpDifference>, Trouble> {
        let graph = &self.graph;
        let mut known = self.inputs()?;
        for (at, node) in graph.nodes.iter().take(ops).enumerate() {
            let ins = node.ins.iter().map(|i| known.get(i).ok_or_else(|| format!("value {} is not made", i.0)));
            let ins: Vec<&Tensor> = ins.collect::<Result<_, _>>()?;
            let wanted = evaluate_node(Op::eval, node, &ins).map_err(|e| e.to_string())?;
            if let NodeKind::Op(op) = &node.kind {
                for (output, (&id, wanted)) in node.outs.iter().zip(&wanted).enumerate() {
                    let Some(got) = made.get(&id) else { continue };
                    if let Err(why) = close(op, &ins, output, got, wanted) {
                        let (name, value) = (op.name().to_owned(), graph.value(id).name.clone());
                        return Ok(Some(OpDifference { op: at, name, value, why }));
                    }
                }
            }
            for (&id, wanted) in node.outs.iter().zip(wanted) {
                // What no one reads (a cache, quantised values) is what the reference makes of the device's inputs.
                known.insert(id, made.get(&id).cloned().unwrap_or(wanted));
            }
        }
        Ok(None)
    }

    /// Step inputs, weights and states.
    pub(crate) fn inputs(&self) -> Result<HashMap<ValueId, Tensor>, Trouble> {
        let mut known = HashMap::new();
        for &id in &self.graph.inputs {
            let v = self.graph.value(id);
            let tensor = match v.source {
                ValueSource::Weight => self.weights.get(&v.name).cloned(),
                ValueSource::KvCache => self.kv_caches.iter().find(|s| s.name == v.name).map(|s| s.values.clone()),
                _ => self.step_inputs.get(&v.name).map(|given| Tensor::from_memory(&v.ty, &self.dims, given.bytes())),
            };
            known.insert(id, tensor.ok_or_else(|| Trouble::Failed(format!("`{}` is not given", v.name)))?);
        }
        Ok(known)
    }
}

/// Whether the value may leave a device.
fn readable(graph: &Graph, id: ValueId) -> bool {
    let v = graph.value(id);
    let made = matches!(v.source, ValueSource::Node { .. }) && graph.kv_cache_of(id).is_none();
    made && v.ty.dtype.is_plain() && v.ty.activation_format.is_none()
}

/// Whether an output is as close as its op demands; whole numbers and NaN are equal.
fn close(op: &Op, ins: &[&Tensor], output: usize, got: &Tensor, wanted: &Tensor) -> Result<(), String> {
    let (got, wanted) = (got.scalars(), wanted.scalars());
    let numbers: Vec<f64> = wanted.iter().map(|s| s.as_f64()).collect();
    let bounds = tolerance::bounds(op, ins, output, &numbers);
    if got.len() != wanted.len() {
        return Err(format!("has {} elements, {} wanted", got.len(), wanted.len()));
    }
    for (i, ((g, w), bound)) in got.iter().zip(&wanted).zip(bounds).enumerate() {
        let (x, y) = (g.as_f64(), w.as_f64());
        let same = x == y || (x.is_nan() && y.is_nan());
        if !same && !bound.is_infinite() && (x - y).abs().partial_cmp(&bound).is_none_or(|o| o.is_gt()) {
            return Err(format!("element {i} is {g}, the reference gives {w} for these inputs, within {bound:e}"));
        }
    }
    Ok(())
}
