//! What happened beside the result.

use crate::fusion::FusionDecision;
use std::fmt;
use std::path::PathBuf;

/// What happened beside the result: each refusal and each fall-back.
#[derive(Clone, PartialEq, Debug)]
pub enum CacheNotice {
    /// Fusion was wanted and the graph is not fused.
    NotFused(FusionDecision),
    /// The fused plan failed, and the plan without fusion took its place.
    FellBack {
        /// What the fused plan met.
        why: String,
    },
    /// A plan file was not used; the plan is compiled anew.
    Refused {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A plan is not on disk.
    NotWritten {
        /// The file it should be in.
        file: PathBuf,
        /// Why it is not.
        why: String,
    },
    /// A plan takes more than all kept plans may, and is not kept.
    NotKept {
        /// Bytes that it takes with its weights.
        bytes: u64,
        /// Bytes that all of them may take.
        limit: u64,
    },
}

impl fmt::Display for CacheNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheNotice::NotFused(why) => write!(f, "the graph is not fused: {why}"),
            CacheNotice::FellBack { why } => write!(f, "the fused plan failed and the plan without fusion runs: {why}"),
            CacheNotice::Refused { file, why } => {
                write!(f, "{}: the plan was refused and is compiled anew: {why}", file.display())
            }
            CacheNotice::NotWritten { file, why } => {
                write!(f, "{}: the plan is not kept on disk: {why}", file.display())
            }
            CacheNotice::NotKept { bytes, limit } => {
                write!(
                    f,
                    "the plan takes {bytes} bytes with its weights, plans may take {limit} together: it is not kept"
                )
            }
        }
    }
}
