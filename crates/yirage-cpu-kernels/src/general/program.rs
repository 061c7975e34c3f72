//! Programs: expressions made into steps on strips of lanes, once.

use super::chain::{self, ChainedFunc};
use super::elem::{ComputeType, Elem, NoElem};
use super::hot::Hot;
use super::step::{ElementArg, ElementInstruction, ElementOpcode};
use crate::simd::LANES;
use thiserror::Error;
use yirage_ir::dtype::DType;
use yirage_ir::expr::{Expr, Func, Scalar, Term};
use yirage_ir::types::TypeError;

/// Words of a worker's strips: they stay in the first-level cache.
pub(super) const SCRATCH: usize = 8192;

/// Why an expression is no program.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProgramError {
    /// The expression does not fit its inputs.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// An input or the result is of no type that is computed with.
    #[error(transparent)]
    Elem(#[from] NoElem),
}

/// An expression for elements of certain types.
#[derive(Clone, PartialEq, Debug)]
pub struct ElementProgram {
    pub(super) inputs: Vec<Elem>,
    pub(super) result: Elem,
    pub(super) steps: Vec<ElementInstruction>,
    /// Those that steps name.
    pub(super) chains: Vec<Vec<ChainedFunc>>,
    /// Each in all lanes.
    pub(super) constants: Vec<[f32; LANES]>,
    /// Strips beside those of the inputs and of the result.
    pub(super) strips: usize,
    /// The loop that the expression has of its own.
    pub(super) hot: Option<Hot>,
}

impl ElementProgram {
    /// The same without a loop of its own: what is computed step by step, to the same bits.
    #[must_use]
    pub fn in_steps(self) -> ElementProgram {
        ElementProgram { hot: None, ..self }
    }

    /// The expression for inputs of these types.
    ///
    /// # Errors
    /// An expression that does not fit them.
    pub fn new(expr: &Expr, inputs: &[DType]) -> Result<ElementProgram, ProgramError> {
        let types = expr.infer(inputs)?;
        let hot = if inputs.iter().all(|&t| t == DType::F32) { Hot::of(expr) } else { None };
        let elems = |types: &[DType]| types.iter().map(|&t| Elem::try_from(t)).collect::<Result<Vec<_>, _>>();
        let (inputs, types) = (elems(inputs)?, elems(&types)?);
        let mut made =
            ElementProgramBuilder { types: &types, steps: Vec::new(), constants: Vec::new(), places: Vec::new() };
        for (at, term) in expr.terms().iter().enumerate() {
            let place = made.term(at, term);
            made.places.push(place);
        }
        let (last, result) = (made.places[types.len() - 1], types[types.len() - 1]);
        if !matches!(last, ElementArg::Strip(_)) {
            made.step(ElementOpcode::Move, &[last]);
        }
        let ElementProgramBuilder { steps, constants, .. } = made;
        let (mut steps, chains) = chain::join(&steps, &constants);
        let strips = reuse(&mut steps);
        Ok(ElementProgram { inputs, result, steps, chains, constants, strips, hot })
    }

    /// The elements as they are.
    ///
    /// # Errors
    /// A type that is not computed with.
    pub fn identity(dtype: DType) -> Result<ElementProgram, ProgramError> {
        ElementProgram::new(&Expr::input(0), &[dtype])
    }

    /// The types of its inputs.
    pub fn inputs(&self) -> &[Elem] {
        &self.inputs
    }

    /// The type of its result. Floats may also be stored as others: they are rounded once then.
    pub fn result(&self) -> Elem {
        self.result
    }

    /// Elements of a strip.
    pub(super) fn strip(&self) -> usize {
        let strips = self.inputs.len() + self.strips + 1;
        // The most terms and inputs that an expression may have leave a vector for each.
        (SCRATCH / strips / LANES * LANES).min(512)
    }
}

struct ElementProgramBuilder<'a> {
    types: &'a [Elem],
    steps: Vec<ElementInstruction>,
    constants: Vec<[f32; LANES]>,
    /// Of the terms.
    places: Vec<ElementArg>,
}

impl ElementProgramBuilder<'_> {
    fn term(&mut self, at: usize, term: &Term) -> ElementArg {
        match *term {
            Term::Input(i) => ElementArg::Input(i as u16),
            Term::Const(value) => {
                self.constants.push([f32::from_bits(word(value)); LANES]);
                ElementArg::Constant(self.constants.len() as u16 - 1)
            }
            Term::Cast(_, x) => self.cast(self.types[x as usize], self.types[at], self.places[x as usize]),
            Term::Call(func, args) => {
                let args = &args[..func.arity()];
                let held = self.types[args[if func == Func::Select { 1 } else { 0 }] as usize].compute_type();
                let places: Vec<ElementArg> = args.iter().map(|&a| self.places[a as usize]).collect();
                self.step(ElementOpcode::Call(func, held), &places)
            }
        }
    }

    fn cast(&mut self, from: Elem, to: Elem, mut at: ElementArg) -> ElementArg {
        let same_bits = |a: ComputeType, b: ComputeType| {
            a == b
                || !matches!(a, ComputeType::Float | ComputeType::Mask)
                    && !matches!(b, ComputeType::Float | ComputeType::Mask)
        };
        if !same_bits(from.compute_type(), to.compute_type()) {
            at = self.step(ElementOpcode::Convert(from.compute_type(), to.compute_type()), &[at]);
        }
        match to {
            Elem::F16 if from != to => self.step(ElementOpcode::Halve, &[at]),
            Elem::BF16 if from != to => self.step(ElementOpcode::Shorten, &[at]),
            _ => at,
        }
    }

    /// A step with a strip of its own.
    fn step(&mut self, code: ElementOpcode, args: &[ElementArg]) -> ElementArg {
        let mut all = [args[0]; 3];
        all[..args.len()].copy_from_slice(args);
        let out = self.steps.len() as u16;
        self.steps.push(ElementInstruction { code, args: all, out });
        ElementArg::Strip(out)
    }
}

/// The word of a lane that holds a value.
fn word(value: Scalar) -> u32 {
    match value {
        Scalar::F32(x) => x.0.to_bits(),
        Scalar::I32(x) => x as u32,
        Scalar::U32(x) => x,
        Scalar::Bool(x) => u32::from(x).wrapping_neg(),
    }
}

/// Gives steps the strips of others that nobody reads any more; how many there are, the result's not among them.
fn reuse(steps: &mut [ElementInstruction]) -> usize {
    let mut last_read = vec![0; steps.len()];
    for (at, step) in steps.iter().enumerate() {
        for place in step.args {
            if let ElementArg::Strip(s) = place {
                last_read[s as usize] = at;
            }
        }
    }
    let (mut strips, mut free) = (0, Vec::new());
    let mut now = vec![0u16; steps.len()];
    for at in 0..steps.len() {
        let mut args = steps[at].args;
        for arg in &mut args {
            if let ElementArg::Strip(s) = *arg {
                let own = now[s as usize];
                // Once, though it may be read by several arguments.
                if last_read[s as usize] == at && !free.contains(&own) {
                    free.push(own);
                }
                *arg = ElementArg::Strip(own);
            }
        }
        if at + 1 == steps.len() {
            steps[at] = ElementInstruction { args, out: 0, ..steps[at] };
            break;
        }
        let out = free.pop().unwrap_or_else(|| {
            strips += 1;
            strips - 1
        });
        now[at] = out;
        steps[at] = ElementInstruction { args, out, ..steps[at] };
    }
    strips as usize
}
