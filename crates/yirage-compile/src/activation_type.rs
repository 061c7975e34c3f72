//! Activations of the type in which a target computes fastest, where a model and its precision allow that.
//!
//! In `fast`, what a model computes between its embedding and its last norm is of the target's type: ops of models take it as
//! it is (`yirage_ir::op`), expressions end in a cast to it. The last norm and what follows stay f32, so logits do, and so do
//! factors of experts. In `exact` everything is f32. Graphs of users are left as they are: their types are said in them.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::expr::is_float;
use yirage_ir::op::{Map, NoGeneralForm};
use yirage_ir::{DType, Expr, Graph, NodeKind, Op, Type, ValueId, ValueSource};
use yirage_plan::{Precision, Target};

pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    options: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    let dtype = target.activation_dtype;
    if dtype == DType::F32 || !options.model {
        return Ok(graph.clone());
    }
    let what = format!("activations of {dtype}");
    if options.precision == Precision::Exact {
        decisions.tell(|| Decision::refused(Vec::new(), what, "the precision is exact"));
        return Ok(graph.clone());
    }
    decisions.tell(|| Decision::done(Vec::new(), what, "the target computes in it, and the precision is fast"));
    let wide = nodes_of_logits(graph);
    let mut typed = Typed { r: Rebuild::new(graph, |_| true)?, dtype, casts: HashMap::new() };
    for (n, wide) in wide.into_iter().enumerate() {
        typed.copy(n, wide)?;
    }
    typed.finish()
}

/// The nodes behind the last norm, and that norm: what makes the outputs from it.
fn nodes_of_logits(graph: &Graph) -> Vec<bool> {
    let mut wide = vec![false; graph.nodes.len()];
    let mut values: Vec<ValueId> =
        graph.outputs.iter().copied().filter(|&id| graph.kv_cache_of(id).is_none()).collect();
    while let Some(id) = values.pop() {
        let ValueSource::Node { node, .. } = graph.value(id).source else { continue };
        let NodeKind::Op(op) = &graph.nodes[node as usize].kind else { continue };
        // Logits whose columns are divided among ranks are gathered last.
        let is_between = op.ranks().is_some()
            || matches!(op, Op::Map(_) | Op::View(_) | Op::Gather(_) | Op::Linear(_) | Op::Hadamard(_));
        let is_last = matches!(op, Op::RmsNorm(_) | Op::LayerNorm(_));
        if !is_between && !is_last {
            continue;
        }
        let known = std::mem::replace(&mut wide[node as usize], true);
        if is_between && !known {
            values.extend(&graph.nodes[node as usize].ins);
        }
    }
    wide
}

/// A graph whose activations become another type.
struct Typed<'a> {
    r: Rebuild<'a>,
    dtype: DType,
    /// Values as other types, by value and type.
    casts: HashMap<(ValueId, DType), ValueId>,
}

impl Typed<'_> {
    fn copy(&mut self, n: usize, wide: bool) -> Result<(), CompileError> {
        let node = &self.r.old.nodes[n];
        let mut ins: Vec<ValueId> = node.ins.iter().map(|&id| self.r.get(id)).collect();
        let kind = match &node.kind {
            NodeKind::Op(op) if !wide && takes_any_type(self.r.old, op, &node.ins) => {
                return self.copy_general(n, op.clone(), ins);
            }
            kind => kind.clone(),
        };
        let activations: &[usize] = match &kind {
            NodeKind::Op(op) if !wide => op.activations(),
            _ => &[],
        };
        for (at, id) in ins.iter_mut().enumerate() {
            let old = self.r.old.ty(node.ins[at]);
            let narrow = activations.contains(&at) && old.dtype == DType::F32 && old.activation_format.is_none();
            *id = self.cast(*id, if narrow { self.dtype } else { old.dtype })?;
        }
        Ok(self.r.copy_as(n, kind, &ins)?)
    }

    /// Copies an op that takes any type: it computes in the narrow one where one of its activations is of it.
    fn copy_general(&mut self, n: usize, op: Op, mut ins: Vec<ValueId>) -> Result<(), CompileError> {
        let narrow = ins.iter().any(|&id| self.r.new.ty(id).dtype == self.dtype && self.is_computed(id));
        let op = match op {
            Op::Map(map) if narrow && self.r.old.ty(self.r.old.nodes[n].outs[0]).dtype == DType::F32 => {
                Map { expr: map.expr.cast(self.dtype) }.into()
            }
            // Their inputs are of one type.
            op @ (Op::Concat(_) | Op::Contract(_)) if narrow => {
                for id in &mut ins {
                    let float = is_float(self.r.new.ty(*id).dtype);
                    *id = if float { self.cast(*id, self.dtype)? } else { *id };
                }
                op
            }
            op => op,
        };
        Ok(self.r.copy_as(n, NodeKind::Op(op), &ins)?)
    }

    /// Whether a value of the new graph is made by a node.
    fn is_computed(&self, id: ValueId) -> bool {
        matches!(self.r.new.graph().value(id).source, ValueSource::Node { .. })
    }

    /// A value of the new graph as this type: itself, where it is of it or is no float.
    fn cast(&mut self, id: ValueId, to: DType) -> Result<ValueId, CompileError> {
        let ty = self.r.new.ty(id);
        if ty.dtype == to || !self.is_computed(id) || !is_float(ty.dtype) || !is_float(to) {
            return Ok(id);
        }
        if let Some(&known) = self.casts.get(&(id, to)) {
            return Ok(known);
        }
        let name = format!("{}.{to}", self.r.new.graph().value(id).name);
        let cast = Map { expr: Expr::input(0).cast(to) };
        let made = self.r.add(NodeKind::Op(cast.into()), &[id], &[name])?[0];
        self.casts.insert((id, to), made);
        Ok(made)
    }

    /// The graph, whose outputs are of the types that they were.
    fn finish(mut self) -> Result<Graph, CompileError> {
        for &id in &self.r.old.outputs {
            let (new, dtype) = (self.r.get(id), self.r.old.ty(id).dtype);
            if self.r.old.kv_cache_of(id).is_none() {
                let cast = self.cast(new, dtype)?;
                self.r.bind(id, cast);
            }
        }
        Ok(self.r.finish())
    }
}

/// Whether an op computes in the types that it is given: it is general, or moves what several devices have.
fn takes_any_type(graph: &Graph, op: &Op, ins: &[ValueId]) -> bool {
    let types: Vec<Type> = ins.iter().map(|&id| graph.ty(id).clone()).collect();
    op.ranks().is_some() || op.lower(&types) == Err(NoGeneralForm::General)
}
