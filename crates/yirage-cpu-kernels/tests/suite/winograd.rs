//! What is left of Winograd's products is the product of the codes.

use yirage_cpu_kernels::activation::{Meta, WinogradActivations};
use yirage_cpu_kernels::pack::BLOCK;
use yirage_ir::activation::q8a::MOST;

#[test]
fn what_is_left_of_the_products_is_that_of_the_codes() {
    for round in 0..200i32 {
        let number = |i: i32, most: i32| (i * 7919 + round * 104_729 + i * i * round) % (most + 1);
        let codes: [i8; BLOCK] =
            std::array::from_fn(|i| (number(i as i32, 2 * i32::from(MOST)) - i32::from(MOST)) as i8);
        let row: [i32; BLOCK] = std::array::from_fn(|i| number(i as i32 + 40, 15));
        let sum = |some: &[i8]| some.iter().map(|c| i32::from(*c)).sum::<i32>();
        let meta = Meta { minus_sum: -sum(&codes), minus_first: -sum(&codes[..16]), ..Meta::default() };
        let pairs = WinogradActivations::of(&codes, &meta);
        let (mut all, mut own) = (0, 0);
        for i in 0..16 {
            let (p, q) = (row[i] + WinogradActivations::MORE, row[i + 16] - WinogradActivations::LESS);
            all += (row[i] + i32::from(pairs.second[i])) * (q + i32::from(pairs.first[i]));
            own += p * q;
        }
        let dot = |offset: i32| (0..BLOCK).map(|i| (row[i] - offset) * i32::from(codes[i])).sum::<i32>();
        assert_eq!((all - own + pairs.plain, all - own + pairs.offset), (dot(0), dot(WinogradActivations::OFFSET)));
    }
}
