//! A value that is larger than what a kernel is bound to, in parts: ranges along its first dimension, each of which fits.

use crate::device_limits::DeviceLimits;
use std::ops::Range;
use thiserror::Error;
use yirage_ir::{Dims, Type};

/// Rows that a part has a multiple of, where so many fit: kernels make neighbouring rows together.
const ROWS_TOGETHER: u64 = 256;

/// Most bytes that a kernel counts in a binding, however large a device's bindings may be.
const MOST_BYTES: u64 = u32::MAX as u64;

/// What a part's first byte is a multiple of, whatever a device allows: memory of kernels is words.
const WORD_BYTES: u64 = 4;

/// Why a value has no parts.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NoParts {
    /// The smallest part that may be bound by itself is too large.
    #[error("its smallest part, {rows} along its first dimension, takes {got} bytes, {limit} at most may be bound")]
    Part {
        /// How much of the first dimension it is.
        rows: u64,
        /// The bytes of it.
        got: u64,
        /// How many may be.
        limit: u64,
    },
    /// It has no first dimension of a known size, or more bytes than a number has.
    #[error("a value of {0} has no parts: a first dimension of a known size wanted")]
    Shape(String),
}

/// Ranges along the first dimension of a value, or of several of one such dimension that are read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueParts {
    rows: u32,
    each: u32,
}

impl ValueParts {
    /// The parts of values, each within a binding of a device of these limits: one part where all of them fit whole.
    ///
    /// # Errors
    /// Values of which the least that may be bound by itself is too large, and those that no range says.
    pub fn of(values: &[&Type], limits: &DeviceLimits) -> Result<ValueParts, NoParts> {
        let mut all: Option<ValueParts> = None;
        let mut step = 1;
        let sizes = values.iter().map(|ty| sizes(ty)).collect::<Result<Vec<_>, _>>()?;
        let limit = limits.binding_bytes.unwrap_or(MOST_BYTES).min(MOST_BYTES);
        let align = u64::from(limits.align).max(WORD_BYTES);
        for &(rows, row_bytes) in &sizes {
            step = least_common_multiple(step, align / greatest_common_divisor(row_bytes, align));
            all.get_or_insert(ValueParts { rows, each: rows });
        }
        let mut parts = all.ok_or_else(|| NoParts::Shape("nothing".into()))?;
        for &(rows, row_bytes) in &sizes {
            let fit = limit.checked_div(row_bytes).unwrap_or(u64::MAX);
            if fit >= u64::from(parts.rows) && rows == parts.rows {
                continue;
            }
            let together = least_common_multiple(step, ROWS_TOGETHER);
            let each = [together, step].map(|of| fit / of * of).into_iter().find(|&each| each > 0);
            let too_large = NoParts::Part { rows: step, got: step.saturating_mul(row_bytes), limit };
            let each = each.and_then(|each| u32::try_from(each).ok()).ok_or(too_large)?;
            parts.each = parts.each.min(each);
        }
        Ok(parts)
    }

    /// Whether there is but one.
    pub fn is_whole(self) -> bool {
        self.each >= self.rows
    }

    /// The parts, in order. Of a value of no rows there is one, of none.
    pub fn ranges(self) -> impl Iterator<Item = Range<u32>> {
        let starts = (0..self.rows.max(1)).step_by(self.each.max(1) as usize);
        starts.map(move |start| start..self.rows.min(start.saturating_add(self.each)))
    }
}

/// The size of a value's first dimension, and the bytes of one of it.
fn sizes(ty: &Type) -> Result<(u32, u64), NoParts> {
    let none = || NoParts::Shape(ty.to_string());
    let rows = ty.shape.first().and_then(|dim| dim.as_const()).ok_or_else(none)?;
    let rows = u32::try_from(rows).map_err(|_| none())?;
    let all =
        ty.dense().checked_bytes(&Dims::default()).and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(none)?;
    Ok((rows, all.checked_div(rows.into()).unwrap_or(0)))
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    a / greatest_common_divisor(a, b) * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::{Dim, Format};

    fn matrix(format: Format, rows: u32, width: u32) -> Type {
        Type::new(format.into(), [Dim::Const(rows), Dim::Const(width)])
    }

    fn limits(align: u32, binding_bytes: u64) -> DeviceLimits {
        DeviceLimits { binding_bytes: Some(binding_bytes), ..DeviceLimits::aligned(align) }
    }

    fn ranges(values: &[&Type], limits: &DeviceLimits) -> Vec<Range<u32>> {
        ValueParts::of(values, limits).unwrap().ranges().collect()
    }

    #[test]
    fn what_fits_is_one_part() {
        let ty = matrix(Format::F32, 100, 10);
        for limits in [limits(256, 4000), DeviceLimits::aligned(256)] {
            let parts = ValueParts::of(&[&ty], &limits).unwrap();
            assert!(parts.is_whole() && parts.ranges().eq(std::iter::once(0..100)));
        }
        let empty = ValueParts::of(&[&matrix(Format::F32, 0, 10)], &limits(256, 4)).unwrap();
        assert!(empty.ranges().eq(std::iter::once(0..0)));
    }

    #[test]
    fn parts_begin_where_bindings_may() {
        // A table of a vocabulary of 262,144 tokens in bindings of 128 MiB.
        let table = matrix(Format::Q8_0, 262_144, 640);
        assert_eq!(ranges(&[&table], &limits(64, 128 << 20)), [0..197_376, 197_376..262_144]);
        // Rows of 40 bytes begin at a multiple of 64 with every eighth.
        assert_eq!(ranges(&[&matrix(Format::F32, 100, 10)], &limits(64, 1700)), [0..40, 40..80, 80..100]);
        // A device that aligns nothing still has words: rows of 2 bytes go in pairs.
        assert_eq!(ranges(&[&matrix(Format::F16, 5, 1)], &limits(1, 7)), [0..2, 2..4, 4..5]);
    }

    #[test]
    fn values_that_are_read_together_have_the_parts_of_all() {
        let (wide, narrow) = (matrix(Format::F32, 64, 64), matrix(Format::F16, 64, 63));
        assert_eq!(ranges(&[&wide, &narrow], &limits(64, 9000)), [0..32, 32..64]);
    }

    #[test]
    fn what_has_no_part_that_fits_is_told_with_numbers() {
        let error = ValueParts::of(&[&matrix(Format::F32, 100, 10)], &limits(64, 319)).unwrap_err();
        assert_eq!(error, NoParts::Part { rows: 8, got: 320, limit: 319 });
        assert!(matches!(ValueParts::of(&[], &limits(64, 319)), Err(NoParts::Shape(_))));
    }
}
