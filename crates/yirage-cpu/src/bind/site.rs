//! An op of a plan with its operands, which kernels take as the types they read.

use super::float::{Base, FloatRow, FloatRows, Word, WordArray};
use super::location::{OperandLocation, PlanOperand};
use super::out::{OutBase, OutputRows, QuantizedRows};
use super::resources::{KvCacheOperand, LookupTable, PackedWeight, StateOperand};
use crate::storage::CpuWeight;
use std::fmt::Display;
use std::marker::PhantomData;
use yirage_cpu_kernels::attention;
use yirage_cpu_kernels::linear::Dispatch;
use yirage_hal::HalError;
use yirage_ir::{ActivationFormat, DType, Dim, Op};

/// An op and where its inputs and outputs lie. Each method gives one operand, or an error of loading that says which
/// operand of which op it is, what was found and what is wanted.
pub(crate) struct Site {
    pub(super) op: Op,
    pub(super) ins: Vec<PlanOperand>,
    pub(super) outs: Vec<PlanOperand>,
    /// How its quantised output is read.
    pub(super) readers: QuantizedReaders,
}

/// How products read a quantised value.
#[derive(Clone, Copy, Default)]
pub(crate) struct QuantizedReaders {
    /// If chosen experts do, so that it is held token by token: in how many parts a token's row.
    pub(crate) parts: Option<usize>,
    /// A kernel of theirs that reads pairs of enough tokens.
    pub(crate) pairs: Option<Dispatch>,
}

/// What an operand is of its op.
#[derive(Clone, Copy)]
enum OperandRole {
    Input,
    Output,
}

impl Site {
    /// The op.
    pub(crate) fn op(&self) -> &Op {
        &self.op
    }

    /// How many inputs it has.
    pub(crate) fn inputs(&self) -> usize {
        self.ins.len()
    }

    /// How many dimensions an input has; none for one that is not there.
    pub(crate) fn rank(&self, input: usize) -> usize {
        self.ins.get(input).map_or(0, |operand| operand.ty.shape.len())
    }

    /// Whether it reads the same first input as another.
    pub(crate) fn shares_input(&self, other: &Site) -> bool {
        matches!((self.ins.first(), other.ins.first()), (Some(a), Some(b)) if a.name == b.name)
    }

    /// How its quantised output is read.
    pub(crate) fn readers(&self) -> &QuantizedReaders {
        &self.readers
    }

    /// The dimension that its rows run over: that of what it makes, or of what it writes to a cache.
    ///
    /// # Errors
    /// An op without rows.
    pub(crate) fn rows(&self) -> Result<Dim, HalError> {
        let made =
            self.outs.iter().find(|out| matches!(out.location, OperandLocation::Arena(_) | OperandLocation::Group(_)));
        let rows = made.or(self.ins.get(1)).and_then(|operand| operand.ty.shape.first());
        rows.copied().ok_or_else(|| HalError::Load(format!("`{}` has no rows", self.op.name())))
    }

    /// Rows of floats of which the op reads one at a time, for the row that it makes.
    pub(crate) fn float_rows(&self, input: usize) -> Result<FloatRows, HalError> {
        let wanted = "rows of floats in a step input, computed, or of a weight held as plain rows";
        let operand = self.input(input, wanted)?;
        let [rows, Dim::Const(width)] = operand.ty.shape[..] else { return Err(self.refuse(input, operand, wanted)) };
        Ok(FloatRows { base: self.floats(input, wanted)?, rows, width: width as usize })
    }

    /// Rows of floats of which the op may read any for any row that it makes.
    pub(crate) fn whole_rows(&self, input: usize) -> Result<FloatRows, HalError> {
        self.whole(input)?;
        self.float_rows(input)
    }

    /// One row of floats that all rows meet.
    pub(crate) fn float_row(&self, input: usize) -> Result<FloatRow, HalError> {
        let wanted = "one row of floats in a step input, computed, or of a weight held as plain rows";
        let operand = self.whole(input)?;
        let [Dim::Const(width)] = operand.ty.shape[..] else { return Err(self.refuse(input, operand, wanted)) };
        Ok(FloatRow { base: self.floats(input, wanted)?, width: width as usize })
    }

    /// Words in a step input, or computed.
    pub(crate) fn array<T: Word>(&self, input: usize) -> Result<WordArray<T>, HalError> {
        let wanted = format!("{} in a step input, or computed", T::DTYPE);
        let operand = self.input(input, &wanted)?;
        let base = match &operand.location {
            OperandLocation::Arena(spot) if operand.ty.dtype == T::DTYPE => Base::Arena(spot.clone()),
            OperandLocation::Group(spot) if operand.ty.dtype == T::DTYPE => Base::Group(spot.clone()),
            OperandLocation::StepInput(index) if operand.ty.dtype == T::DTYPE => Base::StepInput(*index),
            _ => return Err(self.refuse(input, operand, &wanted)),
        };
        Ok(WordArray { base, shape: operand.ty.shape.clone(), of: PhantomData })
    }

    /// The number of a step input of integers, which are known before the step begins.
    pub(crate) fn step_input(&self, input: usize) -> Result<usize, HalError> {
        let wanted = "integers in a step input";
        match self.input(input, wanted)? {
            PlanOperand { location: OperandLocation::StepInput(index), ty, .. } if ty.dtype == DType::I32 => Ok(*index),
            operand => Err(self.refuse(input, operand, wanted)),
        }
    }

    /// The fixed last dimension of an input, or the size that `sizes` gives a symbolic one.
    pub(crate) fn last_dim(&self, input: usize) -> Result<Dim, HalError> {
        let wanted = "at least one dimension";
        let operand = self.input(input, wanted)?;
        operand.ty.shape.last().copied().ok_or_else(|| self.refuse(input, operand, wanted))
    }

    /// Rows to look up, each by its number.
    pub(crate) fn table(&self, input: usize) -> Result<LookupTable, HalError> {
        match &self.whole(input)?.location {
            OperandLocation::Weight(weight) => match &**weight {
                CpuWeight::Packed(matrix) => Ok(LookupTable::Packed(PackedWeight(matrix.clone()))),
                _ => Ok(LookupTable::Rows(self.float_rows(input)?)),
            },
            _ => Ok(LookupTable::Rows(self.float_rows(input)?)),
        }
    }

    /// A weight packed for products: as many matrices as `count`, all of its rows together.
    pub(crate) fn packed(&self, input: usize, count: usize) -> Result<PackedWeight, HalError> {
        let wanted = format!("a weight packed for products as a stack of {count}");
        let operand = self.input(input, &wanted)?;
        match &operand.location {
            OperandLocation::Weight(weight) => match &**weight {
                CpuWeight::Packed(matrix) if matrix.packed().count() == count => Ok(PackedWeight(matrix.clone())),
                _ => Err(self.refuse(input, operand, &wanted)),
            },
            _ => Err(self.refuse(input, operand, &wanted)),
        }
    }

    /// The first dimension of a weight of three: how many matrices it is a stack of.
    pub(crate) fn stack(&self, input: usize) -> Result<usize, HalError> {
        let wanted = "a stack of matrices";
        let operand = self.input(input, wanted)?;
        match operand.ty.shape[..] {
            [Dim::Const(count), _, _] => Ok(count as usize),
            _ => Err(self.refuse(input, operand, wanted)),
        }
    }

    /// Whether an input is quantised.
    pub(crate) fn is_quantised(&self, input: usize) -> bool {
        self.ins.get(input).is_some_and(|operand| operand.ty.activation_format == Some(ActivationFormat::Q8A))
    }

    /// Quantised activations.
    pub(crate) fn quantized(&self, input: usize) -> Result<QuantizedRows, HalError> {
        self.coded(OperandRole::Input, input)
    }

    /// The cache of blocks of this shape, whose storage is the state's.
    pub(crate) fn cache(&self, input: usize, shape: CacheShape) -> Result<KvCacheOperand, HalError> {
        let wanted = format!("a cache of {shape:?}");
        let operand = self.input(input, &wanted)?;
        let OperandLocation::KvCache(state) = &operand.location else {
            return Err(self.refuse(input, operand, &wanted));
        };
        let CacheShape { heads, kv_heads, k_width, v_width, v_in_k } = shape;
        let refuse = |why: String| self.refuse(input, operand, &format!("{wanted}: {why}; this"));
        let kv = state.storage().map_err(refuse)?;
        let shape = attention::AttentionShape { heads, kv_heads, k_width, v_width, v_in_k, kv };
        let cache = state.cache(shape).map_err(refuse)?;
        Ok(KvCacheOperand { kv_cache: state.clone(), cache })
    }

    /// The blocks of a recurrent state.
    pub(crate) fn states(&self, input: usize) -> Result<StateOperand, HalError> {
        let wanted = "a recurrent state";
        let operand = self.input(input, wanted)?;
        let OperandLocation::KvCache(state) = &operand.location else {
            return Err(self.refuse(input, operand, wanted));
        };
        let states = state.states().ok_or_else(|| self.refuse(input, operand, wanted))?;
        let shape = states.shape().map(|n| Dim::from(n as u32));
        if operand.ty.shape != shape {
            return Err(self.refuse(input, operand, &format!("{wanted} of {shape:?}")));
        }
        Ok(StateOperand { kv_cache: state.clone(), states })
    }

    /// Rows of words that the op writes; all inner dimensions are a row.
    pub(crate) fn out<T: Word>(&self, output: usize) -> Result<OutputRows<T>, HalError> {
        let wanted = format!("a computed value of {}", T::DTYPE);
        let operand = self.output(output, &wanted)?;
        let fits = |(rows, inner): (&Dim, &[Dim])| {
            let width = inner.iter().try_fold(1usize, |n, d| n.checked_mul(d.as_const()?));
            Some((*rows, width?))
        };
        let (rows, width) = operand
            .ty
            .shape
            .split_first()
            .and_then(fits)
            .ok_or_else(|| self.mismatch(OperandRole::Output, output, operand, &wanted))?;
        let base = match &operand.location {
            OperandLocation::Arena(spot) if operand.ty.dtype == T::DTYPE => OutBase::Arena(spot.clone()),
            OperandLocation::Group(spot) if operand.ty.dtype == T::DTYPE => OutBase::Group(spot.clone()),
            _ => return Err(self.mismatch(OperandRole::Output, output, operand, &wanted)),
        };
        Ok(OutputRows { base, rows, width, of: PhantomData })
    }

    /// Quantised activations that the op writes.
    pub(crate) fn out_quantized(&self, output: usize) -> Result<QuantizedRows, HalError> {
        self.coded(OperandRole::Output, output)
    }

    fn coded(&self, part: OperandRole, number: usize) -> Result<QuantizedRows, HalError> {
        let wanted = "computed activations of q8a";
        let operand = match part {
            OperandRole::Input => self.input(number, wanted)?,
            OperandRole::Output => self.output(number, wanted)?,
        };
        match (&operand.location, &operand.ty.shape[..], operand.ty.activation_format) {
            (OperandLocation::Arena(spot), [rows, Dim::Const(_)], Some(ActivationFormat::Q8A)) => {
                Ok(QuantizedRows { spot: spot.clone(), rows: *rows })
            }
            _ => Err(self.mismatch(part, number, operand, wanted)),
        }
    }

    /// Memory of a value of plain f32, or of a weight that is held so whatever its format is.
    fn floats(&self, input: usize, wanted: &str) -> Result<Base, HalError> {
        let operand = self.input(input, wanted)?;
        match &operand.location {
            OperandLocation::Arena(spot) if operand.ty.dtype == DType::F32 => Ok(Base::Arena(spot.clone())),
            OperandLocation::Group(spot) if operand.ty.dtype == DType::F32 => Ok(Base::Group(spot.clone())),
            OperandLocation::StepInput(index) if operand.ty.dtype == DType::F32 => Ok(Base::StepInput(*index)),
            OperandLocation::Weight(weight) => match &**weight {
                CpuWeight::Rows(rows) => Ok(Base::Weight(rows.clone())),
                _ => Err(self.refuse(input, operand, wanted)),
            },
            _ => Err(self.refuse(input, operand, wanted)),
        }
    }

    /// An input that is read whole for any row: none of it may be made in the same pass over the rows.
    fn whole(&self, input: usize) -> Result<&PlanOperand, HalError> {
        let wanted = "a value that is whole before the pass begins";
        let operand = self.input(input, wanted)?;
        if operand.inner { Err(self.refuse(input, operand, wanted)) } else { Ok(operand) }
    }

    fn input(&self, number: usize, wanted: &str) -> Result<&PlanOperand, HalError> {
        let operand = self.ins.get(number).ok_or_else(|| self.missing("inputs", self.ins.len(), number, wanted))?;
        let dense = operand.ty.strides.is_none();
        if dense { Ok(operand) } else { Err(self.refuse(number, operand, &format!("{wanted}, without strides,"))) }
    }

    fn output(&self, number: usize, wanted: &str) -> Result<&PlanOperand, HalError> {
        self.outs.get(number).ok_or_else(|| self.missing("outputs", self.outs.len(), number, wanted))
    }

    fn missing(&self, what: &str, count: usize, number: usize, wanted: &str) -> HalError {
        HalError::Load(format!("`{}` has {count} {what}, and none {number}: {wanted} wanted", self.op.name()))
    }

    fn refuse(&self, input: usize, found: &PlanOperand, wanted: &str) -> HalError {
        self.mismatch(OperandRole::Input, input, found, wanted)
    }

    fn mismatch(&self, part: OperandRole, number: usize, found: &dyn Display, wanted: &str) -> HalError {
        let part = match part {
            OperandRole::Input => "input",
            OperandRole::Output => "output",
        };
        HalError::Load(format!("{part} {number} of `{}` is {found}; {wanted} wanted", self.op.name()))
    }
}

/// Heads and widths of a cache's blocks, as an op sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheShape {
    /// Query heads.
    pub(crate) heads: usize,
    /// Key and value heads.
    pub(crate) kv_heads: usize,
    /// Elements of a key.
    pub(crate) k_width: usize,
    /// Elements of a value.
    pub(crate) v_width: usize,
    /// Whether a value lies in its key.
    pub(crate) v_in_k: bool,
}
