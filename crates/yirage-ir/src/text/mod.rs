//! The text form of graphs: printing and parsing round-trip exactly.
//!
//! ```text
//! graph mlp {
//!   input %x: f32[Tokens, 64]
//!   weight %w: q4_0[128, 64]
//!   %q = quantize{layout=q8a, parts=1}(%x): q8a[Tokens, 64]
//!   %y = linear{groups=1}(%q, %w): f32[Tokens, 128]
//!   output %y
//! }
//! ```

mod lexer;
mod parse;
mod print;
mod version;

pub use parse::{ParseError, parse, parse_type};
pub use print::print;
pub use version::{OUTDATED, VERSION, outdated_word};
