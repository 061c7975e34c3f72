//! Weights from the counter-based generator: a pure function of a seed, the tensor's name and the element.
//!
//! Each is `base` and an odd number of -255 to 255, evenly, over a power of two: exact in f32, so that this and
//! `tools/oracle/counter_rng.py` give the same bytes. Their spread is 147.8 over the same power of two.

use yirage_ir::rng;

/// `elements` weights of the tensor `name`.
#[must_use]
pub fn values(seed: u64, name: &str, elements: usize, base: f32, exponent: u8) -> Vec<f32> {
    let (seed, step) = (seed ^ fnv1a(name.as_bytes()), f32::from(exponent).exp2().recip());
    (0..elements as u64)
        .map(|at| {
            let odd = 2 * (rng::at(seed, at) >> 56) as i32 - 255;
            base + odd as f32 * step
        })
        .collect()
}

/// FNV-1a of 64 bits (G. Fowler, L. C. Noll and K.-P. Vo).
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::{fnv1a, values};

    /// What `tools/oracle/counter_rng.py` prints.
    #[test]
    fn python_makes_the_same_weights() {
        let name = "model.embed_tokens.weight";
        assert_eq!(fnv1a(name.as_bytes()), 12_146_163_758_578_192_726);
        let matrix = [-0.073_242_19, -0.227_539_06, 0.209_960_94, -0.139_648_44, -0.092_773_44, -0.170_898_44];
        assert_eq!(values(1, name, 6, 0.0, 10), matrix);
        let norm = [0.955_566_4, 1.033_691_4, 0.956_542_97, 0.939_941_4];
        assert_eq!(values(1, "model.norm.weight", 4, 1.0, 11), norm);
    }

    #[test]
    fn the_spread_is_as_stated() {
        let weights = values(5, "x", 100_000, 0.0, 10);
        let square = weights.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / weights.len() as f64;
        assert!((square.sqrt() * 1024.0 - 147.8).abs() < 1.0, "{square}");
    }
}
