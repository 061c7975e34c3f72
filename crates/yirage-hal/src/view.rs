//! Weights that are views of other memory.

use crate::device::WeightSink;
use crate::error::HalError;
use yirage_ir::{DType, Dims, Type};

/// Writes a weight whose elements lie in `buffer` where its strides say, row by row. A dense one is written whole.
///
/// # Errors
/// [`HalError::Unsupported`] for a view of a format in blocks, [`HalError::Weight`] for one that reaches outside of the
/// buffer; and what the sink says.
pub fn write_view(sink: &mut dyn WeightSink, name: &str, ty: &Type, buffer: &[u8]) -> Result<(), HalError> {
    let Some(strides) = &ty.strides else { return sink.write_rows(0, buffer) };
    let size = match ty.dtype {
        DType::Stored(format) if format.info().block == 1 => format.info().bytes,
        other => {
            let why = format!("elements of {other} do not lie apart");
            return Err(HalError::Unsupported { what: format!("weight `{name}` as the view {ty}"), why });
        }
    };
    let held = buffer.len() / size;
    if ty.span().is_none_or(|span| span > held) {
        let why = format!("the view {ty} reaches outside of a buffer of {held} elements");
        return Err(HalError::Weight { name: name.into(), why });
    }
    let shape: Vec<usize> = ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
    let (Some((&width, outer)), Some((&step, outer_strides))) = (shape.split_last(), strides.split_last()) else {
        return sink.write_rows(0, &buffer[..size]);
    };
    let rows: usize = outer.iter().product();
    let mut bytes = Vec::with_capacity(rows * width * size);
    for r in 0..rows {
        let (mut rest, mut first) = (r, 0);
        for (&n, &stride) in outer.iter().zip(outer_strides).rev() {
            first += rest % n * stride as usize;
            rest /= n;
        }
        for i in 0..width {
            let at = (first + i * step as usize) * size;
            bytes.extend_from_slice(&buffer[at..at + size]);
        }
    }
    sink.write_rows(0, &bytes)
}
