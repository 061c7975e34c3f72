//! Verifying a backend: the conformance suite in numbers, a whole model beside the reference, and a record of both that
//! later runs and `cargo xtask support` read.
//!
//! Knows no backend by name, and nothing of how options are given.

mod build;
mod compare;
mod drift;
mod model;
mod print;
mod record;
mod suite;

pub(crate) use model::{ModelTask, model_record};
pub(crate) use print::show;
pub(crate) use record::{CaseGroup, SuiteRecord, VerifyComparison, VerifyRecord};
pub(crate) use suite::suite_record;
