//! Collectives, made of a transport's rounds.

use crate::call::{CollectiveKind, CommCall};
use crate::element::CommElement;
use crate::error::CommError;
use crate::reduce::{ReduceOp, Reducing};
use crate::transport::{Peers, Transport, WaitLimit};
use std::fmt;
use std::time::Duration;

/// How long a rank waits for others unless it is told.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// A rank's place in a group of ranks.
///
/// All ranks call the same collectives in the same order, with as many elements of the same type. Where they do not, and
/// where a rank is gone or does not come within the deadline, each call ends with an error, and so do all later ones.
pub struct Communicator {
    transport: Box<dyn Transport>,
    deadline: Duration,
    label: u64,
    collectives: u64,
    /// Messages that have gone to each rank, and have come from each.
    messages: Vec<[u64; 2]>,
    broken: Option<CommError>,
}

impl Communicator {
    pub(crate) fn new(transport: Box<dyn Transport>, deadline: Duration) -> Communicator {
        let messages = vec![[0; 2]; transport.ranks()];
        Communicator { transport, deadline, label: 0, collectives: 0, messages, broken: None }
    }

    /// This rank, from 0.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.transport.ranks()
    }

    /// Whether a rank that is dead is seen to be while it is waited for, however long that may last. Otherwise it is missed at the
    /// deadline.
    pub fn sees_the_dead(&self) -> bool {
        self.transport.sees_the_dead()
    }

    /// How long each call waits for other ranks now.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How long each call waits for other ranks.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// What all ranks are to agree on in each call from now on beside its elements, such as the width of their rows; 0 at first.
    pub fn set_label(&mut self, label: u64) {
        self.label = label;
    }

    /// Each element becomes `op` of the elements of all ranks at its place.
    ///
    /// # Errors
    /// What [`Communicator`] says; `values` are then partly done.
    pub fn all_reduce<T: CommElement>(&mut self, values: &mut [T], op: ReduceOp) -> Result<(), CommError> {
        let (wait, call) = self.begin::<T>(CollectiveKind::AllReduce(op), values.len());
        let (room, mut reducing) = (self.room::<T>(), Reducing::<T>::new(op));
        for part in RoundParts::of(values.len(), room) {
            let part = &mut values[part];
            self.round(Peers::All, &call, T::as_bytes(part), wait, &mut |_, bytes| reducing.take(bytes))?;
            reducing.finish(part);
        }
        Ok(())
    }

    /// The parts of all ranks, one after the other, in `all`.
    ///
    /// # Errors
    /// [`CommError::Argument`] where `all` has not as many elements as all parts, and what [`Communicator`] says.
    pub fn all_gather<T: CommElement>(&mut self, part: &[T], all: &mut [T]) -> Result<(), CommError> {
        self.fits("all_gather", "all", all.len(), part.len())?;
        let (wait, call) = self.begin::<T>(CollectiveKind::AllGather, part.len());
        let (room, stride) = (self.room::<T>(), size_of_val(part));
        let all = T::as_bytes_mut(all);
        for place in RoundParts::of(part.len(), room) {
            let from = place.start * size_of::<T>();
            self.round(Peers::All, &call, T::as_bytes(&part[place]), wait, &mut |rank, bytes| {
                all[rank * stride + from..][..bytes.len()].copy_from_slice(bytes);
            })?;
        }
        Ok(())
    }

    /// In `part` what this rank's part of `all` becomes: the first rank has the first part.
    ///
    /// # Errors
    /// [`CommError::Argument`] where `all` has not as many elements as all parts, and what [`Communicator`] says.
    pub fn reduce_scatter<T: CommElement>(&mut self, all: &[T], part: &mut [T], op: ReduceOp) -> Result<(), CommError> {
        self.fits("reduce_scatter", "all", all.len(), part.len())?;
        let (wait, call) = self.begin::<T>(CollectiveKind::ReduceScatter(op), all.len());
        let (ranks, own, width) = (self.ranks(), self.rank(), part.len());
        let (room, mut reducing) = ((self.room::<T>() / ranks).max(1), Reducing::<T>::new(op));
        let mut give = Vec::new();
        for place in RoundParts::of(width, room) {
            give.clear();
            (0..ranks).for_each(|rank| give.extend_from_slice(T::as_bytes(&all[rank * width..][place.clone()])));
            let bytes = size_of_val(&part[place.clone()]);
            self.round(Peers::All, &call, &give, wait, &mut |_, given| {
                reducing.take(&given[own * bytes..][..bytes]);
            })?;
            reducing.finish(&mut part[place]);
        }
        Ok(())
    }

    /// What `root` has, in every rank's `values`.
    ///
    /// # Errors
    /// [`CommError::Argument`] for a rank that there is not, and what [`Communicator`] says.
    pub fn broadcast<T: CommElement>(&mut self, values: &mut [T], root: usize) -> Result<(), CommError> {
        self.is_rank(root)?;
        let (wait, call) = self.begin::<T>(CollectiveKind::Broadcast { root: root as u32 }, values.len());
        let (room, gives) = (self.room::<T>(), self.rank() == root);
        for place in RoundParts::of(values.len(), room) {
            // What the root gives is what it has: it takes nothing.
            let mut got = Vec::new();
            let give = if gives { T::as_bytes(&values[place.clone()]) } else { &[] };
            self.round(Peers::All, &call, give, wait, &mut |rank, bytes| {
                if rank == root && !gives {
                    got.extend_from_slice(bytes);
                }
            })?;
            if !gives {
                T::as_bytes_mut(&mut values[place]).copy_from_slice(&got);
            }
        }
        Ok(())
    }

    /// In `got` what the rank `by` before this one gives; the first follows the last.
    ///
    /// # Errors
    /// [`CommError::Argument`] for slices of different lengths and a shift by all ranks or more, and what [`Communicator`] says.
    pub fn shift<T: CommElement>(&mut self, give: &[T], got: &mut [T], by: usize) -> Result<(), CommError> {
        self.is_rank(by)?;
        if give.len() != got.len() {
            let text = format!("shift: expected `got` of {} elements as `give` has, got {}", give.len(), got.len());
            return Err(CommError::Argument(text));
        }
        let (wait, call) = self.begin::<T>(CollectiveKind::Shift { by: by as u32 }, give.len());
        let (room, from) = (self.room::<T>(), (self.rank() + self.ranks() - by) % self.ranks());
        for place in RoundParts::of(give.len(), room) {
            let into = T::as_bytes_mut(&mut got[place.clone()]);
            self.round(Peers::All, &call, T::as_bytes(&give[place]), wait, &mut |rank, bytes| {
                if rank == from {
                    into.copy_from_slice(bytes);
                }
            })?;
        }
        Ok(())
    }

    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// What [`Communicator`] says.
    pub fn barrier(&mut self) -> Result<(), CommError> {
        let (wait, call) = self.begin::<u8>(CollectiveKind::Barrier, 0);
        self.round(Peers::All, &call, &[], wait, &mut |_, _| {})
    }

    /// Gives `values` to a rank that receives them now, which is waited for.
    ///
    /// # Errors
    /// [`CommError::Argument`] for this rank itself and one that there is not, and what [`Communicator`] says.
    pub fn send<T: CommElement>(&mut self, values: &[T], to: usize) -> Result<(), CommError> {
        self.is_other(to)?;
        let (wait, call) = self.message::<T>(CollectiveKind::Send { to: to as u32 }, to, 0, values.len());
        for place in RoundParts::of(values.len(), self.room::<T>()) {
            self.round(Peers::To(to), &call, T::as_bytes(&values[place]), wait, &mut |_, _| {})?;
        }
        Ok(())
    }

    /// Takes what a rank sends now, which is waited for.
    ///
    /// # Errors
    /// [`CommError::Argument`] for this rank itself and one that there is not, and what [`Communicator`] says.
    pub fn recv<T: CommElement>(&mut self, values: &mut [T], from: usize) -> Result<(), CommError> {
        self.is_other(from)?;
        let (wait, call) = self.message::<T>(CollectiveKind::Recv { from: from as u32 }, from, 1, values.len());
        for place in RoundParts::of(values.len(), self.room::<T>()) {
            let into = T::as_bytes_mut(&mut values[place]);
            self.round(Peers::From(from), &call, &[], wait, &mut |rank, bytes| {
                if rank == from {
                    into.copy_from_slice(bytes);
                }
            })?;
        }
        Ok(())
    }
}

impl Communicator {
    fn begin<T: CommElement>(&mut self, kind: CollectiveKind, count: usize) -> (WaitLimit, CommCall) {
        let sequence = self.collectives;
        self.collectives += 1;
        (
            WaitLimit::new(self.deadline),
            CommCall { sequence, kind, element: T::TYPE, count: count as u64, label: self.label },
        )
    }

    fn message<T: CommElement>(
        &mut self,
        kind: CollectiveKind,
        peer: usize,
        way: usize,
        count: usize,
    ) -> (WaitLimit, CommCall) {
        let sequence = self.messages[peer][way];
        self.messages[peer][way] += 1;
        (
            WaitLimit::new(self.deadline),
            CommCall { sequence, kind, element: T::TYPE, count: count as u64, label: self.label },
        )
    }

    fn round(
        &mut self,
        peers: Peers,
        call: &CommCall,
        give: &[u8],
        wait: WaitLimit,
        take: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), CommError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let done = self.transport.round(peers, call, give, wait, take);
        if let Err(error) = &done {
            self.broken = Some(error.clone());
        }
        done
    }

    /// Elements of a round.
    fn room<T: CommElement>(&self) -> usize {
        self.transport.round_bytes() / size_of::<T>()
    }

    fn fits(&self, name: &str, of: &str, all: usize, part: usize) -> Result<(), CommError> {
        let ranks = self.ranks();
        match part.checked_mul(ranks) {
            Some(wanted) if wanted == all => Ok(()),
            _ => Err(CommError::Argument(format!(
                "{name}: expected `{of}` of {ranks} parts of {part} elements, got {all} elements"
            ))),
        }
    }

    fn is_rank(&self, rank: usize) -> Result<(), CommError> {
        let ranks = self.ranks();
        match rank < ranks {
            true => Ok(()),
            false => Err(CommError::Argument(format!("expected a rank below {ranks}, got {rank}"))),
        }
    }

    fn is_other(&self, rank: usize) -> Result<(), CommError> {
        self.is_rank(rank)?;
        match rank == self.rank() {
            true => Err(CommError::Argument(format!("rank {rank} cannot send a message to itself: keep it"))),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.ranks())
    }
}

/// Ranges of at most `room` elements; one empty range where there are none, so that ranks meet all the same.
struct RoundParts {
    next: usize,
    count: usize,
    room: usize,
    begun: bool,
}

impl RoundParts {
    fn of(count: usize, room: usize) -> RoundParts {
        RoundParts { next: 0, count, room, begun: false }
    }
}

impl Iterator for RoundParts {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.begun && self.next == self.count {
            return None;
        }
        self.begun = true;
        let start = self.next;
        self.next = self.count.min(start + self.room);
        Some(start..self.next)
    }
}
