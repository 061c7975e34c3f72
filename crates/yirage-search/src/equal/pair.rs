//! Evaluation over finite fields, after Mirage (M. Wu et al., "Mirage: a multi-level superoptimizer for tensor
//! programs", OSDI 2025).
//!
//! A number is a pair: its residue modulo `p`, and modulo `q`, which divides `p - 1`. Sums, products and quotients are
//! computed of both. `exp` of a number is `g` to the power of its second residue, modulo `p`, for a `g` of order `q`:
//! so `exp(a + b)` is `exp(a) exp(b)`, and its second residue is unknown from there on.
//!
//! All else is a random function: the key and the first residues of the arguments say what it gives, so equal arguments
//! give equal values and nothing more is assumed. What is exactly a composition of the former is computed as that, and
//! what is symmetric is a function of what is left by the symmetry:
//!
//! - `max` is the free semilattice: which set of numbers a maximum is of is remembered, so it is associative,
//!   commutative and idempotent; the mean of the set is split off, so `max(a + c, b + c)` is `max(a, b) + c`. Minima,
//!   `abs`, `relu` and `clamp` are maxima. That `exp` is monotone, or a factor positive, is not known.
//! - `a < b` follows from `a - b` alone, `a <= b` is `not (b < a)`, and `a == b` is symmetric.
//! - A bool that is not known is a number `c`, and a choice by it is `c x + (1 - c) y`.
//!
//! Rounding is no part of this: a float of another width is the same number.

use super::domain::{Domain, EvalStop, Matrices};
use super::inputs::choice;
use super::map::wrapped;
use super::prime::Prime;
use super::program::EvalInput;
use super::rational::meant;
use std::collections::HashMap;
use yirage_ir::DType;
use yirage_ir::expr::Func;
use yirage_ir::op::ReduceKind;
use yirage_ir::rng::{self, mix};

/// Primes `p` with `q = (p - 1) / 2` prime: the largest two such below 2^31.
pub(super) const FIELDS: [(u32, u32); 2] = [(2_147_483_579, 1_073_741_789), (2_147_483_123, 1_073_741_561)];

/// A number. The second residue is `UNKNOWN` behind an `exp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ResiduePair {
    pub(super) p: u32,
    q: u32,
}

/// No residue.
const UNKNOWN: u32 = u32::MAX;

/// Whole numbers of this size are recognised in floats, as arguments of functions that are exact there.
const SMALL: u32 = 64;
/// The largest whole number that is known as one where floats are compared or cut off.
const WHOLE: u32 = 4096;

/// What random functions are named by.
const LOWEST: u64 = 1;
const NAN: u64 = 2;
const CUT_OFF: u64 = 3;
const MAXIMUM: u64 = 4;
const FUNCTIONS: u64 = 0x100;

/// Bits of an exponent that one table of powers is for.
const DIGIT: u32 = 10;

/// One trial: two fields, a generator, and the key of all random functions and inputs.
pub(super) struct ResidueDomain {
    p: Prime,
    q: Prime,
    /// Powers of the generator, a table for each digit of the exponent.
    powers: Vec<Vec<u32>>,
    seed: u64,
    /// Minus infinity: it takes what is added to it in, and no maximum depends on it.
    lowest: ResiduePair,
    /// For each maximum, what it is of, ascending.
    sets: HashMap<u32, Vec<ResiduePair>>,
}

impl ResidueDomain {
    /// The trial that follows from `seed`; without `exponents`, which only `exp` needs, second residues are left out.
    pub(super) fn new(field: (u32, u32), seed: u64, exponents: bool) -> ResidueDomain {
        let (p, q) = (Prime::new(field.0), Prime::new(field.1));
        let mut pairs = ResidueDomain {
            p,
            q,
            powers: Vec::new(),
            seed,
            lowest: ResiduePair { p: 0, q: UNKNOWN },
            sets: HashMap::new(),
        };
        if exponents {
            pairs.powers = pairs.tables();
        }
        pairs.lowest = pairs.random(LOWEST, &[]);
        pairs
    }

    /// Squares are the numbers of order `q`, and 1.
    fn tables(&self) -> Vec<Vec<u32>> {
        let root = 2 + self.p.reduce(rng::at(self.seed, 0)) % (self.p.order() - 3);
        let mut base = self.p.mul(root, root);
        let mut tables = Vec::new();
        for _ in 0..u32::BITS.div_ceil(DIGIT) {
            let mut table = Vec::with_capacity(1 << DIGIT);
            let mut power = 1;
            for _ in 0..1 << DIGIT {
                table.push(power);
                power = self.p.mul(power, base);
            }
            base = power;
            tables.push(table);
        }
        tables
    }

    fn pair(&self, p: u32, q: u32) -> ResiduePair {
        ResiduePair { p, q: if self.powers.is_empty() { UNKNOWN } else { q } }
    }

    /// The number that a hash is.
    fn fresh(&self, hash: u64) -> ResiduePair {
        let (p, q) = (mix(hash ^ 0x5555), mix(hash ^ 0xaaaa));
        self.pair(self.p.reduce(p), self.q.reduce(q))
    }

    /// A random function of first residues.
    fn random(&self, name: u64, args: &[u32]) -> ResiduePair {
        let hash = args.iter().fold(mix(self.seed ^ name), |hash, &x| mix(hash.rotate_left(7) ^ u64::from(x)));
        self.fresh(hash)
    }

    fn random_of(&self, func: Func, args: &[u32]) -> ResiduePair {
        self.random(FUNCTIONS + func as u64, args)
    }

    fn whole_pair(&self, x: i64) -> ResiduePair {
        self.pair(self.p.signed(x), self.q.signed(x))
    }

    /// The same of both residues; unknown where one argument's is.
    fn both(&self, a: ResiduePair, b: ResiduePair, of: impl Fn(Prime, u32, u32) -> u32) -> ResiduePair {
        let q = if a.q == UNKNOWN || b.q == UNKNOWN { UNKNOWN } else { of(self.q, a.q, b.q) };
        ResiduePair { p: of(self.p, a.p, b.p), q }
    }

    fn add(&self, a: ResiduePair, b: ResiduePair) -> ResiduePair {
        if a == self.lowest || b == self.lowest {
            return self.lowest;
        }
        let highest = self.neg(self.lowest);
        if a == highest || b == highest {
            return highest;
        }
        self.both(a, b, Prime::add)
    }

    fn neg(&self, a: ResiduePair) -> ResiduePair {
        self.both(a, a, |f, a, _| f.neg(a))
    }

    fn sub(&self, a: ResiduePair, b: ResiduePair) -> ResiduePair {
        self.add(a, self.neg(b))
    }

    fn mul(&self, a: ResiduePair, b: ResiduePair) -> ResiduePair {
        // Nothing times anything is known in both fields.
        let none = ResiduePair { p: 0, q: 0 };
        if a == none || b == none {
            return none;
        }
        self.both(a, b, Prime::mul)
    }

    fn recip(&self, a: ResiduePair) -> Result<ResiduePair, EvalStop> {
        let p = self.p.inverse(a.p).ok_or(EvalStop::Division)?;
        let q = if a.q == UNKNOWN { UNKNOWN } else { self.q.inverse(a.q).ok_or(EvalStop::Division)? };
        Ok(ResiduePair { p, q })
    }

    fn div(&self, a: ResiduePair, b: ResiduePair) -> Result<ResiduePair, EvalStop> {
        Ok(self.mul(a, self.recip(b)?))
    }

    fn exp(&self, x: ResiduePair) -> ResiduePair {
        if x == self.lowest {
            return self.whole_pair(0);
        }
        if x.q == UNKNOWN {
            return self.random_of(Func::Exp, &[x.p]);
        }
        let digit = |(i, table): (usize, &Vec<u32>)| table[(x.q >> (DIGIT * i as u32)) as usize & ((1 << DIGIT) - 1)];
        let p = self.powers.iter().enumerate().map(digit).fold(1, |power, factor| self.p.mul(power, factor));
        // The exponential of nothing is one, whatever follows.
        if x.p == 0 && x.q == 0 { self.whole_pair(1) } else { ResiduePair { p, q: UNKNOWN } }
    }

    /// The whole number up to `size` that a number is.
    fn small(&self, x: ResiduePair, size: u32) -> Option<i64> {
        let negative = self.p.neg(x.p);
        if x.p <= size {
            return Some(i64::from(x.p));
        }
        (negative <= size).then(|| -i64::from(negative))
    }

    fn sqrt(&self, x: ResiduePair) -> ResiduePair {
        let root = (0..=SMALL).find(|root| root * root == x.p);
        root.map_or_else(|| self.random_of(Func::Sqrt, &[x.p]), |root| self.whole_pair(i64::from(root)))
    }

    fn sigmoid(&self, x: ResiduePair) -> Result<ResiduePair, EvalStop> {
        self.recip(self.add(self.whole_pair(1), self.exp(self.neg(x))))
    }

    fn tanh(&self, x: ResiduePair) -> Result<ResiduePair, EvalStop> {
        let (one, two) = (self.whole_pair(1), self.whole_pair(2));
        let below = self.add(self.exp(self.mul(two, x)), one);
        Ok(self.sub(one, self.div(two, below)?))
    }

    fn gelu_tanh(&mut self, x: ResiduePair) -> Result<ResiduePair, EvalStop> {
        // The constants of the definition as a graph writes them.
        let [half, cubic, scale] = [0.5, 0.044_715, 0.797_884_6].map(|c| self.constant(c));
        let inner = self.add(x, self.mul(cubic, self.mul(self.mul(x, x), x)));
        let tanh = self.tanh(self.mul(scale, inner))?;
        Ok(self.mul(self.mul(half, x), self.add(self.whole_pair(1), tanh)))
    }

    /// A power by repeated products where the exponent is small and whole, a root where it is a half.
    fn pow(&mut self, x: ResiduePair, y: ResiduePair) -> Result<ResiduePair, EvalStop> {
        let half = self.constant(0.5);
        if y.p == half.p {
            return Ok(self.sqrt(x));
        }
        if y.p == self.neg(half).p {
            return self.recip(self.sqrt(x));
        }
        let Some(n) = self.small(y, 8) else { return Ok(self.random_of(Func::Pow, &[x.p, y.p])) };
        let power = (0..n.unsigned_abs()).fold(self.whole_pair(1), |power, _| self.mul(power, x));
        if n < 0 { self.recip(power) } else { Ok(power) }
    }

    /// `a < b`; never of equal numbers.
    fn less(&self, a: ResiduePair, b: ResiduePair) -> ResiduePair {
        if let (Some(a), Some(b)) = (self.small(a, WHOLE), self.small(b, WHOLE)) {
            return self.whole_pair(i64::from(a < b));
        }
        match self.sub(a, b) {
            same if same.p == 0 => self.whole_pair(0),
            far => self.random_of(Func::Less, &[far.p]),
        }
    }

    fn equal(&self, a: ResiduePair, b: ResiduePair) -> ResiduePair {
        match (a.p, self.sub(a, b)) {
            (p, _) if p == b.p => self.whole_pair(1),
            // Two whole numbers are different, and so are two known bools.
            _ if self.small(a, WHOLE).is_some() && self.small(b, WHOLE).is_some() => self.whole_pair(0),
            (_, far) => {
                let back = self.p.neg(far.p);
                self.random_of(Func::Equal, &[far.p.min(back), far.p.max(back)])
            }
        }
    }

    fn not(&self, c: ResiduePair) -> ResiduePair {
        self.sub(self.whole_pair(1), c)
    }

    fn select(&self, c: ResiduePair, yes: ResiduePair, no: ResiduePair) -> ResiduePair {
        match self.truth(c) {
            Some(true) => yes,
            Some(false) => no,
            None if yes == no => yes,
            None => self.add(self.mul(c, yes), self.mul(self.not(c), no)),
        }
    }

    /// The largest of a set.
    fn max(&mut self, x: &[ResiduePair]) -> ResiduePair {
        let mut set: Vec<ResiduePair> = Vec::with_capacity(x.len());
        for &x in x.iter().filter(|&&x| x != self.lowest) {
            match self.sets.get(&x.p) {
                Some(inner) => set.extend(inner),
                None => set.push(x),
            }
        }
        set.sort_unstable_by_key(|x| (x.p, x.q));
        set.dedup_by_key(|x| x.p);
        match set[..] {
            [] => return self.lowest,
            [one] => return one,
            _ => {}
        }
        let sum = set.iter().skip(1).fold(set[0], |sum, &x| self.both(sum, x, Prime::add));
        let count = self.whole_pair(set.len() as i64);
        // As many elements as the order of a field are not held.
        let mean = self.div(sum, count).unwrap_or(sum);
        let hash = |x: &ResiduePair| mix(self.seed ^ mix(MAXIMUM ^ u64::from(self.p.sub(x.p, mean.p)) << 8));
        let hash = set.iter().map(hash).fold(0, u64::wrapping_add);
        let max = self.both(mean, self.fresh(mix(hash)), Prime::add);
        self.sets.insert(max.p, set);
        max
    }

    fn min(&mut self, x: &[ResiduePair]) -> ResiduePair {
        let negative: Vec<ResiduePair> = x.iter().map(|&x| self.neg(x)).collect();
        let max = self.max(&negative);
        self.neg(max)
    }

    fn sum(&self, x: &[ResiduePair]) -> ResiduePair {
        x.iter().fold(self.whole_pair(0), |sum, &x| self.add(sum, x))
    }
}

impl Domain for ResidueDomain {
    type Num = ResiduePair;

    fn input(&mut self, input: &EvalInput, dtype: DType, _: &[usize], at: usize) -> ResiduePair {
        let hash = rng::at(self.seed ^ input.key, at as u64);
        if dtype == DType::Bool { self.whole_pair((hash & 1) as i64) } else { self.fresh(hash) }
    }

    fn whole_input(&mut self, input: &EvalInput, at: usize) -> i64 {
        choice(self.seed, input, at)
    }

    fn constant(&mut self, x: f32) -> ResiduePair {
        if x.is_nan() {
            return self.random(NAN, &[]);
        }
        if x.is_infinite() {
            return if x < 0.0 { self.lowest } else { self.neg(self.lowest) };
        }
        let meant = meant(x);
        let residue = |f: Prime| {
            let power = |base: u32, exponent: i32| {
                let power = f.pow(base, exponent.unsigned_abs().into());
                // No prime here is 2 or 5, nor a denominator.
                if exponent < 0 { f.inverse(power).unwrap_or(0) } else { power }
            };
            let over = f.inverse(f.reduce(meant.over.into())).unwrap_or(0);
            let number = f.mul(f.signed(meant.number), over);
            f.mul(f.mul(number, power(2, meant.two)), power(10, meant.ten))
        };
        self.pair(residue(self.p), residue(self.q))
    }

    fn whole(&mut self, x: i64) -> ResiduePair {
        self.whole_pair(x)
    }

    fn truth(&self, x: ResiduePair) -> Option<bool> {
        match x.p {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn call(&mut self, func: Func, x: &[ResiduePair]) -> Result<ResiduePair, EvalStop> {
        Ok(match func {
            Func::Add => self.add(x[0], x[1]),
            Func::Sub => self.sub(x[0], x[1]),
            Func::Mul => self.mul(x[0], x[1]),
            Func::Div => self.div(x[0], x[1])?,
            Func::Pow => self.pow(x[0], x[1])?,
            Func::Min => self.min(x),
            Func::Max => self.max(x),
            Func::Neg => self.neg(x[0]),
            Func::Abs => self.max(&[x[0], self.neg(x[0])]),
            Func::Exp => self.exp(x[0]),
            Func::Log if x[0].p == 1 => self.whole_pair(0),
            Func::Log => self.random_of(Func::Log, &[x[0].p]),
            Func::Sqrt => self.sqrt(x[0]),
            Func::Rsqrt => self.recip(self.sqrt(x[0]))?,
            Func::Recip => self.recip(x[0])?,
            Func::Square => self.mul(x[0], x[0]),
            Func::Tanh => self.tanh(x[0])?,
            Func::Sigmoid => self.sigmoid(x[0])?,
            Func::Silu => self.mul(x[0], self.sigmoid(x[0])?),
            Func::GeluErf => {
                // Half of x, and an even function.
                let back = self.p.neg(x[0].p);
                let even = self.random_of(Func::GeluErf, &[x[0].p.min(back), x[0].p.max(back)]);
                let half = self.constant(0.5);
                let even = if x[0].p == 0 { self.whole_pair(0) } else { even };
                self.add(self.mul(half, x[0]), even)
            }
            Func::GeluTanh => self.gelu_tanh(x[0])?,
            Func::Relu => self.max(&[x[0], self.whole_pair(0)]),
            Func::Clamp => {
                let above = self.max(&x[..2]);
                self.min(&[above, x[2]])
            }
            Func::Less => self.less(x[0], x[1]),
            Func::LessEqual => self.not(self.less(x[1], x[0])),
            Func::Equal => self.equal(x[0], x[1]),
            Func::NotEqual => self.not(self.equal(x[0], x[1])),
            Func::Select => self.select(x[0], x[1], x[2]),
        })
    }

    fn cast(&mut self, x: ResiduePair, _: DType) -> ResiduePair {
        x
    }

    fn cut_off(&mut self, x: ResiduePair, to: DType) -> i64 {
        let whole = self.small(x, WHOLE).unwrap_or_else(|| self.random(CUT_OFF, &[x.p]).p.into());
        wrapped(whole, to)
    }

    fn reduce(&mut self, kind: ReduceKind, x: &[ResiduePair], _: DType) -> Result<ResiduePair, EvalStop> {
        let count = self.whole_pair(x.len() as i64);
        Ok(match kind {
            ReduceKind::Sum => self.sum(x),
            ReduceKind::Mean => self.div(self.sum(x), count)?,
            ReduceKind::Max => self.max(x),
            ReduceKind::Min => self.min(x),
            ReduceKind::Prod => x.iter().fold(self.whole_pair(1), |product, &x| self.mul(product, x)),
            ReduceKind::MeanSquare => {
                let sum = x.iter().fold(self.whole_pair(0), |sum, &x| self.add(sum, self.mul(x, x)));
                self.div(sum, count)?
            }
        })
    }

    fn contract(&mut self, a: &[ResiduePair], b: &[ResiduePair], size: Matrices, _: DType) -> Vec<ResiduePair> {
        let first = |x: &[ResiduePair]| x.iter().map(|x| x.p).collect::<Vec<_>>();
        let p = self.p.contract(&first(a), &first(b), size.k, size.n);
        let known = !self.powers.is_empty() && a.iter().chain(b).all(|x| x.q != UNKNOWN);
        if !known {
            return p.into_iter().map(|p| ResiduePair { p, q: UNKNOWN }).collect();
        }
        let second = |x: &[ResiduePair]| x.iter().map(|x| x.q).collect::<Vec<_>>();
        let q = self.q.contract(&second(a), &second(b), size.k, size.n);
        p.into_iter().zip(q).map(|(p, q)| ResiduePair { p, q }).collect()
    }

    fn digest(&self, x: ResiduePair) -> u64 {
        x.p.into()
    }

    fn closed(&mut self, hash: u64) -> ResiduePair {
        self.fresh(mix(hash ^ self.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_prime(n: u32) -> bool {
        n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
    }

    #[test]
    fn the_fields_are_of_safe_primes() {
        for (p, q) in FIELDS {
            assert!(is_prime(p) && is_prime(q) && p == 2 * q + 1);
        }
    }

    #[test]
    fn exponentials_are_of_order_q_and_a_homomorphism() {
        for field in FIELDS {
            let pairs = ResidueDomain::new(field, 5, true);
            for hash in 0..50 {
                let (a, b) = (pairs.fresh(hash), pairs.fresh(mix(hash)));
                assert_eq!(pairs.exp(pairs.add(a, b)).p, pairs.mul(pairs.exp(a), pairs.exp(b)).p);
                assert_eq!(pairs.p.pow(pairs.exp(a).p, field.1.into()), 1);
                assert_ne!(pairs.exp(a).p, 1);
            }
            assert_eq!(pairs.exp(pairs.whole_pair(0)), pairs.whole_pair(1));
        }
    }

    #[test]
    fn maxima_are_a_semilattice_that_shifts() {
        let mut f = ResidueDomain::new(FIELDS[0], 5, true);
        let [a, b, c] = [1, 2, 3].map(|hash| f.fresh(hash));
        let all = f.max(&[a, b, c]);
        let (ab, bc) = (f.max(&[b, a]), f.max(&[b, c]));
        assert_eq!(f.max(&[ab, c]), all);
        assert_eq!(f.max(&[bc, ab]), all);
        assert_eq!(f.max(&[a, a]), a);
        assert_eq!(f.max(&[f.lowest, a]), a);
        assert!(![a, b, c, ab, bc].contains(&all));
        let [x, y] = [a, b].map(|x| f.add(x, c));
        assert_eq!(f.max(&[x, y]), f.add(ab, c));
    }
}
