//! A graph with everything that a step of it reads.

use std::sync::Arc;
use yirage_compile::CompileOptions;
use yirage_hal::Record;
use yirage_ir::{Dims, Graph, Type};

/// A graph and what it reads. Knows no device.
#[derive(Clone, Debug)]
pub struct PreparedGraph {
    /// The graph.
    pub graph: Graph,
    /// The bytes of each weight, by name.
    pub weights: Vec<(String, Vec<u8>)>,
    /// The elements of each step input, by name.
    pub step_inputs: Vec<(String, Arc<Record>)>,
    /// The cache that it reads, with its name.
    pub cache: Option<(String, CacheInput)>,
    /// The sizes of a step.
    pub dims: Dims,
    /// How it is compiled.
    pub options: CompileOptions,
}

/// A cache, of which nobody reads what it holds.
#[derive(Clone, Debug)]
pub struct CacheInput {
    /// The type of one block.
    pub block: Type,
    /// Elements of a head that are its key.
    pub k_width: u32,
    /// How many blocks.
    pub blocks: u32,
}
