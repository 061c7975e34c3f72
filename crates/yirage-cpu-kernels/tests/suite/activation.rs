//! Activations as matmuls read them: tiles, copies, codes, outliers, and what Winograd's products read of a block.

use crate::linear_support::isas;
use yirage_cpu_kernels::activation::{ActivationBufferLayout, ActivationEncoding, TOKEN_TILE};
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::ActivationFormat;
use yirage_ir::activation::q8a;
use yirage_ir::op::{OpDef, Quantize};
use yirage_ir::tensor::Data;

#[test]
fn tiles_cover_every_token_once() {
    for tokens in 0..70 {
        let layout = ActivationBufferLayout::new(ActivationEncoding::Q8, tokens, 100);
        let mut next = 0;
        for tile in (0..tokens.div_ceil(TOKEN_TILE)).map(|number| layout.tile(number)) {
            assert_eq!(tile.first, next);
            next += tile.tokens;
        }
        assert_eq!(next, tokens);
    }
}

/// What a kernel reads of a token, of its pairs too, depends neither on who stored the others nor on copying.
#[test]
fn a_copied_token_is_a_stored_one() {
    let (tokens, k) = (TOKEN_TILE + 3, 160);
    let large = |i: usize| if i.is_multiple_of(97) { 90.0 } else { 1.0 };
    let x: Vec<f32> = (0..tokens * k).map(|i| large(i) * ((i * 37 % 101) as f32 / 50.0 - 1.0)).collect();
    for isa in isas() {
        let winograd = matches!(isa, Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx);
        let (all, one) = (
            ActivationBufferLayout::new(ActivationEncoding::Q8, tokens, k).with_pairs(true),
            ActivationBufferLayout::new(ActivationEncoding::Q8, 1, k),
        );
        let (mut stored, mut copied) = (vec![0u8; all.bytes()], vec![0u8; all.bytes()]);
        // SAFETY: sizes as the layouts say.
        unsafe { all.store(isa, x.as_ptr(), k, 0..tokens, stored.as_mut_ptr()) };
        for token in 0..tokens {
            let mut alone = vec![0u8; one.bytes()];
            // SAFETY: sizes as the layouts say.
            unsafe {
                one.store(isa, x[token * k..].as_ptr(), k, 0..1, alone.as_mut_ptr());
                all.copy_token(isa, alone.as_ptr(), token, copied.as_mut_ptr());
            }
        }
        assert!(stored == copied, "{isa}");
        for cut in [3, 8, 13, TOKEN_TILE + 1] {
            let mut parts = vec![0u8; all.bytes()];
            // SAFETY: sizes as the layouts say.
            unsafe {
                all.store(isa, x.as_ptr(), k, 0..cut, parts.as_mut_ptr());
                all.store(isa, x.as_ptr(), k, cut..tokens, parts.as_mut_ptr());
            }
            assert!(stored == parts, "{isa}: workers' shares end at token {cut}");
        }
        let plain = all.with_pairs(false);
        let mut without = vec![0u8; plain.bytes()];
        // SAFETY: sizes as the layouts say.
        unsafe { plain.store(isa, x.as_ptr(), k, 0..tokens, without.as_mut_ptr()) };
        let region = all.pairs_range();
        assert!(without[region.clone()].iter().all(|b| *b == 0), "{isa}: nobody wants them");
        without[region.clone()].copy_from_slice(&stored[region.clone()]);
        assert!(stored == without, "{isa}");
        let pairs = &stored[region];
        let full = pairs.len() / tokens * TOKEN_TILE;
        assert_eq!(pairs[..full].iter().any(|b| *b != 0), winograd, "{isa}");
        assert!(pairs[full..].iter().all(|b| *b == 0), "{isa}: no kernel reads those of a last tile");
    }
}

#[test]
fn every_level_quantises_alike() {
    let mut seed = 1u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(seed) // any bits: NaN, infinities, subnormal numbers
    };
    let isas = isas();
    for round in 0..2000 {
        let mut x: Vec<f32> = (0..32).map(|_| random()).collect();
        match round % 5 {
            0 => x.iter_mut().for_each(|v| *v %= 4.0),
            1 => x.iter_mut().for_each(|v| *v = f32::from_bits(v.to_bits() & 0x3fff_ffff)),
            2 => x.iter_mut().for_each(|v| *v *= 1e-38),
            // a scale of 1, so that halves are halfway between two codes
            3 => {
                x.iter_mut().for_each(|v| *v = (v.to_bits() >> 8 & 0xff) as f32 * 0.5 - 63.5);
                x[round % 32] = -127.0;
            }
            _ => {}
        }
        let stored = isas.iter().map(|&isa| {
            let layout = ActivationBufferLayout::new(ActivationEncoding::Q8, 1, 32);
            let mut out = vec![0u8; layout.bytes()];
            // SAFETY: sizes as the layout says.
            unsafe { layout.store(isa, x.as_ptr(), 32, 0..1, out.as_mut_ptr()) };
            let nan = layout.quantized(&out, 0, 0).unwrap().0.is_nan();
            assert_eq!(nan, x.iter().any(|v| !v.is_finite()));
            if nan {
                out.truncate(64); // NaN payloads may differ
            }
            out
        });
        let all: Vec<_> = stored.collect();
        assert!(all.windows(2).all(|w| w[0] == w[1]), "{x:?}");
    }
}

/// Rows with outliers, in a batch of several tiles, at each level: codes, scales and outliers are the op's.
#[test]
fn outliers_are_those_of_the_op() {
    let (tokens, k) = (27, 4224);
    let mut seed = 9u32;
    let x: Vec<f32> = (0..tokens * k)
        .map(|i| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let v = seed as f32 / u32::MAX as f32 - 0.5;
            match i % k {
                // more in a block than are kept, some of them equal
                c if i / k == 5 && (640..650).contains(&c) => 30.0 + (c % 3) as f32,
                _ if i % 97 == 0 && i / k != 3 => 50.0 * v,
                _ => v,
            }
        })
        .collect();
    let tensor = yirage_ir::Tensor::f32([tokens, k], x.clone());
    let op = Quantize { layout: ActivationFormat::Q8A, parts: 1 };
    let Data::Quantized(_, bytes) = op.eval(&[&tensor]).remove(0).data else { panic!() };
    let blocks: Vec<q8a::Q8aBlock> = q8a::blocks(&bytes).collect();
    let found = blocks.iter().flat_map(|block| block.outliers).filter(|&o| o != 0.0).count();
    assert!(found > 100 && blocks.len() == tokens * k / 32, "too few to show anything");
    let layout = ActivationBufferLayout::new(ActivationEncoding::Q8, tokens, k);
    for isa in isas() {
        let mut out = vec![0xa5u8; layout.bytes()];
        // SAFETY: sizes as the layout says.
        unsafe { layout.store(isa, x.as_ptr(), k, 0..tokens, out.as_mut_ptr()) };
        for (at, block) in blocks.iter().enumerate() {
            let (token, b) = (at / (k / 32), at % (k / 32));
            let want = (block.scale, &block.codes.map(|c| c as u8)[..], block.outliers);
            assert_eq!(layout.quantized(&out, token, b).unwrap(), want, "{isa} token {token} block {b}");
        }
    }
}
