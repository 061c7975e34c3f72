//! `yirage backend`: look at backends, choose one, tune, time and test it. One file a subcommand.

pub(crate) mod benchmark;
pub(crate) mod config;
pub(crate) mod default;
pub(crate) mod info;
pub(crate) mod optimize;
pub(crate) mod test;
