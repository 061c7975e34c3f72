//! Why a forward pass cannot be computed.

use thiserror::Error;

/// A call that the forward pass does not take.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ForwardError {
    /// A call without a row, or more rows than may be.
    #[error("{rows} rows are given: 1 to {most} are computed in a call; call more than once")]
    Rows {
        /// How many.
        rows: usize,
        /// Most there may be.
        most: u32,
    },
    /// A call without a token in some row, or with more than a step may have.
    #[error(
        "row {row} has {tokens} tokens: each row has at least 1, and all of a call together have {most} at most; call more than once"
    )]
    Tokens {
        /// The row.
        row: usize,
        /// Its tokens.
        tokens: usize,
        /// Most of a call.
        most: u32,
    },
    /// Two rows of one sequence.
    #[error("row {row} is of sequence {sequence}, which an earlier row of the call is of; join both rows")]
    Twice {
        /// The later row.
        row: usize,
        /// The sequence.
        sequence: usize,
    },
    /// A row that leaves out positions.
    #[error(
        "row {row} begins at position {start}, and {cached} positions of its sequence are cached: begin at one of 0 to \
         {cached}"
    )]
    Position {
        /// The row.
        row: usize,
        /// Its first position.
        start: u32,
        /// Positions that the cache has.
        cached: u32,
    },
    /// A row that begins where no recurrent state is.
    #[error(
        "row {row} begins at position {start}: the model keeps recurrent states, which are there at the {cached} positions \
         that are cached and at multiples of {block} below; begin at one of these"
    )]
    NoState {
        /// The row.
        row: usize,
        /// Its first position.
        start: u32,
        /// Positions that the cache has.
        cached: u32,
        /// Positions of a block.
        block: u32,
    },
    /// Samplers that the device has not.
    #[error(
        "the sampling asks for {}: a forward pass samples on the device, which has none of them; leave them out, or \
         generate by an engine", .0.join(", ")
    )]
    HostSamplers(Vec<&'static str>),
    /// A row that ends behind the last position there is room for.
    #[error(
        "row {row} ends at position {end}, and a sequence has {context} here: load the model with a longer context"
    )]
    TooLong {
        /// The row.
        row: usize,
        /// Positions up to its end.
        end: u64,
        /// Positions a sequence may have.
        context: u32,
    },
    /// A token that the model does not have.
    #[error(
        "token id {id} at place {at} of row {row}: the model has {vocabulary} tokens, counted from 0; encode with the model's own tokenizer"
    )]
    Token {
        /// The row.
        row: usize,
        /// Where in it.
        at: usize,
        /// The id.
        id: u32,
        /// Tokens of the model.
        vocabulary: u32,
    },
    /// A call before the weights are there.
    #[error("the weights of the model are not loaded: load them from its files or from a state dict first")]
    NoWeights,
    /// A cache for longer sequences than the model was opened with.
    #[error("a cache of {wanted} positions: the model was opened with {context}; open it with a longer context")]
    Context {
        /// Positions that are wanted.
        wanted: u32,
        /// Positions of the model's tables.
        context: u32,
    },
    /// Tensors that are missing, or that no part of the model reads.
    #[error("the tensors are not those of the model: missing: {}; unexpected: {}", listed(missing), listed(unexpected))]
    Names {
        /// Names that the model reads and that are not given.
        missing: Vec<String>,
        /// Names that are given and that the model does not have.
        unexpected: Vec<String>,
    },
    /// Files of another model than the one that was opened.
    #[error(
        "{file}: weight `{weight}` is {found}, the model has {expected}: it is of another model; give the weights that were made for this one"
    )]
    OtherModel {
        /// The files.
        file: String,
        /// A weight.
        weight: String,
        /// What the model has of that name.
        expected: String,
        /// What the files have.
        found: String,
    },
}

/// Names, all of them: whoever has to find one needs it.
fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
