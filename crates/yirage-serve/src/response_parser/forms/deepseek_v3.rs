//! DeepSeek V3 and R1: a kind, a name, and arguments in a block of code.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Named, Syntax};

pub(super) const FORM: Form = Form {
    name: "deepseek_v3",
    openers: &[Opener::new("<｜tool▁calls▁begin｜>"), Opener::stays("<｜tool▁call▁begin｜>")],
    syntaxes: &[Syntax::Named(&CALLS)],
    written: WRITTEN,
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

const WRITTEN: Frame<&str> = Frame {
    first: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>",
    between: "\n```json\n",
    next: Some("\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>"),
    last: "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
