//! What must hold of a graph on a device: unfused, each op is within its tolerance of its reference on the device's own
//! inputs; fused, every output has the same bytes.

use super::{Drawn, tolerance};
use crate::setup::Trouble;
use std::collections::HashMap;
use yirage_compile::Options;
use yirage_hal::{Device, HostMemory};
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Graph, NodeKind, Op, Source, Tensor, Type, ValueId};

/// What became of a graph.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// All that must hold does.
    Holds,
    /// The device said when compiling that it does not run this.
    Refused(String),
    /// Something does not hold.
    Wrong(Failure),
}

/// What does not hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The value, by name.
    pub value: String,
    /// What is wrong with it, and with which of its elements first.
    pub why: String,
}

impl Drawn {
    /// Whether all that must hold does on `device`.
    pub fn check(&self, device: &dyn Device) -> Verdict {
        match self.try_check(device) {
            Ok(None) => Verdict::Holds,
            Ok(Some(failure)) => Verdict::Wrong(failure),
            Err(Trouble::Refused(why)) => Verdict::Refused(why),
            Err(Trouble::Failed(why)) => Verdict::Wrong(Failure { value: "the graph".into(), why }),
        }
    }

    fn try_check(&self, device: &dyn Device) -> Result<Option<Failure>, Trouble> {
        let graph = &self.setup.graph;
        let every: Vec<ValueId> = (0..graph.values.len() as u32).map(ValueId).filter(|&v| readable(graph, v)).collect();
        let exact = Options::new(self.setup.precision);
        let alone = self.run(device, &every, &exact.clone().unfused())?;
        let tensors = every.iter().zip(&alone).map(|(&v, data)| (v, self.tensor(v, data))).collect();
        if let Some(failure) = self.each_op(&tensors)? {
            return Ok(Some(failure));
        }
        let fused = self.run(device, &graph.outputs, &exact)?;
        for (&output, fused) in graph.outputs.iter().zip(&fused) {
            let at = every.iter().position(|&v| v == output).unwrap_or(0);
            if !same(fused, &alone[at]) {
                let why = format!("fused and alone differ{}", first_difference(fused, &alone[at]));
                return Ok(Some(Failure { value: graph.value(output).name.clone(), why }));
            }
        }
        Ok(None)
    }

    fn run(&self, device: &dyn Device, values: &[ValueId], options: &Options) -> Result<Vec<Data>, Trouble> {
        let mut setup = self.setup.clone();
        setup.graph.outputs = values.to_vec();
        setup.run_in(device, self.bucket, options)
    }

    /// A device's value as its type says.
    fn tensor(&self, value: ValueId, data: &Data) -> Tensor {
        let ty = self.setup.graph.ty(value);
        Tensor { dtype: ty.dtype, shape: sizes(ty, &self.setup.dims), data: data.clone() }
    }

    /// The first op whose outputs are too far from those of its reference on what the device gave it.
    fn each_op(&self, made: &HashMap<ValueId, Tensor>) -> Result<Option<Failure>, Trouble> {
        let graph = &self.setup.graph;
        let mut known = self.inputs()?;
        for node in &graph.nodes {
            let NodeKind::Op(op) = &node.kind else { continue };
            let ins: Vec<&Tensor> = node.ins.iter().map(|i| &known[i]).collect();
            let wanted = op.eval(&ins);
            for (output, (&id, wanted)) in node.outs.iter().zip(&wanted).enumerate() {
                let Some(got) = made.get(&id) else { continue };
                if let Err(why) = close(op, &ins, output, got, wanted) {
                    let why = format!("{} {why}", op.name());
                    return Ok(Some(Failure { value: graph.value(id).name.clone(), why }));
                }
            }
            for (&id, wanted) in node.outs.iter().zip(wanted) {
                // What no one reads (a cache, quantised values) is what the reference makes of the device's inputs.
                known.insert(id, made.get(&id).cloned().unwrap_or(wanted));
            }
        }
        Ok(None)
    }

    /// Slots, weights and states.
    fn inputs(&self) -> Result<HashMap<ValueId, Tensor>, Trouble> {
        let (setup, mut known) = (&self.setup, HashMap::new());
        for &id in &setup.graph.inputs {
            let v = setup.graph.value(id);
            let tensor = match v.source {
                Source::Weight => setup.weights.get(&v.name).cloned(),
                Source::State => setup.states.iter().find(|s| s.name == v.name).map(|s| s.values.clone()),
                _ => setup.slots.get(&v.name).map(|given| Tensor::from_memory(&v.ty, &setup.dims, given.bytes())),
            };
            known.insert(id, tensor.ok_or_else(|| Trouble::Failed(format!("`{}` is not given", v.name)))?);
        }
        Ok(known)
    }
}

fn sizes(ty: &Type, dims: &Dims) -> Vec<usize> {
    ty.shape.iter().map(|d| d.get(dims)).collect()
}

/// Whether the value may leave a device.
fn readable(graph: &Graph, id: ValueId) -> bool {
    let v = graph.value(id);
    let made = matches!(v.source, Source::Node { .. }) && graph.state_of(id).is_none();
    made && v.ty.dtype.is_plain() && v.ty.layout.is_none()
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

/// The bits of a number; NaN has no bits of its own, since which one comes out of an operation is nobody's promise.
fn word(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

/// Whether two results are the same, bit for bit.
fn same(a: &Data, b: &Data) -> bool {
    match (a, b) {
        (Data::F32(a), Data::F32(b)) => a.iter().copied().map(word).eq(b.iter().copied().map(word)),
        (a, b) => a == b,
    }
}

fn first_difference(a: &Data, b: &Data) -> String {
    let at = |differs: Option<usize>| differs.map_or_else(|| " in length".into(), |i| format!(" at element {i}"));
    match (a, b) {
        (Data::F32(a), Data::F32(b)) => {
            let i = a.iter().zip(b).position(|(a, b)| word(*a) != word(*b));
            i.map_or_else(|| at(None), |i| format!("{}: {} and {}", at(Some(i)), a[i], b[i]))
        }
        (Data::I32(a), Data::I32(b)) => {
            let i = a.iter().zip(b).position(|(a, b)| a != b);
            i.map_or_else(|| at(None), |i| format!("{}: {} and {}", at(Some(i)), a[i], b[i]))
        }
        _ => " in type".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Drawn;
    use std::collections::BTreeSet;

    #[test]
    fn graphs_are_well_typed_and_of_every_op() {
        let mut ops = BTreeSet::new();
        for seed in 0..3000 {
            let drawn = Drawn::of_seed(seed);
            yirage_ir::verify(&drawn.setup.graph).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{drawn}"));
            ops.extend(drawn.setup.graph.nodes.iter().map(|n| n.name().to_string()));
            let printed = yirage_ir::text::print(&drawn.setup.graph);
            let again = yirage_ir::text::parse(&printed).map(|graph| yirage_ir::text::print(&graph));
            assert_eq!(again.as_ref(), Ok(&printed), "seed {seed}");
        }
        // Quantised activations are what the compiler makes of others.
        let left: Vec<_> = Op::NAMES.iter().filter(|n| **n != "quantize" && !ops.contains(**n)).collect();
        assert!(left.is_empty(), "{left:?} are not drawn");
    }
}
