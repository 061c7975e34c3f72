//! Products of matrices against one chain of fused multiply-adds an element: every level, layout, type and division of
//! the work gives its bits, and touches nothing else.
#![allow(clippy::unwrap_used)] // a test may stop at anything
#![cfg(unix)] // pages that nobody may touch

mod contract_support;

use contract_support::*;
use yirage_cpu::general::contract::{Block, Contract, ContractError, Product, Program, contract};
use yirage_cpu::general::{Elem, Strides};
use yirage_cpu::isa::Isa;
use yirage_ir::rng::Rng;

const FLOATS: [Elem; 3] = [Elem::F32, Elem::F16, Elem::BF16];

/// A product with its memory.
struct Case {
    batch: Vec<usize>,
    m: usize,
    k: usize,
    n: usize,
    a: Tensor,
    b: Tensor,
    out: Tensor,
}

impl Case {
    fn new(rng: &mut Rng, batch: &[usize], [m, k, n]: [usize; 3], elem: Elem) -> Case {
        let behind = below(rng, 2) == 0;
        let side = |rng: &mut Rng, rows, columns| {
            let sizes = [batch, &[rows, columns]].concat();
            let mut strides = if below(rng, 3) == 0 { any_strides(rng, &sizes) } else { dense(&sizes) };
            // A matrix that the others of the batch share, now and then, and a row or column that is always the same.
            for (axis, stride) in strides.iter_mut().enumerate() {
                if below(rng, if axis < batch.len() { 3 } else { 30 }) == 0 {
                    *stride = 0;
                }
            }
            let mut tensor = Tensor::new(elem, &sizes, &strides, behind, 0);
            tensor.fill(|| number(rng));
            tensor
        };
        let (a, b) = (side(rng, m, k), side(rng, k, n));
        let sizes = [batch, &[m, n]].concat();
        let strides = if below(rng, 2) == 0 { any_strides(rng, &sizes) } else { dense(&sizes) };
        let out = Tensor::new(elem, &sizes, &strides, behind, 0xa5);
        Case { batch: batch.to_vec(), m, k, n, a, b, out }
    }

    fn product(&self, workers: usize) -> Product<'_> {
        Product {
            batch: &self.batch,
            m: self.m,
            k: self.k,
            n: self.n,
            a: self.a.input(),
            b: self.b.input(),
            out: self.out.output(),
            left: None,
            right: None,
            after: None,
            workers,
        }
    }

    /// One chain an element, of values as `left` and `right` change them by their row and column.
    fn chains(&self, left: impl Fn(usize, usize, f32) -> f32, right: impl Fn(usize, usize, f32) -> f32) -> Vec<f32> {
        let Case { m, k, n, .. } = *self;
        let (a, b) = (self.a.values(), self.b.values());
        let matrices: usize = self.batch.iter().product();
        let element = |at: usize| {
            let (matrix, i, j) = (at / n / m, at / n % m, at % n);
            (0..k).fold(0f32, |sum, l| {
                let x = left(matrix * m + i, l, a[(matrix * m + i) * k + l]);
                let y = right(matrix * k + l, j, b[(matrix * k + l) * n + j]);
                x.mul_add(y, sum)
            })
        };
        (0..matrices * m * n).map(element).collect()
    }

    fn describe(&self) -> String {
        let Case { batch, m, k, n, a, b, out } = self;
        format!("{batch:?} {m}x{k}x{n} {:?}: {:?} {:?} {:?}", a.elem, a.strides, b.strides, out.strides)
    }
}

fn dense(sizes: &[usize]) -> Vec<i64> {
    let (mut strides, mut next) = (Vec::new(), 1);
    for &n in sizes.iter().rev() {
        strides.push(next);
        next *= n.max(1) as i64;
    }
    strides.reverse();
    strides
}

/// Of all sizes, and now and then none that is a number.
fn number(rng: &mut Rng) -> f32 {
    match rng.next_u64() % 2000 {
        0 => f32::INFINITY,
        1 => f32::NAN,
        2 => -0.0,
        n => (rng.next_u64() as i32 as f32) / 2f32.powi(31) * if n < 100 { 100.0 } else { 1.0 },
    }
}

/// Runs pieces in `order`.
fn run(isa: Isa, product: Product<'_>, order: impl Fn(&Contract<'_>) -> Vec<usize>) {
    let (m, n) = (product.m * product.batch.iter().product::<usize>(), product.n);
    let call = Contract::new(product).unwrap();
    // What a worker has in its scratch from before must not matter.
    let mut scratch = vec![f32::NAN; Contract::scratch_bytes(m, n) / 4];
    for piece in order(&call) {
        unsafe { contract(isa, &call, piece..piece + 1, &mut scratch) };
    }
}

fn all(call: &Contract<'_>) -> Vec<usize> {
    (0..call.pieces()).collect()
}

/// Bits, where all NaNs are one.
fn bits(x: impl IntoIterator<Item = f32>) -> Vec<u32> {
    x.into_iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
}

fn same(got: &Tensor, want: &[f32], what: &str) {
    let want = bits(want.iter().map(|&x| rounded(got.elem, x)));
    let got_bits = bits(got.values());
    let first = got_bits.iter().zip(&want).position(|(a, b)| a != b);
    assert!(first.is_none() && got_bits.len() == want.len(), "{what}: element {first:?}");
    assert!(got.gaps().iter().all(|&byte| byte == 0xa5), "{what}: a gap was written to");
}

fn check(rng: &mut Rng, batch: &[usize], sizes: [usize; 3], elem: Elem) {
    let mut case = Case::new(rng, batch, sizes, elem);
    let want = case.chains(|_, _, x| x, |_, _, x| x);
    let workers = 1 + below(rng, 4);
    for isa in isas() {
        case.out.memory.bytes_mut().fill(0xa5);
        run(isa, case.product(workers), all);
        same(&case.out, &want, &format!("{isa} {}", case.describe()));
    }
}

#[test]
fn any_product_is_one_chain_an_element_at_every_level() {
    let mut rng = Rng::new(1);
    for _ in 0..600 {
        let batch: Vec<usize> = (0..below(&mut rng, 4)).map(|_| pick(&mut rng, &[1, 2, 3])).collect();
        let sizes = [1, 40, 40].map(|most| pick(&mut rng, &[0, 1, 2, 3, 5, 7, 8, 16, 17, 33]).min(40 * most));
        let elem = pick(&mut rng, &FLOATS);
        check(&mut rng, &batch, sizes, elem);
    }
}

#[test]
fn sizes_about_the_edges_of_tiles_and_blocks() {
    let mut rng = Rng::new(2);
    let rows = [1, 2, 4, 6, 11, 12, 13, 31, 32, 33, 60, 192, 193, 205];
    let columns = [1, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 257, 300];
    let depths = [0, 1, 3, 4, 5, 63, 64, 65, 255, 256, 257, 511, 513];
    for round in 0..120 {
        let mut sizes = [pick(&mut rng, &rows), pick(&mut rng, &depths), pick(&mut rng, &columns)];
        // Large in two directions at most: chains are slow.
        if sizes.iter().product::<usize>() > 2_000_000 {
            sizes[round % 3] = 3;
        }
        let elem = pick(&mut rng, &FLOATS);
        check(&mut rng, &[], sizes, elem);
    }
}

#[test]
fn long_chains() {
    let mut rng = Rng::new(3);
    for (m, k, n) in [(1, 5003, 70), (3, 4096, 33), (40, 3001, 17), (13, 2500, 1)] {
        for elem in FLOATS {
            check(&mut rng, &[], [m, k, n], elem);
        }
    }
}

/// The output's bytes are the same however the work is divided, and in which order.
#[test]
fn any_division_gives_the_same_bytes() {
    let mut rng = Rng::new(4);
    for (batch, sizes) in
        [(vec![], [1, 300, 3000]), (vec![], [200, 70, 530]), (vec![2, 3], [20, 9, 300]), (vec![5], [1, 9, 40])]
    {
        let mut case = Case::new(&mut rng, &batch, sizes, Elem::F32);
        let mut first: Option<Vec<u8>> = None;
        let mut counts = Vec::new();
        for workers in [1, 2, 7, 64] {
            for turned in [false, true] {
                case.out.memory.bytes_mut().fill(0xa5);
                let call = Contract::new(case.product(workers)).unwrap();
                counts.push(call.pieces());
                run(Isa::detect(), case.product(workers), |call| {
                    let pieces = all(call);
                    if turned { pieces.into_iter().rev().collect() } else { pieces }
                });
                let bytes = case.out.memory.bytes().to_vec();
                assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{workers}: {}", case.describe());
            }
        }
        let more = counts.first() < counts.last();
        assert!(more || case.out.values().len() < 1000, "more workers find more pieces: {counts:?}");
    }
}

/// Changes elements by where they are.
struct Marks(f32);

impl Marks {
    fn at(&self, row: usize, column: usize, x: f32) -> f32 {
        (x + self.0).mul_add(2.0, (row % 17) as f32 - (column % 13) as f32 * 0.25)
    }
}

impl Program for Marks {
    unsafe fn run(&self, _: Isa, block: Block, x: *mut f32, pitch: usize) {
        for (r, c) in (0..block.rows).flat_map(|r| (0..block.columns).map(move |c| (r, c))) {
            let x = unsafe { &mut *x.add(r * pitch + c) };
            *x = self.at(block.row + r, block.column + c, *x);
        }
    }
}

#[test]
fn programs_meet_every_element_where_it_is() {
    let mut rng = Rng::new(5);
    let (left, right, after) = (Marks(1.0), Marks(-2.0), Marks(0.5));
    for round in 0..90 {
        let batch: Vec<usize> = (0..below(&mut rng, 3)).map(|_| pick(&mut rng, &[1, 2, 3])).collect();
        let sizes = [[1, 4, 20, 40], [0, 5, 70, 300], [1, 20, 33, 270]].map(|of| pick(&mut rng, &of));
        let elem = pick(&mut rng, &FLOATS);
        let mut case = Case::new(&mut rng, &batch, sizes, elem);
        let [with_left, with_right, with_after] = [round % 2, round / 2 % 2, round / 4 % 2].map(|x| x == 1);
        let mut want = case.chains(
            |r, c, x| if with_left { left.at(r, c, x) } else { x },
            |r, c, x| if with_right { right.at(r, c, x) } else { x },
        );
        if with_after {
            for (at, x) in want.iter_mut().enumerate() {
                *x = after.at(at / case.n, at % case.n, rounded(elem, *x));
            }
        }
        for isa in isas() {
            case.out.memory.bytes_mut().fill(0xa5);
            let mut product = case.product(2);
            product.left = with_left.then_some(&left as &dyn Program);
            product.right = with_right.then_some(&right as &dyn Program);
            product.after = with_after.then_some((elem, &after as &dyn Program));
            run(isa, product, all);
            same(&case.out, &want, &format!("{isa} {}", case.describe()));
        }
    }
}

#[test]
fn what_is_no_product_is_refused() {
    let mut rng = Rng::new(6);
    let case = Case::new(&mut rng, &[2], [3, 4, 5], Elem::F32);
    let product = || case.product(1);
    let flat = Strides::new(&[4, 1]).unwrap();
    let refused = |product| Contract::new(product).err().unwrap();
    let few = Product { a: yirage_cpu::general::Input::at(case.a.memory.as_ptr(), Elem::F32, flat), ..product() };
    assert_eq!(refused(few), ContractError::Strides { operand: "a", strides: 2, wanted: 3 });
    let whole = Product { b: yirage_cpu::general::Input::at(case.b.memory.as_ptr(), Elem::I32, flat), ..product() };
    assert_eq!(refused(whole), ContractError::NoFloat("b", Elem::I32));
    for (m, k, n) in [(usize::MAX, 4, 5), (3, usize::MAX / 2, 5), (3, 4, usize::MAX), (1 << 40, 0, 1 << 40)] {
        assert!(matches!(refused(Product { m, k, n, ..product() }), ContractError::Sizes(_)), "{m} {k} {n}");
    }
    let many = [1; 9];
    assert!(matches!(refused(Product { batch: &many, ..product() }), ContractError::Sizes(_)));
}

#[test]
#[should_panic(expected = "floats of scratch")]
fn too_little_scratch_is_a_panic_and_no_write() {
    let case = Case::new(&mut Rng::new(7), &[], [3, 4, 5], Elem::F32);
    let call = Contract::new(case.product(1)).unwrap();
    unsafe { contract(Isa::detect(), &call, 0..1, &mut [0.0; 9]) };
}

#[test]
#[should_panic(expected = "pieces 0..2 of 1")]
fn a_piece_that_is_none_is_a_panic_and_no_write() {
    let case = Case::new(&mut Rng::new(8), &[], [3, 4, 5], Elem::F32);
    let call = Contract::new(case.product(1)).unwrap();
    unsafe { contract(Isa::detect(), &call, 0..2, &mut [0.0; 1 << 17]) };
}
