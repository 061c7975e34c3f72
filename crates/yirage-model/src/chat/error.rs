//! What can go wrong with a chat template.

/// An error of a template or of one rendering. Every message names the template, and the line where one is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The template is no valid Jinja.
    #[error("chat template `{name}`, line {line}: {detail}; give another one, or none to send the prompt as it is")]
    Syntax {
        /// Which template.
        name: String,
        /// Line, from 1; 0 where unknown.
        line: usize,
        /// The parser's words.
        detail: String,
    },
    /// The template refused this conversation by `raise_exception`.
    #[error("chat template `{name}`, line {line}, refuses this conversation: {message}")]
    Refused {
        /// Which template.
        name: String,
        /// Line of the refusal.
        line: usize,
        /// The template's words.
        message: String,
    },
    /// Rendering failed: an undefined value was used, a filter got the wrong type, and the like.
    #[error("chat template `{name}`, line {line}: {detail}")]
    Render {
        /// Which template.
        name: String,
        /// Line, from 1; 0 where unknown.
        line: usize,
        /// The renderer's words.
        detail: String,
    },
    /// A budget is exceeded: one of the constants of this module's parent.
    #[error("chat template `{name}`{}: {what} exceeds the limit of {limit}", at_line(*line))]
    Limit {
        /// Which template.
        name: String,
        /// Line, from 1; 0 where unknown.
        line: usize,
        /// Which quantity.
        what: &'static str,
        /// The budget.
        limit: u64,
    },
    /// The template could not be run at all.
    #[error("chat template `{name}`: {detail}")]
    Broken {
        /// Which template.
        name: String,
        /// What happened.
        detail: String,
    },
    /// The file that should hold the template is broken.
    #[error("{name}: `chat_template` cannot be read: {detail}")]
    Source {
        /// Which file.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// There is no template of the name asked for.
    #[error("there is no chat template `{name}`; this model has: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are, by comma.
        known: String,
    },
}

fn at_line(line: usize) -> String {
    if line == 0 { String::new() } else { format!(", line {line}") }
}
