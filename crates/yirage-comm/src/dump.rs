//! What every rank was doing when one of them waited in vain.

use crate::call::CommCall;
use std::fmt;
use std::time::Duration;

/// What a rank's process is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RankCondition {
    /// It has not come to the group yet.
    Absent,
    /// It runs, or may: what carries the messages cannot see it.
    Running,
    /// Somebody has stopped it, with a signal or a debugger.
    Stopped,
    /// It has left the group.
    Left,
    /// It is gone and has not left the group before.
    Dead,
}

/// What one rank was doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankState {
    /// Its number.
    pub rank: usize,
    /// Its process, where it is known.
    pub process: Option<u32>,
    /// What that is like.
    pub condition: RankCondition,
    /// What it does, or did last.
    pub call: Option<CommCall>,
    /// Whether it waits in that call.
    pub waits: bool,
    /// How long ago it was last heard of, where that is known.
    pub silent: Option<Duration>,
}

/// What all ranks were doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommDump {
    /// The rank that tells it.
    pub rank: usize,
    /// What it was waiting in.
    pub call: CommCall,
    /// All ranks, in their order.
    pub states: Vec<RankState>,
}

impl fmt::Display for RankState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Some(process) = self.process {
            write!(f, " (process {process})")?;
        }
        f.write_str(match self.condition {
            RankCondition::Absent => " has not come to the group",
            RankCondition::Running => "",
            RankCondition::Stopped => " is stopped",
            RankCondition::Left => " has left",
            RankCondition::Dead => " is dead",
        })?;
        match (&self.call, self.waits) {
            (Some(call), true) => write!(f, " in {call}")?,
            (Some(call), false) => write!(f, " after {call}")?,
            (None, _) if self.condition == RankCondition::Absent => {}
            (None, _) => f.write_str(" before its first call")?,
        }
        match self.silent {
            Some(silent) if !self.waits => write!(f, ", last heard of {silent:.1?} ago"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for CommDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} in {}", self.rank, self.states.len(), self.call)?;
        self.states.iter().filter(|state| state.rank != self.rank).try_for_each(|state| write!(f, "; {state}"))
    }
}
