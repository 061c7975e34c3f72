//! A graph being made of a case.
//!
//! Devices take floats from outside as weights, so an activation is a table whose rows `embed` looks up. Axes that our
//! ops do not have (a softmax over the middle of a shape, heads before positions) are a matter of how the table is
//! written, and the expected values are brought into the same order.

use super::case::{Array, Element, Values};
use std::collections::HashMap;
use yirage_conformance::{GraphSetup, KvCacheSetup};
use yirage_hal::Record;
use yirage_ir::op::Embed;
use yirage_ir::{BuildError, DType, Dim, Dims, F32, Format, GraphBuilder, Tensor, Type, ValueId};
use yirage_plan::Precision;

/// The graph so far, and what its outputs must be.
pub(crate) struct Import {
    pub(crate) builder: GraphBuilder,
    pub(crate) weights: HashMap<String, Tensor>,
    pub(crate) step_inputs: HashMap<String, Record>,
    pub(crate) kv_caches: Vec<KvCacheSetup>,
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
            step_inputs: HashMap::new(),
            kv_caches: Vec::new(),
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
        self.step_inputs.insert(name.into(), Record::of(&values));
        self.builder.step_input(name, ty)
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

    /// An input as a device takes it: floats of 16 bits as weights and in slots in turn.
    pub(crate) fn tensor(&mut self, name: &str, array: &Array) -> Result<ValueId, String> {
        let shape = array.shape.iter().map(|&n| n as u32);
        let as_weight = self.weights.len().is_multiple_of(2);
        let (dtype, elements) = match (array.element, &array.values) {
            (Element::F16, Values::F32(v)) if as_weight => return self.narrow(name, Format::F16, &array.shape, v),
            (Element::BF16, Values::F32(v)) if as_weight => return self.narrow(name, Format::BF16, &array.shape, v),
            (element, Values::F32(v)) => {
                let dtype = dtype(element);
                (dtype, Record::of(&Tensor { dtype, ..Tensor::f32(array.shape.clone(), v.clone()) }.memory()))
            }
            (Element::U32, Values::Int(v)) => {
                (DType::U32, Record::of(&v.iter().map(|&x| x as u32).collect::<Vec<_>>()))
            }
            (Element::Bool, Values::Int(v)) => {
                (DType::Bool, Record::of(&v.iter().map(|&x| u8::from(x != 0)).collect::<Vec<_>>()))
            }
            (_, Values::Int(v)) => (DType::I32, Record::of(&fitting(v)?)),
        };
        self.step_inputs.insert(name.into(), elements);
        self.builder.step_input(name, Type::new(dtype, shape)).map_err(|e| e.to_string())
    }

    fn narrow(&mut self, name: &str, format: Format, shape: &[usize], values: &[f32]) -> Result<ValueId, String> {
        let info = format.info();
        let mut bytes = vec![0; info.row_bytes(values.len())];
        info.encode.unwrap()(values, &mut bytes);
        self.weights.insert(name.into(), Tensor::stored(format, shape, bytes));
        let ty = Type::new(format.into(), shape.iter().map(|&n| n as u32));
        self.builder.weight(name, ty).map_err(|e| e.to_string())
    }

    /// An output of any type.
    pub(crate) fn want_array(&mut self, output: ValueId, array: &Array) -> Result<(), String> {
        let ty = self.builder.ty(output).clone();
        let sizes: Vec<Dim> = array.shape.iter().map(|&n| Dim::Const(n as u32)).collect();
        if ty.shape != sizes || ty.dtype != dtype(array.element) {
            return Err(format!("the output is {ty}, {:?} of {:?} wanted", array.element, array.shape));
        }
        self.builder.output(output);
        self.wanted.push(match &array.values {
            Values::F32(v) => Wanted::F32(v.clone()),
            Values::Int(v) if array.element == Element::U32 => {
                Wanted::I32(v.iter().map(|&x| x as u32 as i32).collect())
            }
            Values::Int(v) => Wanted::I32(fitting(v)?),
        });
        Ok(())
    }

    pub(crate) fn finish(self) -> (GraphSetup, Vec<Wanted>) {
        let Import { builder, weights, step_inputs: slots, kv_caches: states, dims, wanted } = self;
        let setup = GraphSetup {
            graph: builder.finish(),
            weights,
            step_inputs: slots,
            kv_caches: states,
            dims,
            precision: Precision::Exact,
        };
        (setup, wanted)
    }
}

/// The type in which ours are computed with; numbers of 64 bits are of 32, if they fit.
pub(crate) fn dtype(element: Element) -> DType {
    match element {
        Element::F32 => DType::F32,
        Element::F16 => Format::F16.into(),
        Element::BF16 => Format::BF16.into(),
        Element::I32 | Element::I64 => DType::I32,
        Element::U32 => DType::U32,
        Element::Bool => DType::Bool,
    }
}

fn fitting(values: &[i64]) -> Result<Vec<i32>, String> {
    let fit = |&x: &i64| i32::try_from(x).map_err(|_| format!("{x} is no number of 32 bits"));
    values.iter().map(fit).collect()
}
