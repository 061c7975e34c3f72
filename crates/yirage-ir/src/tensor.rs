//! Host tensors of the reference evaluation.
//!
//! Nothing here is fast: a tensor holds plain vectors, and quantised weights are decoded row by row when read.

use crate::activation::ActivationFormat;
use crate::dim::Dims;
use crate::dtype::DType;
use crate::expr::Scalar;
use crate::quant::Format;
use crate::types::Type;

/// The elements of a tensor, dense and row-major.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Floats. Values of f16 and bf16, and cache states of smaller formats, are already rounded to their format.
    F32(Vec<f32>),
    /// Ids, positions, tables.
    I32(Vec<i32>),
    /// Mask words.
    U32(Vec<u32>),
    /// True or false.
    Bool(Vec<bool>),
    /// Stored blocks of a weight.
    Blocks(Vec<u8>),
    /// Activations in a layout.
    Quantized(ActivationFormat, Vec<u8>),
}

/// A dense tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Elements.
    pub data: Data,
}

impl Tensor {
    /// An f32 tensor; panics when the sizes disagree, which is a bug of the caller.
    pub fn f32(shape: impl Into<Vec<usize>>, data: Vec<f32>) -> Tensor {
        let shape = shape.into();
        assert_eq!(shape.iter().product::<usize>(), data.len(), "elements of {shape:?}");
        Tensor { dtype: DType::F32, shape, data: Data::F32(data) }
    }

    /// An i32 tensor; panics when the sizes disagree, which is a bug of the caller.
    pub fn i32(shape: impl Into<Vec<usize>>, data: Vec<i32>) -> Tensor {
        let shape = shape.into();
        assert_eq!(shape.iter().product::<usize>(), data.len(), "elements of {shape:?}");
        Tensor { dtype: DType::I32, shape, data: Data::I32(data) }
    }

    /// A tensor from elements of type `ty` as they lie in memory, little-endian, as many bytes as [`Type::storage_bytes`]
    /// says: gaps of a strided one are left out. Panics when there are less, which is a bug of the caller.
    pub fn from_memory(ty: &Type, dims: &Dims, bytes: &[u8]) -> Tensor {
        let shape: Vec<usize> = ty.shape.iter().map(|d| d.get(dims)).collect();
        let Some(strides) = &ty.strides else { return Tensor::from_dense(ty.dtype, shape, bytes) };
        let along = |places: Vec<usize>, (&n, &stride): (&usize, &u32)| {
            places.into_iter().flat_map(|at| (0..n).map(move |i| at + i * stride as usize)).collect()
        };
        let (places, size) = (shape.iter().zip(strides).fold(vec![0], along), ty.dtype.row_bytes(1));
        let dense: Vec<u8> = places.into_iter().flat_map(|at| &bytes[at * size..][..size]).copied().collect();
        Tensor::from_dense(ty.dtype, shape, &dense)
    }

    fn from_dense(dtype: DType, shape: Vec<usize>, bytes: &[u8]) -> Tensor {
        let words = || bytes.as_chunks().0.iter().copied();
        let data = match dtype {
            DType::I32 => Data::I32(words().map(i32::from_le_bytes).collect()),
            DType::U32 => Data::U32(words().map(u32::from_le_bytes).collect()),
            DType::Bool => Data::Bool(bytes.iter().map(|&b| b != 0).collect()),
            DType::I8 => panic!("{dtype} elements are those of a layout"),
            DType::Stored(format) => {
                let mut values = vec![0.0; shape.iter().product()];
                (format.info().decode)(bytes, &mut values);
                Data::F32(values)
            }
        };
        Tensor { dtype, shape, data }
    }

    /// The elements as they lie in dense memory, from which [`Tensor::from_memory`] makes the tensor again; panics on a
    /// format that nothing encodes.
    pub fn memory(&self) -> Vec<u8> {
        match (&self.data, self.dtype) {
            (Data::I32(v), _) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            (Data::U32(v), _) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            (Data::Bool(v), _) => v.iter().map(|&x| u8::from(x)).collect(),
            (Data::Blocks(bytes) | Data::Quantized(_, bytes), _) => bytes.clone(),
            (Data::F32(v), DType::Stored(format)) => {
                let encode = format.info().encode.unwrap_or_else(|| panic!("nothing encodes {}", format.info().name));
                let mut bytes = vec![0; format.info().row_bytes(v.len())];
                encode(v, &mut bytes);
                bytes
            }
            (Data::F32(_), dtype) => panic!("floats of a {dtype} tensor"),
        }
    }

    /// A stored weight of `format`.
    pub fn stored(format: Format, shape: impl Into<Vec<usize>>, blocks: Vec<u8>) -> Tensor {
        let shape = shape.into();
        let width = shape.last().copied().unwrap_or(1);
        let rows = shape.iter().product::<usize>() / width.max(1);
        assert_eq!(rows * format.info().row_bytes(width), blocks.len(), "bytes of {shape:?} {}", format.info().name);
        if format == Format::F32 {
            let mut data = vec![0.0; rows * width];
            (format.info().decode)(&blocks, &mut data);
            return Tensor { dtype: DType::F32, shape, data: Data::F32(data) };
        }
        Tensor { dtype: DType::Stored(format), shape, data: Data::Blocks(blocks) }
    }

    /// Activations in a layout, as its `encode` writes them.
    pub fn quantized(layout: ActivationFormat, shape: impl Into<Vec<usize>>, bytes: Vec<u8>) -> Tensor {
        let (shape, info) = (shape.into(), layout.info());
        assert_eq!(info.row_bytes(shape.iter().product()), bytes.len(), "bytes of {shape:?} {layout}");
        Tensor { dtype: info.dtype, shape, data: Data::Quantized(layout, bytes) }
    }

    /// Its type, of fixed sizes.
    pub fn ty(&self) -> Type {
        let ty = Type::new(self.dtype, self.shape.iter().map(|&n| n as u32));
        Type { activation_format: self.activation_format(), ..ty }
    }

    /// The layout of activations, if it is in one.
    pub fn activation_format(&self) -> Option<ActivationFormat> {
        match self.data {
            Data::Quantized(layout, _) => Some(layout),
            _ => None,
        }
    }

    /// The last size.
    pub fn width(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Product of all sizes but the last.
    pub fn rows(&self) -> usize {
        self.shape.iter().rev().skip(1).product()
    }

    /// The floats; panics on another element type, which type inference rules out.
    pub fn floats(&self) -> &[f32] {
        match &self.data {
            Data::F32(v) => v,
            _ => panic!("floats of a {} tensor", self.dtype),
        }
    }

    /// The integers; panics on another element type, which type inference rules out.
    pub fn ints(&self) -> &[i32] {
        match &self.data {
            Data::I32(v) => v,
            _ => panic!("integers of a {} tensor", self.dtype),
        }
    }

    /// The mask words; panics on another element type, which type inference rules out.
    pub fn bits(&self) -> &[u32] {
        match &self.data {
            Data::U32(v) => v,
            _ => panic!("mask words of a {} tensor", self.dtype),
        }
    }

    /// Row `r` as f32, decoded or de-quantised exactly.
    pub fn row(&self, r: usize) -> Vec<f32> {
        let w = self.width();
        match &self.data {
            Data::F32(v) => v[r * w..][..w].to_vec(),
            Data::I32(v) => v[r * w..][..w].iter().map(|&x| x as f32).collect(),
            Data::U32(v) => v[r * w..][..w].iter().map(|&x| x as f32).collect(),
            Data::Bool(v) => v[r * w..][..w].iter().map(|&x| f32::from(u8::from(x))).collect(),
            Data::Blocks(bytes) => {
                let DType::Stored(format) = self.dtype else { panic!("blocks of {}", self.dtype) };
                let n = format.info().row_bytes(w);
                let mut out = vec![0.0; w];
                (format.info().decode)(&bytes[r * n..][..n], &mut out);
                out
            }
            Data::Quantized(..) => self.row_f64(r).into_iter().map(|x| x as f32).collect(),
        }
    }
}

impl Tensor {
    /// The elements one by one, row-major; floats of any stored format decoded.
    pub fn scalars(&self) -> Vec<Scalar> {
        match &self.data {
            Data::I32(v) => v.iter().map(|&x| x.into()).collect(),
            Data::U32(v) => v.iter().map(|&x| x.into()).collect(),
            Data::Bool(v) => v.iter().map(|&x| x.into()).collect(),
            Data::F32(v) => v.iter().map(|&x| x.into()).collect(),
            Data::Blocks(_) | Data::Quantized(..) => {
                (0..self.rows()).flat_map(|r| self.row(r)).map(Scalar::from).collect()
            }
        }
    }

    /// A tensor of these elements, each cast to `dtype`: a float of 16 or 32 bits, a whole number or a bool.
    pub fn from_scalars(dtype: DType, shape: impl Into<Vec<usize>>, elements: &[Scalar]) -> Tensor {
        let shape = shape.into();
        assert_eq!(shape.iter().product::<usize>(), elements.len(), "elements of {shape:?}");
        let cast = elements.iter().map(|x| x.cast(dtype));
        let data = match dtype {
            DType::I32 => Data::I32(cast.map(|x| x.as_f64() as i32).collect()),
            DType::U32 => Data::U32(cast.map(|x| x.as_f64() as u32).collect()),
            DType::Bool => Data::Bool(cast.map(|x| x.as_f64() != 0.0).collect()),
            _ => Data::F32(cast.map(|x| x.as_f64() as f32).collect()),
        };
        Tensor { dtype, shape, data }
    }

    /// Row `r` in f64; activations in a layout without the rounding to f32.
    pub fn row_f64(&self, r: usize) -> Vec<f64> {
        let w = self.width();
        match &self.data {
            Data::Quantized(layout, bytes) => {
                let (n, mut out) = (layout.info().row_bytes(w), vec![0.0; w]);
                (layout.info().decode)(&bytes[r * n..][..n], &mut out);
                out
            }
            _ => self.row(r).into_iter().map(f64::from).collect(),
        }
    }
}

/// Rounds to what a cache of `dtype` gives back; `x` is a whole number of the format's blocks.
pub fn round_to(dtype: DType, x: &mut [f32]) {
    let DType::Stored(format) = dtype else { return };
    let info = format.info();
    let Some(encode) = info.encode else { return };
    let mut stored = vec![0; info.row_bytes(x.len())];
    encode(x, &mut stored);
    (info.decode)(&stored, x);
}
