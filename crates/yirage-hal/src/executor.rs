//! The executor: checks a step against its plan and runs it.

use crate::device::{Bindings, Device, Program, SlotValues};
use crate::error::HalError;
use std::collections::HashMap;
use yirage_ir::{Dims, Source, Type};
use yirage_plan::Plan;

/// A plan loaded on a device, with its slots.
///
/// Every value that can change between steps reaches the plan through a slot that must be set anew for each run:
/// running consumes the slots.
pub struct Executor {
    bucket: Dims,
    names: HashMap<String, usize>,
    types: Vec<(String, Type)>,
    slots: SlotValues,
    fresh: Vec<bool>,
    outputs: Vec<Type>,
    program: Box<dyn Program>,
    last: Dims,
}

impl Executor {
    /// Loads `plan` on `device`.
    pub fn new(device: &dyn Device, plan: &Plan, bindings: &Bindings) -> Result<Executor, HalError> {
        yirage_plan::verify(plan).map_err(|e| HalError::Load(e.to_string()))?;
        let slots: Vec<_> = plan.graph.inputs_of(Source::Slot).map(|i| plan.graph.value(i)).collect();
        let types: Vec<(String, Type)> = slots.iter().map(|v| (v.name.clone(), v.ty.clone())).collect();
        Ok(Executor {
            bucket: plan.bucket,
            names: types.iter().enumerate().map(|(i, (n, _))| (n.clone(), i)).collect(),
            slots: vec![Vec::new(); types.len()],
            fresh: vec![false; types.len()],
            types,
            outputs: plan.graph.outputs.iter().map(|&o| plan.graph.ty(o).clone()).collect(),
            program: device.load(plan, bindings)?,
            last: Dims::default(),
        })
    }

    /// The largest sizes of a step.
    pub fn bucket(&self) -> Dims {
        self.bucket
    }

    /// Sets a slot for the next run. A slot the plan does not read is ignored: it was compiled away.
    pub fn set(&mut self, name: &str, values: impl IntoIterator<Item = i32>) {
        if let Some(&i) = self.names.get(name) {
            self.slots[i].clear();
            self.slots[i].extend(values);
            self.fresh[i] = true;
        }
    }

    /// Runs one step of these sizes.
    pub fn run(&mut self, dims: &Dims) -> Result<(), HalError> {
        if let Some(sym) = dims.exceeds(&self.bucket) {
            let (got, max) = (dims.get(sym), self.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the bucket's {max}", sym.name())));
        }
        for (i, (name, ty)) in self.types.iter().enumerate() {
            if !std::mem::take(&mut self.fresh[i]) {
                return Err(HalError::Step(format!("slot `{name}` was not set")));
            }
            if self.slots[i].len() != ty.elems(dims) {
                let (got, want) = (self.slots[i].len(), ty.elems(dims));
                return Err(HalError::Step(format!("slot `{name}` has {got} values, {ty} needs {want}")));
            }
        }
        self.last = *dims;
        self.program.run(dims, &self.slots)
    }

    /// Output `index` of the last run.
    pub fn output(&self, index: usize) -> Result<&[f32], HalError> {
        let ty = self.outputs.get(index);
        let ty = ty.ok_or_else(|| HalError::Step(format!("the plan has {} outputs", self.outputs.len())))?;
        let values = self.program.output(index, &self.last)?;
        debug_assert_eq!(values.len(), ty.elems(&self.last));
        Ok(values)
    }
}
