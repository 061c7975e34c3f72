//! Grids for so many pieces of work, a thread or a group each, within what devices have along an axis.

use crate::strided_index::fixed;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_hal::driver::GridExtent;
use yirage_ir::{Dim, Dims};
use yirage_kir::{KernelWriter, Register};

/// Most groups along an axis that every device has (WebGPU's least limit).
const MOST_GROUPS: u64 = 65_535;

/// A grid of one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlatGrid {
    /// Groups.
    pub(crate) extent: GridExtent,
    /// Pieces of work that a group does.
    pub(crate) per_group: u32,
}

impl FlatGrid {
    /// For the elements of a shape, `elements` a piece of work, of which a group does a multiple of `threads`: as many as keep
    /// the grid within its limits at the plan's largest sizes.
    pub(crate) fn of(shape: &[Dim], elements: u32, threads: u32, bucket: &Dims) -> Result<FlatGrid, HalError> {
        let too_many = || HalError::Load(format!("{shape:?} has more elements than a kernel counts"));
        let inner: Option<u32> = shape.iter().skip(1).try_fold(1u32, |n, &dim| n.checked_mul(fixed(dim).ok()?));
        let inner = inner.ok_or_else(too_many)?;
        let outer = shape.first().copied().unwrap_or(Dim::Const(1));
        let most = (outer.get(bucket) as u64).checked_mul(u64::from(inner)).filter(|&n| n <= u64::from(u32::MAX));
        let pieces = most.ok_or_else(too_many)?.div_ceil(u64::from(elements));
        let rounds = pieces.div_ceil(u64::from(threads)).div_ceil(MOST_GROUPS).max(1);
        let per_group = u32::try_from(rounds * u64::from(threads)).map_err(|_| too_many())?;
        let per = per_group.checked_mul(elements).ok_or_else(too_many)?;
        let extent = match outer {
            Dim::Const(_) => GridExtent::Fixed(most.unwrap_or(0).div_ceil(u64::from(per)) as u32),
            Dim::Sym(size) => GridExtent::Of { size, times: inner, per },
        };
        Ok(FlatGrid { extent, per_group })
    }

    /// The grid.
    pub(crate) fn axes(self) -> [GridExtent; 3] {
        [self.extent, GridExtent::Fixed(1), GridExtent::Fixed(1)]
    }
}

/// A grid of which the first axis is given and the second runs over rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowGrid {
    extent: GridExtent,
    /// Rows of a group.
    per_group: u32,
    /// Rows at the plan's largest sizes.
    pub(crate) most_rows: u32,
    /// Whether each step says how many there are.
    pub(crate) is_symbolic: bool,
}

impl RowGrid {
    /// For `times` rows for each of a dimension, of which a group does a multiple of `together`.
    pub(crate) fn of(rows: Dim, times: u32, together: u32, bucket: &Dims) -> Result<RowGrid, HalError> {
        let most = rows.get(bucket) as u64 * u64::from(times);
        let most_rows = u32::try_from(most)
            .map_err(|_| HalError::Load(format!("{rows} times {times} are more rows than a kernel counts")))?;
        let rounds = most_rows.div_ceil(together).div_ceil(MOST_GROUPS as u32).max(1);
        let per_group = rounds * together;
        let (extent, is_symbolic) = match rows {
            Dim::Const(_) => (GridExtent::Fixed(most_rows.div_ceil(per_group)), false),
            Dim::Sym(size) => (GridExtent::Of { size, times, per: per_group }, true),
        };
        Ok(RowGrid { extent, per_group, most_rows, is_symbolic })
    }

    /// The rows of a group, of so many.
    pub(crate) fn range(&self, w: &mut KernelWriter, count: Register) -> Range<Register> {
        let (group, per_group) = (w.group(1), w.u32(self.per_group));
        let start = w.mul(group, per_group);
        let end = w.add(start, per_group);
        start..w.min(end, count)
    }

    /// The grid, with so many groups along the first axis.
    pub(crate) fn axes(self, groups: u32) -> Result<[GridExtent; 3], HalError> {
        if u64::from(groups) > MOST_GROUPS {
            return Err(HalError::Load(format!("{groups} groups along an axis, {MOST_GROUPS} at most")));
        }
        Ok([GridExtent::Fixed(groups), self.extent, GridExtent::Fixed(1)])
    }
}
