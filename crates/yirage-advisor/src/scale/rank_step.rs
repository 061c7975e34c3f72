//! What one rank does in a step, from its plan.

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
    pub collectives: Vec<StepCollective>,
}

/// What a rank sends and gets in a collective.
///
/// The counts are those of recursive doubling for gathers and broadcasts, and of a reduce-scatter with a gather behind it for sums
/// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepCollective {
    /// Messages one after the other.
    pub messages: f64,
    /// Bytes that a rank gets in them.
    pub bytes: f64,
}

impl RankStep {
    /// The step of a lowered graph with these sizes, in which each sequence has its span.
    pub fn of(graph: &Graph, sizes: &dyn ResidentSizes, spans: &[SequenceSpan], dims: &Dims) -> RankStep {
        let mut collectives = Vec::new();
        for node in &graph.nodes {
            let NodeKind::Op(op) = &node.kind else { continue };
            let of = |ids: &[ValueId]| ids.iter().map(|&id| graph.ty(id).storage_bytes(dims)).sum::<usize>();
            collectives.extend(StepCollective::of(op, of(&node.ins).max(of(&node.outs)) as f64));
        }
        let kernels = graph.nodes.len() - collectives.len();
        RankStep { work: Costs::new(graph, sizes).step(spans), kernels, collectives }
    }
}

impl StepCollective {
    /// Of an op in which a rank gives or gets so many bytes, whichever is more; none of an op that one device runs.
    pub fn of(op: &Op, bytes: f64) -> Option<StepCollective> {
        let ranks = op.ranks()?;
        if ranks < 2 {
            return None;
        }
        let hops = f64::from(ranks.next_power_of_two().trailing_zeros());
        let others = f64::from(ranks - 1) / f64::from(ranks);
        let (messages, parts) = match op {
            Op::AllReduce(_) => (2.0 * hops, 2.0 * others),
            Op::AllGather(_) | Op::ReduceScatter(_) => (hops, others),
            Op::Broadcast(_) => (hops, 1.0),
            _ => (1.0, 1.0),
        };
        Some(StepCollective { messages, bytes: parts * bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::op::{AllGather, AllReduce, Broadcast, ReduceScatter, SendRecv, Softmax};

    #[test]
    fn collectives_are_messages_and_bytes() {
        let of = |op: Op| StepCollective::of(&op, 800.0).map(|one| (one.messages, one.bytes));
        let gather = |ranks| of(AllGather { ranks }.into());
        assert_eq!(gather(1), None, "nobody to talk to");
        assert_eq!((gather(2), gather(8)), (Some((1.0, 400.0)), Some((3.0, 700.0))));
        assert_eq!(gather(5), Some((3.0, 640.0)), "as many messages as eight");
        assert_eq!(of(ReduceScatter { ranks: 4 }.into()), Some((2.0, 600.0)));
        assert_eq!(of(AllReduce { ranks: 4 }.into()), Some((4.0, 1200.0)));
        assert_eq!(of(Broadcast { ranks: 4, root: 0 }.into()), Some((2.0, 800.0)));
        assert_eq!(of(SendRecv { ranks: 4, shift: 1 }.into()), Some((1.0, 800.0)));
        assert_eq!(of(Softmax {}.into()), None);
    }
}
