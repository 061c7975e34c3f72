//! The part of Jinja that chat templates are written in, as an interpreter whose every step and byte is counted.
//!
//! Why not a library: templates are code from strangers. A library that was not built for it has operators, filters and
//! formats that allocate or run without bound between the places where it can be stopped, and trees and values that are
//! dropped by unbounded recursion. Here all of it goes through one [`budget::Budget`]; depth is bounded when a tree or a
//! value is built. Semantics are those of Python's Jinja2 in its immutable sandbox, as model authors test with it.
//!
//! The way of a template: [`lexer`], [`parser`] with [`parse_expr`], the tree in [`ast`], [`render`] over [`value`]s.
//! This module does not know conversations.

mod args;
mod ast;
mod budget;
mod checks;
mod eval;
mod fault;
mod filters;
mod filters_html;
mod filters_list;
mod filters_text;
mod format;
mod functions;
mod lexer;
mod markup;
mod methods;
mod methods_text;
mod ops;
mod parse_expr;
mod parser;
mod python;
mod render;
mod scope;
mod value;

pub(super) use ast::JinjaTemplate;
pub(super) use fault::{Cause, Fault};
pub(super) use parser::parse;
pub(super) use render::{RenderInput, TemplateVariable, render};
