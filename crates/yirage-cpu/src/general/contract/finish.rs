//! The end of a product: sums are rounded, go through a program and are stored.

use super::split::Piece;
use super::{Block, Contract};
use crate::general::Elem;
use crate::isa::Isa;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Numbers that are converted at once.
const RUN: usize = 64;

impl Contract<'_> {
    /// Stores the sums of a piece.
    ///
    /// # Safety
    /// The piece's elements of the result exist and are the caller's alone; `sums` holds its rows, `pitch` apart.
    pub(super) unsafe fn finish(&self, isa: Isa, piece: &Piece, sums: &mut [f32], pitch: usize) {
        let (rows, columns) = (piece.rows.len(), piece.columns.len());
        if let Some((elem, program)) = self.product.after {
            sums[..rows * pitch].chunks_exact_mut(pitch).for_each(|row| round(elem, &mut row[..columns]));
            let row = piece.matrix * self.m + piece.rows.start;
            let block = Block { row, column: piece.columns.start, rows, columns };
            // SAFETY: the sums are this worker's alone.
            unsafe { program.run(isa, block, sums.as_mut_ptr(), pitch) };
        }
        let [_, _, matrix] = self.matrix(piece.matrix);
        for (row, sums) in piece.rows.clone().zip(sums.chunks_exact(pitch)) {
            let to = self.out.at(matrix, row, piece.columns.start);
            // SAFETY: a row of the piece.
            unsafe { store(self.out.elem, &sums[..columns], to, self.out.across) };
        }
    }
}

/// Each as the nearest number of a type.
fn round(elem: Elem, x: &mut [f32]) {
    if elem == Elem::F32 {
        return;
    }
    let mut narrow = [0u16; RUN];
    for x in x.chunks_mut(RUN) {
        let narrow = &mut narrow[..x.len()];
        narrowed(elem, x, narrow);
        for (x, &bits) in x.iter_mut().zip(narrow.iter()) {
            *x = if elem == Elem::F16 { f16::from_bits(bits).to_f32() } else { bf16::from_bits(bits).to_f32() };
        }
    }
}

/// Numbers as those of a type of 16 bits.
fn narrowed(elem: Elem, x: &[f32], into: &mut [u16]) {
    use half::slice::HalfBitsSliceExt;
    match elem {
        Elem::F16 => into.reinterpret_cast_mut::<f16>().convert_from_f32_slice(x),
        _ => into.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(x),
    }
}

/// Stores numbers `stride` elements apart.
///
/// # Safety
/// The elements exist and are the caller's alone.
unsafe fn store(elem: Elem, x: &[f32], to: *mut u8, stride: isize) {
    if elem == Elem::F32 {
        // SAFETY: as promised by the caller.
        return unsafe { spread(x, to.cast(), stride) };
    }
    let mut narrow = [0u16; RUN];
    for (i, x) in x.chunks(RUN).enumerate() {
        narrowed(elem, x, &mut narrow[..x.len()]);
        // SAFETY: as promised by the caller.
        unsafe { spread(&narrow[..x.len()], to.cast::<u16>().offset((i * RUN) as isize * stride), stride) };
    }
}

/// Copies elements to places `stride` apart.
///
/// # Safety
/// As for [`store`].
unsafe fn spread<T: Copy>(x: &[T], to: *mut T, stride: isize) {
    // SAFETY: as promised by the caller.
    unsafe {
        if stride == 1 {
            return std::ptr::copy_nonoverlapping(x.as_ptr(), to, x.len());
        }
        for (i, x) in x.iter().enumerate() {
            to.offset(i as isize * stride).write(*x);
        }
    }
}
