//! Types of values: element type, shape, strides, layout.

use crate::activation::ActivationFormat;
use crate::dim::{Dim, Dims};
use crate::dtype::DType;
use std::fmt;
use thiserror::Error;

/// The type of a value.
///
/// The type of a cache state is that of ONE block (`[positions, kv_heads, width]`, or `[rows, width]` of a recurrent
/// state): how many blocks a pool holds is decided when memory is granted, not when a graph is built.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, outermost first.
    pub shape: Vec<Dim>,
    /// Elements between neighbours along each dimension; `None` is dense row-major. Only inputs whose dimensions are
    /// all fixed may be strided.
    pub strides: Option<Vec<u32>>,
    /// The layout of activations that the numbers lie in; `None` where the elements are the numbers. The element type is
    /// that of the codes, so that nothing takes them for numbers that does not look here.
    pub activation_format: Option<ActivationFormat>,
}

/// Highest number of dimensions a value may have.
pub const MAX_RANK: usize = 8;

/// Most bytes that the fixed dimensions of a value may stand for.
pub const MAX_FIXED_BYTES: usize = 1 << 48;

impl Type {
    /// A dense row-major type.
    pub fn new(dtype: DType, shape: impl IntoIterator<Item = impl Into<Dim>>) -> Type {
        Type { dtype, shape: shape.into_iter().map(Into::into).collect(), strides: None, activation_format: None }
    }

    /// Numbers in a layout of activations.
    pub fn quantized(layout: ActivationFormat, shape: impl IntoIterator<Item = impl Into<Dim>>) -> Type {
        Type { activation_format: Some(layout), ..Type::new(layout.info().dtype, shape) }
    }

    /// A dense f32 matrix `[outer, width]`.
    pub fn rows(outer: impl Into<Dim>, width: u32) -> Type {
        Type::new(DType::F32, [outer.into(), Dim::Const(width)])
    }

    /// The same value, dense: what an op sees. Strides say where an input lies, not what it is.
    pub fn dense(&self) -> Type {
        Type { strides: None, ..self.clone() }
    }

    /// Elements from the first of a value of fixed shape to past its last, gaps included; `None` where that is no number.
    pub fn span(&self) -> Option<usize> {
        let dims = Dims::default();
        let elems = self.checked_elems(&dims)?;
        let Some(strides) = &self.strides else { return Some(elems) };
        if elems == 0 {
            return Some(0);
        }
        let reach = |n: &Dim, stride: &u32| (n.get(&dims) - 1).checked_mul(*stride as usize);
        self.shape.iter().zip(strides).try_fold(1usize, |sum, (n, s)| sum.checked_add(reach(n, s)?))
    }

    /// The last dimension when it is fixed (activations always are `[Tokens, width]`).
    pub fn width(&self) -> Option<usize> {
        self.shape.last().and_then(|d| d.as_const())
    }

    /// Number of elements under `dims`; `None` where that is no number.
    pub fn checked_elems(&self, dims: &Dims) -> Option<usize> {
        product(self.shape.iter().map(|d| d.get(dims)))
    }

    /// Bytes of a dense value under `dims`; `None` where that is no number.
    pub fn checked_bytes(&self, dims: &Dims) -> Option<usize> {
        let Some((last, outer)) = self.shape.split_last() else { return Some(self.row_bytes(1)) };
        product(outer.iter().map(|d| d.get(dims)).chain([self.row_bytes(last.get(dims))]))
    }

    /// Bytes of `elems` consecutive elements of one row; `elems` must be a multiple of the block length.
    fn row_bytes(&self, elems: usize) -> usize {
        self.activation_format.map_or_else(|| self.dtype.row_bytes(elems), |layout| layout.info().row_bytes(elems))
    }

    /// What stands before the sizes in text forms: the name of the layout, or of the element type.
    pub fn elements(&self) -> &'static str {
        self.activation_format.map_or_else(|| self.dtype.name(), |layout| layout.info().name)
    }

    /// Elements of memory under `dims` from the first to past the last, gaps included; `None` where that is no number.
    pub fn checked_storage_elems(&self, dims: &Dims) -> Option<usize> {
        if self.strides.is_some() { self.span() } else { self.checked_elems(dims) }
    }

    /// Elements of memory, as [`Type::elems`] counts, gaps included.
    pub fn storage_elems(&self, dims: &Dims) -> usize {
        self.checked_storage_elems(dims).unwrap_or(usize::MAX)
    }

    /// Number of elements under `dims`, where they are known to be a number: those of a verified plan's values in its
    /// bucket are. The largest number where they are not, which no memory has.
    pub fn elems(&self, dims: &Dims) -> usize {
        self.checked_elems(dims).unwrap_or(usize::MAX)
    }

    /// Bytes of a dense value under `dims`, as [`Type::elems`] counts.
    pub fn bytes(&self, dims: &Dims) -> usize {
        self.checked_bytes(dims).unwrap_or(usize::MAX)
    }

    /// Bytes of memory, as [`Type::elems`] counts: as many as a step input of this type is given.
    pub fn storage_bytes(&self, dims: &Dims) -> usize {
        match &self.strides {
            None => self.bytes(dims),
            Some(_) => self.storage_elems(dims).saturating_mul(self.row_bytes(1)),
        }
    }

    /// Whether no dimension changes from step to step.
    pub fn is_fixed(&self) -> bool {
        self.shape.iter().all(|d| d.as_const().is_some())
    }

    /// Whether the fixed dimensions alone are more than any memory has.
    fn is_too_large(&self) -> bool {
        // A size of 0 does not make the others small.
        let one = |d: &Dim| d.as_const().unwrap_or(1).max(1);
        let Some((last, outer)) = self.shape.split_last() else { return false };
        let bytes = product(outer.iter().map(one).chain([self.row_bytes(one(last))]));
        bytes.is_none_or(|bytes| bytes > MAX_FIXED_BYTES)
    }

    /// Elements that lie together along the last dimension; an error where the element type is not the layout's.
    fn block(&self) -> Result<usize, TypeError> {
        match (self.activation_format.map(ActivationFormat::info), self.dtype) {
            (Some(layout), dtype) if dtype == layout.dtype => Ok(layout.block),
            (Some(layout), dtype) => {
                Err(TypeError::new(format!("{self}: its elements are {dtype}, {} wanted", layout.dtype)))
            }
            (None, DType::I8) => Err(TypeError::new(format!("{self}: codes without a layout are no numbers"))),
            (None, DType::Stored(f)) => Ok(f.info().block),
            (None, _) => Ok(1),
        }
    }

    /// Checks what holds for every type: rank, elements, whole quantisation blocks, strides that fit.
    pub fn check(&self) -> Result<(), TypeError> {
        if self.shape.len() > MAX_RANK {
            return Err(TypeError::new(format!("rank {} exceeds the limit of {MAX_RANK}", self.shape.len())));
        }
        let block = self.block()?;
        if block > 1 && !self.width().is_some_and(|w| w.is_multiple_of(block)) {
            return Err(TypeError::new(format!("{self}: the last dimension must be a multiple of {block}")));
        }
        if self.is_too_large() {
            return Err(TypeError::new(format!("{self}: the fixed dimensions are more than {MAX_FIXED_BYTES} bytes")));
        }
        let Some(strides) = &self.strides else { return Ok(()) };
        if strides.len() != self.shape.len() || block > 1 {
            return Err(TypeError::new(format!("{self}: one stride a dimension is needed, of a plain element type")));
        }
        if !self.is_fixed() {
            return Err(TypeError::new(format!("{self}: only values of fixed shape may be strided")));
        }
        if self.span().is_none_or(|span| span > MAX_FIXED_BYTES) {
            return Err(TypeError::new(format!("{self}: the strides reach over more than {MAX_FIXED_BYTES} elements")));
        }
        Ok(())
    }
}

/// The product, where it is a number; a factor of 0 makes it 0 whatever the others are.
fn product(factors: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    if factors.clone().any(|n| n == 0) {
        return Some(0);
    }
    factors.into_iter().try_fold(1usize, usize::checked_mul)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.elements())?;
        for (i, d) in self.shape.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")?;
        if let Some(strides) = &self.strides {
            let list: Vec<String> = strides.iter().map(u32::to_string).collect();
            write!(f, "/[{}]", list.join(", "))?;
        }
        Ok(())
    }
}

/// Why an op does not accept its inputs.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct TypeError(String);

impl TypeError {
    /// An error with this explanation.
    pub fn new(why: impl Into<String>) -> TypeError {
        TypeError(why.into())
    }
}
