//! Expressions that occur in models, as loops of their own: each element goes from its inputs to the result in registers.
//!
//! A row of the table is an expression in the text form, with `c0` and `c1` for constants, and the same on lanes. The
//! lanes' functions are those of steps, so the bits are the same either way.

use super::step::LaneSource;
use crate::rows::{load, store};
use crate::simd::math::{exp, gelu_erf, gelu_tanh, larger, sigmoid, silu, smaller, tanh};
use crate::simd::{LANES, Lanes, WithLanes};
use std::sync::LazyLock;
use yirage_ir::expr::{Expr, Func, Scalar, Term};

/// Most inputs and constants of a row of the table, together.
const MOST: usize = 5;

macro_rules! table {
    ($($name:ident: $text:literal, ($($x:ident),+ $(; $($c:ident),+)?) => $e:expr;)*) => {
        /// The rows of the table, each by a name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum HotExprName {
            $(
                #[doc = concat!("`", $text, "`.")]
                $name
            ),*
        }

        /// The expressions, parsed once: inputs, then constants, are the patterns' inputs.
        pub static TABLE: LazyLock<Vec<(HotExprName, usize, Expr)>> = LazyLock::new(|| {
            let rows = [$((HotExprName::$name, [$(stringify!($x)),+].len(), $text)),*];
            let parsed = rows.into_iter().map(|(name, inputs, text)| {
                (0..2).fold(text.to_owned(), |text, c| text.replace(&format!("c{c}"), &format!("x{}", inputs + c)))
                    .parse()
                    .map(|expr| (name, inputs, expr))
            });
            parsed.filter_map(Result::ok).collect()
        });

        /// `n` elements.
        ///
        /// # Safety
        /// The sources have them, or sixteen that are the same, and `out` has room for them.
        #[inline(always)]
        unsafe fn run<V: Lanes>(name: HotExprName, sources: [LaneSource; MOST], out: *mut f32, n: usize) {
            match name {
                $(HotExprName::$name => {
                    struct HotLoop([LaneSource; MOST], *mut f32, usize);

                    impl WithLanes for HotLoop {
                        type Out = ();

                        #[inline(always)]
                        unsafe fn run<V: Lanes>(self) {
                            let HotLoop(sources, out, n) = self;
                            let [$($x,)+ $($($c,)+)? ..] = sources;
                            let mut i = 0;
                            while i + LANES <= n {
                                // SAFETY: what `WithLanes::run` is promised; `StridedInput::within` and
                                // `StridedOutput::within` check the operands.
                                unsafe {
                                    $(let $x = V::load($x.at(i));)+
                                    $($(let $c = V::load($c.at(i));)+)?
                                    $e.store(out.add(i));
                                }
                                i += LANES;
                            }
                            if i < n {
                                // SAFETY: what `WithLanes::run` is promised; `StridedInput::within` and
                                // `StridedOutput::within` check the operands.
                                unsafe {
                                    $(let $x = load::<V>($x.at(i), n - i, 0.0);)+
                                    $($(let $c = load::<V>($c.at(i), n - i, 0.0);)+)?
                                    store($e, out.add(i), n - i);
                                }
                            }
                        }
                    }

                    // SAFETY: `HotLoop` wants what `run` is promised.
                    unsafe { V::apart(HotLoop(sources, out, n)) }
                })*
            }
        }
    };
}

table! {
    Add: "add(x0, x1)", (a, b) => a.add(b);
    Sub: "sub(x0, x1)", (a, b) => a.sub(b);
    Mul: "mul(x0, x1)", (a, b) => a.mul(b);
    Div: "div(x0, x1)", (a, b) => a.div(b);
    Scale: "mul(x0, c0)", (x; c) => x.mul(c);
    Softcap: "mul(tanh(div(x0, c0)), c0)", (x; c) => tanh(x.div(c)).mul(c);
    InverseRoot: "recip(sqrt(add(x0, c0)))", (x; c) => V::splat(1.0).div(x.add(c).sqrt());
    Silu: "silu(x0)", (x) => silu(x);
    GeluTanh: "gelu_tanh(x0)", (x) => gelu_tanh(x);
    GeluErf: "gelu_erf(x0)", (x) => gelu_erf(x);
    Tanh: "tanh(x0)", (x) => tanh(x);
    Sigmoid: "sigmoid(x0)", (x) => sigmoid(x);
    Exp: "exp(x0)", (x) => exp(x);
    Sqrt: "sqrt(x0)", (x) => x.sqrt();
    Square: "square(x0)", (x) => x.mul(x);
    Relu: "relu(x0)", (x) => relu(x);
    SquaredRelu: "square(relu(x0))", (x) => relu(x).mul(relu(x));
    SiluTimes: "mul(silu(x0), x1)", (gate, up) => silu(gate).mul(up);
    GeluTanhTimes: "mul(gelu_tanh(x0), x1)", (gate, up) => gelu_tanh(gate).mul(up);
    GeluErfTimes: "mul(gelu_erf(x0), x1)", (gate, up) => gelu_erf(gate).mul(up);
    SigmoidTimes: "mul(sigmoid(x0), x1)", (gate, x) => sigmoid(gate).mul(x);
    // gpt-oss: the gate at most 7, `(up + 1) gate sigmoid(1.702 gate)` with up within 7 of 0.
    GptOss: "t0 = min(x0, 7.0); mul(mul(add(clamp(x1, -7.0, 7.0), 1.0), t0), sigmoid(mul(t0, 1.702)))", (gate, up) => {
        let gate = smaller(gate, V::splat(7.0));
        let up = smaller(larger(up, V::splat(-7.0)), V::splat(7.0));
        up.add(V::splat(1.0)).mul(gate).mul(sigmoid(gate.mul(V::splat(1.702))))
    };
    // What composition makes of a product's bias and what follows it: the residual, two of them, an activation, a gate.
    AddSum: "add(x0, add(x1, x2))", (x, a, b) => x.add(a.add(b));
    AddTwoSums: "add(add(x0, add(x1, x2)), add(x3, x4))", (x, a, b, c, d) => x.add(a.add(b)).add(c.add(d));
    SiluOfSum: "silu(add(x0, x1))", (a, b) => silu(a.add(b));
    GeluTanhOfSum: "gelu_tanh(add(x0, x1))", (a, b) => gelu_tanh(a.add(b));
    GeluErfOfSum: "gelu_erf(add(x0, x1))", (a, b) => gelu_erf(a.add(b));
    ReluOfSum: "relu(add(x0, x1))", (a, b) => relu(a.add(b));
    SiluTimesSums: "mul(silu(add(x0, x1)), add(x2, x3))", (a, b, c, d) => silu(a.add(b)).mul(c.add(d));
    GeluTanhTimesSums: "mul(gelu_tanh(add(x0, x1)), add(x2, x3))", (a, b, c, d) => gelu_tanh(a.add(b)).mul(c.add(d));
    GeluErfTimesSums: "mul(gelu_erf(add(x0, x1)), add(x2, x3))", (a, b, c, d) => gelu_erf(a.add(b)).mul(c.add(d));
}

/// `max(x, 0)`, in the order that keeps NaN.
#[inline(always)]
fn relu<V: Lanes>(x: V) -> V {
    V::splat(0.0).max(x)
}

/// A row of the table for an expression's own inputs and constants.
#[derive(Clone, PartialEq, Debug)]
pub struct Hot {
    /// The row.
    pub name: HotExprName,
    /// The expression's input for each of the row's.
    inputs: Vec<u16>,
    constants: Vec<[f32; LANES]>,
}

impl Hot {
    /// The row that an expression of f32 inputs is.
    pub fn of(expr: &Expr) -> Option<Hot> {
        TABLE.iter().find_map(|(name, inputs, pattern)| {
            let mut found = [None; MOST];
            let last = |e: &Expr| e.terms().len() as u32 - 1;
            if !fits(pattern, last(pattern), expr, last(expr), *inputs, &mut found) {
                return None;
            }
            let mut hot = Hot { name: *name, inputs: Vec::new(), constants: Vec::new() };
            for term in found.iter().flatten() {
                match term {
                    Term::Input(i) => hot.inputs.push(*i as u16),
                    Term::Const(Scalar::F32(c)) => hot.constants.push([c.0; LANES]),
                    _ => return None,
                }
            }
            Some(hot)
        })
    }

    /// `n` elements of the expression's inputs.
    ///
    /// # Safety
    /// The inputs have them, or sixteen that are the same, and `out` has room for them.
    #[inline(always)]
    pub(super) unsafe fn run<V: Lanes>(&self, inputs: &[LaneSource], out: *mut f32, n: usize) {
        let mut sources = [LaneSource::run(std::ptr::null()); MOST];
        for (source, &input) in sources.iter_mut().zip(&self.inputs) {
            *source = inputs[input as usize];
        }
        for (source, constant) in sources[self.inputs.len()..].iter_mut().zip(&self.constants) {
            *source = LaneSource::same(constant.as_ptr());
        }
        // SAFETY: what `Hot::run` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
        unsafe { run::<V>(self.name, sources, out, n) }
    }
}

/// Whether a term of an expression is that of a pattern, whose inputs from `inputs` on are constants; what they are goes
/// to `found`.
fn fits(pattern: &Expr, p: u32, expr: &Expr, e: u32, inputs: usize, found: &mut [Option<Term>; MOST]) -> bool {
    let term = expr.terms()[e as usize];
    match (pattern.terms()[p as usize], term) {
        (Term::Input(i), Term::Input(_) | Term::Const(_)) => {
            let constant = matches!(term, Term::Const(Scalar::F32(_)));
            let right = constant == (i as usize >= inputs) && (constant || matches!(term, Term::Input(_)));
            right && *found[i as usize].get_or_insert(term) == term
        }
        (Term::Call(f, ps), Term::Call(g, es)) if f == g => {
            let arity = f.arity();
            let before = *found;
            let mut all = |es: &[u32]| {
                *found = before;
                ps[..arity].iter().zip(es).all(|(&p, &e)| fits(pattern, p, expr, e, inputs, found))
            };
            // Sums and products are the same the other way round.
            all(&es[..arity]) || matches!(f, Func::Add | Func::Mul) && all(&[es[1], es[0]])
        }
        (p, e) => p == e,
    }
}
