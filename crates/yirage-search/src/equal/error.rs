//! Why one graph may not stand for another.

use super::class::Class;
use thiserror::Error;
use yirage_ir::verify::VerifyError;

/// Why [`equivalent`](super::equivalent) gives no certificate.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum NotEqual {
    /// One of the graphs does not hold together.
    #[error("the {which} graph: {source}")]
    Graph {
        /// `original` or `candidate`.
        which: &'static str,
        /// What is wrong with it.
        source: VerifyError,
    },
    /// The graphs cannot be called alike: their inputs or outputs differ.
    #[error("the graphs cannot be called alike: {0}")]
    Interface(String),
    /// Over a field the graphs have different values: they are not the same function.
    #[error("output {output} `{name}` differs at {index:?} over the field of {p} elements, trial {trial}, {sizes}")]
    Field {
        /// Position of the output.
        output: usize,
        /// Its name in the original, or the name of a state.
        name: String,
        /// The element.
        index: Vec<usize>,
        /// The order of the field.
        p: u32,
        /// The trial that showed it.
        trial: u32,
        /// The values of the symbols.
        sizes: String,
    },
    /// In floats the candidate is further from the original's value than the original's own rounding explains.
    #[error(
        "output {output} `{name}` at {index:?}: {b:e} for {a:e} is not within {bound:e} on {class} inputs, {sizes}"
    )]
    Floating {
        /// Position of the output.
        output: usize,
        /// Its name in the original, or the name of a state.
        name: String,
        /// The element.
        index: Vec<usize>,
        /// The inputs that show it.
        class: Class,
        /// The original's value.
        a: f64,
        /// The candidate's.
        b: f64,
        /// How far it may be from the original's.
        bound: f64,
        /// The values of the symbols.
        sizes: String,
    },
    /// Something the checker cannot evaluate, or that has no value for any input.
    #[error("{what} cannot be compared: {why}")]
    Unsupported {
        /// What was met.
        what: String,
        /// Why it cannot be, and what to do instead.
        why: String,
    },
    /// Even one element of each output takes more than the budget.
    #[error(
        "{what} takes {needed} operations, the budget is {budget}: raise `EqualityOptions::work`, or give smaller sizes"
    )]
    TooLarge {
        /// Which evaluation.
        what: String,
        /// Operations of the field or on floats.
        needed: u64,
        /// As many as are allowed.
        budget: u64,
    },
}

/// What is wrong with a certificate.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CertificateError {
    /// Its text does not parse.
    #[error("certificate, line {line}: {what}")]
    Text {
        /// Counted from 1.
        line: usize,
        /// What was found and what is wanted.
        what: String,
    },
    /// Another version of the checker wrote it.
    #[error("the certificate is of version {found} of the checker, this is {wanted}: check the graphs again")]
    Version {
        /// The certificate's.
        found: u32,
        /// This checker's.
        wanted: u32,
    },
    /// It is of other graphs.
    #[error("the certificate is of another {which} graph: {found:032x}, this one is {wanted:032x}")]
    Foreign {
        /// `original` or `candidate`.
        which: &'static str,
        /// The hash in the certificate.
        found: u128,
        /// The hash of the graph.
        wanted: u128,
    },
}
