//! Task programs: a plan's steps cut into tasks, with what each waits for, as data that any interpreter can walk.
//!
//! A worker walks its own queue from front to back. Before a task it waits until the task's counters have reached their
//! thresholds; after it, it adds one to the task's own counter. Counters start at 0 in each run (an interpreter may count
//! on from run to run instead, by adding a counter's signals per run to its thresholds). There is no barrier: `steps` is
//! the program whose every group of tasks waits for all of the group before it, `persistent` the one in which a task
//! waits until all workers have ended the steps that its own step depends on ([`access::predecessors`]), or of these, where
//! both steps run over the same rows, for the share of its own rows alone; and in a later stage until all have ended the
//! stage before it.
//!
//! [`verify::check`] proves that a program ends and is free of races, [`vm`] walks one in any order and watches the bytes.
//! Deliberately unknown here: what a kernel computes, how long a task takes, how an interpreter waits.

pub mod access;
pub(crate) mod order;
pub mod text;
pub mod verify;
pub mod vm;
