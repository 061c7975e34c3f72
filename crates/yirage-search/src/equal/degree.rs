//! How likely different graphs look equal over a field.
//!
//! An element of an output is a quotient of polynomials in the inputs and in what random functions give, each distinct
//! application being a variable. By the lemma of Schwartz and Zippel a polynomial that is not zero is zero at a random
//! point with a probability of at most its degree over the order of the field. Two applications with different
//! arguments are one variable only where the difference of their arguments is zero, which is bounded alike, for each
//! pair of them. The sum of both bounds a false accept of one trial; trials are independent. A bound above one is no
//! bound, and is given as one: a maximum of thousands of elements has that many pairs.
//!
//! An exponential counts as a variable of its own. Sums of exponentials with different exponents are zero about as
//! seldom as random numbers are, for a generator drawn at random; what is proved of that is weaker (Mirage, theorem 3).
//!
//! The bound is of floats that are given. Whole numbers and bools are drawn from few, and what differs for some of
//! these alone is seen as often as they are drawn.

use super::program::{EvalOp, EvalProgram};
use yirage_ir::Expr;
use yirage_ir::expr::{Func, Term};
use yirage_ir::op::{Reduce, ReduceKind};

/// Bounds for one element.
#[derive(Clone, Copy, Debug, Default)]
struct Degree {
    above: f64,
    below: f64,
    /// Applications of random functions that it depends on, counted with repetition.
    keyed: f64,
    /// The largest degree of a difference of two arguments.
    argument: f64,
}

const VARIABLE: Degree = Degree { above: 1.0, below: 0.0, keyed: 0.0, argument: 0.0 };

impl Degree {
    fn joined(self, other: Degree) -> Degree {
        Degree { keyed: self.keyed + other.keyed, argument: self.argument.max(other.argument), ..self }
    }

    fn add(self, other: Degree) -> Degree {
        let above = (self.above + other.below).max(other.above + self.below);
        Degree { above, below: self.below + other.below, ..self.joined(other) }
    }

    fn mul(self, other: Degree) -> Degree {
        Degree { above: self.above + other.above, below: self.below + other.below, ..self.joined(other) }
    }

    fn inverse(self) -> Degree {
        Degree { above: self.below, below: self.above, ..self }
    }

    /// A sum of `n` of them.
    fn times(self, n: f64) -> Degree {
        if n < 1.0 {
            return Degree::default();
        }
        let above = self.above + (n - 1.0) * self.below;
        Degree { above, below: n * self.below, keyed: n * self.keyed, ..self }
    }

    /// What a random function gives of `n` of them.
    fn random(self, n: f64) -> Degree {
        let argument = self.argument.max(2.0 * (self.above + self.below));
        Degree { above: 1.0, below: 0.0, keyed: n * self.keyed + n, argument }
    }

    /// A maximum of `n` of them: their mean, and a random function of what is left.
    fn max(self, n: f64) -> Degree {
        let mean = self.times(n);
        let rest = Degree { keyed: 0.0, ..mean.add(self).random(n) };
        let max = mean.add(rest);
        Degree { keyed: n * self.keyed + n, ..max }
    }

    fn either(self, other: Degree) -> Degree {
        Degree {
            above: self.above.max(other.above),
            below: self.below.max(other.below),
            keyed: self.keyed.max(other.keyed),
            argument: self.argument.max(other.argument),
        }
    }
}

/// The binary logarithm of a bound of the probability that a trial over a field of `q` elements accepts programs that
/// differ; at most 0.
pub(super) fn false_accept_log2(original: &EvalProgram, candidate: &EvalProgram, q: u32) -> f64 {
    let (a, b) = (outputs(original), outputs(candidate));
    let one = |(a, b): (&Degree, &Degree)| {
        let degree = (a.above + b.below).max(b.above + a.below);
        let keyed = a.keyed + b.keyed;
        let pairs = keyed * (keyed - 1.0).max(0.0) / 2.0;
        let argument = a.argument.max(b.argument);
        (degree + pairs * argument) / f64::from(q)
    };
    // It is enough that one output differs, whichever it is.
    let worst = a.iter().zip(&b).map(one).fold(1.0 / f64::from(q), f64::max);
    worst.log2().min(0.0)
}

fn outputs(program: &EvalProgram) -> Vec<Degree> {
    let mut degrees = vec![VARIABLE; program.values.len()];
    for step in &program.steps {
        let ins: Vec<Degree> = step.ins.iter().map(|&i| degrees[i]).collect();
        let all = || ins.iter().copied().reduce(Degree::either).unwrap_or_default();
        let out = match &step.kind {
            EvalOp::Map(expr) => map(expr, &ins),
            EvalOp::Reduce(op) => reduce(op, ins[0], &program.values[step.ins[0]].sizes),
            EvalOp::Contract => {
                let k = program.values[step.ins[0]].sizes.last().copied().unwrap_or(1);
                ins[0].mul(ins[1]).times(k as f64)
            }
            EvalOp::View(_) | EvalOp::Concat(_) => all(),
            EvalOp::Gather(_) => ins[0],
            EvalOp::Fill(_) | EvalOp::Iota(_) => Degree::default(),
            EvalOp::Closed(_) => {
                let elements = step.ins.iter().filter_map(|&i| program.values[i].elements()).sum::<usize>();
                all().random(elements as f64)
            }
        };
        step.outs.iter().for_each(|&o| degrees[o] = out);
    }
    program.outputs.iter().map(|o| degrees[o.value]).collect()
}

fn reduce(op: &Reduce, x: Degree, sizes: &[usize]) -> Degree {
    let n = op.axes.0.iter().filter_map(|&a| sizes.get(a as usize)).map(|&n| n as f64).product();
    match op.kind {
        ReduceKind::Sum | ReduceKind::Mean => x.times(n),
        ReduceKind::MeanSquare => x.mul(x).times(n),
        ReduceKind::Max | ReduceKind::Min => x.max(n),
        ReduceKind::Prod => Degree { above: n * x.above, below: n * x.below, keyed: n * x.keyed, ..x },
    }
}

fn map(expr: &Expr, ins: &[Degree]) -> Degree {
    let mut terms: Vec<Degree> = Vec::with_capacity(expr.terms().len());
    for term in expr.terms() {
        let value = match term {
            Term::Input(i) => ins[*i as usize],
            Term::Const(_) => Degree::default(),
            Term::Cast(_, x) => terms[*x as usize],
            Term::Call(func, args) => {
                call(*func, &args[..func.arity()].iter().map(|&a| terms[a as usize]).collect::<Vec<_>>())
            }
        };
        terms.push(value);
    }
    terms.last().copied().unwrap_or_default()
}

fn call(func: Func, x: &[Degree]) -> Degree {
    let exponential = |x: Degree| Degree { above: 1.0, below: 0.0, ..x.random(1.0) };
    let sigmoid = |x: Degree| exponential(x).inverse();
    match func {
        Func::Add | Func::Sub => x[0].add(x[1]),
        Func::Mul => x[0].mul(x[1]),
        Func::Div => x[0].mul(x[1].inverse()),
        Func::Square => x[0].mul(x[0]),
        Func::Recip => x[0].inverse(),
        Func::Neg => x[0],
        Func::Exp => exponential(x[0]),
        Func::Sigmoid => sigmoid(x[0]),
        Func::Silu => x[0].mul(sigmoid(x[0])),
        Func::Tanh => exponential(x[0]).mul(sigmoid(x[0])),
        Func::GeluTanh => x[0].mul(exponential(x[0].mul(x[0]).mul(x[0])).mul(sigmoid(x[0]))),
        Func::GeluErf => x[0].add(x[0].random(1.0)),
        Func::Sqrt | Func::Log => x[0].random(1.0),
        Func::Rsqrt => x[0].random(1.0).inverse(),
        // The exponent may be whole, up to 8.
        Func::Pow => (0..8).fold(x[0].joined(x[1]), |power, _| power.mul(x[0])).either(x[0].add(x[1]).random(2.0)),
        Func::Abs | Func::Relu => x[0].max(2.0),
        Func::Min | Func::Max => x[0].either(x[1]).max(2.0),
        Func::Clamp => x[0].either(x[1]).max(2.0).either(x[2]).max(2.0),
        Func::Less | Func::LessEqual | Func::Equal | Func::NotEqual => x[0].add(x[1]).random(1.0),
        Func::Select => x[0].mul(x[1].add(x[2])),
    }
}
