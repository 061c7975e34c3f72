//! A graph being made of a case.
//!
//! Devices take floats from outside as weights, so an activation is a table whose rows `embed` looks up. Axes that our
//! ops do not have (a softmax over the middle of a shape, heads before positions) are a matter of how the table is
//! written, and the expected values are brought into the same order.

use std::collections::HashMap;
use yirage_conformance::{Setup, State};
use yirage_ir::op::Embed;
use yirage_ir::{BuildError, DType, Dims, F32, GraphBuilder, Tensor, Type, ValueId};
use yirage_plan::Precision;

/// The graph so far, and what its outputs must be.
pub(crate) struct Import {
    pub(crate) builder: GraphBuilder,
    pub(crate) weights: HashMap<String, Tensor>,
    pub(crate) slots: HashMap<String, Vec<i32>>,
    pub(crate) states: Vec<State>,
    pub(crate) dims: Dims,
    /// One an output, in the graph's order of elements.
    pub(crate) wanted: Vec<Wanted>,
}

#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

impl Import {
    pub(crate) fn new(name: &str) -> Import {
        Import {
            builder: GraphBuilder::new(name),
            weights: HashMap::new(),
            slots: HashMap::new(),
            states: Vec::new(),
            dims: Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 },
            wanted: Vec::new(),
        }
    }

    pub(crate) fn weight(&mut self, name: &str, shape: &[usize], values: Vec<f32>) -> Result<ValueId, BuildError> {
        self.weights.insert(name.into(), Tensor::f32(shape, values));
        self.builder.weight(name, Type::new(DType::F32, shape.iter().map(|&n| n as u32)))
    }

    pub(crate) fn ints(&mut self, name: &str, values: Vec<i32>) -> Result<ValueId, BuildError> {
        let ty = Type::new(DType::I32, [values.len() as u32]);
        self.slots.insert(name.into(), values);
        self.builder.slot(name, ty)
    }

    /// Rows of `width` elements.
    pub(crate) fn activation(&mut self, name: &str, width: usize, values: Vec<f32>) -> Result<ValueId, BuildError> {
        let rows = (0..(values.len() / width) as i32).collect();
        self.chosen(name, width, values, rows)
    }

    /// Rows of `width` elements, in the order of `rows`.
    pub(crate) fn chosen(
        &mut self,
        name: &str,
        width: usize,
        values: Vec<f32>,
        rows: Vec<i32>,
    ) -> Result<ValueId, BuildError> {
        let table = self.weight(&format!("{name}.table"), &[values.len() / width, width], values)?;
        let ids = self.ints(&format!("{name}.rows"), rows)?;
        self.builder.op(name, Embed { scale: F32(1.0) }, &[table, ids])
    }

    pub(crate) fn want(&mut self, output: ValueId, values: Vec<f32>) {
        self.builder.output(output);
        self.wanted.push(Wanted::F32(values));
    }

    pub(crate) fn want_ints(&mut self, output: ValueId, values: Vec<i32>) {
        self.builder.output(output);
        self.wanted.push(Wanted::I32(values));
    }

    pub(crate) fn finish(self) -> (Setup, Vec<Wanted>) {
        let Import { builder, weights, slots, states, dims, wanted } = self;
        let setup = Setup { graph: builder.finish(), weights, slots, states, dims, precision: Precision::Exact };
        (setup, wanted)
    }
}
