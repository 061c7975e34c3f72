//! Memory that knows who touched it.
//!
//! Each barrier begins an epoch, and so does each group. Of a word it is known in which epoch and by which thread it was
//! written last and read last: two threads that touch it in one epoch race where one of them writes, and so do two groups,
//! between which no barrier is.

use super::fault::KernelProblem;
use crate::kernel::BufferAccess;
use crate::place::KernelMemory;

/// The epochs of a launch, from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epochs {
    pub(super) current: u64,
    /// The one in which the group began.
    pub(super) of_group: u64,
}

/// Memory of a launch or of a group.
pub(super) struct TrackedMemory<'a> {
    words: &'a mut [u32],
    /// None of what nobody writes: there are no races.
    touched: Option<Touched>,
    /// Groups have each their own.
    is_shared: bool,
}

/// Who touched each word last.
struct Touched {
    written: Vec<Stamp>,
    read: Vec<Stamp>,
}

/// An epoch and a thread, in one number that is 0 where there is none.
type Stamp = u64;

/// Bits of a stamp below the epoch's.
const THREAD: u64 = (1 << 15) - 1;
/// Several threads in this epoch, of which the first is named.
const SEVERAL: u64 = 1 << 15;
/// Other groups too.
const OTHERS: u64 = 1 << 16;
const EPOCH: u32 = 17;

impl<'a> TrackedMemory<'a> {
    pub(super) fn buffer(words: &'a mut [u32], access: BufferAccess) -> TrackedMemory<'a> {
        let touched = (access != BufferAccess::Read).then(|| Touched::new(words.len()));
        TrackedMemory { words, touched, is_shared: false }
    }

    pub(super) fn shared(words: &'a mut [u32]) -> TrackedMemory<'a> {
        let touched = Some(Touched::new(words.len()));
        TrackedMemory { words, touched, is_shared: true }
    }

    /// What a thread reads.
    pub(super) fn load(
        &mut self,
        memory: KernelMemory,
        index: u32,
        thread: usize,
        now: Epochs,
    ) -> Result<u32, KernelProblem> {
        let len = self.words.len();
        let word = *self.words.get(index as usize).ok_or(KernelProblem::Beside { memory, index, len })?;
        if let Some(touched) = &mut self.touched {
            touched.load(memory, index, thread, now, self.is_shared)?;
        }
        Ok(word)
    }

    /// Writes for a thread.
    pub(super) fn store(
        &mut self,
        memory: KernelMemory,
        index: u32,
        word: u32,
        thread: usize,
        now: Epochs,
    ) -> Result<(), KernelProblem> {
        let len = self.words.len();
        let place = self.words.get_mut(index as usize).ok_or(KernelProblem::Beside { memory, index, len })?;
        if let Some(touched) = &mut self.touched {
            touched.store(memory, index, thread, now, self.is_shared)?;
        }
        *place = word;
        Ok(())
    }
}

impl Touched {
    fn new(words: usize) -> Touched {
        Touched { written: vec![0; words], read: vec![0; words] }
    }

    fn load(
        &mut self,
        memory: KernelMemory,
        index: u32,
        thread: usize,
        now: Epochs,
        is_shared: bool,
    ) -> Result<(), KernelProblem> {
        let (at, thread) = (index as usize, thread as u64);
        let written = self.written[at];
        let epoch = written >> EPOCH;
        if is_shared && epoch < now.of_group {
            return Err(KernelProblem::Unwritten { memory, index });
        }
        if written != 0 && epoch < now.of_group {
            return Err(KernelProblem::RaceOfGroups { memory, index });
        }
        if epoch == now.current && written & THREAD != thread {
            return Err(KernelProblem::RaceInGroup { memory, index, other: (written & THREAD) as u32 });
        }
        let read = self.read[at];
        let mut next = now.current << EPOCH | read & OTHERS;
        if read >> EPOCH == now.current {
            let several = if read & THREAD == thread { read & SEVERAL } else { SEVERAL };
            next |= read & THREAD | several;
        } else {
            let others = read != 0 && read >> EPOCH < now.of_group && !is_shared;
            next |= thread | if others { OTHERS } else { 0 };
        }
        self.read[at] = next;
        Ok(())
    }

    fn store(
        &mut self,
        memory: KernelMemory,
        index: u32,
        thread: usize,
        now: Epochs,
        is_shared: bool,
    ) -> Result<(), KernelProblem> {
        let (at, thread) = (index as usize, thread as u64);
        let (written, read) = (self.written[at], self.read[at]);
        let of_others = |stamp: Stamp| stamp != 0 && (stamp >> EPOCH < now.of_group || stamp & OTHERS != 0);
        if !is_shared && (of_others(written) || of_others(read)) {
            return Err(KernelProblem::RaceOfGroups { memory, index });
        }
        for stamp in [written, read] {
            if stamp >> EPOCH == now.current && (stamp & THREAD != thread || stamp & SEVERAL != 0) {
                return Err(KernelProblem::RaceInGroup { memory, index, other: (stamp & THREAD) as u32 });
            }
        }
        self.written[at] = now.current << EPOCH | thread;
        Ok(())
    }
}
