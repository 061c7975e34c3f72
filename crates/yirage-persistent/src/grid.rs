//! The grids and blocks of threads that layer methods are given.
//!
//! A GPU's kernel is launched as a grid; here the compiler cuts tasks itself. So a grid is checked, and told to mean
//! nothing, but where it says how two matrices lie in one.

use crate::error::PersistentError;
use crate::limits::{MAX_BLOCK, MAX_GRID};

/// Sizes of a grid or of a block.
pub type GridDims = [u32; 3];

/// What a layer method is launched with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchDims {
    /// Blocks.
    pub grid: GridDims,
    /// Threads of a block.
    pub block: GridDims,
}

impl LaunchDims {
    /// One block of 128 threads.
    pub const ONE: LaunchDims = LaunchDims { grid: [1, 1, 1], block: [128, 1, 1] };

    /// A launch of `grid` blocks of 128 threads.
    pub fn of(grid: GridDims) -> LaunchDims {
        LaunchDims { grid, ..LaunchDims::ONE }
    }

    /// Whether a GPU could launch it.
    ///
    /// # Errors
    /// [`PersistentError::Layer`].
    pub(crate) fn check(&self, layer: &'static str) -> Result<(), PersistentError> {
        let wrong = |why| Err(PersistentError::Layer { layer, why });
        if self.grid.iter().any(|&n| n == 0 || n > MAX_GRID) {
            return wrong(format!("grid_dim is {:?}: each size is 1 to {MAX_GRID}", self.grid));
        }
        let threads =
            self.block.iter().try_fold(1u32, |n, &m| n.checked_mul(m)).filter(|n| (1..=MAX_BLOCK).contains(n));
        if threads.is_none() {
            return wrong(format!("block_dim is {:?}: 1 to {MAX_BLOCK} threads in all", self.block));
        }
        Ok(())
    }
}
