//! Arithmetic modulo a prime below 2^31.

/// A prime field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prime {
    p: u64,
    /// 2^64 / p, for P. Barrett's reduction ("Implementing the Rivest Shamir and Adleman public key encryption
    /// algorithm on a standard digital signal processor", CRYPTO 1986).
    inverse: u64,
}

impl Prime {
    pub(super) const fn new(p: u32) -> Prime {
        Prime { p: p as u64, inverse: u64::MAX / p as u64 }
    }

    pub(super) fn order(self) -> u32 {
        self.p as u32
    }

    /// The residue of any number.
    pub(super) fn reduce(self, x: u64) -> u32 {
        let quotient = ((u128::from(x) * u128::from(self.inverse)) >> 64) as u64;
        // The estimate is the quotient or one less.
        let rest = x - quotient * self.p;
        (if rest >= self.p { rest - self.p } else { rest }) as u32
    }

    /// The residue of any number with a sign.
    pub(super) fn signed(self, x: i64) -> u32 {
        let size = self.reduce(x.unsigned_abs());
        if x < 0 { self.neg(size) } else { size }
    }

    pub(super) fn add(self, a: u32, b: u32) -> u32 {
        let sum = u64::from(a) + u64::from(b);
        (if sum >= self.p { sum - self.p } else { sum }) as u32
    }

    pub(super) fn neg(self, a: u32) -> u32 {
        if a == 0 { 0 } else { (self.p - u64::from(a)) as u32 }
    }

    pub(super) fn sub(self, a: u32, b: u32) -> u32 {
        self.add(a, self.neg(b))
    }

    pub(super) fn mul(self, a: u32, b: u32) -> u32 {
        self.reduce(u64::from(a) * u64::from(b))
    }

    pub(super) fn pow(self, mut a: u32, mut exponent: u64) -> u32 {
        let mut power = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = self.mul(power, a);
            }
            a = self.mul(a, a);
            exponent >>= 1;
        }
        power
    }

    /// The inverse, by Euclid's algorithm; 0 has none.
    pub(super) fn inverse(self, a: u32) -> Option<u32> {
        let (mut old, mut rest) = (self.p as i64, i64::from(a));
        let (mut before, mut factor) = (0i64, 1i64);
        while rest != 0 {
            let quotient = old / rest;
            (old, rest) = (rest, old - quotient * rest);
            (before, factor) = (factor, before - quotient * factor);
        }
        (old == 1).then(|| self.signed(before))
    }

    /// `a [m, k]` times `b [k, n]`. Four products of 31 bits fit into 64, so only every fourth sum is split in two
    /// halves, and they are reduced once, at the end.
    pub(super) fn contract(self, a: &[u32], b: &[u32], k: usize, n: usize) -> Vec<u32> {
        if n == 0 || k == 0 {
            return vec![0; a.len().checked_div(k).unwrap_or(0) * n];
        }
        let mut out = Vec::with_capacity(a.len() / k * n);
        let (mut low, mut high) = (vec![0u64; n], vec![0u64; n]);
        let zeros = vec![0u32; n];
        for row in a.chunks_exact(k) {
            low.fill(0);
            high.fill(0);
            for (x, four) in row.chunks(4).zip(b.chunks(4 * n)) {
                let x: [u64; 4] = std::array::from_fn(|i| x.get(i).copied().unwrap_or(0).into());
                let b: [&[u32]; 4] = std::array::from_fn(|i| four.get(i * n..(i + 1) * n).unwrap_or(&zeros));
                let [b0, b1, b2, b3] = b.map(|b| &b[..n]);
                let (low, high) = (&mut low[..n], &mut high[..n]);
                for j in 0..n {
                    let sum = x[0] * u64::from(b0[j])
                        + x[1] * u64::from(b1[j])
                        + x[2] * u64::from(b2[j])
                        + x[3] * u64::from(b3[j]);
                    low[j] += sum & 0xffff_ffff;
                    high[j] += sum >> 32;
                }
            }
            let two_to_32 = self.reduce(1 << 32);
            let whole =
                |(&low, &high): (&u64, &u64)| self.add(self.reduce(low), self.mul(self.reduce(high), two_to_32));
            out.extend(low.iter().zip(&high).map(whole));
        }
        out
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may stop at anything unexpected
mod tests {
    use super::*;
    use yirage_ir::rng::Rng;

    #[test]
    fn it_is_the_arithmetic_of_wide_numbers() {
        let mut rng = Rng::new(9);
        for p in [2_147_483_579u32, 1_073_741_561, 7] {
            let (f, wide) = (Prime::new(p), u128::from(p));
            for i in 0..2000u64 {
                let x = if i < 4 { u64::MAX - i } else { rng.next_u64() };
                assert_eq!(u128::from(f.reduce(x)), u128::from(x) % wide);
                let (a, b) = (f.reduce(x), f.reduce(rng.next_u64()));
                assert_eq!(u128::from(f.mul(a, b)), u128::from(a) * u128::from(b) % wide);
                assert_eq!(f.add(f.sub(a, b), b), a);
                if a > 0 {
                    assert_eq!(f.mul(a, f.inverse(a).unwrap()), 1);
                }
            }
            assert_eq!(f.inverse(0), None);
            assert_eq!(f.pow(3, u64::from(p) - 1), 1);
        }
    }

    #[test]
    fn a_product_of_matrices_is_its_sums() {
        let (mut rng, f) = (Rng::new(4), Prime::new(2_147_483_579));
        for (m, k, n) in [(1, 1, 1), (2, 9, 3), (3, 4, 5), (2, 0, 3), (0, 3, 2), (1, 6, 0), (1, 5000, 2)] {
            // The largest residues, so that sums come close to their limits.
            let mut draw = |len: usize| (0..len).map(|_| f.order() - 1 - (rng.below(3) as u32)).collect::<Vec<u32>>();
            let (a, b) = (draw(m * k), draw(k * n));
            let got = f.contract(&a, &b, k, n);
            if k > 0 {
                let term = |i: usize, j: usize| (0..k).fold(0, |s, l| f.add(s, f.mul(a[i * k + l], b[l * n + j])));
                let want: Vec<u32> = (0..m * n).map(|at| term(at / n, at % n)).collect();
                assert_eq!(got, want);
            }
        }
    }
}
