//! What a graph has to do at least, and how fast a device can do that.

use crate::failure::CliFailure;
use yirage_hal::{Ceilings, Roofline};
use yirage_hal::{Device, Limit};
use yirage_ir::cost::StepSizes;
use yirage_ir::{DType, Dims, Format, Graph, NodeKind, Type};

/// What a run of a graph has to do at least, whatever its plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LeastWork {
    /// Bytes of every input, read once, and of every output, written once.
    pub(super) bytes: f64,
    /// Operations of its products; a multiplication and its addition are two. What is computed element by element is not
    /// counted.
    pub(super) ops: f64,
}

impl LeastWork {
    /// That of a graph without symbols, as it was built.
    pub(super) fn of(graph: &Graph) -> LeastWork {
        let dims = Dims::default();
        let ends = graph.inputs.iter().chain(&graph.outputs);
        let bytes = ends.map(|&id| graph.ty(id).storage_bytes(&dims) as f64).sum();
        let step = StepSizes { dims, spans: &[] };
        let ops = |node: &yirage_ir::Node| match &node.kind {
            NodeKind::Op(op) => {
                let ins: Vec<Type> = node.ins.iter().map(|&id| graph.ty(id).clone()).collect();
                op.work(&ins, &step).ops
            }
            NodeKind::Region(_) => 0.0,
        };
        LeastWork { bytes, ops: graph.nodes.iter().map(ops).sum() }
    }
}

/// The ceilings that a graph's elements meet.
pub(super) struct GraphCeilings {
    roofline: Roofline,
    /// That of its products, the highest that the device has for their type.
    matmuls: Limit,
}

/// The least time of a run under the ceilings of one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LeastTime {
    /// Seconds of reading and writing.
    pub(crate) memory: f64,
    /// Seconds of products.
    pub(crate) arithmetic: f64,
}

impl LeastTime {
    /// Of the slower one.
    pub(crate) fn seconds(&self) -> f64 {
        self.memory.max(self.arithmetic)
    }
}

impl GraphCeilings {
    /// Of a device and elements of this type.
    ///
    /// # Errors
    /// [`CliFailure::Device`].
    pub(super) fn new(device: &dyn Device, dtype: DType) -> Result<GraphCeilings, CliFailure> {
        let mut limits = vec![Limit::MemoryRead, Limit::F32];
        if dtype == DType::Stored(Format::BF16) {
            limits.push(Limit::Bf16);
        }
        let mut roofline = Roofline::new(device, limits)?;
        let now = roofline.read()?;
        let rate = |limit| now.get(limit).unwrap_or(0.0);
        let products = if rate(Limit::Bf16) > rate(Limit::F32) { Limit::Bf16 } else { Limit::F32 };
        Ok(GraphCeilings { roofline, matmuls: products })
    }

    /// Reads the ceilings.
    ///
    /// # Errors
    /// [`CliFailure::Device`].
    pub(super) fn read(&mut self) -> Result<Ceilings, CliFailure> {
        Ok(self.roofline.read()?)
    }

    /// The least time of this work; none where the device does not measure itself.
    pub(super) fn least(&self, work: &LeastWork, at: &Ceilings) -> Option<LeastTime> {
        let (bytes, ops) = (at.get(Limit::MemoryRead)?, at.get(self.matmuls)?);
        Some(LeastTime { memory: work.bytes / bytes, arithmetic: work.ops / ops })
    }
}

#[cfg(test)]
mod tests {
    use super::LeastWork;
    use yirage_graph::{Parameters, Scale, Workload};
    use yirage_ir::DType;

    fn work(name: &str, dtype: &str) -> LeastWork {
        let dtype = DType::parse(dtype).unwrap();
        let graph = Workload::named(name).unwrap().graph(Parameters { batch: 2, dtype, scale: Scale::Mirage });
        LeastWork::of(&graph.unwrap())
    }

    #[test]
    fn inputs_and_outputs_count_once_and_products_twice_their_sizes() {
        let elements = (16 * 4096 + 2 * 4096 * 4096 + 16 * 4096) as f64;
        let ops = (2 * 2 * 16 * 4096) as f64 * 4096.0;
        assert_eq!(work("gated_mlp", "f32"), LeastWork { bytes: 4.0 * elements, ops });
        assert_eq!(work("gated_mlp", "bf16"), LeastWork { bytes: 2.0 * elements, ops });
        let nothing = work("norm_transformer", "f16");
        assert_eq!(nothing, LeastWork { bytes: 2.0 * (4 * 16 * 4096) as f64, ops: 0.0 });
        let attention = work("group_query_attention", "f32").ops;
        assert_eq!(attention, (2 * 2 * 4 * 256 * 4096) as f64 * 64.0);
    }
}
