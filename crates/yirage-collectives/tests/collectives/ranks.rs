//! A rank with a stream, and collectives on its memory.

use crate::fake::RankStreams;
use std::ffi::c_void;
use yirage_collectives::{CollectiveError, DeviceCommunicator, DeviceElements};
use yirage_comm::{CollectiveKind, CommCall, CommElement};

/// A rank of a group.
pub(crate) struct GroupRank {
    pub(crate) communicator: DeviceCommunicator,
    stream: *mut c_void,
    streams: RankStreams,
}

impl GroupRank {
    pub(crate) fn new(communicator: DeviceCommunicator, streams: RankStreams, seed: u32) -> GroupRank {
        // SAFETY: it makes a stream of its own.
        let stream = unsafe { (streams.new)(seed) };
        GroupRank { communicator, stream, streams }
    }

    pub(crate) fn rank(&self) -> usize {
        self.communicator.seat().rank
    }

    pub(crate) fn ranks(&self) -> usize {
        self.communicator.seat().ranks
    }

    /// Puts a collective of rows into the stream; the caller keeps both slices until it has waited.
    pub(crate) fn submit<T: CommElement>(
        &self,
        kind: CollectiveKind,
        rows: usize,
        from: &[T],
        to: &mut [T],
    ) -> Result<CommCall, CollectiveError> {
        let given = if matches!(kind, CollectiveKind::Broadcast { .. } | CollectiveKind::Recv { .. }) {
            to.len()
        } else {
            from.len()
        };
        let (width, element) = (given / rows, T::TYPE);
        let (from, to) = (from.as_ptr() as u64, to.as_mut_ptr() as u64);
        // SAFETY: `DeviceCommunicator::submit` wants elements that stay: the slices live until the test has waited.
        unsafe { self.communicator.submit(kind, DeviceElements { element, rows, width, from, to }, self.stream) }
    }

    /// Whether all that stands in the stream is done within so many milliseconds.
    pub(crate) fn is_done_within(&self, milliseconds: i32) -> bool {
        // SAFETY: the stream is this rank's own.
        unsafe { (self.streams.wait)(self.stream, milliseconds) != 0 }
    }

    /// A collective whose result has come.
    pub(crate) fn done<T: CommElement>(&self, kind: CollectiveKind, rows: usize, from: &[T], to: &mut [T]) {
        self.submit(kind, rows, from, to).unwrap();
        assert!(self.is_done_within(60_000), "{kind}");
        self.communicator.is_well().unwrap();
    }
}

impl Drop for GroupRank {
    fn drop(&mut self) {
        // SAFETY: nobody else has the stream; what stands in it is still run.
        unsafe { (self.streams.drop)(self.stream) };
    }
}
