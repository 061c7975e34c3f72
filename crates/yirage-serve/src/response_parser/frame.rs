//! How calls are written where they have to come: what stands around names and arguments.
//!
//! Each form has a frame in its table, as its makers write it. Where a template renders a call of the past, its own text
//! takes the table's place (`rendered.rs`).

/// In a frame's text: a number of a call, which counts up.
pub(crate) const NUMBER: char = '\u{1}';
/// In a frame's text: an id of a call, which is nine letters and digits.
pub(crate) const ID: char = '\u{2}';

/// The text around names and arguments. One call is `first NAME between ARGUMENTS last`; before another one `next` stands in
/// the place of `last` and `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallFrame<T = String> {
    /// What stands before the first name.
    pub(crate) first: T,
    /// From a name to its arguments.
    pub(crate) between: T,
    /// From the arguments of a call to the name of the next; none where an answer has one call.
    pub(crate) next: Option<T>,
    /// What stands behind the last arguments.
    pub(crate) last: T,
    pub(crate) arguments: ArgumentSyntax<T>,
    /// What stands before and behind a thought that may come before the calls, where calls and thoughts are of one form.
    pub(crate) thought: Option<[T; 2]>,
}

/// How arguments are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentSyntax<T = String> {
    /// As a JSON object.
    Json,
    /// Each as an element.
    Elements(ArgumentElement<T>),
    /// As Python has them: `key="value", other=1`.
    Python,
    /// As `key:value,other:1`, texts between marks.
    Braces {
        /// What stands on both sides of a text.
        quote: &'static str,
    },
}

/// What stands around an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentElement<T = String> {
    /// Before the key.
    pub(crate) open: T,
    /// From the key to a text.
    pub(crate) text: T,
    /// From the key to a value of another kind, which is written as JSON.
    pub(crate) json: T,
    /// Behind the value.
    pub(crate) close: T,
    /// The mark that ends a value: no text may have it.
    pub(crate) mark: &'static str,
    /// Whether the element says of its value which of the two it is; else the tool's schema does.
    pub(crate) says: bool,
}

impl CallFrame<&'static str> {
    /// No calls at all.
    pub(super) const NONE: CallFrame<&'static str> =
        CallFrame { first: "", between: "", next: None, last: "", arguments: ArgumentSyntax::Json, thought: None };

    pub(super) fn owned(&self) -> CallFrame {
        CallFrame {
            first: self.first.to_owned(),
            between: self.between.to_owned(),
            next: self.next.map(str::to_owned),
            last: self.last.to_owned(),
            arguments: match self.arguments {
                ArgumentSyntax::Json => ArgumentSyntax::Json,
                ArgumentSyntax::Elements(of) => ArgumentSyntax::Elements(of.owned()),
                ArgumentSyntax::Python => ArgumentSyntax::Python,
                ArgumentSyntax::Braces { quote } => ArgumentSyntax::Braces { quote },
            },
            thought: self.thought.map(|thought| thought.map(str::to_owned)),
        }
    }
}

impl ArgumentElement<&'static str> {
    fn owned(&self) -> ArgumentElement {
        ArgumentElement {
            open: self.open.to_owned(),
            text: self.text.to_owned(),
            json: self.json.to_owned(),
            close: self.close.to_owned(),
            mark: self.mark,
            says: self.says,
        }
    }
}

impl CallFrame {
    /// All its texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let around = [&self.first, &self.between, &self.last].into_iter().chain(&self.next);
        let around = around.chain(self.thought.iter().flatten());
        let within: Vec<&str> = match &self.arguments {
            ArgumentSyntax::Json | ArgumentSyntax::Python => Vec::new(),
            ArgumentSyntax::Elements(of) => vec![&of.open, &of.text, &of.json, &of.close],
            ArgumentSyntax::Braces { quote } => vec![quote],
        };
        around.map(String::as_str).chain(within)
    }
}
