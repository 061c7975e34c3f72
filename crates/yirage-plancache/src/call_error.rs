//! Why a graph cannot be called.

use thiserror::Error;
use yirage_compile::CompileError;
use yirage_hal::HalError;

/// Why a graph cannot be made callable, or why a call cannot run.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum CallError {
    /// Memory that is no array of its type.
    #[error("an array of {ty}: {why}")]
    Array {
        /// The type.
        ty: String,
        /// What is wrong.
        why: String,
    },
    /// Another number of inputs than the graph has.
    #[error("{given} inputs are given, the graph `{graph}` takes {wanted}: {names}; give one for each name")]
    Count {
        /// The graph.
        graph: String,
        /// How many are given.
        given: usize,
        /// How many it takes.
        wanted: usize,
        /// Their names and types.
        names: String,
    },
    /// An input or weight of another type, shape or order of elements.
    #[error("{what} `{name}` is {wanted}, {given} is given")]
    Type {
        /// Input or weight.
        what: &'static str,
        /// Its name.
        name: String,
        /// The graph's type.
        wanted: String,
        /// The array's.
        given: String,
    },
    /// A weight that is not given, or one that the graph does not have.
    #[error("weight `{name}`: {why}")]
    Weight {
        /// Its name.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A symbol that two inputs give two sizes.
    #[error("{symbol} is {has} in the input `{first}` and {given} in `{input}`; give both the same size")]
    Size {
        /// The symbol.
        symbol: &'static str,
        /// The first input that has it.
        first: String,
        /// Its size there.
        has: u32,
        /// Another input.
        input: String,
        /// Its size there.
        given: u32,
    },
    /// A plan that takes or gives something else than the graph that is called.
    #[error("the plan is not one of the graph `{graph}`: {what}")]
    Plan {
        /// The graph.
        graph: String,
        /// What is otherwise.
        what: String,
    },
    /// A graph that is not called with arrays.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it cannot be.
        why: &'static str,
    },
    /// The compiler has no plan for it.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The device.
    #[error(transparent)]
    Device(#[from] HalError),
}
