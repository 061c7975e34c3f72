//! What a rank does with others, as every one of them can compare it with what it does itself.

use crate::element::ElementType;
use crate::reduce::ReduceOp;
use std::fmt;

/// Which collective, or which message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CollectiveKind {
    /// Everybody gets what all elements become.
    AllReduce(ReduceOp),
    /// Everybody gets the parts of all.
    AllGather,
    /// Everybody gets its part of what all elements become.
    ReduceScatter(ReduceOp),
    /// Everybody gets what one rank has.
    Broadcast {
        /// Which rank.
        root: u32,
    },
    /// Everybody gets what the rank so far before it has.
    Shift {
        /// How far.
        by: u32,
    },
    /// Everybody waits for all.
    Barrier,
    /// A message to a rank.
    Send {
        /// Which rank.
        to: u32,
    },
    /// A message from a rank.
    Recv {
        /// Which rank.
        from: u32,
    },
}

impl CollectiveKind {
    /// A number that no other one has.
    fn code(self) -> u64 {
        let op = |op: ReduceOp| ReduceOp::ALL.iter().position(|other| *other == op).unwrap_or(0) as u64;
        let (kind, argument) = match self {
            CollectiveKind::AllReduce(of) => (1, op(of)),
            CollectiveKind::AllGather => (2, 0),
            CollectiveKind::ReduceScatter(of) => (3, op(of)),
            CollectiveKind::Broadcast { root } => (4, u64::from(root)),
            CollectiveKind::Shift { by } => (5, u64::from(by)),
            CollectiveKind::Barrier => (6, 0),
            CollectiveKind::Send { to } => (7, u64::from(to)),
            CollectiveKind::Recv { from } => (8, u64::from(from)),
        };
        kind << 32 | argument
    }

    fn of_code(code: u64) -> Option<CollectiveKind> {
        let argument = code as u32;
        let op = || ReduceOp::ALL.get(argument as usize).copied();
        Some(match code >> 32 {
            1 => CollectiveKind::AllReduce(op()?),
            2 => CollectiveKind::AllGather,
            3 => CollectiveKind::ReduceScatter(op()?),
            4 => CollectiveKind::Broadcast { root: argument },
            5 => CollectiveKind::Shift { by: argument },
            6 => CollectiveKind::Barrier,
            7 => CollectiveKind::Send { to: argument },
            8 => CollectiveKind::Recv { from: argument },
            _ => return None,
        })
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CollectiveKind::AllReduce(op) => write!(f, "all_reduce({op})"),
            CollectiveKind::AllGather => f.write_str("all_gather"),
            CollectiveKind::ReduceScatter(op) => write!(f, "reduce_scatter({op})"),
            CollectiveKind::Broadcast { root } => write!(f, "broadcast(from rank {root})"),
            CollectiveKind::Shift { by } => write!(f, "shift(by {by})"),
            CollectiveKind::Barrier => f.write_str("barrier"),
            CollectiveKind::Send { to } => write!(f, "send(to rank {to})"),
            CollectiveKind::Recv { from } => write!(f, "recv(from rank {from})"),
        }
    }
}

/// What a rank does: the collective, how many it has done before, and what it gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CommCall {
    /// How many collectives the rank has done before; of a message how many have gone that way between the two.
    pub sequence: u64,
    /// What it does.
    pub kind: CollectiveKind,
    /// Elements that each rank gives; none of a barrier.
    pub element: ElementType,
    /// How many.
    pub count: u64,
    /// What the caller says of them, which is to be the same on all ranks: [`crate::Communicator::set_label`].
    pub label: u64,
}

/// Words of a call as ranks show it to each other: the last is how many bytes come with it.
pub(crate) const CALL_WORDS: usize = 6;

impl CommCall {
    pub(crate) fn words(&self, bytes: usize) -> [u64; CALL_WORDS] {
        let element = ElementType::ALL.iter().position(|other| *other == self.element).unwrap_or(0) as u64;
        [self.sequence, self.kind.code(), element, self.count, self.label, bytes as u64]
    }

    /// The call, and how many bytes come with it; none of words that no rank has written.
    pub(crate) fn of_words(words: [u64; CALL_WORDS]) -> Option<(CommCall, usize)> {
        let [sequence, code, element, count, label, bytes] = words;
        let kind = CollectiveKind::of_code(code)?;
        let element = *ElementType::ALL.get(usize::try_from(element).ok()?)?;
        Some((CommCall { sequence, kind, element, count, label }, usize::try_from(bytes).ok()?))
    }

    /// Whether two ranks do the same, or the two sides of one message.
    pub(crate) fn agrees_with(&self, other: &CommCall) -> bool {
        let values = |call: &CommCall| (call.sequence, call.element, call.count, call.label);
        let same = values(self) == values(other);
        let sides = matches!(
            (self.kind, other.kind),
            (CollectiveKind::Send { .. }, CollectiveKind::Recv { .. })
                | (CollectiveKind::Recv { .. }, CollectiveKind::Send { .. })
        );
        same && (sides || self.kind == other.kind)
    }
}

impl fmt::Display for CommCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommCall { sequence, kind, element, count, label } = self;
        match kind {
            CollectiveKind::Barrier => write!(f, "{kind} #{sequence}")?,
            _ => write!(f, "{kind} #{sequence} of {count} {element}")?,
        }
        if *label > 0 { write!(f, " with label {label}") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{CollectiveKind, CommCall};
    use crate::element::ElementType;
    use crate::reduce::ReduceOp;

    #[test]
    fn calls_are_read_as_they_were_written() {
        let ops = ReduceOp::ALL.into_iter();
        let kinds = ops.clone().map(CollectiveKind::AllReduce).chain(ops.map(CollectiveKind::ReduceScatter)).chain([
            CollectiveKind::AllGather,
            CollectiveKind::Broadcast { root: 7 },
            CollectiveKind::Shift { by: 1 },
            CollectiveKind::Barrier,
            CollectiveKind::Send { to: 3 },
            CollectiveKind::Recv { from: u32::MAX },
        ]);
        for kind in kinds {
            for element in ElementType::ALL {
                let call = CommCall { sequence: 1 << 40, kind, element, count: 5, label: 9 };
                assert_eq!(CommCall::of_words(call.words(20)), Some((call, 20)));
            }
        }
        assert_eq!(CommCall::of_words([0; 6]), None);
    }
}
