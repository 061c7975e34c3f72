//! DeepSeek V3.1: a name, and arguments behind a separator.

use super::{Form, Opener};
use crate::response_parser::syntax::{Named, Syntax};

pub(super) const FORM: Form = Form {
    name: "deepseek_v31",
    openers: &[Opener::new("<｜tool▁calls▁begin｜>"), Opener::stays("<｜tool▁call▁begin｜>")],
    syntaxes: &[Syntax::Named(&CALLS)],
    told: &[&["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"]],
    ..Form::NONE
};

const CALLS: Named = Named {
    open: "<｜tool▁call▁begin｜>",
    name_ends: &["<｜tool▁sep｜>"],
    before_arguments: &[],
    close: &["<｜tool▁call▁end｜>"],
    end: Some("<｜tool▁calls▁end｜>"),
    name: |text| text,
};
