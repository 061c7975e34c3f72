//! What can go wrong with kept plans.

use crate::call_error::CallError;
use thiserror::Error;
use yirage_packed::TextStoreError;
use yirage_packed::sealed::SealError;
use yirage_plan::PlanError;
use yirage_plan::text::PlanTextError;

/// Why a call has no result.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum CacheError {
    /// The graph, its arrays, the compiler or the device.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The fused plan failed, and so did the one in which every op is a step of its own.
    #[error("the fused plan failed: {fused}; so did the plan without fusion: {unfused}")]
    Both {
        /// What the fused plan met.
        fused: Box<CallError>,
        /// What the other met.
        unfused: Box<CallError>,
    },
}

/// Why a plan file is not used, or not written.
#[derive(Debug, Error)]
pub enum PlanFileError {
    /// The file, or the folder of plan files.
    #[error(transparent)]
    Texts(#[from] TextStoreError),
    /// It is no plan file, one of another version, or damaged.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// Longer than a plan file is.
    #[error("{bytes} bytes, a plan file has {most} at most; make it anew with `yirage plan save`")]
    TooLong {
        /// Its bytes.
        bytes: u64,
        /// The most there may be.
        most: u64,
    },
    /// A line of its key or of its interface.
    #[error("its {section}, line {line}: {what}")]
    Line {
        /// `key` or `interface`.
        section: &'static str,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The text of its plan.
    #[error(transparent)]
    Text(#[from] PlanTextError),
    /// It is of something else than is wanted, or of an older compiler.
    #[error("it was made for another {field}: `{found}`, and `{wanted}` is wanted; make it again")]
    Other {
        /// What of its key.
        field: &'static str,
        /// What is wanted.
        wanted: String,
        /// What it has.
        found: String,
    },
    /// The plan does not do what the file says.
    #[error(transparent)]
    Interface(#[from] CallError),
    /// The proof fails.
    #[error("its proof fails: {0}")]
    Plan(#[from] PlanError),
    /// A plan whose text does not read back as it is.
    #[error("the plan of `{0}` cannot be written: its text does not read back as the same plan (a name is no word)")]
    NotWritable(String),
}
