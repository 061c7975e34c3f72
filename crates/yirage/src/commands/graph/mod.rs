//! `yirage graph`: graphs in files, run, shown and checked.

pub(crate) mod arrays;
pub(crate) mod check;
mod file;
pub(crate) mod run;
pub(crate) mod show;

pub(crate) use file::graph as read;
