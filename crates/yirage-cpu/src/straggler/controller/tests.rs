//! The controller on machines whose steps take given times.

use super::*;

/// A machine: what a step takes with a team, and which share of it each worker waits.
struct SimulatedMachine {
    controller: StragglerController,
    now: Duration,
    unread: f64,
    step: Box<StepTimeFn>,
}

/// At a time and with a team: a step's milliseconds, and the shares waited.
type StepTimeFn = dyn FnMut(Duration, &Team) -> (f64, Vec<f64>);

impl SimulatedMachine {
    fn new(workers: usize, step: impl FnMut(Duration, &Team) -> (f64, Vec<f64>) + 'static) -> SimulatedMachine {
        SimulatedMachine {
            controller: StragglerController::new(workers),
            now: Duration::ZERO,
            unread: 0.0,
            step: Box::new(step),
        }
    }

    /// Runs steps for so many milliseconds; how many there were, and what was changed.
    fn run(&mut self, milliseconds: f64) -> (usize, Vec<TeamChange>) {
        let (end, mut steps, mut changes) = (self.now + Duration::from_secs_f64(milliseconds / 1e3), 0, Vec::new());
        while self.now < end {
            let (took, shares) = (self.step)(self.now, self.controller.team());
            let took = Duration::from_secs_f64(took / 1e3);
            self.now += took;
            self.unread += took.as_secs_f64();
            let reading = (self.unread >= 0.02).then_some(&shares[..]);
            changes.extend(self.controller.took(self.now, took, reading));
            if reading.is_some() {
                self.unread = 0.0;
            }
            steps += 1;
        }
        (steps, changes)
    }

    fn members(&self) -> &[usize] {
        self.controller.team().members()
    }
}

/// Worker 1 of two has its processor to itself outside of `taken`: 4.4 ms a step, else 27; 8 ms alone.
fn two(taken: impl Fn(Duration) -> bool + 'static) -> impl FnMut(Duration, &Team) -> (f64, Vec<f64>) + 'static {
    move |now, team| match (team.len(), taken(now)) {
        (1, _) => (8.0, vec![0.0, 0.0]),
        (_, false) => (4.4, vec![0.0, 0.01]),
        (_, true) => (27.0, vec![0.02, 0.5]),
    }
}

#[test]
fn nothing_changes_where_nobody_is_disturbed() {
    let mut quiet = SimulatedMachine::new(2, two(|_| false));
    assert_eq!((quiet.run(60e3).1, quiet.members()), (vec![], &[0, 1][..]));
    let mut alone = SimulatedMachine::new(1, |_: Duration, _: &Team| (8.0, vec![0.9]));
    assert_eq!((alone.run(10e3).1, alone.members()), (vec![], &[0][..]));
}

#[test]
fn one_reading_is_no_reason() {
    // Every fifth reading or so shows a disturbance.
    let mut step = 0;
    let mut machine = SimulatedMachine::new(2, move |_: Duration, _: &Team| {
        step += 1;
        if step % 25 == 0 { (9.0, vec![0.0, 0.3]) } else { (4.4, vec![0.0, 0.0]) }
    });
    assert_eq!((machine.run(20e3).1, machine.members()), (vec![], &[0, 1][..]));
}

#[test]
fn a_stalled_worker_is_left_out_and_looking_again_costs_little() {
    let mut machine = SimulatedMachine::new(2, two(|_| true));
    let (_, changes) = machine.run(150.0);
    assert_eq!((changes[0].left_out(), machine.members()), (vec![1], &[0][..]));
    assert!((changes[0].seconds - 0.008).abs() < 1e-6 && (changes[0].usual - 0.027).abs() < 1e-6, "{changes:?}");
    let (steps, _) = machine.run(20e3);
    assert!(steps as f64 > 0.96 * 20e3 / 8.0, "{steps} steps in 20 s of 8 ms each");
}

#[test]
fn all_take_part_again_once_the_processor_is_free() {
    let mut machine = SimulatedMachine::new(2, two(|now| now < Duration::from_secs(10)));
    machine.run(10e3);
    let (_, changes) = machine.run(4e3);
    assert_eq!(machine.members(), [0, 1]);
    assert_eq!(changes.last().map(TeamChange::left_out), Some(vec![]));
    let (steps, changes) = machine.run(10e3);
    assert!(changes.is_empty() && steps >= 2272, "{steps}: {changes:?}");
}

#[test]
fn fewer_workers_that_are_no_faster_go_back_at_once() {
    // Three processors' worth is left of four, and pieces are shared out well.
    let mut machine = SimulatedMachine::new(4, |_: Duration, team: &Team| match team.len() {
        4 => (10.0, vec![0.0, 0.0, 0.5, 0.0]),
        _ => (13.5, vec![0.0; 4]),
    });
    let (_, changes) = machine.run(150.0);
    assert_eq!((machine.members(), changes.len()), (&[0, 1, 2, 3][..], 1));
    assert!(changes[0].left_out().is_empty() && changes[0].usual < changes[0].seconds, "{changes:?}");
    let (steps, _) = machine.run(20e3);
    assert!(steps as f64 > 0.98 * 20e3 / 10.0, "{steps} steps in 20 s of 10 ms each");
}

#[test]
fn the_last_worker_gives_a_disturbed_caller_room() {
    let mut machine = SimulatedMachine::new(3, |_: Duration, team: &Team| match team.len() {
        3 => (20.0, vec![0.5, 0.0, 0.0]),
        _ => (7.0, vec![0.0; 3]),
    });
    machine.run(300.0);
    assert_eq!(machine.members(), [0, 1]);
}

/// Four workers: 4 ms together, and each whose processor is taken holds the others.
fn four(taken: impl Fn(Duration) -> Vec<usize> + 'static) -> impl FnMut(Duration, &Team) -> (f64, Vec<f64>) + 'static {
    move |now, team| {
        let taken = taken(now);
        let waits = |w: usize| team.members().contains(&w) && taken.contains(&w);
        let held = if (0..4).any(waits) { 6.0 } else { 1.0 };
        (16.0 / team.len() as f64 * held, (0..4).map(|w| if waits(w) { 0.5 } else { 0.0 }).collect())
    }
}

#[test]
fn of_several_those_that_are_free_again_come_back() {
    let second = Duration::from_secs(2);
    let mut machine = SimulatedMachine::new(4, four(move |now| if now < second { vec![1, 3] } else { vec![3] }));
    machine.run(1e3);
    assert_eq!(machine.members(), [0, 2]);
    machine.run(6e3);
    assert_eq!(machine.members(), [0, 1, 2]);
    // Another one beside it.
    machine.step = Box::new(four(|_| vec![2, 3]));
    machine.run(1e3);
    assert_eq!(machine.members(), [0, 1]);
}

#[test]
fn a_return_that_was_too_early_makes_pauses_longer() {
    // A thread that has slept is served first for some steps: the trial is misled.
    let mut since = 0;
    let mut machine = SimulatedMachine::new(2, move |_: Duration, team: &Team| {
        since = if team.len() == 1 { 0 } else { since + 1 };
        match (team.len(), since) {
            (1, _) => (8.0, vec![0.0; 2]),
            (_, ..=10) => (4.4, vec![0.0; 2]),
            _ => (27.0, vec![0.0, 0.5]),
        }
    });
    machine.run(10e3);
    let (steps, changes) = machine.run(20e3);
    assert!(steps as f64 > 0.95 * 20e3 / 8.0, "{steps} steps in 20 s of 8 ms each");
    assert!(changes.len() < 20, "{}", changes.len());
}

#[test]
fn long_steps_are_decided_after_few() {
    let mut machine = SimulatedMachine::new(2, |_: Duration, team: &Team| match team.len() {
        1 => (900.0, vec![0.0; 2]),
        _ => (600.0, vec![0.0, 0.4]),
    });
    let (steps, changes) = machine.run(30e3);
    // A step of each trial says that it is hopeless, and trials become rare.
    assert!(machine.members().len() == 2 && steps >= 46, "{steps}: {changes:?}");
}

#[test]
fn threads_that_outnumber_processors_become_as_many_as_those() {
    // Eight threads on two processors hold each other; two do not.
    let mut machine = SimulatedMachine::new(8, |_: Duration, team: &Team| match team.len() {
        1 => (8.0, vec![0.0; 8]),
        2 => (4.4, vec![0.0; 8]),
        n => (6.0 * n as f64, (0..8).map(|w| 0.4 + w as f64 / 100.0).collect()),
    });
    machine.run(800.0);
    assert_eq!(machine.members(), [0, 1]);
}
