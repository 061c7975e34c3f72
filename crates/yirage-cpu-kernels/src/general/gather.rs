//! Chosen slices of a value.

use super::elem::Elem;
use super::nest::Nest;
use super::operand::{LoopSizes, StridedInput, StridedOutput, Strides};
use super::runs;
use std::ops::Range;
use yirage_ir::types::MAX_RANK;

/// What is gathered: slices of `x` along `axis`, as the numbers in `at` say, which are i32.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    /// The value.
    pub x: StridedInput,
    /// The dimension of the value.
    pub axis: usize,
    /// The value's size along it.
    pub extent: usize,
    /// The numbers.
    pub at: StridedInput,
}

/// The bits of an element that is not there: NaN, 0 or false.
fn missing(elem: Elem) -> u32 {
    match elem {
        Elem::F32 => f32::NAN.to_bits(),
        Elem::F16 => half::f16::NAN.to_bits().into(),
        Elem::BF16 => half::bf16::NAN.to_bits().into(),
        Elem::I32 | Elem::U32 | Elem::Bool => 0,
    }
}

/// Elements `range` of the slices, in row-major order of the result, whose sizes are the value's with those of the
/// numbers in place of `axis`. A slice that the value does not have is NaN, 0 or false.
///
/// # Panics
/// If the range is not of the result, or types or ranks do not fit.
///
/// # Safety
/// All elements exist, as [`StridedInput::within`] and [`StridedOutput::within`] check; those of the result are distinct, overlap no
/// input, and nobody else touches those of the range.
pub unsafe fn gather(sizes: &LoopSizes, slices: &Slices, out: StridedOutput, range: Range<usize>) {
    let Slices { x, axis, extent, at } = *slices;
    assert!(range.end <= sizes.count(), "elements {range:?} of {sizes:?}");
    assert_eq!((x.elem, at.elem), (out.elem, Elem::I32), "elements are moved as they are, chosen by i32");
    let (value, numbers) = (x.strides.as_slice(), at.strides.as_slice());
    let rank = sizes.as_slice().len();
    assert!(axis < value.len() && value.len() + numbers.len() == rank + 1, "dimensions of the result");
    // The value's own dimensions and the numbers', each among those of the result.
    let spread = |own: &[&[i64]]| {
        let mut all = [0; MAX_RANK];
        all.iter_mut().zip(own.iter().copied().flatten()).for_each(|(to, from)| *to = *from);
        Strides::new(&all[..rank]).unwrap_or_else(|_| unreachable!("of as many dimensions as sizes"))
    };
    let zeros = [0; MAX_RANK];
    let value_strides = spread(&[&value[..axis], &zeros[..numbers.len()], &value[axis + 1..]]);
    let number_strides = spread(&[&zeros[..axis], numbers]);
    let nest = Nest::new(sizes, [value_strides, number_strides, out.strides].into_iter());
    let [step, number_step, out_step] = [0, 1, 2].map(|operand| nest.inner(operand) as isize);
    let (elem, bytes) = (x.elem, x.elem.bytes() as isize);
    runs::each(&nest, range, |coords, n| {
        let [from, number, to] = [0, 1, 2].map(|operand| nest.offset(operand, coords));
        // One number for the whole run, or one for each element.
        let together = if number_step == 0 { n } else { 1 };
        for i in (0..n).step_by(together) {
            let i = i as isize;
            // SAFETY: a number that exists, which `gather` is promised; `StridedInput::within` and
            // `StridedOutput::within` check the operands.
            let chosen = unsafe { *at.base.cast::<i32>().offset(number + i * number_step) };
            let to = out.base.wrapping_byte_offset((to + i * out_step) * bytes);
            let chosen = usize::try_from(chosen).ok().filter(|&chosen| chosen < extent);
            // SAFETY: elements of a slice that exists, and of the result, which `gather` is promised;
            // `StridedInput::within` and `StridedOutput::within` check the operands.
            unsafe {
                match chosen {
                    Some(chosen) => {
                        let from = from + i * step + chosen as isize * value[axis] as isize;
                        runs::copy(elem, x.base.wrapping_byte_offset(from * bytes), step, to, out_step, together);
                    }
                    None => runs::put(elem, missing(elem), to, out_step, together),
                }
            }
        }
    });
}
