//! Who takes part in the next step: all workers, or those whose processors are not taken by others.
//!
//! Readings of how long workers waited for a processor only raise the question. The answer is measured: steps without
//! the workers concerned have to be faster than the steps that raised it, else all take part again at once. After a pause
//! all are tried again, and stay if that is no slower. Pauses double while the answer stays the same, up to a bound, and are
//! as long as is worth what the trial lost, so that a processor that stays taken costs some hundredths in trials, and one
//! that becomes free is soon used again.
//!
//! A pure value: it has no clock and is told when steps ended and what they took.

use crate::pool::Team;
use std::time::Duration;

/// The share of the steps' time that a worker waits for a processor, from which on it is disturbed. What a system does
/// for itself takes far less.
const DISTURBED: f64 = 0.15;
/// Time of steps after which a trial can be decided: longer than a system lets threads have a processor in turn, and than
/// the credit lasts that a thread has which has slept.
const TRIAL: f64 = 0.03;
/// Steps after which a trial can be decided, unless it is hopeless.
const TRIAL_STEPS: u32 = 3;
/// How many times the usual time a step of a trial may take, from which on it is hopeless.
const HOPELESS: f64 = 1.3;
/// Of the usual time, what steps of fewer workers may take at most.
const FASTER: f64 = 0.95;
/// Steps that the usual time is the mean of, at least and at most.
const USUAL_STEPS: (usize, usize) = (2, 8);
/// The first pause before something is tried again, and the longest that doubling makes.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(3200));
/// How many times what a trial lost a pause is at least, and the most that makes.
const WORTH: (f64, f64) = (20.0, 20.0);

/// A pause that doubles.
struct Pause {
    length: Duration,
    /// Its end.
    until: Duration,
}

impl Pause {
    fn new() -> Pause {
        Pause { length: PAUSES.0, until: Duration::ZERO }
    }

    /// Begins, after a trial that lost so many seconds; the next will be twice as long.
    fn begin(&mut self, now: Duration, lost: f64) {
        let worth = Duration::from_secs_f64((WORTH.0 * lost).clamp(0.0, WORTH.1));
        self.until = now + self.length.max(worth);
        self.length = (2 * self.length).min(PAUSES.1);
    }

    fn is_over(&self, now: Duration) -> bool {
        now >= self.until
    }
}

/// Another team for some steps.
struct TeamTrial {
    /// The team so far.
    before: Team,
    /// Mean seconds of its steps.
    usual: f64,
    steps: u32,
    seconds: f64,
    /// The disturbed workers by the last reading.
    disturbed: Vec<usize>,
}

impl TeamTrial {
    /// Seconds more than the usual time of as many steps.
    fn lost(&self) -> f64 {
        self.seconds - f64::from(self.steps) * self.usual
    }

    /// Whether the trial's steps take at most `share` of the usual time, once that is known.
    fn verdict(&self, share: f64) -> Option<bool> {
        let mean = self.seconds / f64::from(self.steps.max(1));
        match self.seconds >= TRIAL {
            true if mean > HOPELESS * self.usual => Some(false),
            true if self.steps >= TRIAL_STEPS => Some(mean <= share * self.usual),
            _ => None,
        }
    }
}

/// What a controller has changed, for people.
#[derive(Debug, PartialEq)]
pub(super) struct TeamChange {
    pub(super) what: &'static str,
    /// The team from now on.
    team: Team,
    workers: usize,
    /// Mean seconds of the steps that decided, and of those they were compared with.
    pub(super) seconds: f64,
    pub(super) usual: f64,
}

impl TeamChange {
    /// The workers that take no part.
    pub(super) fn left_out(&self) -> Vec<usize> {
        (0..self.workers).filter(|w| !self.team.members().contains(w)).collect()
    }
}

/// Decides for steps of about one size.
pub(super) struct StragglerController {
    all: Team,
    team: Team,
    trial: Option<TeamTrial>,
    /// Seconds of the last steps of the team.
    recent: Vec<f64>,
    /// Of these, the steps since the last reading.
    unread: usize,
    /// Whether the last reading showed a disturbed worker.
    suspects: bool,
    /// Before fewer workers are tried again.
    fewer: Pause,
    /// Before all are.
    more: Pause,
    /// When all came back last.
    returned: Option<Duration>,
}

impl StragglerController {
    /// All of so many workers take part.
    pub(super) fn new(workers: usize) -> StragglerController {
        let all = Team::all(workers);
        StragglerController {
            team: all.clone(),
            all,
            trial: None,
            recent: Vec::new(),
            unread: 0,
            suspects: false,
            fewer: Pause::new(),
            more: Pause::new(),
            returned: None,
        }
    }

    /// Who runs the next step.
    pub(super) fn team(&self) -> &Team {
        &self.team
    }

    /// The team's step ended `now` and took so long; with a reading, if there was one since the last step: for each worker,
    /// which share of the time it waited for a processor.
    pub(super) fn took(&mut self, now: Duration, took: Duration, reading: Option<&[f64]>) -> Option<TeamChange> {
        let disturbed = reading.map(|shares| self.disturbed(shares));
        if let Some(mut trial) = self.trial.take() {
            trial.steps += 1;
            trial.seconds += took.as_secs_f64();
            trial.disturbed = disturbed.unwrap_or(trial.disturbed);
            let fewer = self.team.len() < trial.before.len();
            return match trial.verdict(if fewer { FASTER } else { 1.0 }) {
                None => {
                    self.trial = Some(trial);
                    None
                }
                Some(true) => Some(self.keep(now, trial)),
                Some(false) => Some(self.go_back(now, trial)),
            };
        }
        if self.recent.len() == USUAL_STEPS.1 {
            self.recent.remove(0);
        }
        self.recent.push(took.as_secs_f64());
        self.unread += 1;
        if let Some(disturbed) = disturbed {
            self.suspect(now, &disturbed);
            self.unread = 0;
        }
        if self.trial.is_none() && self.may_try_all(now) {
            self.begin(self.all.clone());
        }
        None
    }

    /// Members of the team that waited too long, those that did most first.
    fn disturbed(&self, shares: &[f64]) -> Vec<usize> {
        let waited = |w: usize| shares.get(w).copied().unwrap_or(0.0);
        let mut disturbed: Vec<usize> = self.team.members().to_vec();
        disturbed.retain(|&w| waited(w) >= DISTURBED);
        disturbed.sort_by(|&a, &b| waited(b).total_cmp(&waited(a)));
        disturbed
    }

    /// Two readings in a row begin a trial without disturbed workers. What steps took that neither is about says nothing
    /// of disturbed ones.
    fn suspect(&mut self, now: Duration, disturbed: &[usize]) {
        let again = self.suspects;
        self.suspects = !disturbed.is_empty();
        match (again, self.suspects) {
            (false, true) => drop(self.recent.drain(..self.recent.len().saturating_sub(self.unread))),
            (true, true) if self.may_try_fewer(now) => {
                let fewer = self.without(disturbed);
                self.begin(fewer);
            }
            _ => {}
        }
    }

    fn may_try_all(&self, now: Duration) -> bool {
        self.more.is_over(now) && self.team != self.all && self.recent.len() >= USUAL_STEPS.0
    }

    fn may_try_fewer(&self, now: Duration) -> bool {
        self.fewer.is_over(now) && self.team.len() > 1 && self.recent.len() >= USUAL_STEPS.0
    }

    /// The team without these workers, but at least half of it: threads that take turns on a processor are all disturbed, and
    /// some have it to themselves once the others are gone. The caller stays: where it is the only one, the last worker gives
    /// it room.
    fn without(&self, disturbed: &[usize]) -> Team {
        let most = self.team.len() / 2;
        let mut left_out: Vec<usize> = disturbed.iter().copied().filter(|&w| w != 0).take(most).collect();
        if left_out.is_empty() {
            left_out.extend(self.team.members().last());
        }
        self.team.without(&left_out)
    }

    fn begin(&mut self, team: Team) {
        let usual = self.recent.iter().sum::<f64>() / self.recent.len().max(1) as f64;
        self.try_team(team, usual);
    }

    fn try_team(&mut self, team: Team, usual: f64) {
        let before = std::mem::replace(&mut self.team, team);
        self.trial = Some(TeamTrial { before, usual, steps: 0, seconds: 0.0, disturbed: Vec::new() });
        self.recent.clear();
        self.unread = 0;
        self.suspects = false;
    }

    fn change(&self, what: &'static str, trial: &TeamTrial) -> TeamChange {
        let seconds = trial.seconds / f64::from(trial.steps.max(1));
        TeamChange { what, team: self.team.clone(), workers: self.all.len(), seconds, usual: trial.usual }
    }

    /// The trial's team stays.
    fn keep(&mut self, now: Duration, trial: TeamTrial) -> TeamChange {
        if self.team.len() > trial.before.len() {
            self.returned = Some(now);
            return self.change("workers take part again", &trial);
        }
        // Whoever came back too early waits longer this time.
        if self.returned.is_none_or(|at| now > at + PAUSES.1) {
            self.more = Pause::new();
        }
        self.fewer = Pause::new();
        self.more.begin(now, 0.0);
        self.change("workers are left out: their processors are taken", &trial)
    }

    /// The trial's team is no better. Of more workers some may be, if others are disturbed now than before.
    fn go_back(&mut self, now: Duration, trial: TeamTrial) -> TeamChange {
        let more = self.team.len() > trial.before.len();
        let part = self.team.without(&trial.disturbed);
        self.team = trial.before.clone();
        if !more {
            self.fewer.begin(now, trial.lost());
            return self.change("fewer workers are no faster", &trial);
        }
        self.more.begin(now, trial.lost());
        let change = self.change("the processors of workers left out are still taken", &trial);
        if part.len() > self.team.len() && part != self.all && !trial.disturbed.is_empty() {
            self.try_team(part, trial.usual);
        }
        change
    }
}

#[cfg(test)]
mod tests;
