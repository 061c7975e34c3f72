//! Random graphs: well-typed ones over all ops, drawn from bytes, and what must hold of each on every device.
//!
//! A test draws the bytes from numbers, a fuzzer makes them; the same bytes are the same graph. [`RandomGraph::check`] says what
//! is wrong, [`RandomGraph::smallest`] finds the smallest part of a graph of which it is still wrong.

mod attention;
mod cases;
mod check;
mod choices;
mod draft;
mod expression;
mod general;
mod named;
mod shrink;
mod tiled;
mod tiled_check;

pub use attention::plain_attention;
pub use check::{RandomGraphFailure, RandomGraphVerdict};
pub use tiled::{RandomTiledGraph, with_random_inputs, without_tiles};
pub use tiled_check::{TiledComparison, TiledDemonstration, apart, numbers};

use crate::setup::GraphSetup;
use draft::Draft;
use std::fmt;
use yirage_ir::rng::Rng;
use yirage_ir::{Dims, text};

/// Bytes that are enough for every graph.
const BYTES: usize = 1024;

/// A graph with everything it reads.
#[derive(Clone, Debug)]
pub struct RandomGraph {
    /// The graph, and the sizes of the step.
    pub setup: GraphSetup,
    /// The largest sizes that it is compiled for.
    pub bucket: Dims,
}

impl RandomGraph {
    /// The graph of a seed.
    pub fn of_seed(seed: u64) -> RandomGraph {
        let mut rng = Rng::new(seed);
        let bytes: Vec<u8> = (0..BYTES).map(|_| rng.next_u64() as u8).collect();
        RandomGraph::of_bytes(&bytes)
    }

    /// The graph that the bytes choose. All bytes choose one.
    pub fn of_bytes(bytes: &[u8]) -> RandomGraph {
        let mut draft = Draft::new(bytes);
        for _ in 0..1 + draft.choices.below(8) {
            draft.any();
        }
        while draft.node_outputs.is_empty() {
            draft.any_constant();
        }
        let (setup, bucket) = draft.finish();
        RandomGraph { setup, bucket }
    }
}

impl fmt::Display for RandomGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} of {:?}", self.setup.dims, self.bucket)?;
        f.write_str(&text::print(&self.setup.graph))
    }
}

impl Draft<'_> {
    /// A node. What does not type is not there: nothing else refuses.
    fn any(&mut self) {
        let drawn = match self.choices.below(16) {
            0..=4 => self.map(),
            5 | 6 => self.reduce(),
            7 | 8 => self.view(),
            9 => self.contract(),
            10 => self.concat(),
            11 => self.gather(),
            12 => self.row_op(),
            13 => self.table_op(),
            14 => self.case(),
            _ => self.constant(),
        };
        self.untyped += usize::from(drawn.is_err());
    }

    fn any_constant(&mut self) {
        self.untyped += usize::from(self.constant().is_err());
    }
}
