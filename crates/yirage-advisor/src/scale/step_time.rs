//! The time of a step, by what takes it.

use super::figures::{DeviceFigures, LinkFigures};
use super::rank_step::RankStep;
use serde::Serialize;

/// Seconds of a step, one part after the other.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct StepTime {
    /// Of beginning and ending it.
    pub step: f64,
    /// Of reading weights and caches, or of arithmetic where that takes longer.
    pub work: f64,
    /// Of the steps of the plan beside that.
    pub kernels: f64,
    /// Of collectives.
    pub collectives: f64,
    /// Of handing rows from stage to stage.
    pub stages: f64,
}

impl StepTime {
    /// The time of a step on a device that computes by itself.
    pub fn alone(step: &RankStep, device: &DeviceFigures) -> StepTime {
        StepTime {
            step: device.step_seconds,
            work: device.work_seconds(&step.work),
            kernels: step.kernels as f64 * device.kernel_seconds,
            ..StepTime::default()
        }
    }

    /// The time of a step on each of several ranks, where `crowd` of them take turns on what computes one: of the figures of a
    /// device those that were measured with all ranks at work have it in them, and `kernel_seconds` have not.
    pub fn shared(step: &RankStep, device: &DeviceFigures, link: &LinkFigures, crowd: f64) -> StepTime {
        let alone = StepTime::alone(step, device);
        let collectives = step.collectives.iter().map(|one| link.collective_seconds(one));
        let collectives = collectives.fold(0.0, |all, one| all + one);
        StepTime { kernels: alone.kernels * crowd.max(1.0), collectives, ..alone }
    }

    /// All of it.
    pub fn seconds(&self) -> f64 {
        self.step + self.work + self.kernels + self.collectives + self.stages
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank_step::StepCollective;
    use super::*;
    use yirage_plan::work::Work;

    #[test]
    fn parts_follow_from_their_figures() {
        let gather = StepCollective { messages: 1.0, bytes: 100.0 };
        let work = Work { weight_bytes: 1000.0, ..Work::default() };
        let step = RankStep { work, kernels: 6, collectives: vec![gather; 2] };
        let device =
            DeviceFigures { bytes_per_second: 100.0, ops_per_second: None, step_seconds: 0.5, kernel_seconds: 0.25 };
        let link = LinkFigures { seconds: 1.0, bytes_per_second: 50.0 };
        let alone = StepTime::alone(&step, &device);
        assert_eq!((alone.step, alone.work, alone.kernels, alone.seconds()), (0.5, 10.0, 1.5, 12.0));
        let shared = StepTime::shared(&step, &device, &link, 1.0);
        assert_eq!((shared.collectives, shared.seconds()), (2.0 * (1.0 + 2.0), 18.0));
        let crowded = StepTime::shared(&step, &device, &link, 3.0);
        assert_eq!((crowded.kernels, crowded.work), (4.5, 10.0), "reading was measured in the crowd");
        assert_eq!(StepTime::shared(&step, &device, &link, 0.1).kernels, 1.5, "nobody is faster alone");
    }
}
