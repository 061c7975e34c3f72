//! Where elements lie: parts, joins and views.

use super::builder::{KernelGraph, KernelGraphResult, operands, sizes};
use super::error::GraphError;
use yirage_ir::ValueId;
use yirage_ir::op::{Concat, Cut, View, ViewForm};

/// How a dimension is split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitBy<'a> {
    /// Into parts of these sizes, which are all of the dimension.
    Sizes(&'a [u32]),
    /// Into parts of this size; the last one is what is left.
    Size(u32),
}

impl KernelGraph {
    /// Values one after the other along `dim`.
    ///
    /// # Errors
    /// No value, more than the IR joins, values of different element types or of sizes that differ elsewhere.
    pub fn concat(&mut self, list: &[ValueId], dim: i64) -> KernelGraphResult {
        let [first, others @ ..] = list else { return Err(operands("concat", &[], "at least one value wanted")) };
        self.common("concat", list)?;
        let (axis, _) = self.along("concat", *first, dim)?;
        // Of values of other ranks, which the op refuses, it is another one.
        others.iter().try_for_each(|&a| self.along("concat", a, dim).map(|_| ()))?;
        self.op(Concat { axis }, list)
    }

    /// The parts of A along `dim`, in order.
    ///
    /// # Errors
    /// A dimension that A does not have, sizes that are not together the dimension's, and a size of 0.
    pub fn split(&mut self, a: ValueId, by: SplitBy<'_>, dim: i64) -> Result<Vec<ValueId>, GraphError> {
        let (dim, size) = self.along("split", a, dim)?;
        let parts: Vec<u32> = match by {
            SplitBy::Sizes(parts) => parts.to_vec(),
            SplitBy::Size(0) => Vec::new(),
            SplitBy::Size(part) => (0..size.div_ceil(part)).map(|i| part.min(size - i * part)).collect(),
        };
        let sum = parts.iter().try_fold(0u32, |sum, &part| sum.checked_add(part));
        if sum != Some(size) || parts.contains(&0) {
            let wanted = format!("sizes above 0 wanted that are together {size}, dimension {dim}; {by:?} given");
            return Err(operands("split", &[self.ty("split", a)?], wanted));
        }
        self.parts("split", a, dim, &parts)
    }

    /// `chunks` parts of one size along `dim`.
    ///
    /// # Errors
    /// A dimension that A does not have, or whose size is no multiple of `chunks`.
    pub fn chunk(&mut self, a: ValueId, chunks: u32, dim: i64) -> Result<Vec<ValueId>, GraphError> {
        let (dim, size) = self.along("chunk", a, dim)?;
        if chunks == 0 || size == 0 || !size.is_multiple_of(chunks) {
            let wanted = format!("a number of chunks wanted that divides {size}, dimension {dim}; {chunks} given");
            return Err(operands("chunk", &[self.ty("chunk", a)?], wanted));
        }
        self.parts("chunk", a, dim, &vec![size / chunks; chunks as usize])
    }

    /// Values joined along `dim` group by group: each is cut into `groups` parts, and the parts of a group stand together, in
    /// the order of `list`. Heads of queries, keys and values are fused so, and rows of a gate and its product interleaved.
    ///
    /// # Errors
    /// As those of [`KernelGraph::chunk`] and [`KernelGraph::concat`].
    pub fn interleave(&mut self, list: &[ValueId], groups: u32, dim: i64) -> KernelGraphResult {
        let parts = list.iter().map(|&a| self.chunk(a, groups, dim)).collect::<Result<Vec<_>, _>>()?;
        let of_group = |group: usize| parts.iter().map(move |parts| parts[group]);
        self.concat(&(0..groups as usize).flat_map(of_group).collect::<Vec<_>>(), dim)
    }

    /// The elements of A in row-major order in another shape. One size may be -1: it is what the others leave. Mirage's
    /// graphs have no such operation.
    ///
    /// # Errors
    /// Another number of elements, other sizes below 0, and a -1 for which there is no size, several, or another -1.
    pub fn reshape(&mut self, a: ValueId, dims: &[i64]) -> KernelGraphResult {
        let ty = self.ty("reshape", a)?;
        let wrong = |wanted: &str| operands("reshape", &[ty], format!("{wanted} wanted; {dims:?} given"));
        let known = dims.iter().filter(|&&n| n != -1).map(|&n| u32::try_from(n)).collect::<Result<Vec<_>, _>>();
        let known = known.map_err(|_| wrong("sizes from 0 to 2^32 - 1, or one -1 for what they leave,"))?;
        let made: Vec<u32> = match dims.len() - known.len() {
            0 => known,
            1 => {
                let left = left_over(&sizes(ty), &known);
                let left = left
                    .ok_or_else(|| wrong("beside the -1 sizes above 0 whose product divides the number of elements"))?;
                dims.iter().map(|&n| u32::try_from(n).unwrap_or(left)).collect()
            }
            _ => return Err(wrong("at most one -1")),
        };
        self.reshaped("reshape", a, &made)
    }

    /// Dimension i of the result is dimension `dims[i]` of A. Mirage's graphs have no such operation.
    ///
    /// # Errors
    /// Dimensions that are not each of A's once.
    pub fn permute(&mut self, a: ValueId, dims: &[i64]) -> KernelGraphResult {
        self.ty("permute", a)?;
        let axes = dims.iter().map(|&dim| Ok(self.along("permute", a, dim)?.0)).collect::<Result<_, GraphError>>()?;
        self.permuted(a, axes)
    }

    pub(super) fn permuted(&mut self, a: ValueId, axes: Vec<u32>) -> KernelGraphResult {
        self.op(View { form: ViewForm::Permute(axes) }, &[a])
    }

    /// Parts of these sizes, which end within the dimension.
    fn parts(&mut self, what: &'static str, a: ValueId, dim: u32, parts: &[u32]) -> Result<Vec<ValueId>, GraphError> {
        let whole: Vec<Cut> = sizes(self.ty(what, a)?).into_iter().map(Cut::whole).collect();
        let mut start = 0;
        let mut made = Vec::with_capacity(parts.len());
        for &size in parts {
            let mut cuts = whole.clone();
            cuts[dim as usize] = Cut { start, step: 1, size: size.into() };
            made.push(self.op(View { form: ViewForm::Slice(cuts) }, &[a])?);
            start += size;
        }
        Ok(made)
    }
}

/// The size that makes the others hold all elements, where one does.
fn left_over(all: &[u32], others: &[u32]) -> Option<u32> {
    let product = |sizes: &[u32]| sizes.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)));
    let (elements, others) = (product(all)?, product(others)?);
    let left = elements.checked_div(others).filter(|left| left * others == elements)?;
    u32::try_from(left).ok()
}
