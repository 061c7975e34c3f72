//! The general form of a named op: a graph of general ops that computes the same.

use super::{Concat, Contract, Cut, Gather, Map, Op, Reduce, ReduceKind, View, ViewForm};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::expr::{ExprError, is_float};
use crate::graph::{BuildError, Graph, GraphBuilder, ValueId};
use crate::types::Type;
use thiserror::Error;

/// Why an op has no general form for inputs of these types.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NoGeneralForm {
    /// It is general itself.
    #[error("it is a general op itself")]
    General,
    /// It does what no general op does.
    #[error("{0}")]
    Beyond(&'static str),
    /// The general ops do not take what it takes.
    #[error(transparent)]
    Types(#[from] BuildError),
    /// The expression of a map is none: an attribute has no text.
    #[error(transparent)]
    Expression(#[from] ExprError),
}

/// A general form being written: inputs `x0`, `x1`, ... and what is made of them.
pub(super) struct Lowering {
    builder: GraphBuilder,
    node_count: u32,
}

type LoweringResult = Result<ValueId, NoGeneralForm>;

impl Lowering {
    pub(super) fn new(name: &str, ins: &[Type]) -> Result<(Lowering, Vec<ValueId>), NoGeneralForm> {
        let mut builder = GraphBuilder::new(name);
        let input = |(i, ty): (usize, &Type)| builder.step_input(&format!("x{i}"), ty.clone());
        let ids = ins.iter().enumerate().map(input).collect::<Result<_, _>>()?;
        Ok((Lowering { builder, node_count: 0 }, ids))
    }

    pub(super) fn finish(mut self, out: ValueId) -> Result<Graph, NoGeneralForm> {
        self.builder.output(out);
        Ok(self.builder.finish())
    }

    /// The dimensions of a value.
    pub(super) fn shape(&self, x: ValueId) -> Vec<Dim> {
        self.builder.ty(x).shape.clone()
    }

    pub(super) fn op(&mut self, op: impl Into<Op>, ins: &[ValueId]) -> LoweringResult {
        self.node_count += 1;
        Ok(self.builder.op(&format!("t{}", self.node_count), op, ins)?)
    }

    /// An expression in text form.
    pub(super) fn map(&mut self, expr: &str, ins: &[ValueId]) -> LoweringResult {
        self.op(Map { expr: expr.parse()? }, ins)
    }

    /// Along the last dimension, which stays, of size 1.
    pub(super) fn reduce_last(&mut self, kind: ReduceKind, x: ValueId) -> LoweringResult {
        let last = self.shape(x).len() as u32 - 1;
        self.op(Reduce::new(kind, &[last], true), &[x])
    }

    pub(super) fn reshape(&mut self, x: ValueId, shape: &[Dim]) -> LoweringResult {
        if self.shape(x) == shape {
            return Ok(x);
        }
        self.op(View { form: ViewForm::Reshape(shape.to_vec()) }, &[x])
    }

    pub(super) fn permute(&mut self, x: ValueId, axes: &[u32]) -> LoweringResult {
        self.op(View { form: ViewForm::Permute(axes.to_vec()) }, &[x])
    }

    /// `size` elements of dimension `axis`, every `step`th from `start` on.
    pub(super) fn slice(&mut self, x: ValueId, axis: usize, start: u32, step: i32, size: u32) -> LoweringResult {
        let mut cuts: Vec<Cut> = self.shape(x).into_iter().map(Cut::whole).collect();
        cuts[axis] = Cut { start, step, size: Dim::Const(size) };
        self.op(View { form: ViewForm::Slice(cuts) }, &[x])
    }

    pub(super) fn concat(&mut self, axis: u32, parts: &[ValueId]) -> LoweringResult {
        self.op(Concat { axis }, parts)
    }

    /// Slices of the first dimension.
    pub(super) fn gather(&mut self, x: ValueId, at: ValueId) -> LoweringResult {
        self.op(Gather { axis: 0 }, &[x, at])
    }

    pub(super) fn contract(&mut self, a: ValueId, b: ValueId) -> LoweringResult {
        self.op(Contract {}, &[a, b])
    }

    /// The floats of a value, whatever their width.
    pub(super) fn f32(&mut self, x: ValueId) -> LoweringResult {
        let ty = self.builder.ty(x);
        match ty.dtype {
            _ if ty.activation_format.is_some() => {
                Err(NoGeneralForm::Beyond("a layout of activations is no plain numbers"))
            }
            DType::F32 => Ok(x),
            dtype if is_float(dtype) => self.map("cast.f32(x0)", &[x]),
            _ => Err(NoGeneralForm::Beyond("blocks of a quantised format are decoded by its own kernels alone")),
        }
    }
}
