//! Mistral: a list of objects, or since 2025 a name and arguments behind `[ARGS]`.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Named, Objects, Syntax};

pub(super) const FORM: Form = Form {
    name: "mistral",
    openers: &[Opener::new("[TOOL_CALLS]")],
    syntaxes: &[Syntax::Objects(&LIST), Syntax::Named(&CALL)],
    told: &[&["[TOOL_CALLS]"]],
    written: WRITTEN,
    ..Form::NONE
};

const LIST: Objects =
    Objects { names: &["name"], arguments: &["arguments", "parameters"], list: true, before: &[], end: None };

const CALL: Named = Named {
    open: "",
    name_ends: &["[ARGS]", "{"],
    before_arguments: &[],
    close: &[],
    end: None,
    // An id may stand behind the name.
    name: |text| text.split("[CALL_ID]").next().unwrap_or(text),
};

const WRITTEN: Frame<&str> = Frame {
    first: "[TOOL_CALLS]",
    between: "[ARGS]",
    next: Some("[TOOL_CALLS]"),
    last: "",
    arguments: Arguments::Json,
    ..Frame::NONE
};
