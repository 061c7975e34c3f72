//! The random number generator against the published known answers.

use yirage_engine::sampling::{RngKey, philox4x32_10};

/// The `philox4x32 10` lines of `kat_vectors`, distributed with the Random123 library of the paper's authors.
#[test]
fn known_answers_of_random123() {
    let ones = u32::MAX;
    let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
    for (counter, key, words) in [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
    ] {
        assert_eq!(philox4x32_10(counter, key), words);
    }
}

#[test]
fn the_number_is_the_first_two_words() {
    let key = RngKey { seed: 0, choice: 0, position: 0 };
    assert_eq!(key.uniform(), (0x6627_e8d5_e169_c58d_u64 >> 11) as f64 / (1u64 << 53) as f64);
}

#[test]
fn seed_choice_and_position_each_give_another_number() {
    let base = RngKey { seed: 1, choice: 2, position: 3 };
    let high = 1u64 << 40;
    let others = [
        RngKey { seed: 2, ..base },
        RngKey { seed: 1 + high, ..base },
        RngKey { choice: 3, ..base },
        RngKey { choice: u32::MAX, ..base },
        RngKey { position: 4, ..base },
    ];
    for other in others {
        assert_ne!(base.uniform(), other.uniform(), "{other:?}");
    }
    assert_eq!(base.uniform(), base.uniform());
}

#[test]
fn numbers_fill_the_unit_interval_evenly() {
    let mut bins = [0f64; 64];
    let draws = 64_000;
    for position in 0..draws {
        let value = RngKey { seed: 11, choice: 0, position }.uniform();
        assert!((0.0..1.0).contains(&value));
        bins[(value * 64.0) as usize] += 1.0;
    }
    let expected = f64::from(draws) / 64.0;
    let chi_square: f64 = bins.iter().map(|count| (count - expected).powi(2) / expected).sum();
    assert!(chi_square < 126.0, "{chi_square} with 63 degrees of freedom; 126 has a probability of 4e-6");
}
