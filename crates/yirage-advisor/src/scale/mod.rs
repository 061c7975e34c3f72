//! How long a step of a model takes that several devices compute: a model of its time, from what a device and the links
//! between devices do.
//!
//! A step of a rank is what its plan says: bytes to read, operations, steps of the plan, and collectives ([`RankStep`]). Figures
//! of a device ([`DeviceFigures`]) and of a link ([`LinkFigures`]) turn that into seconds ([`StepTime`]), one after the other:
//! nothing of it is at the same time. The figures are measured ([`measure_ranks`]) or given by whoever knows a
//! machine that is not here ([`Fleet`]), for which [`divisions`] tells how many devices may divide a model in which ways.
//!
//! Knows no model and no file, and nothing of how ranks are started.

mod figures;
mod fleet;
mod measure;
mod rank_step;
mod step_time;

pub use figures::{DeviceFigures, LinkFigures};
pub use fleet::{DividedStep, Division, Fleet, FleetError, divisions};
pub use measure::{RankFigures, RankProducts, measure_ranks};
pub use rank_step::{RankStep, StepCollective};
pub use step_time::StepTime;
