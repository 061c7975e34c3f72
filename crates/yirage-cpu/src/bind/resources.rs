//! What kernels read of weights and caches.

use super::float::FloatRows;
use super::run::CpuRunContext;
use crate::storage::{CpuKvCache, MatmulWeight};
use std::sync::Arc;
use yirage_cpu_kernels::attention;
use yirage_cpu_kernels::pack::PackedMatrix;
use yirage_cpu_kernels::recurrent::StateBlocks;

/// A weight packed for products.
#[derive(Clone)]
pub(crate) struct PackedWeight(pub(super) Arc<MatmulWeight>);

impl PackedWeight {
    /// The matrix, or the stack of them.
    pub(crate) fn matrix(&self) -> &PackedMatrix {
        self.0.packed()
    }
}

/// Rows that are looked up by number.
#[derive(Clone)]
pub(crate) enum LookupTable {
    /// Of floats.
    Rows(FloatRows),
    /// Of packed matrices, decoded when read.
    Packed(PackedWeight),
}

/// A cache as one op sees it: its blocks have the heads and widths of the op.
#[derive(Clone)]
pub(crate) struct KvCacheOperand {
    pub(super) kv_cache: Arc<CpuKvCache>,
    pub(super) cache: attention::KvCacheView,
}

impl KvCacheOperand {
    /// The blocks.
    pub(crate) fn blocks(&self) -> attention::KvCacheView {
        debug_assert_eq!(self.cache.blocks(), self.kv_cache.blocks());
        self.cache
    }
}

/// A recurrent state.
#[derive(Clone)]
pub(crate) struct StateOperand {
    pub(super) kv_cache: Arc<CpuKvCache>,
    pub(super) states: StateBlocks,
}

impl StateOperand {
    /// The blocks.
    pub(crate) fn blocks(&self) -> StateBlocks {
        debug_assert_eq!(self.states.blocks(), self.kv_cache.blocks());
        self.states
    }
}

impl LookupTable {
    /// Copies row `id` to `out`, which has the table's width; false if there is no such row.
    ///
    /// # Safety
    /// As [`FloatRows::all`].
    pub(crate) unsafe fn read(&self, run: &CpuRunContext<'_>, id: i32, out: &mut [f32]) -> bool {
        let Ok(id) = usize::try_from(id) else { return false };
        match self {
            LookupTable::Packed(packed) => {
                // The matrices of a stack lie one below the other.
                let (matrix, rows) = (packed.matrix(), packed.matrix().rows().max(1));
                let there = id / rows < matrix.count() && id % rows < matrix.rows();
                if there {
                    matrix.unpack_row(run.isa, id / rows, id % rows, out);
                }
                there
            }
            LookupTable::Rows(rows) => {
                // SAFETY: what `LookupTable::read` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
                let row = unsafe { rows.all(run) }.chunks_exact(rows.width().max(1)).nth(id);
                row.map(|row| out.copy_from_slice(row)).is_some()
            }
        }
    }
}
