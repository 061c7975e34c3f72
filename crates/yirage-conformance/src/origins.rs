//! The cases of every op with each input from where models do not take it: computed, from a slot, from a weight.

use crate::setup::Trouble;
use crate::wrap::{How, Origin, wrap};
use crate::{Trial, narrow};
use yirage_hal::Device;
use yirage_ir::op::{Case, Role};
use yirage_ir::{DType, Op};

/// A case with one input from elsewhere.
pub struct Variant {
    /// The op's name.
    pub op: &'static str,
    /// Number of the input.
    pub input: usize,
    /// Where it comes from.
    pub origin: Origin,
    trial: Trial,
}

/// All variants that are well typed of `most` cases an op.
pub fn variants(most: usize) -> Vec<Variant> {
    let mut all = Vec::new();
    for &op in Op::NAMES {
        for case in Op::all_cases().iter().filter(|case| case.op.name() == op).take(most) {
            let moves = (0..case.ins.len()).flat_map(|input| Origin::ALL.map(|origin| (input, origin)));
            all.extend(moves.filter_map(|(input, origin)| Variant::new(case, input, origin)));
        }
    }
    all
}

impl Variant {
    /// None for what is no move, or not well typed; caches and quantised values come from one place alone.
    fn new(case: &Case, input: usize, origin: Origin) -> Option<Variant> {
        let given = &case.ins[input];
        let usual = match case.op.role(input, given) {
            Role::Activation => Origin::Computed,
            Role::Weight => Origin::Weight,
            Role::Slot(_) => Origin::Slot,
            // Those of general ops come from everywhere in the suite.
            Role::State | Role::Any => return None,
        };
        let plain = matches!(given.dtype, DType::F32 | DType::I32 | DType::U32);
        let computed = given.dtype == DType::F32 && given.shape.len() == 2;
        if origin == usual || !plain || (origin == Origin::Computed && !computed) {
            return None;
        }
        // What is fixed after load has a fixed number of rows, and with it everything that has as many.
        let how = |fixed| How { moved: Some((input, origin)), fixed, ..How::default() };
        let setup = wrap(case, how(false)).or_else(|_| wrap(case, how(true))).ok()??;
        let name = format!("{}: {}, input {input} {origin:?}", case.op.name(), case.name);
        let ready = narrow(case).and_then(|()| setup.reference().map(|want| (setup, want)));
        Some(Variant { op: case.op.name(), input, origin, trial: Trial { name, case: case.clone(), ready } })
    }

    /// `op: case`, and what is moved.
    pub fn name(&self) -> &str {
        &self.trial.name
    }

    /// Runs it on a device.
    ///
    /// # Errors
    /// A refusal, or whatever else is wrong.
    pub fn check(&self, device: &dyn Device) -> Result<(), Trouble> {
        self.trial.check(device, None)
    }
}
