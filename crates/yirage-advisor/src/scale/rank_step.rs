//! What one rank does in a step, from its plan.

use yirage_hal::HalError;
use yirage_ir::{Dims, Graph, NodeKind, Op, ValueId};
use yirage_plan::work::{Costs, ResidentSizes, SequenceSpan, Work};

/// What one rank does in a step.
#[derive(Clone, PartialEq, Debug)]
pub struct RankStep {
    /// Bytes and operations.
    pub work: Work,
    /// Steps of the plan other than collectives.
    pub kernels: usize,
    /// Collectives, in the order of the plan.
    pub collectives: Vec<Collective>,
}

/// A collective of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Collective {
    /// What it does.
    pub kind: CollectiveKind,
    /// Bytes of the larger of what a rank gives and gets.
    pub bytes: f64,
}

/// What a collective does, as far as its time depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CollectiveKind {
    /// Each gets the sum of what all have.
    AllReduce,
    /// Each gets what all have.
    AllGather,
    /// Each gets its part of the sum.
    ReduceScatter,
    /// Each gets what one has.
    Broadcast,
    /// Each gets what one other has.
    SendRecv,
}

impl RankStep {
    /// The step of a lowered graph with these sizes, in which each sequence has its span.
    ///
    /// # Errors
    /// A collective that this model of time does not have.
    pub fn of(
        graph: &Graph,
        sizes: &dyn ResidentSizes,
        spans: &[SequenceSpan],
        dims: &Dims,
    ) -> Result<RankStep, HalError> {
        let mut collectives = Vec::new();
        for node in &graph.nodes {
            let NodeKind::Op(op) = &node.kind else { continue };
            if op.ranks().is_some() {
                let of = |ids: &[ValueId]| ids.iter().map(|&id| graph.ty(id).storage_bytes(dims)).sum::<usize>();
                let bytes = of(&node.ins).max(of(&node.outs));
                collectives.push(Collective { kind: CollectiveKind::of(op)?, bytes: bytes as f64 });
            }
        }
        let kernels = graph.nodes.len() - collectives.len();
        Ok(RankStep { work: Costs::new(graph, sizes).step(spans), kernels, collectives })
    }
}

impl CollectiveKind {
    fn of(op: &Op) -> Result<CollectiveKind, HalError> {
        Ok(match op {
            Op::AllReduce(_) => CollectiveKind::AllReduce,
            Op::AllGather(_) => CollectiveKind::AllGather,
            Op::ReduceScatter(_) => CollectiveKind::ReduceScatter,
            Op::Broadcast(_) => CollectiveKind::Broadcast,
            Op::SendRecv(_) => CollectiveKind::SendRecv,
            other => {
                let why = "it is no collective whose time is known".into();
                return Err(HalError::Unsupported { what: format!("the time of `{}`", other.name()), why });
            }
        })
    }
}
