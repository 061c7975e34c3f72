//! The numbers of a tensor on their way into the file: a piece of rows at a time, and what rounding does to them.

use super::tensors::ConvertedTensor;
use crate::encode::{EncodeRow, encoder};
use crate::error::ConvertError;
use std::ops::AddAssign;
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_model::weights::materialise;

/// Numbers of a tensor that are in memory at once: 4 MiB of them.
const NUMBERS_AT_ONCE: usize = 1 << 20;

/// What a format of fewer bits did to numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundedNumbers {
    /// Numbers that are not what they were.
    pub changed: u64,
    /// Those among them that became zero.
    pub to_zero: u64,
}

impl AddAssign for RoundedNumbers {
    fn add_assign(&mut self, other: RoundedNumbers) {
        self.changed += other.changed;
        self.to_zero += other.to_zero;
    }
}

/// Where converted bytes go.
pub(crate) type ByteSink<'a> = dyn FnMut(&[u8]) -> Result<(), ConvertError> + 'a;

/// Reads, converts and hands on a whole tensor.
///
/// # Errors
/// Numbers that are not finite, or beyond what the new format holds; those of `sink`.
pub(crate) fn convert_tensor(
    checkpoint: &Checkpoint,
    tensor: &ConvertedTensor,
    sink: &mut ByteSink<'_>,
) -> Result<RoundedNumbers, ConvertError> {
    let binding = &tensor.binding;
    let (columns, rows) = (binding.width(), binding.rows());
    let at_once = (NUMBERS_AT_ONCE / columns.max(1)).clamp(1, rows.max(1));
    let (mut scratch, mut numbers, mut out) = (Vec::new(), vec![0.0f32; columns], Vec::new());
    let mut rounded = RoundedNumbers::default();
    let mut first = 0;
    while first < rows {
        let count = at_once.min(rows - first);
        let stored = materialise(checkpoint, binding, first..first + count, &mut scratch)?;
        // Packed weights stay as they are: only the places of their bits change.
        if binding.format.info().ggml_type == tensor.to.0 && binding.format.info().block > 1 {
            sink(stored)?;
        } else {
            let row_bytes = binding.row_bytes();
            out.clear();
            for (row, stored) in (first..).zip(stored.chunks_exact(row_bytes)) {
                (binding.format.info().decode)(stored, &mut numbers);
                numbers.iter_mut().for_each(|x| *x += tensor.offset);
                rounded += RowOfNumbers { checkpoint, tensor, row, numbers: &numbers }.append(&mut out)?;
            }
            sink(&out)?;
        }
        first += count;
    }
    for name in binding.tensors() {
        let stored = checkpoint.require(name)?;
        checkpoint.release(stored, 0..stored.range.len());
    }
    Ok(rounded)
}

struct RowOfNumbers<'a> {
    checkpoint: &'a Checkpoint,
    tensor: &'a ConvertedTensor,
    row: usize,
    numbers: &'a [f32],
}

impl RowOfNumbers<'_> {
    fn append(&self, out: &mut Vec<u8>) -> Result<RoundedNumbers, ConvertError> {
        if let Some((element, value)) = self.first(|x| !x.is_finite()) {
            let (file, tensor) = self.named();
            return Err(ConvertError::NotFinite { file, tensor, element, value });
        }
        let encode: EncodeRow = encoder(self.tensor.to).expect("plans have formats that are written");
        let to = Format::from_ggml(self.tensor.to.0).expect("plans have formats that are computed with").info();
        let from = out.len();
        out.resize(from + to.row_bytes(self.numbers.len()), 0);
        encode(self.numbers, None, &mut out[from..]);
        let mut back = vec![0.0; self.numbers.len()];
        (to.decode)(&out[from..], &mut back);
        let mut rounded = RoundedNumbers::default();
        for (&was, &is) in self.numbers.iter().zip(&back) {
            if !is.is_finite() {
                let (element, value) = self.first(|x| x == was).unwrap_or_default();
                let ((file, tensor), format) = (self.named(), self.tensor.to.name().unwrap_or_default());
                return Err(ConvertError::OutOfRange { file, tensor, element, value, format });
            }
            rounded.changed += u64::from(was != is);
            rounded.to_zero += u64::from(was != 0.0 && is == 0.0);
        }
        Ok(rounded)
    }

    /// The file and the tensor that is read.
    fn named(&self) -> (String, String) {
        (self.checkpoint.label(), self.tensor.sources().first().copied().unwrap_or(self.tensor.name()).to_owned())
    }

    /// Where the first such number is, row-major in the new tensor, and which it is.
    fn first(&self, is: impl Fn(f32) -> bool) -> Option<(u64, f32)> {
        let at = self.numbers.iter().position(|&x| is(x))?;
        Some(((self.row * self.numbers.len() + at) as u64, self.numbers[at]))
    }
}
