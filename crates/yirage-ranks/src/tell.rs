//! Rank 0 tells the others what to do, and all tell each other how that went: messages of any length, by collectives.

use crate::group::{RankGroup, RankGroupError};
use std::time::Duration;
use yirage_comm::Communicator;
use yirage_hal::HalError;

/// What the ranks agree on in these collectives, so that they never meet in one of a plan.
const LABEL: u64 = u64::from_le_bytes(*b"commands");
/// Bytes of a message that come with its length.
const HEAD: usize = 4096;
/// Bytes in which a rank says how it went.
const ANSWER: usize = 1024;
/// Rank 0 is heard of at least so often, and hears of the others.
pub(crate) const PING: Duration = Duration::from_millis(500);
/// How long a rank waits to be told something where it sees that rank 0 is dead: one that is stopped may go on.
const IDLE: Duration = Duration::from_secs(365 * 24 * 3600);
/// How much longer than for anything else a rank waits to hear of rank 0 where it does not see that.
const SILENCE: Duration = Duration::from_secs(2);

/// How it went on a rank.
pub(crate) type RankAnswer = Result<(), HalError>;

impl RankGroup {
    /// Tells all other ranks something. They have come to hear it when this returns.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn tell(&self, message: &[u8]) -> Result<(), RankGroupError> {
        self.with(|communicator| {
            let (mut head, rest) = head_of(message);
            communicator.broadcast(&mut head, 0)?;
            if !rest.is_empty() {
                communicator.broadcast(&mut rest.to_vec(), 0)?;
            }
            Ok(())
        })
    }

    /// What rank 0 tells next, however long that takes.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn hear(&self) -> Result<Vec<u8>, RankGroupError> {
        self.with(|communicator| {
            let (deadline, mut head) = (communicator.deadline(), vec![0; HEAD]);
            communicator.set_deadline(longest_silence(communicator));
            let heard = communicator.broadcast(&mut head, 0);
            communicator.set_deadline(deadline);
            heard?;
            let (mut message, missing) = begun(&head);
            if missing > 0 {
                let mut rest = vec![0; missing];
                communicator.broadcast(&mut rest, 0)?;
                message.append(&mut rest);
            }
            Ok(message)
        })
    }

    /// Says how it went here, and hears how it went on all ranks, rank 0 first.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn answer(&self, own: &RankAnswer) -> Result<Vec<RankAnswer>, RankGroupError> {
        self.with(|communicator| {
            let mut all = vec![0; ANSWER * communicator.ranks()];
            communicator.all_gather(&written(own), &mut all)?;
            Ok(all.chunks_exact(ANSWER).enumerate().map(|(rank, block)| read(rank, block)).collect())
        })
    }

    /// Tells one rank something. It has come to hear it when this returns.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn tell_one(&self, message: &[u8], to: usize) -> Result<(), RankGroupError> {
        self.with(|communicator| {
            let (head, rest) = head_of(message);
            communicator.send(&head, to)?;
            if !rest.is_empty() {
                communicator.send(rest, to)?;
            }
            Ok(())
        })
    }

    /// What one rank tells this one next: rank 0, however long that takes, or another, which has been asked.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn hear_one(&self, from: usize) -> Result<Vec<u8>, RankGroupError> {
        self.with(|communicator| {
            let (deadline, mut head) = (communicator.deadline(), vec![0; HEAD]);
            if from == 0 {
                communicator.set_deadline(longest_silence(communicator));
            }
            let heard = communicator.recv(&mut head, from);
            communicator.set_deadline(deadline);
            heard?;
            let (mut message, missing) = begun(&head);
            if missing > 0 {
                let mut rest = vec![0; missing];
                communicator.recv(&mut rest, from)?;
                message.append(&mut rest);
            }
            Ok(message)
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Communicator) -> Result<T, RankGroupError>) -> Result<T, RankGroupError> {
        let mut place = self.place();
        let communicator = place.as_mut().map_err(|why| RankGroupError::Left(why.clone()))?;
        communicator.set_label(LABEL);
        act(communicator)
    }
}

/// How long a rank waits to hear of rank 0.
fn longest_silence(communicator: &Communicator) -> Duration {
    if communicator.sees_the_dead() { IDLE } else { communicator.deadline().saturating_add(SILENCE) }
}

/// The length of a message with its beginning, and what is left of it.
fn head_of(message: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut head = vec![0; HEAD];
    head[..8].copy_from_slice(&(message.len() as u64).to_le_bytes());
    let (inline, rest) = message.split_at(message.len().min(HEAD - 8));
    head[8..8 + inline.len()].copy_from_slice(inline);
    (head, rest)
}

/// The beginning of a message, and how many bytes of it are still to come.
fn begun(head: &[u8]) -> (Vec<u8>, usize) {
    let (len, inline) = head.split_at(8);
    let len = usize::try_from(u64::from_le_bytes(len.try_into().unwrap_or_default())).unwrap_or(usize::MAX);
    let message = inline[..len.min(HEAD - 8)].to_vec();
    let missing = len - message.len();
    (message, missing)
}

/// How it went on a stage, with what it gives, as a message.
pub(crate) fn stage_answer(done: Result<Vec<u8>, HalError>) -> Vec<u8> {
    let (status, given) = match done {
        Ok(given) => (Ok(()), given),
        Err(error) => (Err(error), Vec::new()),
    };
    let mut message = written(&status);
    message.extend_from_slice(&given);
    message
}

/// What a stage's message says.
pub(crate) fn read_stage_answer(rank: usize, mut message: Vec<u8>) -> Result<Vec<u8>, HalError> {
    if message.len() < ANSWER {
        let len = message.len();
        return Err(HalError::Device(format!("rank {rank} answers in {len} bytes, {ANSWER} at least were expected")));
    }
    let given = message.split_off(ANSWER);
    read(rank, &message).map(|()| given)
}

/// An answer as a block: its kind, the length of a text, the text.
fn written(answer: &RankAnswer) -> Vec<u8> {
    let (kind, text) = match answer {
        Ok(()) => (0, String::new()),
        Err(HalError::Step(why)) => (1, why.clone()),
        Err(error @ HalError::OutOfMemory { .. }) => (2, error.to_string()),
        Err(error @ HalError::Unsupported { .. }) => (3, error.to_string()),
        Err(error) => (4, error.to_string()),
    };
    let len = text.floor_char_boundary(ANSWER - 3);
    let mut block = vec![kind];
    block.extend_from_slice(&(len as u16).to_le_bytes());
    block.extend_from_slice(&text.as_bytes()[..len]);
    block.resize(ANSWER, 0);
    block
}

fn read(rank: usize, block: &[u8]) -> RankAnswer {
    let len = usize::from(u16::from_le_bytes([block[1], block[2]])).min(ANSWER - 3);
    let why = format!("rank {rank}: {}", String::from_utf8_lossy(&block[3..3 + len]));
    match block[0] {
        0 => Ok(()),
        1 => Err(HalError::Step(why)),
        2 => Err(HalError::OutOfMemory { pool: "a rank's", wanted: 0, detail: why }),
        3 => Err(HalError::Unsupported { what: "a rank".into(), why }),
        _ => Err(HalError::Device(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_which_rank_it_is_of_and_what_kind() {
        assert_eq!(read(1, &written(&Ok(()))), Ok(()));
        let step = read(1, &written(&Err(HalError::Step("no".into()))));
        assert_eq!(step, Err(HalError::Step("rank 1: no".into())));
        let long = read(2, &written(&Err(HalError::Device("ä".repeat(2000)))));
        let Err(HalError::Device(text)) = long else { panic!("{long:?}") };
        assert!(text.starts_with("rank 2: the device failed: ä") && text.len() <= ANSWER + 8, "{text}");
    }
}
