//! The random number of a choice: a function of its key alone.

/// The block of four random words at `counter` of the stream with `key`: Philox4x32-10, a bijection of 128-bit counters
/// that passes BigCrush (Salmon, Moraes, Dror and Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut words, mut key) = (counter, key);
    for _ in 0..10 {
        let low = u64::from(words[0]) * 0xD251_1F53;
        let high = u64::from(words[2]) * 0xCD9E_8D57;
        words =
            [(high >> 32) as u32 ^ words[1] ^ key[0], high as u32, (low >> 32) as u32 ^ words[3] ^ key[1], low as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    words
}

/// The number in [0, 1) with 53 random bits that a row of the slot `key` names: the words of the seed, of the index
/// among the request's choices and of the position. Equal keys give equal numbers, whatever else was drawn in between.
pub fn uniform(key: [u32; 5]) -> f64 {
    let words = philox4x32_10([key[4], 0, key[2], key[3]], [key[0], key[1]]);
    let bits = (u64::from(words[0]) << 32 | u64::from(words[1])) >> 11;
    bits as f64 / (1u64 << 53) as f64
}
