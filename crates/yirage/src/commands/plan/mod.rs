//! `yirage plan`: plans in files, saved, shown, checked and run.

pub(crate) mod check;
mod file;
pub(crate) mod run;
pub(crate) mod save;
pub(crate) mod show;
mod summary;

pub(crate) use file::proved;
