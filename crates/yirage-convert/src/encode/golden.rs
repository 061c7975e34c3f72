//! Blocks beside those of llama.cpp's own encoders: hashes of rows that `tools/oracle/quantize_golden.py` made with its
//! `ggml-quants.c`, from numbers that a few lines give anywhere.

use super::{encoder, named};
use serde_json::Value;
use sha2::{Digest, Sha256};

const ROWS: usize = 24;
const COLUMNS: usize = 1024;

/// The numbers of splitmix64 from zero, as floats from -1 to 1 that have 23 bits.
fn unit(range: std::ops::Range<usize>) -> Vec<f32> {
    range
        .map(|i| {
            let z = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ z >> 31) >> 41) as f32 * 2f32.powi(-22) - 1.0
        })
        .collect()
}

/// Rows that are like weights, with some that are unlike: zeros, of one sign, of one value, with outliers, tiny.
fn rows() -> Vec<Vec<f32>> {
    let all = ROWS * COLUMNS;
    let parts: Vec<Vec<f32>> = (0..4).map(|k| unit(k * all..(k + 1) * all)).collect();
    (0..ROWS)
        .map(|row| {
            let scale = 2f32.powi(row as i32 % 7 - 5);
            let value = |column: usize| {
                let i = row * COLUMNS + column;
                let x = (parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i]) * scale;
                match row {
                    3 => 0.0,
                    4 if column < 300 => 0.0,
                    5 => x.abs(),
                    6 => -x.abs(),
                    7 => 0.25,
                    8 if column.is_multiple_of(7) => x * 64.0,
                    9 => x * 2f32.powi(-60),
                    _ => x,
                }
            };
            (0..COLUMNS).map(value).collect()
        })
        .collect()
}

/// Squares, and forty inputs that never were anything but zero.
fn importances() -> Vec<f32> {
    let first = 4 * ROWS * COLUMNS;
    let mut all: Vec<f32> = unit(first..first + COLUMNS).iter().map(|x| x * x).collect();
    all[100..140].fill(0.0);
    all
}

#[test]
fn blocks_are_those_of_another_implementation() {
    let golden: Value = serde_json::from_str(include_str!("../../fixtures/blocks.json")).unwrap();
    let golden = golden.as_object().unwrap();
    assert_eq!(golden.len(), 26);
    let (rows, importances) = (rows(), importances());
    let mut wrong = Vec::new();
    for (name, hashes) in golden {
        let (format, kind) = name.split_once(' ').unwrap();
        let ty = named(format).unwrap();
        let (encode, (block, bytes)) = (encoder(ty).unwrap(), ty.block().unwrap());
        let mut out = vec![0; COLUMNS / block as usize * bytes as usize];
        for (row, (x, wanted)) in rows.iter().zip(hashes.as_array().unwrap()).enumerate() {
            encode(x, (kind == "important").then_some(&importances), &mut out);
            let hash: String = Sha256::digest(&out).iter().take(8).map(|b| format!("{b:02x}")).collect();
            if hash != wanted.as_str().unwrap() {
                wrong.push(format!("{name}, row {row}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
