//! The cases of every op with each input from where models do not take it: computed, from a step input, from a weight.

use crate::setup::Trouble;
use crate::wrap::{OperandSource, WrapOptions, wrap};
use crate::{ConformanceCase, narrow};
use std::sync::OnceLock;
use yirage_hal::Device;
use yirage_ir::op::{OpCase, Role};
use yirage_ir::{DType, Op};

/// A case with one input from elsewhere.
pub struct OperandSourceCase {
    /// The op's name.
    pub op: &'static str,
    /// Number of the input.
    pub input: usize,
    /// Where it comes from.
    pub origin: OperandSource,
    case: ConformanceCase,
}

/// All variants that are well typed of `most` cases an op.
pub fn operand_source_cases(most: usize) -> Vec<OperandSourceCase> {
    let mut all = Vec::new();
    for &op in Op::NAMES {
        for case in Op::all_cases().iter().filter(|case| case.op.name() == op).take(most) {
            let moves = (0..case.ins.len()).flat_map(|input| OperandSource::ALL.map(|origin| (input, origin)));
            all.extend(moves.filter_map(|(input, origin)| OperandSourceCase::new(case, input, origin)));
        }
    }
    all
}

impl OperandSourceCase {
    /// None for what is no move, or not well typed; caches and quantised values come from one place alone.
    fn new(case: &OpCase, input: usize, origin: OperandSource) -> Option<OperandSourceCase> {
        let given = &case.ins[input];
        let usual = match case.op.role(input, given) {
            Role::Activation => OperandSource::Computed,
            Role::Weight => OperandSource::Weight,
            Role::StepInput(_) => OperandSource::Slot,
            // Those of general ops come from everywhere in the suite.
            Role::KvCache | Role::Any => return None,
        };
        let plain = matches!(given.dtype, DType::F32 | DType::I32 | DType::U32);
        let computed = given.dtype == DType::F32 && given.shape.len() == 2;
        if origin == usual || !plain || (origin == OperandSource::Computed && !computed) {
            return None;
        }
        // What is fixed after load has a fixed number of rows, and with it everything that has as many.
        let how = |fixed| WrapOptions { moved: Some((input, origin)), fixed, ..WrapOptions::default() };
        let setup = wrap(case, how(false)).or_else(|_| wrap(case, how(true))).ok()??;
        let name = format!("{}: {}, input {input} {origin:?}", case.op.name(), case.name);
        Some(OperandSourceCase {
            op: case.op.name(),
            input,
            origin,
            case: ConformanceCase {
                name,
                case: case.clone(),
                setup: narrow(case).map(|()| setup),
                want: OnceLock::new(),
            },
        })
    }

    /// `op: case`, and what is moved.
    pub fn name(&self) -> &str {
        &self.case.name
    }

    /// Runs it on a device.
    ///
    /// # Errors
    /// A refusal, or whatever else is wrong.
    pub fn check(&self, device: &dyn Device) -> Result<(), Trouble> {
        self.case.check(device, None)
    }
}
