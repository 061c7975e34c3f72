//! What can go wrong with a tokenizer: the file's fault at load, the text's fault at encode.

/// An error of a tokenizer file or of one encode call. Messages carry the file's name as given to the loader.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The JSON itself is broken or has another shape than a tokenizer.
    #[error("{name}: not a tokenizer.json: {detail} (line {line}, column {column}); fetch the file again")]
    Json {
        /// File name as given to the loader.
        name: String,
        /// What the JSON reader found.
        detail: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// The file asks for a component this crate does not have.
    #[error(
        "{name}: {kind} `{component}` is not supported; use a model whose tokenizer is BPE, SentencePiece-BPE, \
             Unigram, WordPiece or WordLevel"
    )]
    Unsupported {
        /// File name.
        name: String,
        /// What sort of component: `model`, `normalizer`, `pre_tokenizer`, `post_processor`, `decoder`.
        kind: &'static str,
        /// Its name in the file.
        component: String,
    },
    /// A GGUF file names rules of splitting text that this crate does not have.
    #[error(
        "{name}: tokenizer.ggml.pre is {pre:?}, whose rules of splitting text are not known (known are {known}); \
         convert the model again with a current converter, or give token ids instead of text"
    )]
    UnknownRules {
        /// File name.
        name: String,
        /// The name in the file, shortened.
        pre: String,
        /// The names that are known.
        known: String,
    },
    /// A part that the metadata of a GGUF file cannot state.
    #[error(
        "{name}: {part}: GGUF metadata have no word for {what}; the model runs as it is, and a file without a tokenizer \
             can be made of a folder without tokenizer.json"
    )]
    NotStated {
        /// File name.
        name: String,
        /// Which part: `model`, `normalizer`, `pre_tokenizer`, `post_processor`.
        part: &'static str,
        /// What it asks for.
        what: String,
    },
    /// A field is missing, out of range or contradicts another one.
    #[error("{name}: {field}: {detail}; get the file again from the model's source")]
    Field {
        /// File name.
        name: String,
        /// Path of the field in the file.
        field: String,
        /// What is wrong, with the numbers.
        detail: String,
    },
    /// A budget of [`super::limits`] is exceeded.
    #[error("{name}: {what} is {found}, more than the limit of {limit}; this is not a usable tokenizer file")]
    Limit {
        /// File name.
        name: String,
        /// Which quantity.
        what: &'static str,
        /// Its size in the file.
        found: usize,
        /// The budget.
        limit: usize,
    },
    /// A pattern of the file cannot be compiled.
    #[error("{name}: pattern `{pattern}` cannot be compiled: {detail}")]
    Pattern {
        /// File name.
        name: String,
        /// The pattern, shortened.
        pattern: String,
        /// The compiler's words.
        detail: String,
    },
    /// A pattern of the file took more backtracking steps on this text than the budget allows.
    #[error("pattern `{pattern}` gave up at byte {offset} of the text: {detail}; send shorter or less repetitive text")]
    Search {
        /// The pattern, shortened.
        pattern: String,
        /// Where in the text the search began.
        offset: usize,
        /// The matcher's words.
        detail: String,
    },
    /// A pair of texts for a tokenizer that has no template for pairs.
    #[error("{name}: says of no pair of texts what stands around them; use a model that was made to score pairs")]
    NoPair {
        /// File name.
        name: String,
    },
    /// The text is too long for one call.
    #[error("text has {bytes} bytes, more than the limit of {limit} for one call; split it")]
    TextTooLong {
        /// Length of the text.
        bytes: usize,
        /// The budget.
        limit: usize,
    },
    /// A character that the vocabulary cannot express: it has neither a byte token nor an unknown token for it.
    #[error("the vocabulary has no token for {character:?} (byte {offset}) and no byte or unknown token to stand in")]
    Unrepresentable {
        /// The character.
        character: char,
        /// Its byte offset in the fragment.
        offset: usize,
    },
}

impl TokenizerError {
    /// Whether the tokenizer is sound, and of a kind that is not read or written.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported { .. } | Self::UnknownRules { .. } | Self::NotStated { .. })
    }

    pub(super) fn field(name: &str, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Field { name: name.to_owned(), field: field.into(), detail: detail.into() }
    }

    pub(super) fn unsupported(name: &str, kind: &'static str, component: impl Into<String>) -> Self {
        Self::Unsupported { name: name.to_owned(), kind, component: shorten(&component.into()) }
    }

    pub(super) fn unknown_rules(name: &str, pre: &str) -> Self {
        Self::UnknownRules { name: name.to_owned(), pre: shorten(pre), known: super::gguf_split::known() }
    }

    pub(super) fn limit(name: &str, what: &'static str, found: usize, limit: usize) -> Result<(), Self> {
        if found > limit { Err(Self::Limit { name: name.to_owned(), what, found, limit }) } else { Ok(()) }
    }
}

/// First 80 characters of text that comes from a file and goes into a message.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}
