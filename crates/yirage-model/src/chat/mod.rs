//! Chat templates: a conversation to the text a model was trained on.
//!
//! Templates are Jinja as model files carry it, run by `minijinja` with the surroundings those files expect: blocks
//! trimmed, loop controls, Python's string and dict methods, `tojson` in Python's layout, `raise_exception`,
//! `strftime_now`, `{% generation %}` blocks, Python's way to print values.
//!
//! Templates come with model files and are not trusted: source size, steps, recursion and output are bounded.
//!
//! This module does not know tokenizers or files. BOS: a template that writes it itself is reported by
//! [`RenderedChat::starts_with_bos`], so that encoding does not add a second one.

mod clock;
mod error;
mod python;
mod source;
mod template;

pub use error::ChatError;
pub use source::{DEFAULT_TEMPLATE, TemplateSources, Templates};
pub use template::{ChatInputs, ChatTemplate, RenderedChat};

/// Longest template source, in bytes (the longest known ones have some 20 KB).
pub const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// Most steps of one rendering.
pub const MAX_FUEL: u64 = 20_000_000;
/// Deepest recursion of one rendering.
pub const MAX_RECURSION: usize = 120;
/// Longest rendered text, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Most templates of one model.
pub const MAX_TEMPLATES: usize = 64;
