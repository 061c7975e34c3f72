//! What a model writes, cut into what is thought, what is said, and calls of tools, as it comes.
//!
//! How a model marks these is a matter of its training, and its chat template shows it: [`OutputFormat::of`] renders a call through
//! the template and takes the form whose parser reads that very call back. A form is a file in `forms/` and a line in its
//! table; how arguments are written is one of a few kinds of syntax (`syntax/`), read as the text comes. How calls are written
//! that have to come is a frame (`frame.rs`), the template's own where it renders calls (`rendered.rs`).
//!
//! Unknown here: who asked, by which protocol, and which tokens the text came from.

mod declared;
mod family;
#[cfg(test)]
mod family_tests;
mod forms;
mod frame;
mod harmony;
mod marker;
mod own;
mod parser;
mod past;
mod piece;
mod probe;
mod rendered;
mod syntax;
#[cfg(test)]
mod tests;
mod thoughts;
mod trial;

pub(crate) use declared::{DeclaredTools, Types, followed};
#[cfg(test)]
pub(crate) use family::Calls;
pub(crate) use family::OutputFormat;
pub(crate) use frame::{ArgumentElement, ArgumentSyntax, CallFrame, ID, NUMBER};
pub(crate) use own::ModelCallFrame;
pub(crate) use parser::ResponseParser;
pub(crate) use past::calls_as_text;
pub(crate) use piece::{CallPart, ResponsePiece, ToolCall};
pub(crate) use thoughts::ThoughtMarks;
