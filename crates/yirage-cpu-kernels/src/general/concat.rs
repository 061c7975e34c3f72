//! Values one after the other along a dimension.

use super::nest::Nest;
use super::operand::{LoopSizes, StridedInput, StridedOutput};
use super::runs;
use std::ops::Range;

/// Elements `range` of `parts` one after the other along `axis`, in row-major order of the result, bit for bit. A part
/// is an input with its size along the axis; `sizes` are the result's.
///
/// # Panics
/// If the range is not of the result, the parts' sizes are not together the result's, or types or ranks differ.
///
/// # Safety
/// All elements exist, as [`StridedInput::within`] and [`StridedOutput::within`] check; those of the result are distinct, overlap no
/// part, and nobody else touches those of the range.
pub unsafe fn concat(
    sizes: &LoopSizes,
    axis: usize,
    parts: &[(StridedInput, usize)],
    out: StridedOutput,
    range: Range<usize>,
) {
    let shape = sizes.as_slice();
    let along: usize = parts.iter().map(|(_, n)| n).sum();
    assert!(range.end <= sizes.count() && shape[axis] == along, "elements {range:?} of {sizes:?}, {along} of {axis}");
    let inner: usize = shape[axis + 1..].iter().product();
    let (mut first, step) = (0, out.strides.as_slice()[axis]);
    for &(input, n) in parts {
        assert_eq!(input.elem, out.elem, "elements are moved as they are");
        let mut part = [1; yirage_ir::types::MAX_RANK];
        part[..shape.len()].copy_from_slice(shape);
        part[axis] = n;
        let part = LoopSizes::new(&part[..shape.len()]).unwrap_or_else(|_| unreachable!("no larger than the result"));
        let nest = Nest::new(&part, [input.strides, out.strides].into_iter());
        let elem = out.elem;
        let to = out.base.wrapping_byte_offset(first as isize * step as isize * elem.bytes() as isize);
        let (size, whole) = (n * inner, along * inner);
        // The part's elements in each row of the result, those of them that the range has.
        for row in range.start / whole.max(1)..range.end.div_ceil(whole.max(1)) {
            let place = row * whole + first * inner;
            let (from, until) = (range.start.clamp(place, place + size), range.end.clamp(place, place + size));
            let some = row * size + from - place..row * size + until - place;
            runs::each(&nest, some, |coords, n| {
                let [from, to] = [(0, input.base.cast_mut()), (1, to)].map(|(operand, base)| {
                    base.wrapping_byte_offset(nest.offset(operand, coords) * elem.bytes() as isize)
                });
                let [step, to_step] = [0, 1].map(|operand| nest.inner(operand) as isize);
                // SAFETY: a run of elements of both, which `concat` is promised; `StridedInput::within` and
                // `StridedOutput::within` check the operands.
                unsafe { runs::copy(elem, from, step, to, to_step, n) };
            });
        }
        first += n;
    }
}
