//! What stored matrices are multiplied with, as a model's graph has it.
//!
//! What is done with these activations is not known here.

use super::Model;
use crate::weights::{WeightBinding, WeightSource};
use yirage_ir::{NodeKind, Op, ValueId, ValueSource};

/// A stored matrix, or a stack of experts' matrices, and what it is multiplied with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredMatmul {
    /// The stored tensor. Of one that several weights are made of, there is one entry for each activation.
    pub tensor: String,
    /// Elements of a row of the matrix.
    pub columns: usize,
    /// Rows of activations, as a position in [`MatmulInputs::values`]: f32 `[rows, columns]`, or of experts as
    /// [`ExpertInput`] says.
    pub activation: usize,
    /// Which of the matrices are multiplied, of a stack.
    pub experts: Option<ExpertInput>,
}

/// Which experts' matrices an activation is multiplied with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpertInput {
    /// Matrices of the stack.
    pub count: usize,
    /// Numbers of the experts, i32 `[Tokens, top_k]`, as a position in [`MatmulInputs::values`]; -1 is none.
    pub chosen: usize,
    /// Experts of a token.
    pub top_k: usize,
    /// Whether a token's experts read one row: the activation is `[Tokens, columns]` then, else `[Tokens, top_k * columns]`.
    pub shared: bool,
}

/// The activations of a model that its stored matrices are multiplied with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MatmulInputs {
    /// Values of the graph, each once.
    pub values: Vec<ValueId>,
    /// The matrices, in the graph's order.
    pub matmuls: Vec<StoredMatmul>,
}

impl Model {
    /// The activations that stored matrices are multiplied with. Matrices of several groups, matrices of which a weight
    /// takes some of the columns, and stacks that are stored in several tensors are not among them.
    pub fn matmul_inputs(&self) -> MatmulInputs {
        let mut found = MatmulInputs::default();
        for node in &self.graph.nodes {
            let (at_most_one_group, shared) = match &node.kind {
                NodeKind::Op(Op::Linear(op)) => (op.groups == 1, None),
                NodeKind::Op(Op::ExpertLinear(op)) => (true, Some((op.top_k as usize, op.shared))),
                _ => continue,
            };
            let Some(weight) = self.weight_of(node.ins[1]).filter(|_| at_most_one_group) else { continue };
            let stack = shared.map(|shared| (node.ins[2], shared));
            found.add(weight, node.ins[0], stack);
        }
        found
    }

    /// The binding of a weight of the graph.
    fn weight_of(&self, id: ValueId) -> Option<&WeightBinding> {
        let value = self.graph.value(id);
        if value.source != ValueSource::Weight {
            return None;
        }
        self.weights.iter().find(|weight| weight.name == value.name)
    }
}

impl MatmulInputs {
    /// Adds a weight's tensors, which `activation` is multiplied with; of a stack also who chooses, and how.
    fn add(&mut self, weight: &WeightBinding, activation: ValueId, stack: Option<(ValueId, (usize, bool))>) {
        let WeightSource::Stored(views) = &weight.source else { return };
        let columns = weight.width();
        let whole_rows = |view: &crate::weights::WeightView| {
            let rows = view.strides.iter().rev().skip(1).all(|stride| stride.is_multiple_of(columns));
            view.shape.last() == Some(&columns)
                && view.strides.last() == Some(&1)
                && rows
                && view.offset.is_multiple_of(columns)
        };
        if !views.iter().all(whole_rows) || (stack.is_some() && views.len() != 1) {
            return;
        }
        let activation = self.position(activation);
        let experts = stack.map(|(chosen, (top_k, shared))| ExpertInput {
            count: weight.shape[0],
            chosen: self.position(chosen),
            top_k,
            shared,
        });
        for view in views {
            let matmul = StoredMatmul { tensor: view.tensor.clone(), columns, activation, experts };
            // Keys and values of one stored matrix read the same rows, which count once.
            if !self.matmuls.contains(&matmul) {
                self.matmuls.push(matmul);
            }
        }
    }

    fn position(&mut self, value: ValueId) -> usize {
        self.values.iter().position(|&known| known == value).unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }
}
