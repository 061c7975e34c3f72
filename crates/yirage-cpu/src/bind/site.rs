//! An op of a plan with its operands, which kernels take as the types they read.

use super::float::{Array, Base, FloatRow, FloatRows, Word};
use super::held::{Cache, Packed, Table};
use super::location::{Location, Operand};
use super::out::{Codes, Out, OutBase};
use crate::attention;
use crate::held::CpuWeight;
use crate::linear::Dispatch;
use std::fmt::Display;
use std::marker::PhantomData;
use yirage_hal::HalError;
use yirage_ir::{ActivationLayout, DType, Dim, Op};

/// An op and where its inputs and outputs lie. Each method gives one operand, or an error of loading that says which
/// operand of which op it is, what was found and what is wanted.
pub(crate) struct Site {
    pub(super) op: Op,
    pub(super) ins: Vec<Operand>,
    pub(super) outs: Vec<Operand>,
    /// How its quantised output is read.
    pub(super) readers: Readers,
}

/// How products read a quantised value.
#[derive(Clone, Copy, Default)]
pub(crate) struct Readers {
    /// If chosen experts do, so that it is held token by token: in how many parts a token's row.
    pub(crate) parts: Option<usize>,
    /// A kernel of theirs that reads pairs of enough tokens.
    pub(crate) pairs: Option<Dispatch>,
}

/// What an operand is of its op.
#[derive(Clone, Copy)]
enum Part {
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
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The dimension that its rows run over: that of what it makes, or of what it writes to a cache.
    ///
    /// # Errors
    /// An op without rows.
    pub(crate) fn rows(&self) -> Result<Dim, HalError> {
        let made = self.outs.iter().find(|out| matches!(out.location, Location::Arena(_) | Location::Group(_)));
        let rows = made.or(self.ins.get(1)).and_then(|operand| operand.ty.shape.first());
        rows.copied().ok_or_else(|| HalError::Load(format!("`{}` has no rows", self.op.name())))
    }

    /// Rows of floats of which the op reads one at a time, for the row that it makes.
    pub(crate) fn float_rows(&self, input: usize) -> Result<FloatRows, HalError> {
        let wanted = "rows of floats in a slot, computed, or of a weight held as plain rows";
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
        let wanted = "one row of floats in a slot, computed, or of a weight held as plain rows";
        let operand = self.whole(input)?;
        let [Dim::Const(width)] = operand.ty.shape[..] else { return Err(self.refuse(input, operand, wanted)) };
        Ok(FloatRow { base: self.floats(input, wanted)?, width: width as usize })
    }

    /// Words in a slot, or computed.
    pub(crate) fn array<T: Word>(&self, input: usize) -> Result<Array<T>, HalError> {
        let wanted = format!("{} in a slot, or computed", T::DTYPE);
        let operand = self.input(input, &wanted)?;
        let base = match &operand.location {
            Location::Arena(spot) if operand.ty.dtype == T::DTYPE => Base::Arena(spot.clone()),
            Location::Group(spot) if operand.ty.dtype == T::DTYPE => Base::Group(spot.clone()),
            Location::Slot(index) if operand.ty.dtype == T::DTYPE => Base::Slot(*index),
            _ => return Err(self.refuse(input, operand, &wanted)),
        };
        Ok(Array { base, shape: operand.ty.shape.clone(), of: PhantomData })
    }

    /// The number of a slot of integers, which are known before the step begins.
    pub(crate) fn slot(&self, input: usize) -> Result<usize, HalError> {
        let wanted = "integers in a slot";
        match self.input(input, wanted)? {
            Operand { location: Location::Slot(index), ty, .. } if ty.dtype == DType::I32 => Ok(*index),
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
    pub(crate) fn table(&self, input: usize) -> Result<Table, HalError> {
        match &self.whole(input)?.location {
            Location::Weight(weight) => match &**weight {
                CpuWeight::Packed(matrix) => Ok(Table::Packed(Packed(matrix.clone()))),
                _ => Ok(Table::Rows(self.float_rows(input)?)),
            },
            _ => Ok(Table::Rows(self.float_rows(input)?)),
        }
    }

    /// A weight packed for products: as many matrices as `count`, all of its rows together.
    pub(crate) fn packed(&self, input: usize, count: usize) -> Result<Packed, HalError> {
        let wanted = format!("a weight packed for products as a stack of {count}");
        let operand = self.input(input, &wanted)?;
        match &operand.location {
            Location::Weight(weight) => match &**weight {
                CpuWeight::Packed(matrix) if matrix.packed().count() == count => Ok(Packed(matrix.clone())),
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
        self.ins.get(input).is_some_and(|operand| operand.ty.layout == Some(ActivationLayout::Q8A))
    }

    /// Quantised activations.
    pub(crate) fn codes(&self, input: usize) -> Result<Codes, HalError> {
        self.coded(Part::Input, input)
    }

    /// The cache of blocks of this shape, whose storage is the state's.
    pub(crate) fn cache(&self, input: usize, shape: CacheShape) -> Result<Cache, HalError> {
        let wanted = format!("a cache of {shape:?}");
        let operand = self.input(input, &wanted)?;
        let Location::State(state) = &operand.location else { return Err(self.refuse(input, operand, &wanted)) };
        let CacheShape { heads, kv_heads, k_width, v_width, v_in_k } = shape;
        let shape = attention::Shape { heads, kv_heads, k_width, v_width, v_in_k, kv: state.stored().kv };
        let cache = state.cache(shape).map_err(|why| self.refuse(input, operand, &format!("{wanted}: {why}; this")))?;
        Ok(Cache { state: state.clone(), cache })
    }

    /// Rows of words that the op writes; all inner dimensions are a row.
    pub(crate) fn out<T: Word>(&self, output: usize) -> Result<Out<T>, HalError> {
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
            .ok_or_else(|| self.found(Part::Output, output, operand, &wanted))?;
        let base = match &operand.location {
            Location::Arena(spot) if operand.ty.dtype == T::DTYPE => OutBase::Arena(spot.clone()),
            Location::Group(spot) if operand.ty.dtype == T::DTYPE => OutBase::Group(spot.clone()),
            _ => return Err(self.found(Part::Output, output, operand, &wanted)),
        };
        Ok(Out { base, rows, width, of: PhantomData })
    }

    /// Quantised activations that the op writes.
    pub(crate) fn out_codes(&self, output: usize) -> Result<Codes, HalError> {
        self.coded(Part::Output, output)
    }

    fn coded(&self, part: Part, number: usize) -> Result<Codes, HalError> {
        let wanted = "computed activations of q8a";
        let operand = match part {
            Part::Input => self.input(number, wanted)?,
            Part::Output => self.output(number, wanted)?,
        };
        match (&operand.location, &operand.ty.shape[..], operand.ty.layout) {
            (Location::Arena(spot), [rows, Dim::Const(_)], Some(ActivationLayout::Q8A)) => {
                Ok(Codes { spot: spot.clone(), rows: *rows })
            }
            _ => Err(self.found(part, number, operand, wanted)),
        }
    }

    /// Memory of a value of plain f32, or of a weight that is held so whatever its format is.
    fn floats(&self, input: usize, wanted: &str) -> Result<Base, HalError> {
        let operand = self.input(input, wanted)?;
        match &operand.location {
            Location::Arena(spot) if operand.ty.dtype == DType::F32 => Ok(Base::Arena(spot.clone())),
            Location::Group(spot) if operand.ty.dtype == DType::F32 => Ok(Base::Group(spot.clone())),
            Location::Slot(index) if operand.ty.dtype == DType::F32 => Ok(Base::Slot(*index)),
            Location::Weight(weight) => match &**weight {
                CpuWeight::Rows(rows) => Ok(Base::Weight(rows.clone())),
                _ => Err(self.refuse(input, operand, wanted)),
            },
            _ => Err(self.refuse(input, operand, wanted)),
        }
    }

    /// An input that is read whole for any row: none of it may be made in the same pass over the rows.
    fn whole(&self, input: usize) -> Result<&Operand, HalError> {
        let wanted = "a value that is whole before the pass begins";
        let operand = self.input(input, wanted)?;
        if operand.inner { Err(self.refuse(input, operand, wanted)) } else { Ok(operand) }
    }

    fn input(&self, number: usize, wanted: &str) -> Result<&Operand, HalError> {
        let operand = self.ins.get(number).ok_or_else(|| self.missing("inputs", self.ins.len(), number, wanted))?;
        let dense = operand.ty.strides.is_none();
        if dense { Ok(operand) } else { Err(self.refuse(number, operand, &format!("{wanted}, without strides,"))) }
    }

    fn output(&self, number: usize, wanted: &str) -> Result<&Operand, HalError> {
        self.outs.get(number).ok_or_else(|| self.missing("outputs", self.outs.len(), number, wanted))
    }

    fn missing(&self, what: &str, count: usize, number: usize, wanted: &str) -> HalError {
        HalError::Load(format!("`{}` has {count} {what}, and none {number}: {wanted} wanted", self.op.name()))
    }

    fn refuse(&self, input: usize, found: &Operand, wanted: &str) -> HalError {
        self.found(Part::Input, input, found, wanted)
    }

    fn found(&self, part: Part, number: usize, found: &dyn Display, wanted: &str) -> HalError {
        let part = match part {
            Part::Input => "input",
            Part::Output => "output",
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
