//! DeepSeek V3.1: a name, and arguments behind a separator.

use super::{Form, Opener};
use crate::response_parser::frame::{Arguments, Frame};
use crate::response_parser::syntax::{Named, Syntax};

pub(super) const FORM: Form = Form {
    name: "deepseek_v31",
    openers: &[Opener::new("<｜tool▁calls▁begin｜>"), Opener::stays("<｜tool▁call▁begin｜>")],
    syntaxes: &[Syntax::Named(&CALLS)],
    told: &[&["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"]],
    written: WRITTEN,
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

const WRITTEN: Frame<&str> = Frame {
    first: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
    between: "<｜tool▁sep｜>",
    next: Some("<｜tool▁call▁end｜><｜tool▁call▁begin｜>"),
    last: "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    arguments: Arguments::Json,
    ..Frame::NONE
};
