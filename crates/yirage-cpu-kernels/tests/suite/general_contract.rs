//! Products of matrices against one chain of fused multiply-adds an element: every level, layout, type and division of
//! the work gives its bits, and touches nothing else.

use crate::general_support::*;
use yirage_cpu_kernels::general::contract::{BatchMatmul, Contract, ContractError, Fused, contract, packed_rhs_floats};
use yirage_cpu_kernels::general::{Elem, ElementProgram, StridedInput, StridedOutput, Strides};
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::dtype::DType;
use yirage_ir::expr::{Expr, Func, Scalar};
use yirage_ir::strided::Strided;

const FLOATS: [DType; 3] = [DType::F32, F16, BF16];
/// What memory of results holds before.
const BEFORE: u8 = 0xa5;

/// A tensor in memory that ends where it ends.
struct Tensor {
    dtype: DType,
    view: Strided,
    places: Vec<usize>,
    memory: Guarded,
}

impl Tensor {
    fn new(rng: &mut Rng, dtype: DType, sizes: &[usize], repeats: bool) -> Tensor {
        let view = random_view(rng, sizes, repeats);
        let places = if sizes.contains(&0) { Vec::new() } else { places(&view, sizes) };
        let mut memory = Guarded::new(held(&view) * elem(dtype).bytes(), rng.one_in(2));
        memory.bytes_mut().fill(BEFORE);
        Tensor { dtype, view, places, memory }
    }

    fn filled(rng: &mut Rng, dtype: DType, sizes: &[usize]) -> Tensor {
        let mut tensor = Tensor::new(rng, dtype, sizes, true);
        let size = elem(dtype).bytes();
        for &at in &tensor.places {
            let element = bytes(dtype, &[number(rng).into()]);
            tensor.memory.bytes_mut()[at * size..][..size].copy_from_slice(&element);
        }
        tensor
    }

    fn input(&self) -> StridedInput {
        self.memory.input(self.dtype, &self.view)
    }

    fn output(&mut self) -> StridedOutput {
        self.memory.bytes_mut().fill(BEFORE);
        self.memory.output(self.dtype, &self.view)
    }

    /// Its elements in row-major order.
    fn raw(&self) -> Vec<u8> {
        let size = elem(self.dtype).bytes();
        self.places.iter().flat_map(|at| self.memory.bytes()[at * size..][..size].to_vec()).collect()
    }

    fn values(&self) -> Vec<f32> {
        scalars(self.dtype, &self.raw()).into_iter().map(|x| x.as_f64() as f32).collect()
    }

    /// That its elements are these, rounded, and that nothing was written beside them.
    fn holds(&self, want: &[Scalar], what: &str) {
        let want = bytes(self.dtype, want);
        same(self.dtype, &self.raw(), &want).unwrap_or_else(|at| panic!("{what}: {at}"));
        let size = elem(self.dtype).bytes();
        let mut left = self.memory.bytes().to_vec();
        self.places.iter().for_each(|at| left[at * size..][..size].fill(BEFORE));
        assert!(left.iter().all(|&byte| byte == BEFORE), "{what}: a gap was written to");
    }
}

/// Of all sizes, and now and then none that is a number.
fn number(rng: &mut Rng) -> f32 {
    match rng.below(2000) {
        0 => f32::INFINITY,
        1 => f32::NAN,
        2 => -0.0,
        n => rng.signed_f32() * if n < 100 { 100.0 } else { 1.0 },
    }
}

/// A product's operands and sizes.
struct ContractCase {
    batch: Vec<usize>,
    sizes: [usize; 3],
    a: Tensor,
    b: Tensor,
    out: Tensor,
}

impl ContractCase {
    fn new(rng: &mut Rng, batch: &[usize], sizes: [usize; 3], dtype: DType) -> ContractCase {
        let [m, k, n] = sizes;
        let of = |rows, columns| [batch, &[rows, columns]].concat();
        let (a, b) = (Tensor::filled(rng, dtype, &of(m, k)), Tensor::filled(rng, dtype, &of(k, n)));
        let out = Tensor::new(rng, dtype, &of(m, n), false);
        ContractCase { batch: batch.to_vec(), sizes, a, b, out }
    }

    fn product(&mut self, workers: usize) -> BatchMatmul<'_> {
        let [m, k, n] = self.sizes;
        let (a, b, out) = (self.a.input(), self.b.input(), self.out.output());
        BatchMatmul {
            batch: &self.batch,
            m,
            k,
            n,
            a,
            b,
            out,
            left: None,
            right: None,
            after: None,
            goes_on: false,
            workers,
        }
    }

    /// One chain an element.
    fn chains(&self, a: &[f32], b: &[f32]) -> Vec<f32> {
        let [m, k, n] = self.sizes;
        let matrices: usize = self.batch.iter().product();
        let element = |at: usize| {
            let (matrix, i, j) = (at / n / m, at / n % m, at % n);
            let (row, column) = (&a[(matrix * m + i) * k..][..k], &b[matrix * k * n..]);
            row.iter().enumerate().fold(0f32, |sum, (l, x)| x.mul_add(column[l * n + j], sum))
        };
        (0..matrices * m * n).map(element).collect()
    }

    fn describe(&self) -> String {
        let strides = [&self.a, &self.b, &self.out].map(|t| &t.view.strides);
        format!("{:?} {:?} {}: {strides:?}", self.batch, self.sizes, self.a.dtype)
    }
}

/// How pieces are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// By one call.
    Together,
    /// The last one first, by a call each.
    Apart,
    /// By one call, with the right side packed before.
    Kept,
}

impl How {
    const ALL: [How; 3] = [How::Together, How::Apart, How::Kept];
}

/// Runs all pieces.
fn run(isa: Isa, product: BatchMatmul<'_>, how: How) {
    let matrices = product.batch.iter().product::<usize>();
    // What a worker has in its scratch from before must not matter.
    let mut scratch = vec![f32::NAN; Contract::scratch_bytes(matrices * product.m, product.n) / 4];
    let mut room = Vec::new();
    let mut call = Contract::new(isa, product).unwrap();
    if how == How::Kept {
        room.resize(packed_rhs_floats(matrices, product.k, product.n).unwrap(), f32::NAN);
        let packed = unsafe { call.prepack_right(isa, &mut room) };
        call = call.reading(packed, &room);
    }
    if how == How::Apart {
        let pieces = (0..call.pieces()).rev();
        return pieces.for_each(|i| unsafe { contract(isa, &call, i..i + 1, &mut scratch) });
    }
    unsafe { contract(isa, &call, 0..call.pieces(), &mut scratch) };
}

/// The numbers of a result before they are rounded.
fn exact(x: &[f32], dtype: DType) -> Vec<Scalar> {
    x.iter().map(|&x| Scalar::from(x).cast(dtype)).collect()
}

fn check(rng: &mut Rng, batch: &[usize], sizes: [usize; 3], dtype: DType) {
    let mut case = ContractCase::new(rng, batch, sizes, dtype);
    let want = exact(&case.chains(&case.a.values(), &case.b.values()), dtype);
    let workers = 1 + rng.below(4) as usize;
    for (isa, how) in levels().into_iter().flat_map(|isa| How::ALL.map(|how| (isa, how))) {
        run(isa, case.product(workers), how);
        case.out.holds(&want, &format!("{isa} {how:?} {}", case.describe()));
    }
}

fn random_batch(rng: &mut Rng, most: u64) -> Vec<usize> {
    (0..rng.below(most)).map(|_| *rng.choose(&[1, 2, 3])).collect()
}

#[test]
fn any_product_is_one_chain_an_element_at_every_level() {
    let mut rng = Rng::new(1);
    for _ in 0..800 {
        let batch = random_batch(&mut rng, 4);
        let sizes = [(); 3].map(|()| *rng.choose(&[0, 1, 2, 3, 5, 7, 8, 16, 17, 33]));
        let dtype = *rng.choose(&FLOATS);
        check(&mut rng, &batch, sizes, dtype);
    }
}

#[test]
fn sizes_about_the_edges_of_tiles_and_blocks() {
    let mut rng = Rng::new(2);
    let rows = [1, 2, 4, 6, 11, 12, 13, 31, 32, 33, 60, 192, 193, 205];
    let columns = [1, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 257, 300];
    let depths = [0, 1, 3, 4, 5, 63, 64, 65, 255, 256, 257, 511, 513];
    for round in 0..150 {
        let mut sizes = [*rng.choose(&rows), *rng.choose(&depths), *rng.choose(&columns)];
        // Large in two directions at most: chains are slow.
        if sizes.iter().product::<usize>() > 2_000_000 {
            sizes[round % 3] = 3;
        }
        let dtype = *rng.choose(&FLOATS);
        check(&mut rng, &[], sizes, dtype);
    }
}

#[test]
fn long_chains() {
    let mut rng = Rng::new(3);
    for sizes in [[1, 5003, 70], [3, 4096, 33], [40, 3001, 17], [13, 2500, 1]] {
        for dtype in FLOATS {
            check(&mut rng, &[], sizes, dtype);
        }
    }
}

/// The output's bytes are the same however the work is divided, and in which order.
#[test]
fn any_division_gives_the_same_bytes() {
    let mut rng = Rng::new(4);
    let cases = [(vec![], [1, 300, 3000]), (vec![], [200, 70, 530]), (vec![2, 3], [20, 9, 300]), (vec![5], [1, 9, 40])];
    for (batch, sizes) in cases {
        let mut case = ContractCase::new(&mut rng, &batch, sizes, DType::F32);
        let mut first: Option<Vec<u8>> = None;
        let mut counts = Vec::new();
        for (workers, how) in [1, 2, 7, 64].into_iter().flat_map(|w| How::ALL.map(|how| (w, how))) {
            counts.push(Contract::new(Isa::detect(), case.product(workers)).unwrap().pieces());
            run(Isa::detect(), case.product(workers), how);
            let bytes = case.out.memory.bytes().to_vec();
            assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{workers} {how:?}: {}", case.describe());
        }
        let more = counts.first() < counts.last();
        assert!(more || case.out.places.len() < 1000, "more workers find more pieces: {counts:?}");
    }
}

/// `x0 * x1 + x2`, rounded to a type.
fn changes(to: DType) -> Expr {
    let product = Expr::call(Func::Mul, &[Expr::input(0), Expr::input(1)]);
    Expr::call(Func::Add, &[product, Expr::input(2)]).cast(to)
}

/// A program with its two other inputs.
struct Change {
    program: ElementProgram,
    expr: Expr,
    others: [Tensor; 2],
}

impl Change {
    fn new(rng: &mut Rng, batch: &[usize], [rows, columns]: [usize; 2], of: DType, expr: Expr) -> Change {
        let sizes = [batch, &[rows, columns]].concat();
        let types = [of, *rng.choose(&FLOATS), *rng.choose(&FLOATS)];
        let others = [1, 2].map(|i| Tensor::filled(rng, types[i], &sizes));
        Change { program: ElementProgram::new(&expr, &types).unwrap(), expr, others }
    }

    fn of(&self, x: &[f32]) -> Vec<Scalar> {
        let [y, z] = [0, 1].map(|i| self.others[i].values());
        let value = |i: usize| self.expr.eval(&[x[i].into(), y[i].into(), z[i].into()]);
        (0..x.len()).map(value).collect()
    }

    fn floats(&self, x: &[f32]) -> Vec<f32> {
        self.of(x).into_iter().map(|x| x.as_f64() as f32).collect()
    }
}

#[test]
fn programs_meet_every_element_where_it_is() {
    let mut rng = Rng::new(5);
    for round in 0..160 {
        let batch = random_batch(&mut rng, 3);
        let [m, k, n] = [[1, 4, 20, 40], [0, 5, 70, 300], [1, 20, 33, 270]].map(|of| *rng.choose(&of));
        let dtype = *rng.choose(&FLOATS);
        let mut case = ContractCase::new(&mut rng, &batch, [m, k, n], dtype);
        // The result may be of another type than the product, which is rounded before.
        let rounded = Expr::input(0).cast(dtype);
        let mut after = changes(dtype).substitute(|i| if i == 0 { rounded.clone() } else { Expr::input(i) });
        if rng.one_in(3) {
            after = Expr::call(Func::Less, &[after, Expr::constant(0.5)]);
            case.out = Tensor::new(&mut rng, DType::Bool, &[&batch[..], &[m, n]].concat(), false);
        }
        let left = Change::new(&mut rng, &batch, [m, k], dtype, changes(dtype));
        let right = Change::new(&mut rng, &batch, [k, n], dtype, changes(dtype));
        let after = Change::new(&mut rng, &batch, [m, n], DType::F32, after);
        let [with_left, with_right] = [round % 2, round / 2 % 2].map(|x| x == 1);
        let with_after = round / 4 % 2 == 1 || case.out.dtype == DType::Bool;
        let a = if with_left { left.floats(&case.a.values()) } else { case.a.values() };
        let b = if with_right { right.floats(&case.b.values()) } else { case.b.values() };
        let chains = case.chains(&a, &b);
        let want = if with_after { after.of(&chains) } else { exact(&chains, dtype) };
        let others = [&left, &right, &after].map(|change| [0, 1].map(|i| change.others[i].input()));
        for isa in levels() {
            let mut product = case.product(2);
            product.left = with_left.then_some(Fused { program: &left.program, others: &others[0] });
            product.right = with_right.then_some(Fused { program: &right.program, others: &others[1] });
            product.after = with_after.then_some(Fused { program: &after.program, others: &others[2] });
            let how = if with_right { How::Together } else { How::ALL[round % How::ALL.len()] };
            run(isa, product, how);
            case.out.holds(&want, &format!("{isa} {how:?} round {round} {}", case.describe()));
        }
    }
}

#[test]
fn what_is_no_product_is_refused() {
    let mut rng = Rng::new(6);
    let mut case = ContractCase::new(&mut rng, &[2], [3, 4, 5], DType::F32);
    let product = case.product(1);
    let refused = |product: BatchMatmul<'_>| Contract::new(Isa::detect(), product).err().unwrap();
    let flat = StridedInput::at(std::ptr::null(), Elem::F32, Strides::new(&[4, 1]).unwrap());
    let few = ContractError::Strides { operand: "a", strides: 2, wanted: 3 };
    assert_eq!(refused(BatchMatmul { a: flat, ..product }), few);
    let whole = StridedInput::at(std::ptr::null(), Elem::I32, Strides::new(&[20, 5, 1]).unwrap());
    assert_eq!(refused(BatchMatmul { b: whole, ..product }), ContractError::NoFloat("b", Elem::I32));
    for (m, k, n) in [(usize::MAX, 4, 5), (3, usize::MAX / 2, 5), (3, 4, usize::MAX), (1 << 40, 0, 1 << 40)] {
        assert!(matches!(refused(BatchMatmul { m, k, n, ..product }), ContractError::Sizes(_)), "{m} {k} {n}");
    }
    let many = [1; 9];
    assert!(matches!(refused(BatchMatmul { batch: &many, ..product }), ContractError::Sizes(_)));
    // A program of another input, of a result that is no float, without its other input.
    let less = ElementProgram::new(&Expr::binary(Func::Less), &[DType::F32; 2]).unwrap();
    let half = ElementProgram::identity(F16).unwrap();
    let sum = ElementProgram::new(&Expr::binary(Func::Add), &[DType::F32; 2]).unwrap();
    for (program, others) in [(&half, vec![]), (&less, vec![product.a]), (&sum, vec![]), (&sum, vec![whole])] {
        let fused = Some(Fused { program, others: &others });
        assert_eq!(refused(BatchMatmul { left: fused, ..product }), ContractError::Program("a"));
        assert_eq!(refused(BatchMatmul { after: fused, ..product }), ContractError::Program("the result"));
    }
    let others = [flat];
    let flat = Some(Fused { program: &sum, others: &others });
    let few = ContractError::Strides { operand: "b", strides: 2, wanted: 3 };
    assert_eq!(refused(BatchMatmul { right: flat, ..product }), few);
}

#[test]
#[should_panic(expected = "floats of scratch")]
fn too_little_scratch_is_a_panic_and_no_write() {
    let mut case = ContractCase::new(&mut Rng::new(7), &[], [3, 4, 5], DType::F32);
    let call = Contract::new(Isa::detect(), case.product(1)).unwrap();
    unsafe { contract(Isa::detect(), &call, 0..1, &mut [0.0; 9]) };
}

#[test]
#[should_panic(expected = "pieces 0..2 of 1")]
fn a_piece_that_is_none_is_a_panic_and_no_write() {
    let mut case = ContractCase::new(&mut Rng::new(8), &[], [3, 4, 5], DType::F32);
    let call = Contract::new(Isa::detect(), case.product(1)).unwrap();
    unsafe { contract(Isa::detect(), &call, 0..2, &mut [0.0; 1 << 17]) };
}

/// Numbers whose products, or sums of them, are below the normal range, infinite or none: no level may take them for zeros.
#[test]
fn small_and_large_numbers_are_what_they_are() {
    let mut rng = Rng::new(9);
    // Some come after hundreds of others, of which nothing is to be seen.
    for (first, exponents) in
        [(0, -75..-60), (0, -126..-100), (300, -75..-60), (300, 90..127), (0, -133..-127), (300, 127..129)]
    {
        for sizes in [[40, 520, 70], [9, 401, 33], [3, 320, 64]] {
            let mut case = ContractCase::new(&mut rng, &[], sizes, BF16);
            for (operand, columns, is_a) in [(&mut case.a, sizes[1], true), (&mut case.b, sizes[2], false)] {
                for (i, &at) in operand.places.iter().enumerate() {
                    let l = if is_a { i % columns } else { i / columns };
                    let exponent = exponents.start + rng.below((exponents.end - exponents.start) as u64) as i32;
                    let strange = l >= first && rng.one_in(8);
                    let x = f64::from(rng.signed_f32()) * if strange { 2f64.powi(exponent) } else { 1.0 };
                    operand.memory.bytes_mut()[2 * at..][..2].copy_from_slice(&half::bf16::from_f64(x).to_ne_bytes());
                }
            }
            let mut of = |isa: Isa, how: How| {
                run(isa, case.product(2), how);
                case.out.raw()
            };
            let wanted = of(Isa::Scalar, How::Together);
            for (isa, how) in levels().into_iter().flat_map(|isa| How::ALL.map(|how| (isa, how))) {
                same(BF16, &of(isa, how), &wanted)
                    .unwrap_or_else(|at| panic!("{isa} {how:?} {sizes:?} {exponents:?}: {at}"));
            }
        }
    }
}

/// Rows of b that lie side by side are read as they lie where a has few: a number of another range in one column, from some
/// row on, changes nothing but how they are multiplied.
#[test]
fn one_strange_number_among_rows_side_by_side() {
    let mut rng = Rng::new(10);
    for (m, at) in [(1, [0, 0]), (4, [7, 63]), (8, [100, 95]), (20, [255, 130]), (32, [256, 199]), (5, [299, 192])] {
        for exponent in [-130, -70, 120] {
            let [k, n] = [300, 200];
            let mut case = ContractCase::new(&mut rng, &[], [m, k, n], BF16);
            let memory = Guarded::new(2 * k * n, rng.one_in(2));
            let view = dense(&[k, n]);
            case.b = Tensor { dtype: BF16, places: places(&view, &[k, n]), view, memory };
            for (i, &place) in case.b.places.iter().enumerate() {
                let scale = if [i / n, i % n] == at { 2f64.powi(exponent) } else { 1.0 };
                let x = half::bf16::from_f64(f64::from(1.0 + rng.signed_f32().abs()) * scale);
                case.b.memory.bytes_mut()[2 * place..][..2].copy_from_slice(&x.to_ne_bytes());
            }
            run(Isa::Scalar, case.product(2), How::Together);
            let wanted = case.out.raw();
            for isa in levels() {
                run(isa, case.product(2), How::Together);
                same(BF16, &case.out.raw(), &wanted).unwrap_or_else(|e| panic!("{isa} {m} {at:?} {exponent}: {e}"));
            }
        }
    }
}

/// A right side of bf16 numbers that are held as f32, and of other f32 numbers.
#[test]
fn bf16_numbers_times_wide_ones() {
    let mut rng = Rng::new(11);
    for sizes in [[1, 300, 96], [8, 513, 200], [16, 300, 70], [24, 300, 96], [40, 521, 70]] {
        for narrow in [true, false] {
            let mut case = ContractCase::new(&mut rng, &[], sizes, BF16);
            case.b = Tensor::filled(&mut rng, DType::F32, &sizes[1..]);
            if narrow {
                for &at in &case.b.places {
                    case.b.memory.bytes_mut()[4 * at..][..2].fill(0);
                }
            }
            let want = exact(&case.chains(&case.a.values(), &case.b.values()), BF16);
            for (isa, how) in levels().into_iter().flat_map(|isa| How::ALL.map(|how| (isa, how))) {
                run(isa, case.product(2), how);
                case.out.holds(&want, &format!("{isa} {how:?} {narrow} {}", case.describe()));
            }
        }
    }
}
