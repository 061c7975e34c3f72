//! Stored formats against golden files made by an independent implementation (`tools/oracle/quant_golden.py`): decoding
//! and encoding bit for bit.

use std::path::Path;
use yirage_ir::Format;

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[test]
fn decoding_is_bit_equal_for_every_format() {
    for format in Format::ALL {
        let info = format.info();
        let (blocks, want) = (file(&format!("{}.blocks", info.name)), floats(&file(&format!("{}.values", info.name))));
        assert_eq!(blocks.len() / info.bytes * info.block, want.len(), "{}", info.name);
        let mut got = vec![0f32; want.len()];
        (info.decode)(&blocks, &mut got);
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            assert_eq!(g.to_bits(), w.to_bits(), "{} value {i}: {g} is not {w}", info.name);
        }
    }
}

#[test]
fn encoding_is_byte_equal_where_the_oracle_encodes() {
    let values = floats(&file("encode.values"));
    for name in ["f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "mxfp4"] {
        let info = Format::parse(name).unwrap().info();
        let want = file(&format!("{name}.encoded"));
        let mut got = vec![0u8; values.len() / info.block * info.bytes];
        (info.encode.unwrap())(&values, &mut got);
        for (i, (g, w)) in got.chunks_exact(info.bytes).zip(want.chunks_exact(info.bytes)).enumerate() {
            assert_eq!(g, w, "{name} block {i} of {:?}", &values[i * info.block..][..info.block]);
        }
        assert_eq!(got.len(), want.len());
    }
}

#[test]
fn a_round_trip_stays_within_the_formats_step() {
    let values = floats(&file("encode.values"));
    // The largest error a value may have, as a share of the block's largest magnitude (or of its range, for formats
    // with a minimum): half a step, with room for the rounding of the scales to f16. The top code of q4_0 and q5_0 is
    // clipped: a whole step. MXFP4's top values are 4 and 6, and what lies above 6 is clipped.
    for (name, share) in
        [("q4_0", 0.127), ("q5_0", 0.064), ("q8_0", 0.0045), ("q4_1", 0.036), ("q5_1", 0.018), ("mxfp4", 0.26)]
    {
        let info = Format::parse(name).unwrap().info();
        let mut blocks = vec![0u8; values.len() / info.block * info.bytes];
        (info.encode.unwrap())(&values, &mut blocks);
        let mut back = vec![0f32; values.len()];
        (info.decode)(&blocks, &mut back);
        for (x, y) in values.chunks_exact(32).zip(back.chunks_exact(32)) {
            let range = x.iter().copied().fold(f32::MIN, f32::max) - x.iter().copied().fold(f32::MAX, f32::min);
            let size = x.iter().fold(0f32, |a, v| a.max(v.abs()));
            // Smaller blocks have scales below f16's normal numbers, or none at all.
            if size < 1e-2 {
                continue;
            }
            let size = if name.ends_with("_1") { range + 0.02 * size } else { size };
            for (a, b) in x.iter().zip(y) {
                assert!((a - b).abs() <= share * size, "{name}: {a} became {b}, block size {size}");
            }
        }
    }
}

#[test]
fn encoders_take_any_input() {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, -0.0];
    let values: Vec<f32> = (0..32).map(|i| odd[i % odd.len()]).collect();
    for format in Format::ALL {
        let info = format.info();
        let Some(encode) = info.encode else { continue };
        let mut blocks = vec![0u8; 32 / info.block * info.bytes];
        encode(&values, &mut blocks);
    }
}
