//! Evidence that two graphs are equal: a test over finite fields, then one in floats, both pure and deterministic.
//!
//! Deliberately unknown here: how a candidate was found, what it costs, and on which device it will run.

mod certificate;
mod class;
mod error;
mod options;

pub use certificate::{CHECKER_VERSION, Certificate, ClassEvidence, FieldEvidence};
pub use class::Class;
pub use error::{CertificateError, NotEqual};
pub use options::EqualityOptions;

use yirage_ir::{Graph, verify};

/// Whether `candidate` may stand for `original`: they are called alike, are equal as functions, and the candidate is as
/// good in floats.
///
/// Inputs are matched by name, outputs by position, and their types are equal; where an input lies (its strides) may
/// differ. States are compared after the step, too.
///
/// # Errors
/// Why there is no certificate. That a pair is refused does not say that it differs: see [`NotEqual`].
pub fn equivalent(original: &Graph, candidate: &Graph, options: &EqualityOptions) -> Result<Certificate, NotEqual> {
    for (which, graph) in [("original", original), ("candidate", candidate)] {
        verify(graph).map_err(|source| NotEqual::Graph { which, source })?;
    }
    let _ = options;
    Err(NotEqual::Unsupported { what: "a pair of graphs".into(), why: "its evaluation is not written yet".into() })
}
