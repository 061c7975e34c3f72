//! Why a graph cannot be built.

use thiserror::Error;
use yirage_ir::op::NoGeneralForm;
use yirage_ir::{BuildError, DType};

/// Why an operation is refused. The graph is what it was before.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GraphError {
    /// An input of more dimensions than Mirage's tensors have.
    #[error("new_input: {rank} dimensions, {} are the most", super::MAX_INPUT_RANK)]
    Rank {
        /// Dimensions given.
        rank: usize,
    },
    /// Strides of an input that are neither row-major nor column-major.
    #[error("new_input: strides {given:?} of dims {dims:?}: {wanted} wanted")]
    Strides {
        /// The sizes.
        dims: Vec<u32>,
        /// The strides given.
        given: Vec<u32>,
        /// The two that are taken.
        wanted: String,
    },
    /// An element type that kernel graphs do not compute with.
    #[error("{what}: elements of {dtype} are not supported; f32, f16 and bf16 are")]
    DType {
        /// The operation.
        what: &'static str,
        /// The type given.
        dtype: DType,
    },
    /// A value that is not of this graph.
    #[error("{what}: value {value} is none of the {values} of this graph")]
    NoValue {
        /// The operation.
        what: &'static str,
        /// The number given.
        value: u32,
        /// How many values there are.
        values: usize,
    },
    /// Operands that the operation does not take together.
    #[error("{what} of {given}: {wanted}")]
    Operands {
        /// The operation.
        what: &'static str,
        /// Types of the operands.
        given: String,
        /// What is wanted.
        wanted: String,
    },
    /// A dimension that the operand does not have.
    #[error("{what}: {ty} has no dimension {dim}; {}", dimensions(*rank))]
    Dim {
        /// The operation.
        what: &'static str,
        /// The dimension given, from the first one or, below 0, from the last.
        dim: i64,
        /// The operand's type.
        ty: String,
        /// How many dimensions it has.
        rank: usize,
    },
    /// A number that makes no sense as this argument.
    #[error("{what}: {argument} is {given}: {wanted} wanted")]
    Argument {
        /// The operation.
        what: &'static str,
        /// The argument.
        argument: &'static str,
        /// What was given.
        given: String,
        /// What is wanted.
        wanted: &'static str,
    },
    /// A name that is no operation's.
    #[error("`{name}` is no operation of graphs, which are {known}")]
    NoOperation {
        /// The name given.
        name: String,
        /// The operations that there are.
        known: String,
    },
    /// An attribute of an operation that is called by its name.
    #[error("{what}: its attribute `{name}`: {wanted}")]
    Attribute {
        /// The operation.
        what: &'static str,
        /// The attribute.
        name: String,
        /// What is wrong with it.
        wanted: String,
    },
    /// Something that no graph can say.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it cannot be, and what to do instead.
        why: String,
    },
    /// A graph that gives nothing back.
    #[error("the graph `{graph}` has no output: mark_output says what it gives back")]
    NoOutput {
        /// The graph's name.
        graph: String,
    },
    /// The IR refuses a node or a name.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A named op has no general form for these operands.
    #[error(transparent)]
    Form(#[from] NoGeneralForm),
}

/// Which dimensions an operand of this rank has.
fn dimensions(rank: usize) -> String {
    match rank {
        0 => "its rank is 0".into(),
        _ => format!("its rank is {rank}, so dimensions are 0 to {}, or -{rank} to -1 from the last one", rank - 1),
    }
}
