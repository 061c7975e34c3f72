//! Cheap functions one after the other: elements go through all of them in registers.
//!
//! From strip to strip each function would cost a store, which waits for those before it; stores past the caches are slow
//! ones. The bits are those of the functions' steps.

use super::step::{ElementArg, ElementInstruction, ElementOpcode, LaneSource, cheap};
use crate::simd::{LANES, Lanes};
use yirage_ir::expr::Func;

/// Vectors that go together through the functions.
const TOGETHER: usize = 4;

/// A function of what came before, with a constant where it has two arguments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ChainedFunc {
    func: Func,
    constant: [f32; LANES],
}

impl ChainedFunc {
    /// The step as a link; none where it is not cheap, or its second argument is no constant.
    fn of(step: &ElementInstruction, constants: &[[f32; LANES]]) -> Option<ChainedFunc> {
        let func = step.code.cheap()?;
        match (func.arity(), step.args[1]) {
            (1, _) => Some(ChainedFunc { func, constant: [0.0; LANES] }),
            (2, ElementArg::Constant(c)) => Some(ChainedFunc { func, constant: constants[c as usize] }),
            _ => None,
        }
    }
}

/// The steps with each chain of at least two links as one step; and the chains.
pub(super) fn join(
    steps: &[ElementInstruction],
    constants: &[[f32; LANES]],
) -> (Vec<ElementInstruction>, Vec<Vec<ChainedFunc>>) {
    let reads = |step: &ElementInstruction, of: usize| step.args.contains(&ElementArg::Strip(of as u16));
    let readers = |of: usize| steps[of + 1..].iter().filter(|step| reads(step, of)).count();
    let follows = |at: usize| steps[at].args[0] == ElementArg::Strip(at as u16 - 1) && readers(at - 1) == 1;
    let (mut joined, mut chains) = (Vec::new(), Vec::new());
    // Of each step, the one that makes its result now.
    let mut now = vec![0u16; steps.len()];
    let mut at = 0;
    while at < steps.len() {
        let first = at;
        let mut links: Vec<ChainedFunc> = ChainedFunc::of(&steps[at], constants).into_iter().collect();
        at += 1;
        while at < steps.len() && !links.is_empty() && follows(at) {
            let Some(link) = ChainedFunc::of(&steps[at], constants) else { break };
            links.push(link);
            at += 1;
        }
        let moved = |place| if let ElementArg::Strip(s) = place { ElementArg::Strip(now[s as usize]) } else { place };
        let args = steps[first].args.map(moved);
        let code = match links.len() {
            0 | 1 => steps[first].code,
            _ => {
                chains.push(links);
                ElementOpcode::Chain(chains.len() as u16 - 1)
            }
        };
        let args = if matches!(code, ElementOpcode::Chain(_)) { [args[0]; 3] } else { args };
        now[at - 1] = joined.len() as u16;
        joined.push(ElementInstruction { code, args, out: joined.len() as u16 });
    }
    (joined, chains)
}

/// Where a chain's results go.
#[derive(Clone, Copy)]
pub(super) enum To {
    /// A strip, or memory that is written through the caches.
    Strip(*mut f32),
    /// Memory that is written past them, from the start of a line on.
    Stream(*mut f32),
}

/// The chain on `n` elements, up to a multiple of sixteen.
///
/// # Safety
/// The argument and the output have as many.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes>(links: &[ChainedFunc], n: usize, from: LaneSource, to: To) {
    let mut i = 0;
    // SAFETY: what `run` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
    unsafe {
        while i + TOGETHER * LANES <= n {
            group::<V, TOGETHER>(links, i, from, to);
            i += TOGETHER * LANES;
        }
        while i < n {
            group::<V, 1>(links, i, from, to);
            i += LANES;
        }
    }
}

/// Each function's loop over the vectors. No closure, which would be compiled without the instruction set.
macro_rules! through {
    ($link:ident, $x:ident, $c:ident: $($func:ident)*) => {
        match $link.func {
            $(Func::$func => {
                for x in &mut $x {
                    *x = cheap(Func::$func, *x, $c);
                }
            })*
            other => unreachable!("{} is not cheap, as `Code::cheap` says", other.name()),
        }
    };
}

#[inline(always)]
unsafe fn group<V: Lanes, const W: usize>(links: &[ChainedFunc], i: usize, from: LaneSource, to: To) {
    let mut x = [V::splat(0.0); W];
    for (k, x) in x.iter_mut().enumerate() {
        // SAFETY: the contract of `run`.
        *x = unsafe { V::load(from.at(i + k * LANES)) };
    }
    for link in links {
        // SAFETY: sixteen elements.
        let c = unsafe { V::load(link.constant.as_ptr()) };
        through!(link, x, c: Add Sub Mul Min Max Neg Abs Square Relu);
    }
    for (k, x) in x.into_iter().enumerate() {
        // SAFETY: the contract of `run`.
        unsafe {
            match to {
                To::Strip(out) => x.store(out.add(i + k * LANES)),
                To::Stream(out) => x.stream(out.add(i + k * LANES)),
            }
        }
    }
}
