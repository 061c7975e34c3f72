//! Laws: two ways to write one function, for any sizes and most element types.

use super::sketch::Sketch;
use yirage_ir::op::{Hadamard, LayerNorm, Linear, MatMul, ReduceKind, RmsNorm, Rope, Softmax, ViewForm};
use yirage_ir::{DType, F32, Graph, ValueId};

/// Sizes of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) h: usize,
}

type Side = fn(&mut Sketch, Sizes) -> Vec<ValueId>;

/// Two sides that are equal.
pub(crate) struct Law {
    pub(crate) name: &'static str,
    /// Whether it holds named ops, which are of f32.
    pub(crate) f32_only: bool,
    left: Side,
    right: Side,
}

impl Law {
    pub(crate) fn sides(&self, sizes: Sizes, dtype: DType) -> [Graph; 2] {
        [self.left, self.right].map(|side| {
            let mut g = Sketch::new(dtype);
            let outs = side(&mut g, sizes);
            g.finish(&outs)
        })
    }
}

macro_rules! laws {
    ($($(#$only:ident)? $name:literal: |$g:ident, $s:ident| [$($input:ident $sizes:expr),*] $left:block = $right:block;)*) => {
        /// All laws.
        pub(crate) fn all() -> Vec<Law> {
            vec![$(Law {
                name: $name,
                f32_only: [$(stringify!($only) == "named",)? false][0],
                left: |$g, $s| { let _ = $s; $(let $input = $g.input(stringify!($input), &$sizes); let _ = $input;)* $left.to_vec() },
                right: |$g, $s| { let _ = $s; $(let $input = $g.input(stringify!($input), &$sizes); let _ = $input;)* $right.to_vec() },
            }),*]
        }
    };
}

use ReduceKind::{Max, Mean, MeanSquare, Min, Prod, Sum};

laws! {
    "a product distributes over weights": |g, s| [x [s.m, s.k], a [s.k, s.n], b [s.k, s.n]] {
        let w = g.add(a, b); [g.dot(x, w)]
    } = { let (p, q) = (g.dot(x, a), g.dot(x, b)); [g.add(p, q)] };
    "a product distributes over rows": |g, s| [x [s.m, s.k], y [s.m, s.k], a [s.k, s.n]] {
        let z = g.map("sub(x0, x1)", &[x, y]); [g.dot(z, a)]
    } = { let (p, q) = (g.dot(x, a), g.dot(y, a)); [g.map("sub(x0, x1)", &[p, q])] };
    "a factor is taken out": |g, s| [a [s.m, s.n], b [s.m, s.n], c [s.m, s.n]] {
        let (p, q) = (g.mul(a, b), g.mul(a, c)); [g.add(p, q)]
    } = { let t = g.add(b, c); [g.mul(a, t)] };
    "a scale of rows commutes": |g, s| [x [s.m, s.k], r [s.m, 1], a [s.k, s.n]] {
        let t = g.mul(x, r); [g.dot(t, a)]
    } = { let t = g.dot(x, a); [g.mul(t, r)] };
    "a scale of columns commutes": |g, s| [x [s.m, s.k], c [s.n], a [s.k, s.n]] {
        let t = g.mul(a, c); [g.dot(x, t)]
    } = { let t = g.dot(x, a); [g.mul(t, c)] };
    "a scale in the middle changes sides": |g, s| [x [s.m, s.k], c [s.k], a [s.k, s.n]] {
        let t = g.mul(x, c); [g.dot(t, a)]
    } = { let c = g.reshape(&[s.k, 1], c); let t = g.mul(a, c); [g.dot(x, t)] };
    "a constant commutes": |g, s| [x [s.m, s.k], a [s.k, s.n]] {
        let t = g.map("mul(x0, 0.125)", &[x]); [g.dot(t, a)]
    } = { let t = g.dot(x, a); [g.map("mul(x0, 0.125)", &[t])] };
    "products side by side": |g, s| [x [s.m, s.k], a [s.k, s.n], b [s.k, s.h]] {
        let (p, q) = (g.dot(x, a), g.dot(x, b)); [g.concat(1, &[p, q])]
    } = { let w = g.concat(1, &[a, b]); [g.dot(x, w)] };
    "products one below the other": |g, s| [x [s.m, s.k], y [s.h, s.k], a [s.k, s.n]] {
        let (p, q) = (g.dot(x, a), g.dot(y, a)); [g.concat(0, &[p, q])]
    } = { let z = g.concat(0, &[x, y]); [g.dot(z, a)] };
    "parts of one product": |g, s| [x [s.m, s.k], a [s.k, s.n], b [s.k, s.n]] {
        [g.dot(x, a), g.dot(x, b)]
    } = {
        let w = g.concat(1, &[a, b]); let y = g.dot(x, w);
        [g.slice(1, 0, s.n, y), g.slice(1, s.n, 2 * s.n, y)]
    };
    "a product in two parts": |g, s| [x [s.m, s.k], a [s.k, s.n]] { [g.dot(x, a)] } = {
        let half = s.k / 2;
        let (x0, x1) = (g.slice(1, 0, half, x), g.slice(1, half, s.k, x));
        let (a0, a1) = (g.slice(0, 0, half, a), g.slice(0, half, s.k, a));
        let (p, q) = (g.dot(x0, a0), g.dot(x1, a1)); [g.add(p, q)]
    };
    "a sum in two parts": |g, s| [x [s.m, s.k]] { [g.last(Sum, x)] } = {
        let (a, b) = (g.slice(1, 0, s.k / 2, x), g.slice(1, s.k / 2, s.k, x));
        let (p, q) = (g.last(Sum, a), g.last(Sum, b)); [g.add(p, q)]
    };
    "a sum of what is joined": |g, s| [x [s.m, s.k], y [s.m, s.n]] {
        let z = g.concat(1, &[x, y]); [g.last(Sum, z)]
    } = { let (p, q) = (g.last(Sum, x), g.last(Sum, y)); [g.add(p, q)] };
    "a sum as a product with ones": |g, s| [x [s.m, s.k]] { [g.last(Sum, x)] } = {
        let ones = g.fill(1.0, &[s.k, 1]); let ones = g.map("mul(x0, 1.0)", &[ones]); [g.dot(x, ones)]
    };
    "turned twice": |g, s| [x [s.m, s.k]] { [g.map("neg(x0)", &[x])] } = {
        let t = g.t(x); let t = g.map("neg(x0)", &[t]); [g.t(t)]
    };
    "a product turned": |g, s| [x [s.m, s.k], a [s.k, s.n]] { let y = g.dot(x, a); [g.t(y)] } = {
        let (x, a) = (g.t(x), g.t(a)); [g.dot(a, x)]
    };
    "products reassociate": |g, s| [x [s.m, s.k], a [s.k, s.n], b [s.n, s.h]] {
        let p = g.dot(x, a); [g.dot(p, b)]
    } = { let w = g.dot(a, b); [g.dot(x, w)] };
    "low rank": |g, s| [x [s.m, s.k], w [s.k, s.n], b [s.k, s.h], a [s.h, s.n]] {
        let d = g.dot(b, a); let w = g.add(w, d); [g.dot(x, w)]
    } = { let p = g.dot(x, b); let p = g.dot(p, a); let q = g.dot(x, w); [g.add(q, p)] };
    "low rank as one product": |g, s| [x [s.m, s.k], w [s.k, s.n], b [s.k, s.h], a [s.h, s.n]] {
        let p = g.dot(x, b); let p = g.dot(p, a); let q = g.dot(x, w); [g.add(q, p)]
    } = {
        let p = g.dot(x, b); let left = g.concat(1, &[x, p]); let right = g.concat(0, &[w, a]); [g.dot(left, right)]
    };
    "a softmax shifts": |g, s| [x [s.m, s.n], c [s.m, 1]] { let y = g.add(x, c); [g.softmax(y)] } = { [g.softmax(x)] };
    "a softmax divides late": |g, s| [x [s.m, s.k], v [s.k, s.n]] { let p = g.softmax(x); [g.dot(p, v)] } = {
        let e = g.shifted_exp(x); let (y, sum) = (g.dot(e, v), g.last(Sum, e)); [g.div(y, sum)]
    };
    "a softmax in two blocks": |g, s| [x [s.m, s.k], v [s.k, s.n]] { let p = g.softmax(x); [g.dot(p, v)] } = {
        let half = s.k / 2;
        let (x0, x1) = (g.slice(1, 0, half, x), g.slice(1, half, s.k, x));
        let (v0, v1) = (g.slice(0, 0, half, v), g.slice(0, half, s.k, v));
        let (m0, m1) = (g.last(Max, x0), g.last(Max, x1));
        let m = g.map("max(x0, x1)", &[m0, m1]);
        let (e0, e1) = (g.map("exp(sub(x0, x1))", &[x0, m0]), g.map("exp(sub(x0, x1))", &[x1, m]));
        let scale = g.map("exp(sub(x0, x1))", &[m0, m]);
        let (y0, y1, s0, s1) = (g.dot(e0, v0), g.dot(e1, v1), g.last(Sum, e0), g.last(Sum, e1));
        let (y0, s0) = (g.mul(y0, scale), g.mul(s0, scale));
        let (y, sum) = (g.add(y0, y1), g.add(s0, s1)); [g.div(y, sum)]
    };
    "a running maximum begins with minus infinity": |g, s| [x [s.m, s.k]] { [g.last(Max, x)] } = {
        let low = g.fill(f32::NEG_INFINITY, &[s.m, 1]);
        let m = g.last(Max, x); [g.map("max(x0, x1)", &[low, m])]
    };
    "a normalisation moves behind a product": |g, s| [x [s.m, s.k], a [s.k, s.n]] {
        let ms = g.last(MeanSquare, x); let y = g.map("mul(x0, rsqrt(add(x1, 1e-5)))", &[x, ms]); [g.dot(y, a)]
    } = { let (ms, y) = (g.last(MeanSquare, x), g.dot(x, a)); [g.map("mul(x0, rsqrt(add(x1, 1e-5)))", &[y, ms])] };
    "a normalisation's weight joins the matrix": |g, s| [x [s.m, s.k], w [s.k], a [s.k, s.n]] {
        let ms = g.last(MeanSquare, x);
        let y = g.map("mul(mul(x0, rsqrt(add(x1, 1e-5))), x2)", &[x, ms, w]); [g.dot(y, a)]
    } = {
        let (ms, w) = (g.last(MeanSquare, x), g.reshape(&[s.k, 1], w)); let a = g.mul(a, w); let y = g.dot(x, a);
        [g.map("div(x0, sqrt(add(x1, 1e-5)))", &[y, ms])]
    };
    "silu is x times sigmoid": |g, s| [x [s.m, s.n]] { [g.map("silu(x0)", &[x])] } = { [g.map("mul(x0, sigmoid(x0))", &[x])] };
    "silu is a quotient": |g, s| [x [s.m, s.n]] { [g.map("silu(x0)", &[x])] } = {
        [g.map("div(x0, add(exp(neg(x0)), 1.0))", &[x])]
    };
    "sigmoid mirrors": |g, s| [x [s.m, s.n]] { [g.map("sub(1.0, sigmoid(x0))", &[x])] } = { [g.map("sigmoid(neg(x0))", &[x])] };
    "tanh is odd": |g, s| [x [s.m, s.n]] { [g.map("neg(tanh(neg(x0)))", &[x])] } = { [g.map("tanh(x0)", &[x])] };
    "tanh of sigmoids": |g, s| [x [s.m, s.n]] { [g.map("sub(mul(2.0, sigmoid(mul(2.0, x0))), 1.0)", &[x])] } = {
        [g.map("tanh(x0)", &[x])]
    };
    "gelu by tanh": |g, s| [x [s.m, s.n]] { [g.map("gelu_tanh(x0)", &[x])] } = {
        [g.map("mul(mul(0.5, x0), add(1.0, tanh(mul(0.7978846, add(x0, mul(0.044715, mul(x0, mul(x0, x0))))))))", &[x])]
    };
    "a quotient is a product": |g, s| [x [s.m, s.n], y [s.m, 1]] { [g.div(x, y)] } = { [g.map("mul(x0, recip(x1))", &[x, y])] };
    "a square is a product": |g, s| [x [s.m, s.n]] { [g.map("square(x0)", &[x])] } = { [g.mul(x, x)] };
    "a power is a product": |g, s| [x [s.m, s.n]] { [g.map("pow(x0, 3.0)", &[x])] } = { [g.map("mul(x0, square(x0))", &[x])] };
    "roots": |g, s| [x [s.m, s.n]] { [g.map("rsqrt(add(square(x0), 1.0))", &[x])] } = {
        [g.map("div(1.0, pow(add(mul(x0, x0), 1.0), 0.5))", &[x])]
    };
    "a mean is a sum": |g, s| [x [s.m, s.n]] { [g.last(Mean, x)] } = {
        let sum = g.last(Sum, x); [g.map(&format!("div(x0, {}.0)", s.n), &[sum])]
    };
    "a mean is a scaled sum": |g, s| [x [s.m, s.n]] { [g.last(Mean, x)] } = {
        let sum = g.last(Sum, x); [g.map(&format!("mul(x0, {:?})", 1.0 / s.n as f32), &[sum])]
    };
    "a mean of squares": |g, s| [x [s.m, s.n]] { [g.last(MeanSquare, x)] } = {
        let y = g.map("square(x0)", &[x]); [g.last(Mean, y)]
    };
    "relu is a maximum": |g, s| [x [s.m, s.n]] { [g.map("relu(x0)", &[x])] } = { [g.map("max(0.0, x0)", &[x])] };
    "abs is a maximum": |g, s| [x [s.m, s.n]] { [g.map("abs(x0)", &[x])] } = { [g.map("max(x0, neg(x0))", &[x])] };
    "relu twice is relu": |g, s| [x [s.m, s.n]] { [g.map("relu(relu(x0))", &[x])] } = { [g.map("relu(x0)", &[x])] };
    "clamp is two": |g, s| [x [s.m, s.n]] { [g.map("clamp(x0, -0.5, 0.25)", &[x])] } = {
        [g.map("min(max(x0, -0.5), 0.25)", &[x])]
    };
    "a minimum is a maximum": |g, s| [x [s.m, s.n]] { [g.last(Min, x)] } = {
        let y = g.map("neg(x0)", &[x]); let m = g.last(Max, y); [g.map("neg(x0)", &[m])]
    };
    "maxima reassociate": |g, s| [x [s.m, s.n], y [s.m, s.n], z [s.m, s.n]] { [g.map("max(max(x0, x1), x2)", &[x, y, z])] } = {
        [g.map("max(x1, max(x2, max(x0, x1)))", &[x, y, z])]
    };
    "a maximum of what is joined": |g, s| [x [s.m, s.k], y [s.m, s.n]] {
        let z = g.concat(1, &[x, y]); [g.last(Max, z)]
    } = { let (p, q) = (g.last(Max, x), g.last(Max, y)); [g.map("max(x0, x1)", &[p, q])] };
    "a maximum shifts": |g, s| [x [s.m, s.n], c [s.m, 1]] { let y = g.add(x, c); [g.last(Max, y)] } = {
        let m = g.last(Max, x); [g.add(m, c)]
    };
    "a product of all in two parts": |g, s| [x [s.m, s.k]] { [g.last(Prod, x)] } = {
        let (a, b) = (g.slice(1, 0, s.k / 2, x), g.slice(1, s.k / 2, s.k, x));
        let (p, q) = (g.last(Prod, a), g.last(Prod, b)); [g.mul(p, q)]
    };
    "a gated unit of one product": |g, s| [x [s.m, s.k], a [s.k, s.n], b [s.k, s.n]] {
        let (p, q) = (g.dot(x, a), g.dot(x, b)); [g.map("mul(silu(x0), x1)", &[p, q])]
    } = {
        let w = g.concat(1, &[a, b]); let y = g.dot(x, w);
        let (p, q) = (g.slice(1, 0, s.n, y), g.slice(1, s.n, 2 * s.n, y));
        [g.map("mul(x1, div(x0, add(1.0, exp(neg(x0)))))", &[p, q])]
    };
    "permutations compose": |g, s| [x [s.m, s.k, s.n]] { let t = g.permute(&[1, 2, 0], x); [g.permute(&[1, 2, 0], t)] } = {
        [g.permute(&[2, 0, 1], x)]
    };
    "reshapes compose": |g, s| [x [s.m, 2 * s.k]] { let t = g.reshape(&[2 * s.m * s.k], x); [g.reshape(&[2, s.m, s.k], t)] } = {
        [g.reshape(&[2, s.m, s.k], x)]
    };
    "a reshape moves over a permutation": |g, s| [x [s.m, s.k, s.n]] {
        let t = g.permute(&[2, 0, 1], x); [g.reshape(&[s.n, s.m * s.k], t)]
    } = { let t = g.reshape(&[s.m * s.k, s.n], x); [g.t(t)] };
    "slices compose": |g, s| [x [s.m, s.k + 4]] { let t = g.slice(1, 1, s.k + 3, x); [g.slice(1, 1, s.k, t)] } = {
        [g.slice(1, 2, s.k + 1, x)]
    };
    "a slice of what is joined": |g, s| [x [s.m, s.k], y [s.m, s.n]] {
        let z = g.concat(1, &[x, y]); let z = g.map("exp(x0)", &[z]); [g.slice(1, s.k, s.k + s.n, z)]
    } = { [g.map("exp(x0)", &[y])] };
    "a slice moves over a product": |g, s| [x [s.m, s.k], a [s.k, s.n + 3]] { let y = g.dot(x, a); [g.slice(1, 2, s.n, y)] } = {
        let a = g.slice(1, 2, s.n, a); [g.dot(x, a)]
    };
    "what is expanded meets": |g, s| [x [s.m, s.n], r [s.m, 1]] { let r = g.expand(&[s.m, s.n], r); [g.mul(x, r)] } = { [g.mul(x, r)] };
    "a permutation moves over a map": |g, s| [x [s.m, s.n], y [s.m, s.n]] { let z = g.map("mul(silu(x0), x1)", &[x, y]); [g.t(z)] } = {
        let (x, y) = (g.t(x), g.t(y)); [g.map("mul(silu(x0), x1)", &[x, y])]
    };
    "sums of two dimensions": |g, s| [x [s.m, s.k, s.n]] { [g.reduce(Sum, &[0, 2], x)] } = {
        let t = g.reduce(Sum, &[2], x); [g.reduce(Sum, &[0], t)]
    };
    "a sum of what is turned": |g, s| [x [s.m, s.n]] { let t = g.t(x); let y = g.reduce(Sum, &[0], t); [g.t(y)] } = { [g.last(Sum, x)] };
    "a batch of products": |g, s| [x [2, s.m, s.k], a [2, s.k, s.n]] { [g.dot(x, a)] } = {
        let parts = [0, 1].map(|i| { let (x, a) = (g.slice(0, i, i + 1, x), g.slice(0, i, i + 1, a)); g.dot(x, a) });
        [g.concat(0, &parts)]
    };
    "a batch as rows": |g, s| [x [s.h, s.m, s.k], a [s.k, s.n]] { [g.dot(x, a)] } = {
        let y = g.reshape(&[s.h * s.m, s.k], x); let y = g.dot(y, a); [g.reshape(&[s.h, s.m, s.n], y)]
    };
    "a product as sums": |g, s| [x [s.m, s.k], a [s.k, s.n]] { [g.dot(x, a)] } = {
        let (x, a) = (g.reshape(&[s.m, s.k, 1], x), g.reshape(&[1, s.k, s.n], a));
        let y = g.mul(x, a); let y = g.reduce(Sum, &[1], y); [g.reshape(&[s.m, s.n], y)]
    };
    "exponentials of sums": |g, s| [x [s.m, s.n], y [s.m, s.n]] { [g.map("mul(exp(x0), exp(x1))", &[x, y])] } = {
        [g.map("exp(add(x0, x1))", &[x, y])]
    };
    "a scale of scores": |g, s| [q [s.m, s.k], c [s.n, s.k]] {
        let t = g.t(c); let y = g.dot(q, t); let y = g.map("mul(x0, 0.25)", &[y]); [g.softmax(y)]
    } = { let q = g.map("mul(x0, 0.25)", &[q]); let t = g.t(c); let y = g.dot(q, t); [g.softmax(y)] };
    "constants fold": |g, s| [x [s.m, s.n]] { [g.map("mul(mul(x0, 0.1), 0.2)", &[x])] } = { [g.map("mul(x0, 0.02)", &[x])] };
    "twice is a sum": |g, s| [x [s.m, s.n]] { [g.add(x, x)] } = { [g.map("mul(x0, 2.0)", &[x])] };
    "a difference is a sum": |g, s| [x [s.m, s.n], y [s.n]] { [g.map("sub(x0, x1)", &[x, y])] } = { [g.map("add(neg(x1), x0)", &[x, y])] };
    "a choice is linear": |g, s| [x [s.m, s.n], y [s.m, s.n], z [s.m, s.n]] {
        [g.map("mul(select(lt(x0, x1), x1, x2), x0)", &[x, y, z])]
    } = { [g.map("select(le(x1, x0), mul(x2, x0), mul(x1, x0))", &[x, y, z])] };
    "grouped heads share keys": |g, s| [q [2, s.h, s.m, s.k], c [2, 1, s.k, s.n]] { [g.dot(q, c)] } = {
        let c = g.expand(&[2, s.h, s.k, s.n], c);
        let (q, c) = (g.reshape(&[2 * s.h, s.m, s.k], q), g.reshape(&[2 * s.h, s.k, s.n], c));
        let y = g.dot(q, c); [g.reshape(&[2, s.h, s.m, s.n], y)]
    };
    "a group's queries are rows": |g, s| [q [2, s.h, s.m, s.k], c [2, 1, s.k, s.n]] { [g.dot(q, c)] } = {
        let (q, c) = (g.reshape(&[2, s.h * s.m, s.k], q), g.reshape(&[2, s.k, s.n], c));
        let y = g.dot(q, c); [g.reshape(&[2, s.h, s.m, s.n], y)]
    };
    "a lookup of a map": |g, s| [x [s.k, s.n]] {
        let at = g.input_of("at", DType::I32, &[s.m]); let y = g.map("silu(x0)", &[x]); [g.gather(0, y, at)]
    } = { let at = g.input_of("at", DType::I32, &[s.m]); let y = g.gather(0, x, at); [g.map("silu(x0)", &[y])] };
    "a lookup of a product": |g, s| [x [s.k, s.n], a [s.n, s.h]] {
        let at = g.input_of("at", DType::I32, &[s.m]); let y = g.dot(x, a); [g.gather(0, y, at)]
    } = { let at = g.input_of("at", DType::I32, &[s.m]); let y = g.gather(0, x, at); [g.dot(y, a)] };
    #named "softmax by name": |g, s| [x [s.m, s.n]] { [g.op(Softmax {}, &[x])] } = { [g.softmax(x)] };
    #named "rms_norm by name": |g, s| [x [s.m, s.k], w [s.k]] {
        [g.op(RmsNorm { eps: F32(1e-6), width: s.k as u32, unit_offset: false }, &[x, w])]
    } = { let ms = g.last(MeanSquare, x); [g.map("div(mul(x0, x2), sqrt(add(x1, 1e-6)))", &[x, ms, w])] };
    #named "rms_norm into a product": |g, s| [x [s.m, s.k], w [s.n, s.k]] {
        let y = g.op(RmsNorm { eps: F32(1e-6), width: s.k as u32, unit_offset: false }, &[x]); [g.op(Linear { groups: 1 }, &[y, w])]
    } = {
        let (ms, y) = (g.last(MeanSquare, x), g.op(Linear { groups: 1 }, &[x, w]));
        [g.map("mul(rsqrt(add(x1, 1e-6)), x0)", &[y, ms])]
    };
    #named "layer_norm by name": |g, s| [x [s.m, s.k], w [s.k], b [s.k]] { [g.op(LayerNorm { eps: F32(1e-5) }, &[x, w, b])] } = {
        let mean = g.last(Mean, x); let c = g.map("sub(x0, x1)", &[x, mean]); let v = g.last(MeanSquare, c);
        [g.map("add(mul(x2, div(x0, sqrt(add(x1, 1e-5)))), x3)", &[c, v, w, b])]
    };
    #named "linear by name": |g, s| [x [s.m, s.k], w [s.n, s.k]] { [g.op(Linear { groups: 1 }, &[x, w])] } = {
        let w = g.t(w); [g.dot(x, w)]
    };
    #named "matmul by name": |g, s| [a [s.h, s.m * s.k], b [s.h, s.k * s.n]] {
        [g.op(MatMul { m: s.m as u32, n: s.n as u32 }, &[a, b])]
    } = {
        let (a, b) = (g.reshape(&[s.h, s.m, s.k], a), g.reshape(&[s.h, s.k, s.n], b));
        let y = g.dot(a, b); [g.reshape(&[s.h, s.m * s.n], y)]
    };
    #named "a rotation is linear": |g, s| [x [s.m, 8], y [s.m, 8], cos [s.m, 4], sin [s.m, 4]] {
        let z = g.add(x, y); [g.op(Rope { width: 8, rotary: 8, interleaved: false, per_row: true }, &[z, cos, sin])]
    } = {
        let rope = Rope { width: 8, rotary: 8, interleaved: false, per_row: true };
        let (x, y) = (g.op(rope.clone(), &[x, cos, sin]), g.op(rope, &[y, cos, sin])); [g.add(x, y)]
    };
    #named "mixed twice": |g, s| [x [s.m, 32]] { [g.map("mul(x0, 3.0)", &[x])] } = {
        let y = g.op(Hadamard { part: 16 }, &[x]); let y = g.map("mul(x0, 3.0)", &[y]); [g.op(Hadamard { part: 16 }, &[y])]
    };
    "every second": |g, s| [x [s.m, 2 * s.k]] { [g.last(Sum, x)] } = {
        let pairs = g.reshape(&[s.m, s.k, 2], x);
        let (a, b) = (g.slice(2, 0, 1, pairs), g.slice(2, 1, 2, pairs));
        let y = g.add(a, b); let y = g.reduce(Sum, &[1], y); [g.reshape(&[s.m, 1], y)]
    };
    "an identity view": |g, s| [x [s.m, s.k], a [s.k, s.n]] { [g.dot(x, a)] } = {
        let x = g.view(ViewForm::Permute(vec![0, 1]), x); let x = g.reshape(&[1, s.m, s.k], x); let y = g.dot(x, a);
        [g.reshape(&[s.m, s.n], y)]
    };
}
