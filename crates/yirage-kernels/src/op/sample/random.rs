//! The random number of a key: Philox4x32-10, as the op has it.

use crate::double::{self, Double};
use crate::wide;
use yirage_kir::{KernelWriter, Register};

const ROUNDS: u32 = 10;

/// The number in [0, 1) that the five words of a key name.
pub(super) fn uniform(w: &mut KernelWriter, key: [Register; 5]) -> Double {
    let (zero, one, rounds) = (w.u32(0), w.u32(1), w.u32(ROUNDS));
    let words = [key[4], zero, key[2], key[3]].map(|word| w.variable(word));
    let keys = [key[0], key[1]].map(|word| w.variable(word));
    w.for_each(zero, rounds, one, |w, _| {
        let (own, key) = (words.map(|word| w.get(word)), keys.map(|word| w.get(word)));
        let factors = [w.u32(0xD251_1F53), w.u32(0xCD9E_8D57)];
        let low = wide::product(w, own[0], factors[0]);
        let high = wide::product(w, own[2], factors[1]);
        let (first, third) = (w.xor(high[1], own[1]), w.xor(low[1], own[3]));
        let next = [w.xor(first, key[0]), high[0], w.xor(third, key[1]), low[0]];
        (0..4).for_each(|word| w.set(words[word], next[word]));
        let steps = [w.u32(0x9E37_79B9), w.u32(0xBB67_AE85)];
        for (at, step) in steps.into_iter().enumerate() {
            let next = w.add(key[at], step);
            w.set(keys[at], next);
        }
    });
    let (high, low, eleven) = (w.get(words[0]), w.get(words[1]), w.u32(11));
    let (bits, _) = wide::shr(w, [low, high], eleven);
    let (number, power) = (double::of_wide(w, bits), w.u32(53u32.wrapping_neg()));
    double::scaled(w, number, power)
}
