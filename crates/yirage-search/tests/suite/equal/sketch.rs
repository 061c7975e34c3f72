//! Graphs of one element type, written down in few words.

use yirage_ir::attr::List;
use yirage_ir::expr::Scalar;
use yirage_ir::op::{Concat, Contract, Cut, Fill, Gather, Map, Reduce, ReduceKind, View, ViewForm};
use yirage_ir::{DType, Dim, Graph, GraphBuilder, Op, Type, ValueId};

/// A graph being written. Results of maps have its element type.
pub(crate) struct Sketch {
    builder: GraphBuilder,
    dtype: DType,
    made: u32,
}

impl Sketch {
    pub(crate) fn new(dtype: DType) -> Sketch {
        Sketch { builder: GraphBuilder::new("sketch"), dtype, made: 0 }
    }

    pub(crate) fn finish(mut self, outs: &[ValueId]) -> Graph {
        outs.iter().for_each(|&o| self.builder.output(o));
        self.builder.finish()
    }

    pub(crate) fn input(&mut self, name: &str, sizes: &[usize]) -> ValueId {
        self.input_of(name, self.dtype, sizes)
    }

    pub(crate) fn input_of(&mut self, name: &str, dtype: DType, sizes: &[usize]) -> ValueId {
        self.builder.step_input(name, Type::new(dtype, sizes.iter().map(|&n| n as u32))).unwrap()
    }

    pub(crate) fn op(&mut self, op: impl Into<Op>, ins: &[ValueId]) -> ValueId {
        self.made += 1;
        let op = op.into();
        let name = format!("t{}", self.made);
        self.builder.op(&name, op, ins).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn map(&mut self, expr: &str, ins: &[ValueId]) -> ValueId {
        let text = if self.dtype == DType::F32 { expr.to_string() } else { format!("cast.{}({expr})", self.dtype) };
        let expr = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        self.op(Map { expr }, ins)
    }

    pub(crate) fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.map("add(x0, x1)", &[a, b])
    }

    pub(crate) fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.map("mul(x0, x1)", &[a, b])
    }

    pub(crate) fn div(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.map("div(x0, x1)", &[a, b])
    }

    pub(crate) fn dot(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Contract {}, &[a, b])
    }

    pub(crate) fn reduce(&mut self, kind: ReduceKind, axes: &[u32], x: ValueId) -> ValueId {
        self.op(Reduce::new(kind, axes, true), &[x])
    }

    pub(crate) fn last(&mut self, kind: ReduceKind, x: ValueId) -> ValueId {
        let rank = self.sizes(x).len() as u32;
        self.reduce(kind, &[rank - 1], x)
    }

    pub(crate) fn sizes(&self, x: ValueId) -> Vec<usize> {
        self.builder.ty(x).shape.iter().map(|d| d.as_const().unwrap()).collect()
    }

    pub(crate) fn view(&mut self, form: ViewForm, x: ValueId) -> ValueId {
        self.op(View { form }, &[x])
    }

    pub(crate) fn permute(&mut self, axes: &[u32], x: ValueId) -> ValueId {
        self.view(ViewForm::Permute(axes.to_vec()), x)
    }

    /// The last two dimensions exchanged.
    pub(crate) fn t(&mut self, x: ValueId) -> ValueId {
        let rank = self.sizes(x).len() as u32;
        let mut axes: Vec<u32> = (0..rank).collect();
        axes.swap(rank as usize - 1, rank as usize - 2);
        self.permute(&axes, x)
    }

    pub(crate) fn reshape(&mut self, sizes: &[usize], x: ValueId) -> ValueId {
        self.view(ViewForm::Reshape(sizes.iter().map(|&n| Dim::Const(n as u32)).collect()), x)
    }

    pub(crate) fn expand(&mut self, sizes: &[usize], x: ValueId) -> ValueId {
        self.view(ViewForm::Expand(sizes.iter().map(|&n| Dim::Const(n as u32)).collect()), x)
    }

    /// Elements `from..to` along `axis`.
    pub(crate) fn slice(&mut self, axis: usize, from: usize, to: usize, x: ValueId) -> ValueId {
        let mut cuts: Vec<Cut> = self.sizes(x).iter().map(|&n| Cut::whole(n as u32)).collect();
        cuts[axis] = Cut { start: from as u32, step: 1, size: Dim::Const((to - from) as u32) };
        self.view(ViewForm::Slice(cuts), x)
    }

    pub(crate) fn concat(&mut self, axis: u32, parts: &[ValueId]) -> ValueId {
        self.op(Concat { axis }, parts)
    }

    pub(crate) fn gather(&mut self, axis: u32, x: ValueId, at: ValueId) -> ValueId {
        self.op(Gather { axis }, &[x, at])
    }

    pub(crate) fn fill(&mut self, value: f32, sizes: &[usize]) -> ValueId {
        let shape = List(sizes.iter().map(|&n| n as u32).collect());
        self.op(Fill { value: Scalar::from(value), shape }, &[])
    }

    /// `exp(x - max x)` of rows.
    pub(crate) fn shifted_exp(&mut self, x: ValueId) -> ValueId {
        let max = self.last(ReduceKind::Max, x);
        self.map("exp(sub(x0, x1))", &[x, max])
    }

    pub(crate) fn softmax(&mut self, x: ValueId) -> ValueId {
        let exp = self.shifted_exp(x);
        let sum = self.last(ReduceKind::Sum, exp);
        self.div(exp, sum)
    }
}
