//! Arrays and the memory of values.

use super::NpyError;
use super::header::NpyHeader;
use yirage_ir::{DType, Dims, Format, Type};

/// An array as it lies in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Npy<'a> {
    header: NpyHeader,
    elements: &'a [u8],
}

/// Bytes as .npy files name them: the type of elements that graphs write, others that are read as the same, and the way
/// to get there from another array.
const TYPES: &[(DType, &str, &[&str], &str)] = &[
    (DType::F32, "<f4", &[], ".astype(np.float32)"),
    (DType::Stored(Format::F16), "<f2", &[], ".astype(np.float16)"),
    (DType::Stored(Format::BF16), "<V2", &["|V2"], ".astype(ml_dtypes.bfloat16)"),
    (DType::I32, "<i4", &[], ".astype(np.int32)"),
    (DType::U32, "<u4", &[], ".astype(np.uint32)"),
    (DType::Bool, "|b1", &["<b1"], ".astype(np.bool_)"),
];

/// What the two bytes of [`DType`] bf16 are taken for, said where they are.
const BF16_NOTE: &str = "two bytes without a meaning in NumPy are taken for bf16, as ml_dtypes writes it";

impl<'a> Npy<'a> {
    /// The array of a whole file.
    ///
    /// # Errors
    /// [`NpyError::Format`] and [`NpyError::Header`].
    pub fn parse(bytes: &'a [u8]) -> Result<Npy<'a>, NpyError> {
        let (header, elements) = NpyHeader::parse(bytes)?;
        Ok(Npy { header, elements })
    }

    /// Type, order and sizes.
    pub fn header(&self) -> &NpyHeader {
        &self.header
    }

    /// The elements as they lie in the memory of a value of type `ty`, whose dimensions are fixed; strided ones with
    /// zeros in their gaps. Also what a person should know of how they were read.
    ///
    /// # Errors
    /// Another type, another shape, more or fewer bytes than the header says, a bool that is none, gaps that no memory has.
    pub fn memory(&self, ty: &Type) -> Result<(Vec<u8>, Option<&'static str>), NpyError> {
        let header = &self.header;
        self.check_type(ty)?;
        let sizes: Option<Vec<usize>> = ty.shape.iter().map(|d| d.as_const()).collect();
        if sizes.as_ref() != Some(&header.shape) {
            return Err(NpyError::Shape { wanted: ty.to_string(), shape: header.shape.clone() });
        }
        let size = ty.dtype.row_bytes(1);
        // The shape is the type's, whose bytes are a number that memory may have.
        let wanted = ty.elems(&Dims::default()).saturating_mul(size);
        if self.elements.len() != wanted {
            let (descr, shape) = (header.descr.clone(), header.shape.clone());
            return Err(NpyError::Length { given: self.elements.len(), wanted, descr, shape });
        }
        if ty.dtype == DType::Bool
            && let Some(at) = self.elements.iter().position(|&b| b > 1)
        {
            return Err(NpyError::Bool { at, byte: self.elements[at] });
        }
        let note = (ty.dtype == DType::Stored(Format::BF16)).then_some(BF16_NOTE);
        Ok((self.laid(ty, size)?, note))
    }

    fn check_type(&self, ty: &Type) -> Result<(), NpyError> {
        let header = &self.header;
        let known = TYPES.iter().find(|(dtype, ..)| *dtype == ty.dtype && ty.activation_format.is_none());
        let Some((_, descr, others, way)) = known else {
            let remedy = "; f32, f16, bf16, i32, u32 and bool come from .npy files".to_owned();
            return Err(NpyError::DType { wanted: ty.to_string(), descr: header.descr.clone(), remedy });
        };
        if header.descr == *descr || others.contains(&header.descr.as_str()) {
            return Ok(());
        }
        let remedy = format!(": write it with {way}");
        Err(NpyError::DType { wanted: ty.to_string(), descr: header.descr.clone(), remedy })
    }

    /// The elements in the order of the value's memory.
    fn laid(&self, ty: &Type, size: usize) -> Result<Vec<u8>, NpyError> {
        let shape = &self.header.shape;
        let dense = |order: &mut dyn Iterator<Item = usize>| {
            let mut strides = vec![0; shape.len()];
            let mut next = 1;
            for axis in order {
                strides[axis] = next;
                next *= shape[axis];
            }
            strides
        };
        let rows = dense(&mut (0..shape.len()).rev());
        let from = if self.header.fortran_order { dense(&mut (0..shape.len())) } else { rows.clone() };
        let to = ty.strides.as_ref().map_or(rows, |s| s.iter().map(|&s| s as usize).collect());
        if from == to || self.elements.is_empty() {
            return Ok(self.elements.to_vec());
        }
        let bytes = ty.storage_bytes(&Dims::default());
        let mut out = Vec::new();
        out.try_reserve_exact(bytes).map_err(|_| NpyError::Memory { wanted: ty.to_string(), bytes })?;
        out.resize(bytes, 0);
        let mut index = vec![0; shape.len()];
        for _ in 0..self.elements.len() / size {
            let place = |strides: &[usize]| index.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>() * size;
            let (read, write) = (place(&from), place(&to));
            out[write..][..size].copy_from_slice(&self.elements[read..][..size]);
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        Ok(out)
    }
}

/// A file of a dense value of fixed dimensions in row-major order, whose memory is `elements`. Also what a person should
/// know of what was written.
///
/// # Errors
/// A type of elements that NumPy has no name for; symbolic dimensions; another number of bytes than the type's.
pub fn write(ty: &Type, elements: &[u8]) -> Result<(Vec<u8>, Option<&'static str>), NpyError> {
    let known = TYPES.iter().find(|(dtype, ..)| *dtype == ty.dtype && ty.activation_format.is_none());
    let Some((_, descr, ..)) = known else {
        let remedy = "; f32, f16, bf16, i32, u32 and bool go into .npy files".to_owned();
        return Err(NpyError::DType { wanted: ty.to_string(), descr: ty.elements().to_owned(), remedy });
    };
    let sizes: Option<Vec<usize>> = ty.shape.iter().map(|d| d.as_const()).collect();
    let Some(shape) = sizes.filter(|_| ty.strides.is_none()) else {
        return Err(NpyError::Shape { wanted: ty.to_string(), shape: Vec::new() });
    };
    let wanted = ty.bytes(&Dims::default());
    if elements.len() != wanted {
        let descr = (*descr).to_owned();
        return Err(NpyError::Length { given: elements.len(), wanted, descr, shape });
    }
    let mut out = NpyHeader { descr: (*descr).to_owned(), fortran_order: false, shape }.bytes();
    out.extend_from_slice(elements);
    let note = "bf16 is written as two bytes without a meaning in NumPy: .view(ml_dtypes.bfloat16) reads it";
    Ok((out, (ty.dtype == DType::Stored(Format::BF16)).then_some(note)))
}
