//! Nodes as graphs of the general vocabulary: any rank, element type and form of attributes that ONNX has had.
//!
//! What shapes a result (axes, sizes, starts) is read from constant inputs when the node is imported; everything else is
//! computed by the graph. What we have no type or function for is refused with the reason.

mod elementwise;
mod matmul;
mod reduce;
mod shape;

use super::case::{Array, OnnxCase};
use super::import::{Import, dtype};
use yirage_ir::op::{Map, View, ViewForm};
use yirage_ir::{DType, Dim, Expr, NodeKind, Op, ValueId};

/// A node being imported.
pub(crate) struct OnnxNode<'a> {
    case: &'a OnnxCase,
    import: &'a mut Import,
    node_count: u32,
}

/// Adds the case's node and its outputs; `None` where it is none of these.
pub(crate) fn import(case: &OnnxCase, import: &mut Import) -> Option<Result<(), String>> {
    let mut node = OnnxNode { case, import, node_count: 0 };
    let outputs = elementwise::import(&mut node)
        .or_else(|| reduce::import(&mut node))
        .or_else(|| shape::import(&mut node))
        .or_else(|| matmul::import(&mut node))?;
    Some(outputs.and_then(|outputs| node.give(&outputs)))
}

impl OnnxNode<'_> {
    fn give(&mut self, outputs: &[ValueId]) -> Result<(), String> {
        if outputs.len() != self.case.outs.len() {
            return Err(format!("{} outputs, {} wanted", outputs.len(), self.case.outs.len()));
        }
        let pairs = outputs.iter().zip(&self.case.outs);
        pairs.into_iter().try_for_each(|(&output, array)| self.import.want_array(output, array))
    }

    fn array(&self, input: usize) -> Option<&Array> {
        self.case.ins.get(input).and_then(|(_, array)| array.as_ref())
    }

    /// An input that the graph computes with.
    fn input(&mut self, input: usize) -> Result<ValueId, String> {
        let array = self.array(input).ok_or_else(|| format!("there is no input {input}"))?.clone();
        self.import.tensor(&format!("x{input}"), &array)
    }

    /// All inputs.
    fn inputs(&mut self) -> Result<Vec<ValueId>, String> {
        (0..self.case.ins.len()).map(|i| self.input(i)).collect()
    }

    fn op(&mut self, op: impl Into<Op>, ins: &[ValueId]) -> Result<ValueId, String> {
        self.node_count += 1;
        let names = [format!("v{}", self.node_count)];
        let made = self.import.builder.node(NodeKind::Op(op.into()), ins, &names).map_err(|e| e.to_string())?;
        Ok(made[0])
    }

    /// The expression's value, as `to`.
    fn map(&mut self, expr: &Expr, to: DType, ins: &[ValueId]) -> Result<ValueId, String> {
        let dtypes: Vec<DType> = ins.iter().map(|&i| self.import.builder.ty(i).dtype).collect();
        let made = expr.infer(&dtypes).map_err(|e| e.to_string())?;
        let expr = if made.last() == Some(&to) { expr.clone() } else { expr.cast(to) };
        self.op(Map { expr }, ins)
    }

    fn view(&mut self, form: ViewForm, x: ValueId) -> Result<ValueId, String> {
        self.op(View { form }, &[x])
    }

    fn reshape(&mut self, x: ValueId, shape: &[u32]) -> Result<ValueId, String> {
        self.view(ViewForm::Reshape(shape.iter().map(|&n| Dim::Const(n)).collect()), x)
    }

    fn dtype(&self, x: ValueId) -> DType {
        self.import.builder.ty(x).dtype
    }

    fn shape(&self, x: ValueId) -> Vec<u32> {
        self.import.builder.ty(x).shape.iter().map(|d| d.as_const().unwrap() as u32).collect()
    }

    /// The type that the first output is wanted in.
    fn wanted(&self) -> DType {
        dtype(self.case.outs[0].element)
    }
}

/// Counted from the front, and there.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    let there = usize::try_from(from_front).ok().filter(|&a| a < rank);
    there.ok_or_else(|| format!("there is no dimension {axis} of {rank}"))
}

/// Each once, ascending.
pub(super) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, String> {
    let mut out = list.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?;
    out.sort_unstable();
    if out.windows(2).any(|w| w[0] == w[1]) {
        return Err(format!("a dimension is named twice: {list:?}"));
    }
    Ok(out)
}
