//! Kernels of a backend, as the device over its driver needs them.

use super::kernel_call::KernelCall;
use super::operands::ValueSlices;
use crate::error::HalError;
use std::borrow::Cow;
use yirage_ir::Dims;
use yirage_plan::{Plan, Target, WeightEntry, WeightLayout};

/// What a weight takes in its layout, and how its rows are to be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightPacking {
    /// Bytes of the device's memory, with what the layout pads.
    pub bytes: u64,
    /// Rows are packed from a multiple of this on; the last piece may be shorter.
    pub row_step: usize,
}

/// Rows of a weight in its layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackedRows<'a> {
    /// Where in the weight's memory they lie.
    pub offset: u64,
    /// Their bytes.
    pub bytes: Cow<'a, [u8]>,
}

/// The kernels of a backend.
pub trait Library: Send + Sync + 'static {
    /// What the compiler is told of them and of the device.
    fn target(&self) -> Target;
    /// What a weight takes in the layout of its entry: of a library without layouts of its own, what it takes in the file.
    ///
    /// # Errors
    /// A layout that the library does not pack.
    fn weight_packing(&self, entry: &WeightEntry) -> Result<WeightPacking, HalError> {
        as_in_the_file(entry)?;
        Ok(WeightPacking { bytes: entry.ty.dense().bytes(&Dims::default()) as u64, row_step: 1 })
    }
    /// What packed weights depend on beside their entries and values, in words: two libraries that say the same pack alike.
    /// Then they can be kept and used again as they are. `None` packs them at each start.
    fn packing(&self) -> Option<String> {
        None
    }
    /// Packs whole rows as they lie in the file, from `first_row` on. Rows of all leading dimensions are counted through.
    ///
    /// # Errors
    /// A layout that the library does not pack.
    fn pack<'a>(&self, entry: &WeightEntry, first_row: usize, rows: &'a [u8]) -> Result<PackedRows<'a>, HalError> {
        as_in_the_file(entry)?;
        let row_bytes = entry.ty.dtype.row_bytes(entry.ty.width().unwrap_or(1)) as u64;
        Ok(PackedRows { offset: (first_row as u64).saturating_mul(row_bytes), bytes: Cow::Borrowed(rows) })
    }
    /// The code of all kernels that a plan wants.
    ///
    /// # Errors
    /// A plan that names kernels which are not there.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError>;
    /// What runs step `step` of a plan, in its order. It is asked once, when the plan is loaded, for all sizes within the
    /// plan's: kernels read the sizes of a step where [`ValueSlices::sizes`] says.
    ///
    /// # Errors
    /// Values without a place.
    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError>;
}

/// Whether a weight lies as it does in the file.
fn as_in_the_file(entry: &WeightEntry) -> Result<(), HalError> {
    if entry.lies_in(WeightLayout::ROWS) || entry.lies_in(WeightLayout::ELEMENTS) {
        return Ok(());
    }
    Err(HalError::Unsupported {
        what: format!("the layout `{}` of weight `{}`", entry.layout, entry.name),
        why: "this backend's library packs no weights: rows and elements lie as in the file".into(),
    })
}
