//! Operands of general kernels: elements of any type, seen through strides.

use super::float::Base;
use super::location::{Moves, OperandLocation, PlanOperand};
use super::out::OutBase;
use super::run::CpuRunContext;
use super::site::{QuantizedReaders, Site};
use crate::storage::CpuWeight;
use yirage_cpu_kernels::general::{Elem, StridedInput, StridedOutput, Strides};
use yirage_hal::HalError;
use yirage_ir::region::{ChainMatmul, ChainRead, Core, FusedChain};
use yirage_ir::{DType, Dim, Dims, Op, Strided};

/// A node as a whole with its operands: an op, or a region that is one loop.
pub(crate) struct Whole {
    pub(super) name: String,
    pub(super) op: Option<Op>,
    /// One for each output.
    pub(super) chains: Result<Vec<FusedChain>, String>,
    pub(super) ins: Vec<PlanOperand>,
    pub(super) outs: Vec<PlanOperand>,
    pub(super) bucket: Dims,
}

/// Elements that a kernel reads.
pub(crate) struct Viewed {
    base: Base,
    elem: Elem,
    /// Bytes from the value's first element to the first that is read.
    offset: isize,
    strides: Vec<i64>,
}

/// Elements that a kernel writes.
pub(crate) struct ViewedOut {
    base: OutBase,
    elem: Elem,
    /// Bytes from the value's first element to the first that is written.
    offset: isize,
    strides: Vec<i64>,
}

impl Whole {
    /// The op, where the node is one.
    ///
    /// # Errors
    /// A region.
    pub(crate) fn op(&self) -> Result<&Op, HalError> {
        self.op.as_ref().ok_or_else(|| HalError::Load(format!("`{}` is several ops, one wanted", self.name)))
    }

    /// How many inputs it has.
    pub(crate) fn inputs(&self) -> usize {
        self.ins.len()
    }

    /// All elements of an input, and its shape.
    ///
    /// # Errors
    /// As [`Whole::read`].
    pub(crate) fn all(&self, input: usize) -> Result<(Viewed, Vec<Dim>), HalError> {
        let operand = self.input(input)?;
        let at = Strided::of(&operand.ty).ok_or_else(|| self.refuse(operand, "sizes that memory has"))?;
        let (viewed, _) = self.read(&ChainRead { input, at })?;
        Ok((viewed, operand.ty.shape.clone()))
    }

    /// All elements of the output, and its shape.
    ///
    /// # Errors
    /// As [`Whole::written`].
    pub(crate) fn all_written(&self) -> Result<(ViewedOut, Vec<Dim>), HalError> {
        self.all_written_of(0)
    }

    /// All elements of one of several outputs, and its shape.
    ///
    /// # Errors
    /// As [`Whole::written`].
    pub(crate) fn all_written_of(&self, output: usize) -> Result<(ViewedOut, Vec<Dim>), HalError> {
        let operand = self.output(output)?;
        let at = Strided::of(&operand.ty).ok_or_else(|| self.refuse(operand, "sizes that memory has"))?;
        Ok((self.written(output, &at)?, operand.ty.shape.clone()))
    }

    /// What the node computes, in normal form.
    ///
    /// # Errors
    /// A node that is no chain.
    pub(crate) fn chain(&self) -> Result<&FusedChain, HalError> {
        match self.chains()? {
            [chain] => Ok(chain),
            chains => Err(HalError::Load(format!("`{}` is {} chains, one wanted", self.name, chains.len()))),
        }
    }

    /// What the node computes of each output, in normal form.
    ///
    /// # Errors
    /// A node that is no chains.
    pub(crate) fn chains(&self) -> Result<&[FusedChain], HalError> {
        let no_chain = |why: &String| HalError::Load(format!("`{}` is no chain: {why}", self.name));
        self.chains.as_deref().map_err(no_chain)
    }

    /// The products in the middle of the chain to an output, with what they read, each as if it wrote the output itself.
    ///
    /// # Errors
    /// A chain without products, and inputs that the node does not have.
    pub(crate) fn matmul_sites(&self, output: usize, chain: &FusedChain) -> Result<Vec<Site>, HalError> {
        let Core::Matmuls(products) = &chain.core else {
            return Err(HalError::Load(format!("output {output} of `{}` comes of no product", self.name)));
        };
        let site = |product: &ChainMatmul| {
            let ins = product.ins.iter().map(|&at| self.input(at).cloned()).collect::<Result<_, _>>()?;
            let (op, outs) = (product.op.clone(), vec![self.output(output)?.clone()]);
            Ok(Site { op, ins, outs, readers: QuantizedReaders::default() })
        };
        products.iter().map(site).collect()
    }

    /// The largest sizes of a step.
    pub(crate) fn bucket(&self) -> &Dims {
        &self.bucket
    }

    /// The elements that a chain reads, and the type that they are computed with as.
    ///
    /// # Errors
    /// An operand of another kind, or that has not all of these elements.
    pub(crate) fn read(&self, read: &ChainRead) -> Result<(Viewed, DType), HalError> {
        let operand = self.input(read.input)?;
        let wanted = "plain elements, computed, in a step input or of a weight that is not packed";
        let (base, dtype) = base(&operand.location, operand.ty.dtype).ok_or_else(|| self.refuse(operand, wanted))?;
        let elem = Elem::try_from(dtype).map_err(|_| self.refuse(operand, wanted))?;
        let offset = self.inside(operand, &read.at, elem)?;
        Ok((Viewed { base, elem, offset, strides: read.at.strides.clone() }, dtype))
    }

    /// Whether it is a tile of what lies outside of the region, where no block changes it, and the next block of the grid
    /// reads it too.
    pub(crate) fn is_next_tile_too(&self, read: &ChainRead, grid: [u32; 3]) -> bool {
        let innermost = grid.iter().position(|n| *n > 1);
        let stays = |moves: &Moves| moves.by_loop == 0 && innermost.is_some_and(|axis| moves.grid[axis] == 0);
        self.input(read.input).is_ok_and(|of| match &of.location {
            OperandLocation::Tile(whole, moves) => !matches!(**whole, OperandLocation::Group(_)) && stays(moves),
            _ => false,
        })
    }

    /// The elements that the chain to an output writes.
    ///
    /// # Errors
    /// An output of another kind, or that has not all of these elements.
    pub(crate) fn written(&self, output: usize, at: &Strided) -> Result<ViewedOut, HalError> {
        let operand = self.output(output)?;
        let wanted = "plain elements that are computed";
        let elem = Elem::try_from(operand.ty.dtype).map_err(|_| self.refuse(operand, wanted))?;
        let base = match &operand.location {
            OperandLocation::Arena(spot) => OutBase::Arena(spot.clone()),
            OperandLocation::Group(spot) => OutBase::Group(spot.clone()),
            OperandLocation::Tile(of, moves) => match &**of {
                OperandLocation::Arena(spot) => OutBase::Tile(spot.clone(), *moves, elem.bytes()),
                _ => return Err(self.refuse(operand, wanted)),
            },
            _ => return Err(self.refuse(operand, wanted)),
        };
        let offset = self.inside(operand, at, elem)?;
        Ok(ViewedOut { base, elem, offset, strides: at.strides.clone() })
    }

    /// Bytes to the first element, all of them being elements of the operand in the largest step; in a smaller one fewer
    /// of them are met.
    fn inside(&self, operand: &PlanOperand, at: &Strided, elem: Elem) -> Result<isize, HalError> {
        let bucket = &self.bucket;
        if at.shape.iter().any(|dim| dim.get(bucket) == 0) {
            return Ok(0);
        }
        let held = operand.ty.storage_elems(bucket) as i64;
        match at.reach(bucket) {
            Some((low, high)) if low >= 0 && high < held => Ok(at.offset as isize * elem.bytes() as isize),
            reach => Err(self.refuse(operand, &format!("elements {reach:?} of {held}"))),
        }
    }

    fn input(&self, number: usize) -> Result<&PlanOperand, HalError> {
        let missing = || HalError::Load(format!("`{}` has no input {number}", self.name));
        self.ins.get(number).ok_or_else(missing)
    }

    fn output(&self, number: usize) -> Result<&PlanOperand, HalError> {
        let missing = || HalError::Load(format!("`{}` has no output {number}", self.name));
        self.outs.get(number).ok_or_else(missing)
    }

    fn refuse(&self, operand: &PlanOperand, wanted: &str) -> HalError {
        HalError::Load(format!("{operand} of `{}`: {wanted} wanted", self.name))
    }
}

/// Where plain elements lie, and the type that they are computed with as; none of what is not plain.
fn base(location: &OperandLocation, dtype: DType) -> Option<(Base, DType)> {
    match location {
        OperandLocation::Arena(spot) => Some((Base::Arena(spot.clone()), dtype)),
        OperandLocation::Group(spot) => Some((Base::Group(spot.clone()), dtype)),
        OperandLocation::StepInput(index) => Some((Base::StepInput(*index), dtype)),
        OperandLocation::Weight(weight) => match &**weight {
            CpuWeight::Rows(rows) => Some((Base::Weight(rows.clone()), DType::F32)),
            CpuWeight::Elements(held) => Some((Base::Elements(held.clone()), held.dtype())),
            CpuWeight::Packed(_) => None,
        },
        OperandLocation::Tile(of, moves) => {
            let (of, dtype) = base(of, dtype)?;
            let bytes = Elem::try_from(dtype).ok()?.bytes();
            Some((Base::Tile(Box::new(of), *moves, bytes), dtype))
        }
        OperandLocation::KvCache(_) => None,
    }
}

impl Viewed {
    /// Elements between neighbours along each dimension.
    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The address of the first element. `Whole::inside` has checked that the others exist.
    pub(crate) fn first(&self, run: &CpuRunContext<'_>) -> *const u8 {
        self.base.first(run).cast::<u8>().wrapping_byte_offset(self.offset)
    }

    /// The elements as a kernel takes them.
    pub(crate) fn input(&self, run: &CpuRunContext<'_>, strides: Strides) -> StridedInput {
        StridedInput::at(self.first(run), self.elem, strides)
    }
}

impl ViewedOut {
    /// The type of the elements.
    pub(crate) fn elem(&self) -> Elem {
        self.elem
    }

    /// The address of the first element. `Whole::inside` has checked that the others exist.
    pub(crate) fn first(&self, run: &CpuRunContext<'_>) -> *mut u8 {
        self.base.first(run).wrapping_byte_offset(self.offset)
    }

    /// Elements between neighbours along each dimension.
    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The elements as a kernel takes them.
    pub(crate) fn output(&self, run: &CpuRunContext<'_>, strides: Strides) -> StridedOutput {
        StridedOutput::at(self.first(run), self.elem, strides)
    }
}
