//! What must hold of a graph on a device: unfused, each op is within its tolerance of its reference on the device's own
//! inputs; fused, every output has the same bytes.

use super::RandomGraph;
use crate::diff::{EachOp, OpDifference};
use crate::setup::Trouble;
use yirage_compile::CompileOptions;
use yirage_hal::Device;
use yirage_ir::tensor::Data;

/// What became of a graph.
#[derive(Clone, PartialEq, Debug)]
pub enum RandomGraphVerdict {
    /// All that must hold does.
    Holds,
    /// The device said when compiling that it does not run this.
    Refused(String),
    /// Something does not hold.
    Wrong(RandomGraphFailure),
}

/// What does not hold.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomGraphFailure {
    /// The value, by name.
    pub value: String,
    /// What is wrong with it, and with which of its elements first.
    pub why: String,
}

impl RandomGraph {
    /// Whether all that must hold does on `device`.
    pub fn check(&self, device: &dyn Device) -> RandomGraphVerdict {
        match self.try_check(device) {
            Ok(None) => RandomGraphVerdict::Holds,
            Ok(Some(failure)) => RandomGraphVerdict::Wrong(failure),
            Err(Trouble::Refused(why)) => RandomGraphVerdict::Refused(why),
            Err(Trouble::Failed(why)) => {
                RandomGraphVerdict::Wrong(RandomGraphFailure { value: "the graph".into(), why })
            }
        }
    }

    fn try_check(&self, device: &dyn Device) -> Result<Option<RandomGraphFailure>, Trouble> {
        let graph = &self.setup.graph;
        let EachOp { values, difference } = self.setup.each_op(device, self.bucket, graph.nodes.len())?;
        if let Some(OpDifference { name, value, why, .. }) = difference {
            return Ok(Some(RandomGraphFailure { value, why: format!("{name} {why}") }));
        }
        let options = CompileOptions::new(self.setup.precision);
        let fused = self.setup.run_in(device, self.bucket, &options)?;
        for (&output, fused) in graph.outputs.iter().zip(&fused) {
            let Some((_, alone)) = values.iter().find(|(v, _)| *v == output) else { continue };
            if !same(fused, alone) {
                let blame = self.setup.blame(device, self.bucket, &options);
                let why = format!("fused and alone differ{}; {blame}", first_difference(fused, alone));
                return Ok(Some(RandomGraphFailure { value: graph.value(output).name.clone(), why }));
            }
        }
        Ok(None)
    }
}

/// The bits of a number; NaN has no bits of its own, since which one comes out of an operation is nobody's promise.
fn word(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

/// Whether two results are the same, bit for bit.
pub(super) fn same(a: &Data, b: &Data) -> bool {
    match (a, b) {
        (Data::F32(a), Data::F32(b)) => a.iter().copied().map(word).eq(b.iter().copied().map(word)),
        (a, b) => a == b,
    }
}

pub(super) fn first_difference(a: &Data, b: &Data) -> String {
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
    use crate::random::RandomGraph;
    use std::collections::BTreeSet;
    use yirage_ir::Op;

    #[test]
    fn graphs_are_well_typed_and_of_every_op() {
        let mut ops = BTreeSet::new();
        for seed in 0..3000 {
            let drawn = RandomGraph::of_seed(seed);
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
