//! What has certainly ended before each task begins: vector clocks over the workers' queues.

use crate::error::PlanError;
use crate::program::TaskProgram;

/// For each task and worker: how many tasks of that worker's queue have ended before the task begins.
pub(crate) struct Clocks {
    clocks: Vec<u32>,
    workers: usize,
    /// Queue and position in it of each task.
    queue_positions: Vec<(usize, u32)>,
}

fn error(what: String) -> PlanError {
    PlanError(format!("tasks: {what}"))
}

impl Clocks {
    /// The clocks of a program.
    ///
    /// # Errors
    /// When a task is in no queue or several, a counter does not exist, a threshold is never reached or does not say
    /// which tasks it stands for, or a task waits (directly or by its queue) for one listed after it. As nothing waits
    /// for what is listed later, a program that has clocks cannot come to a halt before its end.
    pub(crate) fn of(program: &TaskProgram) -> Result<Clocks, PlanError> {
        let workers = program.queues.len();
        let mut made = Clocks {
            clocks: vec![0; program.tasks.len() * workers],
            workers,
            queue_positions: queue_positions(program)?,
        };
        let signallers = made.signallers(program)?;
        let mut joined = (None, vec![0; workers]);
        for (t, task) in program.tasks.iter().enumerate() {
            if joined.0 != Some(&task.waits) {
                joined = (Some(&task.waits), made.join(program, &signallers, t)?);
            } else {
                made.join_order(program, &signallers, t)?;
            }
            let (queue, at) = made.queue_positions[t];
            let mut clock = joined.1.clone();
            if at > 0 {
                let before = program.queues[queue][at as usize - 1] as usize;
                clock.iter_mut().zip(made.clock(before)).for_each(|(mine, &other)| *mine = (*mine).max(other));
            }
            clock[queue] = clock[queue].max(at);
            made.clocks[t * workers..][..workers].copy_from_slice(&clock);
        }
        Ok(made)
    }

    fn clock(&self, task: usize) -> &[u32] {
        &self.clocks[task * self.workers..][..self.workers]
    }

    /// Whether task `a` has certainly ended when `b` begins.
    pub(crate) fn before(&self, a: u32, b: u32) -> bool {
        let (queue, at) = self.queue_positions[a as usize];
        self.clock(b as usize)[queue] > at
    }

    /// The tasks that raise each counter, and whether all are of one queue; those of one queue in its order.
    fn signallers(&self, program: &TaskProgram) -> Result<Vec<(Vec<u32>, bool)>, PlanError> {
        let mut of = vec![(Vec::new(), true); program.counters as usize];
        for &t in program.queues.iter().flatten() {
            let counter = program.tasks[t as usize].signals;
            let none = || error(format!("task {t} signals counter {counter} of {}", program.counters));
            let (list, one_queue) = of.get_mut(counter as usize).ok_or_else(none)?;
            let same = list
                .first()
                .is_none_or(|&f: &u32| self.queue_positions[f as usize].0 == self.queue_positions[t as usize].0);
            *one_queue &= same;
            list.push(t);
        }
        Ok(of)
    }

    /// The tasks that have ended once `wait` of task `t` is over.
    fn ended<'a>(
        &self,
        program: &TaskProgram,
        signallers: &'a [(Vec<u32>, bool)],
        t: usize,
        wait: usize,
    ) -> Result<&'a [u32], PlanError> {
        let wait = program.tasks[t].waits[wait];
        let none = || error(format!("task {t} waits for counter {} of {}", wait.counter, program.counters));
        let (list, one_queue) = signallers.get(wait.counter as usize).ok_or_else(none)?;
        let n = wait.at_least as usize;
        if n == 0 || n > list.len() {
            let (c, got) = (wait.counter, list.len());
            return Err(error(format!("task {t} waits until counter {c} is {n}; it gets {got} signals")));
        }
        if n < list.len() && !one_queue {
            let (c, all) = (wait.counter, list.len());
            return Err(error(format!(
                "task {t} waits for {n} of {all} signals of counter {c}, which come from several queues: it is not known of which tasks"
            )));
        }
        // Of one queue the last says all.
        Ok(if *one_queue { &list[n - 1..n] } else { &list[..n] })
    }

    fn join_order(&self, program: &TaskProgram, signallers: &[(Vec<u32>, bool)], t: usize) -> Result<(), PlanError> {
        for wait in 0..program.tasks[t].waits.len() {
            let ended = self.ended(program, signallers, t, wait)?;
            if let Some(later) = ended.iter().find(|&&e| e as usize >= t) {
                return Err(error(format!("task {t} waits for task {later}, which is listed after it")));
            }
        }
        Ok(())
    }

    /// What has ended once task `t` has waited.
    fn join(&self, program: &TaskProgram, signallers: &[(Vec<u32>, bool)], t: usize) -> Result<Vec<u32>, PlanError> {
        self.join_order(program, signallers, t)?;
        let mut clock = vec![0; self.workers];
        for wait in 0..program.tasks[t].waits.len() {
            for &e in self.ended(program, signallers, t, wait)? {
                let (queue, at) = self.queue_positions[e as usize];
                clock.iter_mut().zip(self.clock(e as usize)).for_each(|(mine, &other)| *mine = (*mine).max(other));
                clock[queue] = clock[queue].max(at + 1);
            }
        }
        Ok(clock)
    }
}

/// Queue and position of each task; queues must follow the order of the list.
fn queue_positions(program: &TaskProgram) -> Result<Vec<(usize, u32)>, PlanError> {
    let mut places = vec![None; program.tasks.len()];
    for (q, queue) in program.queues.iter().enumerate() {
        for (at, &t) in queue.iter().enumerate() {
            let none = || error(format!("queue {q} names task {t} of {}", program.tasks.len()));
            if places.get_mut(t as usize).ok_or_else(none)?.replace((q, at as u32)).is_some() {
                return Err(error(format!("task {t} is queued twice")));
            }
            if at > 0 && queue[at - 1] > t {
                return Err(error(format!("queue {q} has task {t} after task {}", queue[at - 1])));
            }
        }
    }
    let missing = |t: usize| error(format!("task {t} is in no queue"));
    places.into_iter().enumerate().map(|(t, p)| p.ok_or_else(|| missing(t))).collect()
}
