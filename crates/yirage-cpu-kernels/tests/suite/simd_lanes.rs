//! Sixteen lanes: every operation gives the same bits at every level.

use crate::linear_support::isas;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::simd::{LANES, Lanes, WithLanes, launch};

/// The results of every operation on `a`, `b` and `c`, with NaN as one word.
struct Every<'a> {
    lanes: [&'a [f32; LANES]; 3],
    halves: &'a [u16; 2 * LANES],
}

impl WithLanes for Every<'_> {
    type Out = Vec<u32>;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> Vec<u32> {
        let [a, b, c] = self.lanes.map(V::of);
        // SAFETY: there are twice sixteen halves.
        let (half, (even, odd)) =
            unsafe { (V::load_f16(self.halves.as_ptr()), V::load_bf16_pairs(self.halves.as_ptr())) };
        let rows = std::array::from_fn(|i| self.lanes[i % 3][4 * (i % 4)..][..4].as_ptr());
        // SAFETY: four values at each.
        let turned = unsafe { V::turn(&rows) };
        // SAFETY: there are four times sixteen bytes.
        let byte = unsafe { V::load_i8(self.halves.as_ptr().cast()) };
        let whole = a.round().max(V::splat(-126.0)).min(V::splat(126.0)); // a number for NaN too
        let near_one = b.and(V::word(0x00ff_ffff)).or(V::word(0x3f00_0000));
        let mut out =
            vec![half, byte, even, odd, a.add(b), a.sub(b), a.mul(b), a.div(b), a.fma(b, c), a.max(b), a.min(b)];
        out.extend([
            a.round(),
            whole.pow2(),
            near_one.scale(whole.mul(V::splat(2.0))),
            a.sqrt(),
            a.abs(),
            a.with_sign(b),
            a.if_less(b, c, a),
            V::splat(self.lanes[0][5]),
        ]);
        out.extend(turned);
        out.extend([a.and(b), a.or(b), a.xor(b), a.shl::<3>(), a.shr::<5>(), a.floats(), whole.cut(), a.halves()]);
        out.extend([a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b), a.whole_less(b), a.whole_equal(b)]);
        out.extend([a.less(b), a.less_equal(b), a.equal(b), a.less(b).choose(b, c), V::word(0x8000_0001)]);
        let mut narrow = [[0u16; LANES]; 3];
        // SAFETY: each has room for sixteen halves, words or bytes.
        unsafe {
            a.store_f16(narrow[0].as_mut_ptr());
            a.shr::<16>().store_u16(narrow[1].as_mut_ptr());
            a.shr::<24>().store_u8(narrow[2].as_mut_ptr().cast());
            out.extend([V::load_u16(narrow[0].as_ptr()), V::load_u8(narrow[2].as_ptr().cast())]);
        }
        for (from, to) in (0..=LANES).flat_map(|to| (0..=to).map(move |from| (from, to))) {
            out.push(a.keep(from, to, b));
        }
        let word = |v: f32| if v.is_nan() { u32::MAX } else { v.to_bits() };
        let mut words: Vec<u32> = out.iter().flat_map(|v| v.array()).map(word).collect();
        words.extend(narrow.as_flattened().iter().map(|w| u32::from(*w)));
        for lane in 0..LANES {
            // one lane that is greater, and its place is all that differs
            words.push(u32::from(a.any_greater(a.keep(0, lane, V::splat(-1.0).keep(lane, lane + 1, a)))));
        }
        words.extend([word(a.sum()), u32::from(a.any_greater(b))]);
        for lane in 0..LANES {
            words.push(u32::from(V::splat(f32::NAN).keep(lane, lane + 1, whole).any_nan()));
        }
        words.extend([u32::from(a.any_nan()), u32::from(whole.any_nan())]);
        if self.lanes[0].iter().all(|v| !v.is_nan()) {
            words.push(word(a.largest()));
        }
        words
    }
}

#[test]
fn every_operation_gives_the_same_bits_at_every_level() {
    let levels = isas();
    let mut seed = 3u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed
    };
    for round in 0..400 {
        // any bits; numbers of one size; halves between integers; zeros of both signs
        let mut float = || match round % 4 {
            0 => f32::from_bits(random()),
            1 => random() as i32 as f32 / 1e9,
            2 => (random() >> 20) as f32 * 0.5 - 1000.0,
            _ => [0.0, -0.0, 1.0, -1.0][random() as usize >> 30],
        };
        let lanes: [[f32; LANES]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| float()));
        let halves: [u16; 2 * LANES] = std::array::from_fn(|_| (random() >> 16) as u16);
        // SAFETY: the kernel holds slices alone, so it needs no promise.
        let all = |isa| unsafe { launch(isa, Every { lanes: lanes.each_ref(), halves: &halves }) };
        let want = all(Isa::Scalar);
        for &isa in &levels {
            let got = all(isa);
            let first = got.iter().zip(&want).position(|(a, b)| a != b);
            assert!(first.is_none() && got.len() == want.len(), "{isa}: word {first:?} of {lanes:?} {halves:?}");
        }
    }
}
