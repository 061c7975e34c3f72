//! Types of values: element type, shape, strides.

use crate::dim::{Dim, Dims};
use crate::dtype::DType;
use std::fmt;
use thiserror::Error;

/// The type of a value.
///
/// The type of a cache state is that of ONE block (`[positions, kv_heads, width]`): how many blocks a pool holds is
/// decided when memory is granted, not when a graph is built.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, outermost first.
    pub shape: Vec<Dim>,
    /// Elements between neighbours along each dimension; `None` is dense row-major. Only inputs whose dimensions are
    /// all fixed may be strided.
    pub strides: Option<Vec<u32>>,
}

/// Highest number of dimensions a value may have.
pub const MAX_RANK: usize = 8;

impl Type {
    /// A dense row-major type.
    pub fn new(dtype: DType, shape: impl IntoIterator<Item = impl Into<Dim>>) -> Type {
        Type { dtype, shape: shape.into_iter().map(Into::into).collect(), strides: None }
    }

    /// A dense f32 matrix `[outer, width]`.
    pub fn rows(outer: impl Into<Dim>, width: u32) -> Type {
        Type { dtype: DType::F32, shape: vec![outer.into(), Dim::Const(width)], strides: None }
    }

    /// The same value, dense: what an op sees. Strides say where an input lies, not what it is.
    pub fn dense(&self) -> Type {
        Type { strides: None, ..self.clone() }
    }

    /// Elements from the first of a value of fixed shape to past its last, gaps included; `None` where that is no number.
    pub fn span(&self) -> Option<usize> {
        let dims = Dims::default();
        let Some(strides) = &self.strides else { return Some(self.elems(&dims)) };
        if self.elems(&dims) == 0 {
            return Some(0);
        }
        let reach = |n: &Dim, stride: &u32| (n.get(&dims) - 1).checked_mul(*stride as usize);
        self.shape.iter().zip(strides).try_fold(1usize, |sum, (n, s)| sum.checked_add(reach(n, s)?))
    }

    /// The last dimension when it is fixed (activations always are `[Tokens, width]`).
    pub fn width(&self) -> Option<usize> {
        self.shape.last().and_then(|d| d.as_const())
    }

    /// Number of elements under `dims`.
    pub fn elems(&self, dims: &Dims) -> usize {
        self.shape.iter().map(|d| d.get(dims)).product()
    }

    /// Bytes of a dense value under `dims`.
    pub fn bytes(&self, dims: &Dims) -> usize {
        match self.shape.split_last() {
            None => self.dtype.row_bytes(1),
            Some((last, outer)) => {
                outer.iter().map(|d| d.get(dims)).product::<usize>() * self.dtype.row_bytes(last.get(dims))
            }
        }
    }

    /// Checks what holds for every type: rank, whole quantisation blocks, strides that fit.
    pub fn check(&self) -> Result<(), TypeError> {
        if self.shape.len() > MAX_RANK {
            return Err(TypeError::new(format!("rank {} exceeds the limit of {MAX_RANK}", self.shape.len())));
        }
        let block = match self.dtype {
            DType::Stored(f) => f.info().block,
            DType::Q8A => 32,
            _ => 1,
        };
        if block > 1 && !self.width().is_some_and(|w| w.is_multiple_of(block)) {
            return Err(TypeError::new(format!("{self}: the last dimension must be a multiple of {block}")));
        }
        let Some(strides) = &self.strides else { return Ok(()) };
        if strides.len() != self.shape.len() || block > 1 {
            return Err(TypeError::new(format!("{self}: one stride a dimension is needed, of a plain element type")));
        }
        if self.shape.iter().any(|d| d.as_const().is_none()) {
            return Err(TypeError::new(format!("{self}: only values of fixed shape may be strided")));
        }
        Ok(())
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
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
