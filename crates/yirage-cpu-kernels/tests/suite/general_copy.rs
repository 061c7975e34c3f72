//! Copies of strided elements: each where it belongs, nothing else touched.

use crate::general_support::*;
use yirage_cpu_kernels::general::copy;
use yirage_ir::dtype::DType;

#[test]
fn elements_go_where_they_belong() {
    let mut rng = Rng::new(91);
    for round in 0..3000 {
        let rank = rng.index(6);
        let shape = random_sizes(&mut rng, rank, 9000);
        let dtype = [DType::F32, F16, DType::Bool][round % 3];
        let width = elem(dtype).bytes();
        let (from, to) = (random_view(&mut rng, &shape, true), random_view(&mut rng, &shape, false));
        let source: Vec<u8> = (0..held(&from) * width).map(|_| rng.next_u64() as u8).collect();
        let source = Guarded::of(&source, rng.one_in(2));
        let mut target = Guarded::of(&vec![0xa5; held(&to) * width], rng.one_in(2));
        let all = sizes(&shape);
        let (input, output) = (source.input(dtype, &from), target.output(dtype, &to));
        let cut = rng.index(all.count() + 1);
        for range in [0..cut, cut..all.count()] {
            // SAFETY: the operands have been checked; each element is copied once.
            unsafe { copy(&all, input, output, range) };
        }
        let mut want = vec![0xa5; held(&to) * width];
        for (a, b) in places(&from, &shape).into_iter().zip(places(&to, &shape)) {
            want[b * width..][..width].copy_from_slice(&source.bytes()[a * width..][..width]);
        }
        assert!(target.bytes() == want, "{dtype} {shape:?} from {from:?} to {to:?}, cut at {cut}");
    }
}
