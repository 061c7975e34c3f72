//! DeepSeek V3 and R1: a kind, a name, and arguments in a block of code.

use super::{Form, Opener};
use crate::response_parser::syntax::{Named, Syntax};

pub(super) const FORM: Form = Form {
    name: "deepseek_v3",
    openers: &[Opener::new("<｜tool▁calls▁begin｜>"), Opener::stays("<｜tool▁call▁begin｜>")],
    syntaxes: &[Syntax::Named(&CALLS)],
    ..Form::NONE
};

const CALLS: Named = Named {
    open: "<｜tool▁call▁begin｜>",
    name_ends: &["\n", "```", "{"],
    before_arguments: &["```json", "```"],
    close: &["```", "<｜tool▁call▁end｜>"],
    end: Some("<｜tool▁calls▁end｜>"),
    name: |text| text.rsplit("<｜tool▁sep｜>").next().unwrap_or(text),
};
