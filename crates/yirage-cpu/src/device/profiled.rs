//! Tasks whose times are kept. Programs without a profiler never come here.

use crate::walk::{StageWork, Tasks};
use yirage_hal::{Profiler, RunningStep};
use yirage_plan::Task;

/// Tasks of one step, each with a span in a profile.
pub(super) struct ProfiledTasks<'a, T> {
    tasks: &'a T,
    profiler: &'a Profiler,
    step: &'a RunningStep,
    alone: bool,
}

impl<'a, T: Tasks> ProfiledTasks<'a, T> {
    /// Of `step`, which one thread runs `alone`, or all.
    pub(super) fn new(
        tasks: &'a T,
        profiler: &'a Profiler,
        step: &'a RunningStep,
        alone: bool,
    ) -> ProfiledTasks<'a, T> {
        ProfiledTasks { tasks, profiler, step, alone }
    }
}

impl<T: Tasks> Tasks for ProfiledTasks<'_, T> {
    unsafe fn run(&self, task: &Task, work: StageWork<'_>) {
        // Alone, the caller's thread stands for each worker in turn.
        let worker = if self.alone { 0 } else { work.worker };
        let began = self.profiler.now();
        // SAFETY: what `Tasks::run` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe { self.tasks.run(task, work) };
        self.profiler.task(self.step, worker, work.number, began);
    }

    fn waiting(&self, task: &Task, work: StageWork<'_>, look: u32) {
        self.tasks.waiting(task, work, look);
    }
}
