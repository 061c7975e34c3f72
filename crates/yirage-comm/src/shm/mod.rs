//! The transport of one box: memory that the processes of a group share.
//!
//! Each rank has two slots. In a round it fills one, counts the round, and reads the others' once they have counted it too.
//! Who has come to a round has read all of the one before, so a slot is free again two rounds later: a round needs no more
//! than this one meeting. While a rank waits it looks at the others' processes, so a dead one is found at once.

mod futex;
mod launch;
mod process;
mod region;

use crate::call::CommCall;
use crate::dump::{CommDump, RankCondition, RankState};
use crate::error::CommError;
use crate::transport::{Peers, Transport, WaitLimit, agree};
use process::ProcessState;
use region::{RoundLane, SLOT_BYTES, SharedRegion, of_rank};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use launch::{LocalGroup, RankSeat};
pub use region::MAX_LOCAL_RANKS;

/// How often a rank that waits looks at the others' processes.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks at a word before it sleeps, where each rank may have a core of its own.
const SPINS: u32 = 2000;

/// What a rank's word of condition says.
const ABSENT: u64 = 0;
const HERE: u64 = 1;
const LEFT: u64 = 2;

/// A rank's place in the shared memory.
struct ShmTransport {
    region: Arc<SharedRegion>,
    rank: usize,
    spins: u32,
    /// Rounds with all.
    rounds: u32,
    /// Rounds of messages to each rank, and from each.
    message_rounds: Vec<[u32; 2]>,
}

/// One side of a round.
struct Side {
    rank: usize,
    lane: RoundLane,
}

impl ShmTransport {
    /// Takes the place of a rank that nobody has taken before.
    fn join(region: Arc<SharedRegion>, rank: usize) -> Result<ShmTransport, CommError> {
        let ranks = region.ranks();
        if rank >= ranks {
            let why = format!("expected a rank below {ranks}, got {rank}");
            return Err(CommError::Setup { what: "joined", why });
        }
        let condition = region.of_rank(rank, of_rank::CONDITION);
        if condition.compare_exchange(ABSENT, HERE, Ordering::AcqRel, Ordering::Acquire).is_err() {
            let why = format!("rank {rank} has come before; give each process a rank of its own");
            return Err(CommError::Setup { what: "joined", why });
        }
        show_process(&region, rank, std::process::id());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let spins = if cores >= ranks { SPINS } else { 0 };
        Ok(ShmTransport { region, rank, spins, rounds: 0, message_rounds: vec![[0; 2]; ranks] })
    }

    /// The sides of a round in the order of ranks, and its number.
    fn sides(&mut self, peers: Peers) -> (Vec<Side>, u32) {
        let (own, ranks) = (self.rank, self.region.ranks());
        let pair = |from: usize, to: usize| {
            let [sender, receiver] = self.region.lanes_of_messages(from, to);
            let mut sides = vec![Side { rank: from, lane: sender }, Side { rank: to, lane: receiver }];
            sides.sort_by_key(|side| side.rank);
            sides
        };
        let (sides, round) = match peers {
            Peers::All => {
                let all = (0..ranks).map(|rank| Side { rank, lane: self.region.lane_to_all(rank) });
                (all.collect(), &mut self.rounds)
            }
            Peers::To(to) => (pair(own, to), &mut self.message_rounds[to][0]),
            Peers::From(from) => (pair(from, own), &mut self.message_rounds[from][1]),
        };
        *round = round.wrapping_add(1);
        (sides, *round)
    }

    fn has_come(&self, side: &Side, round: u32) -> bool {
        // Rounds are counted beyond the largest number, and ranks are at most two of them apart.
        (self.region.word32(side.lane.word).load(Ordering::Acquire).wrapping_sub(round) as i32) >= 0
    }

    fn wait_for_all(&self, sides: &[Side], round: u32, call: &CommCall, wait: WaitLimit) -> Result<(), CommError> {
        for side in sides {
            let mut spins = self.spins;
            loop {
                let word = self.region.word32(side.lane.word);
                let seen = word.load(Ordering::Acquire);
                if self.has_come(side, round) {
                    break;
                }
                if spins > 0 {
                    spins -= 1;
                    std::hint::spin_loop();
                    continue;
                }
                self.check(sides, round, call, wait)?;
                futex::wait(word, seen, LOOK.min(wait.left()));
            }
        }
        Ok(())
    }

    /// Whether it makes sense to wait on.
    fn check(&self, sides: &[Side], round: u32, call: &CommCall, wait: WaitLimit) -> Result<(), CommError> {
        self.heard_of();
        if let Some(error) = self.region.given_up() {
            return Err(error);
        }
        let missing = |side: &&Side| !self.has_come(side, round);
        for side in sides.iter().filter(missing) {
            let gone = matches!(condition(&self.region, side.rank), RankCondition::Dead | RankCondition::Left);
            // It may have come and gone between.
            if gone && missing(&side) {
                return Err(CommError::Lost { rank: side.rank, dump: Box::new(self.dump(call)) });
            }
        }
        if wait.left().is_zero() {
            let missing: Vec<usize> = sides.iter().filter(missing).map(|side| side.rank).collect();
            if !missing.is_empty() {
                return Err(CommError::Deadline { missing, waited: wait.within, dump: Box::new(self.dump(call)) });
            }
        }
        Ok(())
    }

    fn heard_of(&self) {
        self.region.of_rank(self.rank, of_rank::HEARD_OF).store(now_ms(), Ordering::Relaxed);
    }

    fn dump(&self, call: &CommCall) -> CommDump {
        let states = (0..self.region.ranks()).map(|rank| state(&self.region, rank)).collect();
        CommDump { rank: self.rank, call: *call, states }
    }

    fn meet(
        &self,
        (sides, round): (&[Side], u32),
        call: &CommCall,
        give: &[u8],
        wait: WaitLimit,
        take: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), CommError> {
        if let Some(error) = self.region.given_up() {
            return Err(error);
        }
        let words = call.words(give.len());
        self.region.write_words(self.region.doing_at(self.rank), &words);
        if let Some(own) = sides.iter().find(|side| side.rank == self.rank) {
            self.region.give(&own.lane, round, words, give);
        }
        self.wait_for_all(sides, round, call, wait)?;
        let unreadable = |rank: usize| CommError::Transport {
            call: "a round",
            why: format!("rank {rank} shows what no rank shows; start all ranks with one program"),
        };
        let mut calls = Vec::with_capacity(sides.len());
        let mut lengths = Vec::with_capacity(sides.len());
        for side in sides {
            let shown = CommCall::of_words(self.region.record(&side.lane, round));
            let (call, bytes) = shown.ok_or_else(|| unreadable(side.rank))?;
            calls.push((side.rank, call));
            lengths.push(bytes);
        }
        agree(&calls)?;
        for (side, bytes) in sides.iter().zip(lengths) {
            match side.rank == self.rank {
                true => take(side.rank, give),
                false => take(side.rank, self.region.given(&side.lane, round, bytes)),
            }
        }
        Ok(())
    }
}

impl Transport for ShmTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.region.ranks()
    }

    fn sees_the_dead(&self) -> bool {
        true
    }

    fn round_bytes(&self) -> usize {
        SLOT_BYTES
    }

    fn round(
        &mut self,
        peers: Peers,
        call: &CommCall,
        give: &[u8],
        wait: WaitLimit,
        take: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), CommError> {
        let (sides, round) = self.sides(peers);
        let waits = self.region.of_rank(self.rank, of_rank::WAITS);
        self.heard_of();
        waits.store(1, Ordering::Relaxed);
        let mut done = self.meet((&sides, round), call, give, wait, take);
        if let Err(error) = &mut done {
            let is_first = self.region.give_up(self.rank, &error.to_string());
            // What a rank sees of others after one of them has given up is what followed from that. A mismatch all see alike.
            if let (false, false) = (is_first, matches!(error, CommError::Mismatch { .. })) {
                *error = self.region.given_up().unwrap_or_else(|| error.clone());
            }
        }
        self.heard_of();
        self.region.of_rank(self.rank, of_rank::WAITS).store(0, Ordering::Relaxed);
        done
    }
}

impl Drop for ShmTransport {
    fn drop(&mut self) {
        self.region.of_rank(self.rank, of_rank::CONDITION).store(LEFT, Ordering::Release);
        futex::wake_all(self.region.word32(self.region.lane_to_all(self.rank).word));
    }
}

/// Writes down which process a rank is.
fn show_process(region: &SharedRegion, rank: usize, process: u32) {
    // Where the system tells nothing of processes, only deadlines find the dead.
    let Some(started) = process::started(process) else { return };
    region.of_rank(rank, of_rank::STARTED).store(started, Ordering::Relaxed);
    region.of_rank(rank, of_rank::PROCESS).store(u64::from(process), Ordering::Release);
    region.of_rank(rank, of_rank::HEARD_OF).store(now_ms(), Ordering::Relaxed);
}

fn process_of(region: &SharedRegion, rank: usize) -> Option<(u32, u64)> {
    let process = region.of_rank(rank, of_rank::PROCESS).load(Ordering::Acquire);
    let started = region.of_rank(rank, of_rank::STARTED).load(Ordering::Relaxed);
    u32::try_from(process).ok().filter(|process| *process != 0).map(|process| (process, started))
}

fn condition(region: &SharedRegion, rank: usize) -> RankCondition {
    let shown = region.of_rank(rank, of_rank::CONDITION).load(Ordering::Acquire);
    let process = process_of(region, rank).map(|(process, started)| process::state(process, started));
    match (shown, process) {
        (LEFT, _) => RankCondition::Left,
        (_, Some(ProcessState::Dead)) => RankCondition::Dead,
        (_, Some(ProcessState::Stopped)) => RankCondition::Stopped,
        (ABSENT, _) => RankCondition::Absent,
        _ => RankCondition::Running,
    }
}

fn state(region: &SharedRegion, rank: usize) -> RankState {
    let doing = CommCall::of_words(region.read_words(region.doing_at(rank))).map(|(call, _)| call);
    let waits = region.of_rank(rank, of_rank::WAITS).load(Ordering::Relaxed) == 1;
    let heard_of = region.of_rank(rank, of_rank::HEARD_OF).load(Ordering::Relaxed);
    let silent = (heard_of > 0).then(|| Duration::from_millis(now_ms().saturating_sub(heard_of)));
    let process = process_of(region, rank).map(|(process, _)| process);
    RankState { rank, process, condition: condition(region, rank), call: doing, waits, silent }
}

/// Milliseconds of the clock that all processes of a box share.
fn now_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes the structure above.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
