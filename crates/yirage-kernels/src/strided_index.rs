//! Index arithmetic: where the elements of a shape lie, as registers of a kernel.

use crate::scope::KernelScope;
use yirage_hal::HalError;
use yirage_ir::{Dim, Strided};
use yirage_kir::{KernelWriter, Register};

/// The sizes of a dense shape, as far as the coordinates of an element depend on them: all but the outermost.
#[derive(Clone, Debug)]
pub(crate) struct DenseShape {
    rank: usize,
    inner: Vec<u32>,
}

impl DenseShape {
    /// Of a shape of which only the outermost size may be symbolic.
    pub(crate) fn new(shape: &[Dim]) -> Result<DenseShape, HalError> {
        let inner = shape.iter().skip(1).map(|&dim| Ok(fixed(dim)?.max(1))).collect::<Result<_, HalError>>()?;
        Ok(DenseShape { rank: shape.len(), inner })
    }

    /// Of a shape of these sizes.
    pub(crate) fn fixed(sizes: &[u32]) -> DenseShape {
        DenseShape { rank: sizes.len(), inner: sizes.iter().skip(1).map(|&size| size.max(1)).collect() }
    }

    /// The coordinates of element `linear`, outermost first.
    pub(crate) fn coordinates(&self, w: &mut KernelWriter, linear: Register) -> Vec<Register> {
        let mut left = linear;
        let mut coordinates = Vec::with_capacity(self.rank);
        for &size in self.inner.iter().rev() {
            let size = w.u32(size);
            coordinates.push(w.rem(left, size));
            left = w.div(left, size);
        }
        if self.rank > 0 {
            coordinates.push(left);
        }
        coordinates.reverse();
        coordinates
    }
}

/// A size that is no symbol's.
pub(crate) fn fixed(dim: Dim) -> Result<u32, HalError> {
    let wrong = || HalError::Load(format!("the size {dim} is symbolic, and not the outermost"));
    dim.as_const().and_then(|n| u32::try_from(n).ok()).ok_or_else(wrong)
}

/// The element of memory at these coordinates. Numbers of 32 bits wrap around, so that negative strides are right.
pub(crate) fn element(w: &mut KernelWriter, at: &Strided, coordinates: &[Register]) -> Register {
    let mut sum = w.u32(at.offset as u32);
    for ((&coordinate, &stride), dim) in coordinates.iter().zip(&at.strides).zip(&at.shape) {
        if *dim == Dim::Const(1) || stride == 0 {
            continue;
        }
        let stride = w.u32(stride as u32);
        let step = w.mul(coordinate, stride);
        sum = w.add(sum, step);
    }
    sum
}

/// How many elements a shape has in this step.
pub(crate) fn count(scope: &mut KernelScope<'_>, shape: &[Dim]) -> Register {
    let mut product = scope.w.u32(1);
    for &dim in shape {
        let size = scope.size(dim);
        product = scope.w.mul(product, size);
    }
    product
}
