//! The executor: checks a step against its plan and runs it.

use crate::choice::{Choice, Why};
use crate::device::{Bindings, Device, Program, Slot, Values};
use crate::error::HalError;
use std::collections::HashMap;
use std::time::Instant;
use yirage_ir::{DType, Dims, Source, Type};
use yirage_plan::{ExecutorKind, VerifiedPlan};

/// A plan loaded on a device, with its slots.
///
/// Every value that can change between steps reaches the plan through a slot that must be set anew for each run:
/// running consumes the slots.
pub struct Executor {
    bucket: Dims,
    names: HashMap<String, usize>,
    types: Vec<(String, Type)>,
    slots: Vec<Vec<i32>>,
    fresh: Vec<bool>,
    outputs: Vec<Type>,
    program: Box<dyn Program>,
    choice: Choice,
    last: Dims,
}

impl Executor {
    /// Loads `plan` on `device`, whose target it was proved for.
    ///
    /// # Errors
    /// What the device says of it.
    pub fn new(device: &dyn Device, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Executor, HalError> {
        let workers = plan.programs.first().map_or(1, |p| p.queues.len());
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
            choice: Choice::new(plan.programs.iter().map(|p| p.kind).collect(), workers),
            last: Dims::default(),
        })
    }

    /// Runs every further step by this executor, instead of the one that measurement chooses.
    ///
    /// # Errors
    /// When the device has no such executor.
    pub fn force(&mut self, kind: ExecutorKind) -> Result<(), HalError> {
        if self.choice.force(kind) {
            return Ok(());
        }
        let why = match kind {
            ExecutorKind::Replay => "the device records nothing that it could play again",
            _ => "the device has no executor of that name",
        };
        Err(HalError::Unsupported { what: format!("the executor `{kind}`"), why: why.into() })
    }

    /// The executors it has.
    pub fn executors(&self) -> &[ExecutorKind] {
        self.choice.kinds()
    }

    /// The executor of the next step, and why it is that one.
    pub fn chosen(&self) -> (ExecutorKind, Why) {
        (self.choice.now(), self.choice.why())
    }

    /// The largest sizes of a step.
    pub fn bucket(&self) -> Dims {
        self.bucket
    }

    /// Sets a slot of integers for the next run; of a strided one all words from the first element to the last. A slot the plan does not read is ignored: it was compiled away.
    pub fn set(&mut self, name: &str, values: impl IntoIterator<Item = i32>) {
        if let Some(&i) = self.names.get(name) {
            self.slots[i].clear();
            self.slots[i].extend(values);
            self.fresh[i] = true;
        }
    }

    /// Sets a slot of floats for the next run; one the plan does not read is ignored.
    pub fn set_floats(&mut self, name: &str, values: impl IntoIterator<Item = f32>) {
        self.set(name, values.into_iter().map(|x| x.to_bits() as i32));
    }

    /// Runs one step of these sizes.
    pub fn run(&mut self, dims: &Dims) -> Result<(), HalError> {
        self.run_on(dims, &[])
    }

    /// Runs one step in which some slots, by name, are outputs of other executors of the same device, by number. They
    /// are read where they lie.
    pub fn run_on(&mut self, dims: &Dims, given: &[(&str, &Executor, usize)]) -> Result<(), HalError> {
        if let Some(sym) = dims.exceeds(&self.bucket) {
            let (got, max) = (dims.get(sym), self.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the bucket's {max}", sym.name())));
        }
        let mut slots = Vec::with_capacity(self.types.len());
        for (i, (name, ty)) in self.types.iter().enumerate() {
            let fresh = std::mem::take(&mut self.fresh[i]);
            if let Some(&(_, of, index)) = given.iter().find(|(n, ..)| n == name) {
                slots.push(of.as_slot(index, name, ty, dims)?);
                continue;
            }
            if !fresh {
                return Err(HalError::Step(format!("slot `{name}` was not set")));
            }
            if self.slots[i].len() != ty.held(dims) {
                let (got, want) = (self.slots[i].len(), ty.held(dims));
                return Err(HalError::Step(format!("slot `{name}` has {got} values, {ty} needs {want}")));
            }
            slots.push(Slot::Words(&self.slots[i]));
        }
        self.last = *dims;
        let began = Instant::now();
        self.program.run(self.choice.now(), dims, &slots)?;
        self.choice.took(dims, began.elapsed());
        Ok(())
    }

    /// Output `index` of the last run as slot `name` of another executor.
    fn as_slot(&self, index: usize, name: &str, ty: &Type, dims: &Dims) -> Result<Slot<'_>, HalError> {
        let made = self.output_type(index)?;
        if made != ty || made.elems(&self.last) != ty.elems(dims) {
            let (got, want) = (made.elems(&self.last), ty.elems(dims));
            return Err(HalError::Step(format!(
                "slot `{name}` is {ty} with {want} values, the output given for it is {made} with {got}"
            )));
        }
        Ok(Slot::Output { of: &*self.program, index, dims: self.last })
    }

    fn output_type(&self, index: usize) -> Result<&Type, HalError> {
        let missing = || HalError::Step(format!("the plan has {} outputs, and none {index}", self.outputs.len()));
        self.outputs.get(index).ok_or_else(missing)
    }

    /// Elements of output `index` of the last run, integers or floats as its type says.
    pub fn values(&self, index: usize) -> Result<Values<'_>, HalError> {
        let ty = self.output_type(index)?;
        let values = self.program.output(index, &self.last)?;
        let (floats, len) = match values {
            Values::F32(v) => (true, v.len()),
            Values::I32(v) => (false, v.len()),
        };
        debug_assert_eq!((floats, len), (ty.dtype == DType::F32, ty.elems(&self.last)));
        Ok(values)
    }

    /// Output `index` of the last run, which must be floats.
    pub fn output(&self, index: usize) -> Result<&[f32], HalError> {
        match self.values(index)? {
            Values::F32(v) => Ok(v),
            Values::I32(_) => Err(HalError::Step(format!("output {index} holds integers, not floats"))),
        }
    }

    /// Output `index` of the last run, which must be integers.
    pub fn output_ints(&self, index: usize) -> Result<&[i32], HalError> {
        match self.values(index)? {
            Values::I32(v) => Ok(v),
            Values::F32(_) => Err(HalError::Step(format!("output {index} holds floats, not integers"))),
        }
    }
}
