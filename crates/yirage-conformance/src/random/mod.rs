//! Random graphs: well-typed ones over all ops, drawn from bytes, and what must hold of each on every device.
//!
//! A test draws the bytes from numbers, a fuzzer makes them; the same bytes are the same graph. [`Drawn::check`] says what
//! is wrong, [`Drawn::smallest`] finds the smallest part of a graph of which it is still wrong.

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

pub use attention::plain_attention;
pub use check::{Failure, Verdict};
pub use tiled::{DrawnTiles, given, without_tiles};

use crate::setup::Setup;
use draft::Draft;
use std::fmt;
use yirage_ir::rng::Rng;
use yirage_ir::{Dims, text};

/// Bytes that are enough for every graph.
const BYTES: usize = 1024;

/// A graph with everything it reads.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The graph, and the sizes of the step.
    pub setup: Setup,
    /// The largest sizes that it is compiled for.
    pub bucket: Dims,
}

impl Drawn {
    /// The graph of a seed.
    pub fn of_seed(seed: u64) -> Drawn {
        let mut rng = Rng::new(seed);
        let bytes: Vec<u8> = (0..BYTES).map(|_| rng.next_u64() as u8).collect();
        Drawn::of_bytes(&bytes)
    }

    /// The graph that the bytes choose. All bytes choose one.
    pub fn of_bytes(bytes: &[u8]) -> Drawn {
        let mut draft = Draft::new(bytes);
        for _ in 0..1 + draft.choices.below(8) {
            draft.any();
        }
        while draft.made.is_empty() {
            draft.any_constant();
        }
        let (setup, bucket) = draft.finish();
        Drawn { setup, bucket }
    }
}

impl fmt::Display for Drawn {
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
