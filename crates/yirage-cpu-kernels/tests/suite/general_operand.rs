//! Operands of loops: elements lie inside of their memory or are refused, and ranges end where they say.

use yirage_cpu_kernels::general::{Elem, OperandError, Ranges, StridedInput, Strides};
use yirage_ir::dim::{Dim, Dims};
use yirage_ir::strided::Strided;

fn view(shape: &[u32], strides: &[i64], offset: i64) -> Strided {
    Strided { shape: shape.iter().map(|&n| Dim::Const(n)).collect(), strides: strides.to_vec(), offset }
}

#[test]
fn elements_lie_inside_or_are_refused() {
    let memory = [0f32; 12];
    let within = |view: &Strided| StridedInput::within(memory.as_ptr().cast(), 48, Elem::F32, view, &Dims::default());
    let refused = |view: &Strided| within(view).map(drop);
    // An operand whose first element is that of the memory at `first`.
    let from = |first: usize, strides: &[i64]| {
        let first = memory.as_ptr().wrapping_add(first).cast();
        Ok(StridedInput::at(first, Elem::F32, Strides::new(strides).unwrap()))
    };
    assert_eq!(within(&view(&[3, 4], &[4, 1], 0)), from(0, &[4, 1]));
    assert_eq!(within(&view(&[12], &[-1], 11)), from(11, &[-1]));
    assert_eq!(refused(&view(&[3, 4], &[4, 1], 1)), Err(OperandError::Outside { low: 1, high: 12, held: 12 }));
    assert_eq!(refused(&view(&[12], &[-1], 10)), Err(OperandError::Outside { low: -1, high: 10, held: 12 }));
    assert_eq!(refused(&view(&[3], &[i64::MAX], 0)), Err(OperandError::TooLarge));
    assert_eq!(refused(&view(&[u32::MAX; 3], &[0; 3], 0)), Err(OperandError::TooLarge));
    assert_eq!(refused(&view(&[1; 2], &[0], 0)), Err(OperandError::Uneven { sizes: 2, strides: 1 }));
    assert_eq!(refused(&view(&[1; 9], &[0; 9], 0)), Err(OperandError::Rank(9)));
    // Nothing is reached, wherever it is said to be.
    assert_eq!(within(&view(&[0], &[1], 99)), from(0, &[1]));
    let odd = memory.as_ptr().cast::<u8>().wrapping_add(1);
    let odd = StridedInput::within(odd, 40, Elem::F32, &view(&[1], &[1], 0), &Dims::default());
    assert_eq!(odd.err(), Some(OperandError::Misaligned(4)));
}

#[test]
fn an_end_is_that_of_what_there_is() {
    let rows = Ranges::rows(3..5, 3, 10);
    assert_eq!((rows.end(), rows.each().collect::<Vec<_>>()), (25, vec![3..5, 13..15, 23..25]));
    assert_eq!(Ranges::rows(3..5, 0, 10).end(), 0);
    assert_eq!(Ranges::one(7..7).end(), 0);
    assert_eq!(Ranges::rows(0..1, usize::MAX, 2).end(), usize::MAX);
}
