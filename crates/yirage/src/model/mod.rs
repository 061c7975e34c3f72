//! Models as the command line sees them: found by reference, opened, with their tokenizer and chat template.

mod locate;
mod texts;

pub(crate) use locate::{Located, locate, named};
pub(crate) use texts::{Texts, message};
