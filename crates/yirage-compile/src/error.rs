//! Why a graph cannot be compiled.

use thiserror::Error;
use yirage_ir::BuildError;
use yirage_ir::verify::VerifyError;
use yirage_plan::{PlanError, Refusal};

/// Why a graph cannot be compiled for a target.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CompileError {
    /// The graph does not hold together.
    #[error(transparent)]
    Graph(#[from] VerifyError),
    /// A pass made something that does not hold together: a bug of the compiler, with its facts.
    #[error("pass output: {0}")]
    Pass(#[from] BuildError),
    /// No plan can be made: a size that no memory has, an output that is not computed; or a bug of the compiler, with
    /// its facts.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No target can run this.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it cannot be, and what to do instead.
        why: String,
    },
    /// The target has no kernel for a node.
    #[error("{target} has no kernel for `{op}` on {types}: {why}")]
    NoKernel {
        /// The target.
        target: String,
        /// The op or the region's kind.
        op: String,
        /// Its input types.
        types: String,
        /// What is refused, and what would be taken.
        why: Box<Refusal>,
    },
    /// The weight plan was made for another graph.
    #[error("the weight plan does not fit the graph: `{name}` is {graph} in the graph, {plan} in the plan")]
    Weights {
        /// The weight.
        name: String,
        /// Its type in the graph.
        graph: String,
        /// What the plan says of it.
        plan: String,
    },
}
