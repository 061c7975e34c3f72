//! `yirage plan`: plans in files, saved, shown, checked and run.

pub(crate) mod check;
pub(crate) mod run;
pub(crate) mod save;
pub(crate) mod show;
mod summary;
