//! Test cases of ops: concrete inputs, and how close a kernel must come.

use super::{Op, Tolerance};
use crate::dtype::DType;
use crate::expr::Scalar;
use crate::quant::Format;
use crate::rng::Rng;
use crate::tensor::{Data, Tensor};

/// One case of an op.
#[derive(Clone, Debug)]
pub struct OpCase {
    /// What the case shows, unique within its op.
    pub name: String,
    /// The op with its attributes.
    pub op: Op,
    /// Concrete inputs.
    pub ins: Vec<Tensor>,
    /// How close a kernel must come.
    pub tolerance: Tolerance,
}

impl OpCase {
    /// A case.
    pub fn new(name: impl Into<String>, op: impl Into<Op>, ins: Vec<Tensor>, tolerance: Tolerance) -> OpCase {
        OpCase { name: name.into(), op: op.into(), ins, tolerance }
    }
}

/// The types whose elements lie one by one.
pub(crate) const PLAIN: [DType; 6] =
    [DType::F32, DType::Stored(Format::F16), DType::Stored(Format::BF16), DType::I32, DType::U32, DType::Bool];

/// Values of cases.
pub(crate) struct CaseValues(Rng);

impl CaseValues {
    pub(crate) fn new(seed: u64) -> CaseValues {
        CaseValues(Rng::new(seed))
    }

    pub(crate) fn word(&mut self) -> u32 {
        self.0.next_u64() as u32
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// Uniform in [-1, 1).
    pub(crate) fn float(&mut self) -> f32 {
        self.0.signed_f32()
    }

    pub(crate) fn floats(&mut self, shape: impl Into<Vec<usize>>) -> Tensor {
        let shape = shape.into();
        let n = shape.iter().product();
        Tensor::f32(shape, (0..n).map(|_| self.float()).collect())
    }

    /// Uniform in [low, high).
    pub(crate) fn floats_between(&mut self, shape: impl Into<Vec<usize>>, low: f32, high: f32) -> Tensor {
        let shape = shape.into();
        let n = shape.iter().product();
        Tensor::f32(shape, (0..n).map(|_| low + (high - low) * (0.5 + 0.5 * self.float())).collect())
    }

    /// Values of any plain type, rounded to it.
    pub(crate) fn rounded(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        let n = shape.iter().product();
        let value = |rng: &mut CaseValues| match dtype {
            DType::I32 | DType::U32 => Scalar::from(rng.below(19) as i32 - 9).cast(dtype),
            DType::Bool => (rng.below(2) == 1).into(),
            _ => Scalar::from(rng.float() * 4.0),
        };
        let values: Vec<Scalar> = (0..n).map(|_| value(self)).collect();
        Tensor::from_scalars(dtype, shape, &values)
    }

    /// Floats of which one channel in 67 is 40 times as large in most rows, as in the residual streams of models.
    pub(crate) fn outliers(&mut self, shape: [usize; 2]) -> Tensor {
        let mut t = self.floats(shape);
        if let Data::F32(v) = &mut t.data {
            for (i, x) in v.iter_mut().enumerate() {
                let (row, channel) = (i / shape[1], i % shape[1]);
                if channel % 67 == 5 && (row + channel) % 7 != 0 {
                    *x *= 40.0;
                }
            }
        }
        t
    }

    /// A weight of `format`: encoded where the format encodes, else random blocks whose 16-bit scales are small.
    pub(crate) fn weight(&mut self, format: Format, shape: impl Into<Vec<usize>>) -> Tensor {
        let shape = shape.into();
        let info = format.info();
        let n: usize = shape.iter().product();
        let mut bytes = vec![0u8; n / info.block * info.bytes];
        if let Some(encode) = info.encode {
            let values: Vec<f32> = (0..n).map(|_| self.float()).collect();
            encode(&values, &mut bytes);
        } else {
            self.random_blocks(format, &mut bytes);
        }
        Tensor::stored(format, shape, bytes)
    }

    /// A cache state filled with values its format can hold.
    pub(crate) fn kv_cache(&mut self, format: Format, shape: [usize; 4]) -> Tensor {
        let dtype = DType::Stored(format);
        let mut t = self.floats(shape);
        if let Data::F32(v) = &mut t.data {
            crate::tensor::round_to(dtype, v);
        }
        Tensor { dtype, ..t }
    }

    fn random_blocks(&mut self, format: Format, bytes: &mut [u8]) {
        let info = format.info();
        bytes.iter_mut().for_each(|b| *b = self.word() as u8);
        for block in bytes.chunks_exact_mut(info.bytes) {
            for &at in scale_offsets(format) {
                let scale = half::f16::from_f32(0.002 + 0.01 * self.float().abs());
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
        }
    }
}

/// Where the 16-bit scales of a block lie, for the formats that only decode.
fn scale_offsets(format: Format) -> &'static [usize] {
    match format {
        Format::Q2_K => &[80, 82],
        Format::Q3_K => &[108],
        Format::Q4_K | Format::Q5_K => &[0, 2],
        Format::Q6_K => &[208],
        Format::IQ4_NL => &[0],
        _ => &[],
    }
}

/// An f32 tensor with special values in every row: zeros, tiny, huge.
pub(crate) fn with_extremes(mut t: Tensor) -> Tensor {
    if let Data::F32(v) = &mut t.data {
        for (i, x) in [0.0, 1e-30, -1e4, 1e4, -0.0].into_iter().enumerate() {
            if let Some(slot) = v.get_mut(i * 7) {
                *slot = x;
            }
        }
    }
    t
}
