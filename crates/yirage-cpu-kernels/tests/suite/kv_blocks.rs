//! Blocks of the KV cache: what is appended comes out as rows of its format.

use yirage_cpu_kernels::attention::{AttentionShape, BLOCK, KvCacheView, KvType};
use yirage_cpu_kernels::rows::Src;
use yirage_ir::Format;
use yirage_ir::rng::Rng;

/// What is appended comes out as rows of its format, and goes in again.
#[test]
fn blocks_are_rows_of_what_was_appended() {
    let mut rng = Rng::new(9);
    for (kv_heads, k_width, v_width, v_in_k) in [(2, 32, 64, false), (1, 64, 32, true), (3, 96, 32, false)] {
        for kv in KvType::ALL {
            let odd = usize::from(kv.block() == 1);
            let (k_width, v_width) = (k_width - odd, v_width - odd);
            let shape = AttentionShape { heads: kv_heads, kv_heads, k_width, v_width, v_in_k, kv };
            let mut float = || (rng.next_u64() % 2001) as f32 / 500.0 - 2.0;
            let keys: Vec<f32> = (0..BLOCK * kv_heads * k_width).map(|_| float()).collect();
            let values: Vec<f32> = (0..BLOCK * kv_heads * v_width).map(|_| float()).collect();
            let mut block = vec![0u8; shape.block_bytes()];
            let slots: Vec<i32> = (0..BLOCK as i32).collect();
            // SAFETY: one block of the shape's bytes; `KvCacheView::append` checks the slots, and the rows are whole.
            unsafe {
                let cache = KvCacheView::new(shape, block.as_mut_ptr(), 1).unwrap();
                let rows = |x: &[f32], width: usize| Src::new(x.as_ptr(), kv_heads * width);
                cache.append(0..BLOCK, rows(&keys, k_width), rows(&values, v_width), &slots).unwrap();
            }
            let encode = kv.format().info().encode.unwrap();
            let mut want = Vec::new();
            for cell in 0..BLOCK * kv_heads {
                let parts = [(&keys, k_width), (&values, if v_in_k { 0 } else { v_width })];
                for (x, width) in parts.into_iter().filter(|(_, width)| *width > 0) {
                    let mut bytes = vec![0; kv.bytes(width)];
                    encode(&x[cell * width..][..width], &mut bytes);
                    want.extend(bytes);
                }
            }
            let mut rows = vec![0; shape.block_row_bytes()];
            shape.rows_of_block(&block, &mut rows);
            assert!(rows == want, "{shape:?}");
            let mut again = vec![7u8; block.len()];
            shape.block_of_rows(&rows, &mut again);
            assert!(again == block, "{shape:?}");
        }
    }
}

/// Code by code and scale by scale as the format encodes.
fn check(x: [f32; 32]) {
    let mut want = [0u8; 34];
    let encode = Format::Q8_0.info().encode;
    encode.unwrap_or_else(|| panic!("q8_0 has no encoder"))(&x, &mut want);
    let shape = AttentionShape { heads: 1, kv_heads: 1, k_width: 32, v_width: 32, v_in_k: true, kv: KvType::Q8_0 };
    let (mut block, mut rows) = (vec![0u8; shape.block_bytes()], vec![0u8; shape.block_row_bytes()]);
    // SAFETY: one block of the shape's bytes; `KvCacheView::append` checks the slots, and the row is whole.
    unsafe {
        let cache = KvCacheView::new(shape, block.as_mut_ptr(), 1).unwrap();
        let row = Src::new(x.as_ptr(), 32);
        cache.append(0..1, row, row, &[0]).unwrap();
    }
    shape.rows_of_block(&block, &mut rows);
    assert_eq!(rows[..34], want, "{x:?}");
}

#[test]
fn encodes_as_the_format_does() {
    let mut rng = Rng::new(7);
    let mut random = || rng.next_u64() as u32;
    check([0.0; 32]);
    check([-0.0; 32]);
    check([f32::NAN; 32]);
    check(std::array::from_fn(|i| (i as f32 - 15.5) * if i == 31 { 127.0 / 15.5 } else { 1.0 }));
    for special in [f32::NAN, f32::INFINITY, -f32::INFINITY, f32::MAX, 1e-30, f32::MIN_POSITIVE, 1e-45, 8.4e6] {
        check(std::array::from_fn(|i| if i % 7 == 3 { special } else { i as f32 - 9.0 }));
        check(std::array::from_fn(|i| if i % 7 == 3 { special } else { 0.0 }));
    }
    for round in 0..3000 {
        check(std::array::from_fn(|_| match round % 3 {
            0 => f32::from_bits(random()),
            1 => random() as i32 as f32 / 1e9,
            // halves of codes
            _ => (random() % 509) as f32 * 0.5 - 127.0,
        }));
    }
}
