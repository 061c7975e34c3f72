//! What becomes of sampled text before a caller sees it: where it ends.
//!
//! This module deliberately knows no tokenizer: it is given the pieces of text that the incremental detokeniser emits,
//! which are whole characters.

mod stop;

pub use stop::{EmittedText, StopError, StopHit, StopMatcher};
