//! How long steps of a model take on several devices: predicted from figures, and measured where the devices are here.
//!
//! The model of time is `yirage_advisor::scale`; here stands what it is given: the plans of a checkpoint's ranks, ranks of this
//! machine to measure, or the figures of a file. Unknown here: how ranks are started.

mod fleet_file;
mod local;
mod plans;
mod print;
mod row;
mod settings;

pub(crate) use fleet_file::read_fleet;
pub(crate) use local::LocalScale;
pub(crate) use plans::{PlannedRankStep, RankPlans, ScaleStep, StageShape};
pub(crate) use print::{show_fleet, show_local};
pub(crate) use settings::ScaleSettings;
