//! The memory that the ranks of one box share, and where in it everything lies.
//!
//! It is an anonymous file without a name, whose size is sealed, so nothing is left when the last process has gone, and no
//! process can take bytes away from another's mapping. All that ranks tell each other is read and written as atomic words;
//! bytes that they lend each other are ordered by a word that is written after them.

use super::futex;
use crate::call::CALL_WORDS;
use crate::error::CommError;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes that a rank gives in a round: two such slots of each rank lie in the caches of a processor.
pub(super) const SLOT_BYTES: usize = 128 << 10;
/// Most ranks of one box.
pub const MAX_LOCAL_RANKS: usize = 64;

const PAGE: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"yircomm1");
const RANK_BLOCK: usize = 1024;
const PAIR_BLOCK: usize = 512;
const TEXT_WORDS: usize = 256;

/// Places in the first page.
const RANKS_AT: usize = 8;
const GIVEN_UP_AT: usize = 16;
const GIVEN_UP_BY_AT: usize = 24;
const TEXT_LEN_AT: usize = 32;
const TEXT_AT: usize = 64;

/// Places in the block of a rank.
pub(super) mod of_rank {
    pub(in crate::shm) const PROCESS: usize = 128;
    pub(in crate::shm) const STARTED: usize = 136;
    pub(in crate::shm) const CONDITION: usize = 144;
    pub(in crate::shm) const HEARD_OF: usize = 152;
    pub(in crate::shm) const WAITS: usize = 160;
    pub(in crate::shm) const DOING: usize = 192;
}

/// What one side of a meeting writes: a word that counts its rounds, what it does in the last two, and what it gives in them.
#[derive(Clone, Copy)]
pub(super) struct RoundLane {
    pub(super) word: usize,
    records: usize,
    /// The first of two slots, of a side that gives something.
    slots: Option<usize>,
}

/// The memory, mapped into this process.
pub(super) struct SharedRegion {
    start: NonNull<u8>,
    len: usize,
    ranks: usize,
}

// SAFETY: the mapping belongs to the whole process, and is reached through atomic words and the raw slots below alone.
unsafe impl Send for SharedRegion {}
// SAFETY: as for `Send`.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// New memory of so many ranks, with the file that other processes map.
    pub(super) fn create(ranks: usize) -> Result<(OwnedFd, SharedRegion), CommError> {
        let len = layout_bytes(ranks);
        // SAFETY: the name is a string that ends with 0; the descriptor that comes back is nobody's.
        let file = unsafe {
            let fd = libc::memfd_create(c"yirage-comm".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if fd < 0 {
                return Err(setup("made", "memfd_create"));
            }
            File::from_raw_fd(fd)
        };
        file.set_len(len as u64).map_err(|error| CommError::Setup { what: "made", why: error.to_string() })?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: a call on a descriptor that is open.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
            return Err(setup("made", "F_ADD_SEALS"));
        }
        let region = SharedRegion::map(file.as_raw_fd(), len, ranks).map_err(|call| setup("made", call))?;
        region.word64(RANKS_AT).store(ranks as u64, Ordering::Relaxed);
        region.word64(0).store(MAGIC, Ordering::Release);
        Ok((file.into(), region))
    }

    /// The memory behind a descriptor that was inherited, if it is that of a group.
    pub(super) fn inherited(fd: RawFd) -> Result<SharedRegion, CommError> {
        let wrong = |why: &str| {
            let why = format!("descriptor {fd} {why}; start ranks by the program that makes the group");
            CommError::Setup { what: "joined", why }
        };
        // SAFETY: calls on a number that need not be an open descriptor; the structure is plain numbers.
        let (seals, len) = unsafe {
            let mut about: libc::stat = std::mem::zeroed();
            let seals = libc::fcntl(fd, libc::F_GET_SEALS);
            if libc::fstat(fd, &raw mut about) != 0 {
                return Err(wrong("is not open"));
            }
            (seals, usize::try_from(about.st_size).unwrap_or(0))
        };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 || len < PAGE {
            return Err(wrong("is not the memory of a group"));
        }
        let head = SharedRegion::map(fd, PAGE, 0).map_err(|call| setup("joined", call))?;
        let (magic, ranks) = (head.word64(0).load(Ordering::Acquire), head.word64(RANKS_AT).load(Ordering::Relaxed));
        let ranks = usize::try_from(ranks).unwrap_or(0);
        if magic != MAGIC || ranks == 0 || ranks > MAX_LOCAL_RANKS || len != layout_bytes(ranks) {
            return Err(wrong("is not the memory of a group of this version"));
        }
        // SAFETY: a call on an open descriptor. It stays open, as its owner may be somewhere in this process, but programs
        // that this one starts do not have it.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        SharedRegion::map(fd, len, ranks).map_err(|call| setup("joined", call))
    }

    fn map(fd: RawFd, len: usize, ranks: usize) -> Result<SharedRegion, &'static str> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of an open file at a place that the system chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err("mmap");
        }
        let start = NonNull::new(start.cast()).ok_or("mmap")?;
        Ok(SharedRegion { start, len, ranks })
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// The lane in which a rank gives all others something.
    pub(super) fn lane_to_all(&self, rank: usize) -> RoundLane {
        let word = block_of(rank);
        let slots = slots_at(self.ranks) + rank * 2 * SLOT_BYTES;
        RoundLane { word, records: word + 512, slots: Some(slots) }
    }

    /// The lanes of messages from one rank to another: the sender's and the receiver's.
    pub(super) fn lanes_of_messages(&self, from: usize, to: usize) -> [RoundLane; 2] {
        let pair = from * self.ranks + to;
        let block = pairs_at(self.ranks) + pair * PAIR_BLOCK;
        let slots = slots_at(self.ranks) + self.ranks * 2 * SLOT_BYTES + pair * 2 * SLOT_BYTES;
        let sender = RoundLane { word: block, records: block + 128, slots: Some(slots) };
        [sender, RoundLane { word: block + 64, records: block + 256, slots: None }]
    }

    pub(super) fn word32(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.len, "a word at {at} of {} bytes", self.len);
        // SAFETY: the assertion shows that it lies whole and aligned in the mapping, which lives as long as `self`; nobody
        // reaches it but as an atomic word.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    pub(super) fn word64(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.len, "a word at {at} of {} bytes", self.len);
        // SAFETY: the assertion shows that it lies whole and aligned in the mapping, as in `SharedRegion::word32`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    pub(super) fn of_rank(&self, rank: usize, place: usize) -> &AtomicU64 {
        self.word64(block_of(rank) + place)
    }

    pub(super) fn write_words(&self, at: usize, words: &[u64]) {
        words.iter().enumerate().for_each(|(i, word)| self.word64(at + 8 * i).store(*word, Ordering::Relaxed));
    }

    pub(super) fn read_words(&self, at: usize) -> [u64; CALL_WORDS] {
        std::array::from_fn(|i| self.word64(at + 8 * i).load(Ordering::Relaxed))
    }

    pub(super) fn doing_at(&self, rank: usize) -> usize {
        block_of(rank) + of_rank::DOING
    }

    /// Shows what this side does in a round and gives bytes: its own lane, of which others read other rounds.
    pub(super) fn give(&self, lane: &RoundLane, round: u32, words: [u64; CALL_WORDS], bytes: &[u8]) {
        if let Some(slots) = lane.slots {
            assert!(bytes.len() <= SLOT_BYTES, "{} bytes in a slot of {SLOT_BYTES}", bytes.len());
            let at = slots + (round as usize % 2) * SLOT_BYTES;
            assert!(at + SLOT_BYTES <= self.len, "a slot at {at} of {} bytes", self.len);
            // SAFETY: the assertions show that it lies in the mapping. Only this side writes the slot, and all who read what
            // it held have done so: they have come to the round between.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) };
        }
        self.write_words(lane.records + (round as usize % 2) * 64, &words);
        let word = self.word32(lane.word);
        word.store(round, Ordering::Release);
        futex::wake_all(word);
    }

    /// What a side shows in a round that it has come to.
    pub(super) fn record(&self, lane: &RoundLane, round: u32) -> [u64; CALL_WORDS] {
        self.read_words(lane.records + (round as usize % 2) * 64)
    }

    /// What a side has given in a round that it has come to.
    pub(super) fn given(&self, lane: &RoundLane, round: u32, bytes: usize) -> &[u8] {
        let Some(slots) = lane.slots else { return &[] };
        let at = slots + (round as usize % 2) * SLOT_BYTES;
        assert!(bytes <= SLOT_BYTES && at + SLOT_BYTES <= self.len, "{bytes} bytes at {at} of {}", self.len);
        // SAFETY: the assertion shows that it lies in the mapping. Its writer has counted this round after it wrote (`give`),
        // the reader has seen that count, and it is not written again before this reader comes to the round after next.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), bytes) }
    }

    /// Tells all ranks that this one has given up; the first one's reason stays. Whether this is the first.
    pub(super) fn give_up(&self, by: usize, why: &str) -> bool {
        let state = self.word64(GIVEN_UP_AT);
        if state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let bytes = &why.as_bytes()[..why.len().min(TEXT_WORDS * 8)];
        for (i, part) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.word64(TEXT_AT + 8 * i).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        self.word64(GIVEN_UP_BY_AT).store(by as u64, Ordering::Relaxed);
        self.word64(TEXT_LEN_AT).store(bytes.len() as u64, Ordering::Relaxed);
        state.store(2, Ordering::Release);
        (0..self.ranks).for_each(|rank| futex::wake_all(self.word32(block_of(rank))));
        true
    }

    /// Which rank has given up, and why.
    pub(super) fn given_up(&self) -> Option<CommError> {
        if self.word64(GIVEN_UP_AT).load(Ordering::Acquire) != 2 {
            return None;
        }
        let len = (self.word64(TEXT_LEN_AT).load(Ordering::Relaxed) as usize).min(TEXT_WORDS * 8);
        let words = (0..len.div_ceil(8)).map(|i| self.word64(TEXT_AT + 8 * i).load(Ordering::Relaxed));
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).take(len).collect();
        let by = self.word64(GIVEN_UP_BY_AT).load(Ordering::Relaxed) as usize;
        Some(CommError::GivenUp { by, why: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, of which nothing is borrowed any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

fn block_of(rank: usize) -> usize {
    PAGE + rank * RANK_BLOCK
}

fn pairs_at(ranks: usize) -> usize {
    block_of(ranks).next_multiple_of(PAGE)
}

fn slots_at(ranks: usize) -> usize {
    (pairs_at(ranks) + ranks * ranks * PAIR_BLOCK).next_multiple_of(PAGE)
}

fn layout_bytes(ranks: usize) -> usize {
    slots_at(ranks) + ranks * 2 * SLOT_BYTES + ranks * ranks * 2 * SLOT_BYTES
}

fn setup(what: &'static str, call: &str) -> CommError {
    CommError::Setup { what, why: format!("{call}: {}", std::io::Error::last_os_error()) }
}
