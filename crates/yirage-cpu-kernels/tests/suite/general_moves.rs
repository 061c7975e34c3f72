//! Gather, concat, fill and iota against their definitions: any axis, layout, type and part of the result, and nothing
//! else is touched.

use crate::general_support::*;
use std::ops::Range;
use yirage_cpu_kernels::general::{self, Elem, Slices, StridedInput, StridedOutput, Strides, fill, gather, iota};
use yirage_ir::attr::List;
use yirage_ir::dtype::DType;
use yirage_ir::expr::Scalar;
use yirage_ir::op::{Concat, Fill, Gather, Iota, OpDef};
use yirage_ir::strided::Strided;
use yirage_ir::tensor::Tensor;

/// What memory of results holds before.
const BEFORE: u8 = 0xa5;

/// A value in memory that ends where it ends, and the same as a plain tensor.
struct MovedTensor {
    dtype: DType,
    view: Strided,
    memory: Guarded,
    plain: Tensor,
}

impl MovedTensor {
    fn new(rng: &mut Rng, dtype: DType, shape: &[usize], mut element: impl FnMut(&mut Rng) -> Scalar) -> MovedTensor {
        let view = random_view(rng, shape, true);
        let mut memory = Guarded::new(held(&view) * elem(dtype).bytes(), rng.one_in(2));
        let (places, size) = (of(&view, shape), elem(dtype).bytes());
        for at in &places {
            memory.bytes_mut()[at * size..][..size].copy_from_slice(&bytes(dtype, &[element(rng)]));
        }
        let raw: Vec<u8> = places.iter().flat_map(|at| memory.bytes()[at * size..][..size].to_vec()).collect();
        let plain = Tensor::from_scalars(dtype, shape.to_vec(), &scalars(dtype, &raw));
        MovedTensor { dtype, view, memory, plain }
    }

    fn random(rng: &mut Rng, dtype: DType, shape: &[usize]) -> MovedTensor {
        MovedTensor::new(rng, dtype, shape, |rng| random_scalar(rng, dtype))
    }

    fn input(&self) -> StridedInput {
        self.memory.input(self.dtype, &self.view)
    }
}

fn of(view: &Strided, shape: &[usize]) -> Vec<usize> {
    if shape.contains(&0) { Vec::new() } else { places(view, shape) }
}

/// Runs a kernel on parts of a result that lies anyhow; it must be `want`, and what is beside it untouched.
fn check(rng: &mut Rng, want: &Tensor, what: &str, kernel: impl Fn(StridedOutput, Range<usize>)) {
    let view = random_view(rng, &want.shape, false);
    let size = elem(want.dtype).bytes();
    let mut memory = Guarded::new(held(&view) * size, rng.one_in(2));
    memory.bytes_mut().fill(BEFORE);
    let n = want.shape.iter().product::<usize>();
    let out = memory.output(want.dtype, &view);
    let mut cuts = [0, n, rng.below(n as u64 + 1) as usize, rng.below(n as u64 + 1) as usize];
    cuts.sort_unstable();
    // The later parts first.
    cuts.windows(2).rev().for_each(|part| kernel(out, part[0]..part[1]));
    let places = of(&view, &want.shape);
    let got: Vec<u8> = places.iter().flat_map(|at| memory.bytes()[at * size..][..size].to_vec()).collect();
    same(want.dtype, &got, &bytes(want.dtype, &want.scalars())).unwrap_or_else(|at| panic!("{what}: {at}"));
    places.iter().for_each(|at| memory.bytes_mut()[at * size..][..size].fill(BEFORE));
    assert!(memory.bytes().iter().all(|&byte| byte == BEFORE), "{what}: a gap was written to");
}

fn random_shape(rng: &mut Rng, rank: usize) -> Vec<usize> {
    let mut shape = random_sizes(rng, rank, 3000);
    if rank > 0 && rng.one_in(20) {
        shape[rng.below(rank as u64) as usize] = 0;
    }
    shape
}

#[test]
fn gather_along_any_axis() {
    let mut rng = Rng::new(1);
    for round in 0..600 {
        let rank = 1 + rng.below(4) as usize;
        let shape = random_shape(&mut rng, rank);
        let axis = rng.below(rank as u64) as usize;
        let dtype = *rng.choose(&TYPES);
        let x = MovedTensor::random(&mut rng, dtype, &shape);
        let rank = rng.below(3) as usize;
        let numbers = random_sizes(&mut rng, rank, 20);
        let extent = shape[axis] as i32;
        let at = MovedTensor::new(&mut rng, DType::I32, &numbers, |rng| match rng.below(12) {
            0 => (*rng.choose(&[-1, extent, i32::MIN, i32::MAX])).into(),
            n => ((n as i32 * 7919) % extent.max(1)).into(),
        });
        let want = Gather { axis: axis as u32 }.eval(&[&x.plain, &at.plain]).remove(0);
        let slices = Slices { x: x.input(), axis, extent: shape[axis], at: at.input() };
        let sizes = sizes(&want.shape);
        check(&mut rng, &want, &format!("round {round}: {shape:?} {axis} {numbers:?} {dtype}"), |out, range| {
            unsafe { gather(&sizes, &slices, out, range) };
        });
    }
}

#[test]
fn concat_along_any_axis() {
    let mut rng = Rng::new(2);
    for round in 0..600 {
        let rank = 1 + rng.below(4) as usize;
        let shape = random_shape(&mut rng, rank);
        let axis = rng.below(rank as u64) as usize;
        let dtype = *rng.choose(&TYPES);
        let parts: Vec<MovedTensor> = (0..1 + rng.below(4))
            .map(|_| {
                let mut shape = shape.clone();
                shape[axis] = rng.below(6) as usize;
                MovedTensor::random(&mut rng, dtype, &shape)
            })
            .collect();
        let plain: Vec<&Tensor> = parts.iter().map(|p| &p.plain).collect();
        let want = Concat { axis: axis as u32 }.eval(&plain).remove(0);
        let inputs: Vec<(StridedInput, usize)> = parts.iter().map(|p| (p.input(), p.plain.shape[axis])).collect();
        let sizes = sizes(&want.shape);
        check(&mut rng, &want, &format!("round {round}: {:?} {axis} {dtype}", want.shape), |out, range| {
            unsafe { general::concat(&sizes, axis, &inputs, out, range) };
        });
    }
}

#[test]
fn fill_and_iota() {
    let mut rng = Rng::new(3);
    for _ in 0..300 {
        let rank = 1 + rng.below(4) as usize;
        let shape = random_shape(&mut rng, rank);
        let list = || List(shape.iter().map(|&n| n as u32).collect::<Vec<_>>());
        let dtype = *rng.choose(&[DType::F32, DType::I32, DType::U32, DType::Bool]);
        let value = random_scalar(&mut rng, dtype);
        let sizes = sizes(&shape);
        let want = Fill { value, shape: list() }.eval(&[]).remove(0);
        check(&mut rng, &want, "fill", |out, range| unsafe { fill(&sizes, value, out, range) }.unwrap());
        let axis = rng.below(rank as u64) as usize;
        let want = Iota { shape: list(), axis: axis as u32 }.eval(&[]).remove(0);
        check(&mut rng, &want, "iota", |out, range| unsafe { iota(&sizes, axis, out, range) });
    }
}

#[test]
fn a_fill_of_another_type_is_refused() {
    let out = StridedOutput::at(std::ptr::null_mut(), Elem::U32, Strides::new(&[1]).unwrap());
    assert!(unsafe { fill(&sizes(&[4]), Scalar::from(1.5), out, 0..4) }.is_err());
}

fn nothing(elem: Elem) -> (StridedInput, StridedOutput) {
    let strides = Strides::new(&[1]).unwrap();
    (StridedInput::at(std::ptr::null(), elem, strides), StridedOutput::at(std::ptr::null_mut(), elem, strides))
}

#[test]
#[should_panic(expected = "elements 0..5 of")]
fn a_range_past_the_result_is_a_panic_and_no_write() {
    unsafe { iota(&sizes(&[4]), 0, nothing(Elem::I32).1, 0..5) };
}

#[test]
#[should_panic(expected = "dimensions of the result")]
fn an_axis_that_is_none_is_a_panic_and_no_read() {
    let (at, out) = nothing(Elem::I32);
    unsafe { gather(&sizes(&[4]), &Slices { x: at, axis: 1, extent: 4, at }, out, 0..4) };
}

#[test]
#[should_panic(expected = "elements are moved as they are")]
fn numbers_that_are_no_i32_are_a_panic_and_no_read() {
    let (at, out) = nothing(Elem::F32);
    unsafe { gather(&sizes(&[4]), &Slices { x: at, axis: 0, extent: 4, at }, out, 0..4) };
}

#[test]
#[should_panic(expected = "elements 0..4 of")]
fn parts_that_are_not_the_result_are_a_panic_and_no_read() {
    let (part, out) = nothing(Elem::F32);
    unsafe { general::concat(&sizes(&[4]), 0, &[(part, 3)], out, 0..4) };
}
