//! What each thread of a run does, in which order.

use crate::pool::Team;
use yirage_plan::{TaskPartition, TaskProgram};

/// A task in a thread's queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QueuedTask {
    pub(super) task: u32,
    /// The worker that the program has for it, as which it is run.
    pub(super) worker: u32,
    /// Whether the thread comes to the same list of pieces again.
    pub(super) again: bool,
}

/// The queues of a team's threads, by rank.
pub(super) struct Queues {
    pub(super) team: Team,
    pub(super) by_rank: Vec<Vec<QueuedTask>>,
}

impl Queues {
    /// Each member has its own queue; those of the others are dealt out, and go in between.
    ///
    /// Each thread runs its tasks in the order of the program's list, which is one in which a single thread could run them
    /// all. So of the tasks that have not ended the first can always run, however they are dealt out.
    pub(super) fn new(program: &TaskProgram, team: &Team) -> Queues {
        let mut by_rank: Vec<Vec<QueuedTask>> = vec![Vec::new(); team.len()];
        let mut next = 0;
        for (worker, queue) in program.queues.iter().enumerate() {
            let rank = team.members().iter().position(|&member| member == worker).unwrap_or_else(|| {
                // From the last rank backwards: the caller has what comes before and after a step to do.
                next += 1;
                team.len() - 1 - (next - 1) % team.len()
            });
            let turn = |&task: &u32| QueuedTask { task, worker: worker as u32, again: false };
            by_rank[rank].extend(queue.iter().map(turn));
        }
        for queue in &mut by_rank {
            queue.sort_unstable_by_key(|turn| turn.task);
            mark(program, queue);
        }
        Queues { team: team.clone(), by_rank }
    }
}

/// Marks all but the last of a thread's tasks that drain the same list: that one takes what is nobody's first, so that the
/// others' first pieces are not left to the end.
fn mark(program: &TaskProgram, queue: &mut [QueuedTask]) {
    let list = |turn: &QueuedTask| {
        let task = &program.tasks[turn.task as usize];
        (task.partition == TaskPartition::WorkQueue).then_some((task.step, task.stage))
    };
    // A thread's tasks of one list lie beside each other or close to it, but not always.
    let mut later = std::collections::HashSet::new();
    for turn in queue.iter_mut().rev() {
        turn.again = list(turn).is_some_and(|list| !later.insert(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_plan::{ExecutorKind, Task};

    fn program(workers: u32) -> TaskProgram {
        let share = |index| TaskPartition::Static { index, of: workers };
        let task = |step, part| Task { step, stage: 0, partition: part, waits: Vec::new(), signals: 0 };
        let tasks = (0..workers)
            .map(|w| task(0, share(w)))
            .chain((0..workers).map(|_| task(1, TaskPartition::WorkQueue)))
            .collect();
        let queues = (0..workers).map(|w| vec![w, workers + w]).collect();
        TaskProgram { kind: ExecutorKind::Steps, counters: 1, tasks, queues }
    }

    #[test]
    fn all_workers_have_their_own_queues() {
        let queues = Queues::new(&program(3), &Team::all(3));
        for (rank, queue) in queues.by_rank.iter().enumerate() {
            let turn = |task| QueuedTask { task, worker: rank as u32, again: false };
            assert_eq!(queue, &[turn(rank as u32), turn(3 + rank as u32)]);
        }
    }

    #[test]
    fn the_tasks_of_those_left_out_are_dealt_out_in_the_lists_order() {
        let (program, turn) = (program(4), |task, worker, again| QueuedTask { task, worker, again });
        let queues = Queues::new(&program, &Team::all(4).without(&[1, 3]));
        let rank0 = [turn(0, 0, false), turn(3, 3, false), turn(4, 0, true), turn(7, 3, false)];
        let rank1 = [turn(1, 1, false), turn(2, 2, false), turn(5, 1, true), turn(6, 2, false)];
        assert_eq!(queues.by_rank, [rank0, rank1]);
        let alone = Queues::new(&program, &Team::all(4).without(&[1, 2, 3]));
        let tasks: Vec<u32> = alone.by_rank[0].iter().map(|turn| turn.task).collect();
        assert_eq!(tasks, (0..8).collect::<Vec<_>>());
        assert_eq!(alone.by_rank[0].iter().filter(|turn| turn.again).count(), 3);
    }
}
