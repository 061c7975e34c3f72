//! Memory between pages that nobody may touch, views of it, and random expressions.

use yirage_cpu_kernels::general::{Elem, LoopSizes, StridedInput, StridedOutput};
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::dim::{Dim, Dims};
use yirage_ir::dtype::DType;
use yirage_ir::expr::{Expr, Func, Scalar};
use yirage_ir::quant::Format;
use yirage_ir::strided::Strided;
pub(crate) use yirage_testkit::rng::Rng;

pub(crate) const F16: DType = DType::Stored(Format::F16);
pub(crate) const BF16: DType = DType::Stored(Format::BF16);
/// All types of elements.
pub(crate) const TYPES: [DType; 6] = [DType::F32, F16, BF16, DType::I32, DType::U32, DType::Bool];

/// The levels at hand; those that are not are said to be left out.
pub(crate) fn levels() -> Vec<Isa> {
    crate::linear_support::isas()
}

pub(crate) fn elem(dtype: DType) -> Elem {
    Elem::try_from(dtype).unwrap()
}

/// Bytes flush against a page that faults, before or behind them.
pub(crate) struct Guarded {
    map: *mut u8,
    length: usize,
    start: *mut u8,
    bytes: usize,
}

const PAGE: usize = 4096;

impl Guarded {
    pub(crate) fn new(bytes: usize, at_end: bool) -> Guarded {
        let inner = bytes.next_multiple_of(PAGE).max(PAGE);
        let length = inner + 2 * PAGE;
        // SAFETY: a mapping of its own; the pages in the middle are opened.
        let map = unsafe {
            let none = std::ptr::null_mut();
            let map = libc::mmap(none, length, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(map.add(PAGE), inner, libc::PROT_READ | libc::PROT_WRITE), 0);
            map.cast::<u8>()
        };
        let start = map.wrapping_add(PAGE + if at_end { inner - bytes } else { 0 });
        Guarded { map, length, start, bytes }
    }

    pub(crate) fn of(bytes: &[u8], at_end: bool) -> Guarded {
        let mut all = Guarded::new(bytes.len(), at_end);
        all.bytes_mut().copy_from_slice(bytes);
        all
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the middle of the mapping.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the middle of the mapping.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }

    pub(crate) fn input(&self, dtype: DType, view: &Strided) -> StridedInput {
        StridedInput::within(self.start, self.bytes, elem(dtype), view, &Dims::default()).unwrap()
    }

    pub(crate) fn output(&mut self, dtype: DType, view: &Strided) -> StridedOutput {
        StridedOutput::within(self.start, self.bytes, elem(dtype), view, &Dims::default()).unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is its own.
        unsafe { libc::munmap(self.map.cast(), self.length) };
    }
}

/// The bytes of elements.
pub(crate) fn bytes(dtype: DType, values: &[Scalar]) -> Vec<u8> {
    let one = |value: &Scalar| match (elem(dtype), value.cast(dtype)) {
        (Elem::F32, Scalar::F32(x)) => x.0.to_ne_bytes().to_vec(),
        (Elem::F16, Scalar::F32(x)) => half::f16::from_f32(x.0).to_ne_bytes().to_vec(),
        (Elem::BF16, Scalar::F32(x)) => half::bf16::from_f32(x.0).to_ne_bytes().to_vec(),
        (Elem::I32, Scalar::I32(x)) => x.to_ne_bytes().to_vec(),
        (Elem::U32, Scalar::U32(x)) => x.to_ne_bytes().to_vec(),
        (Elem::Bool, Scalar::Bool(x)) => vec![u8::from(x)],
        (elem, value) => panic!("{value:?} as {elem:?}"),
    };
    values.iter().flat_map(one).collect()
}

/// The elements of bytes.
pub(crate) fn scalars(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
    let one = |b: &[u8]| match elem(dtype) {
        Elem::F32 => f32::from_ne_bytes(b.try_into().unwrap()).into(),
        Elem::F16 => half::f16::from_ne_bytes(b.try_into().unwrap()).to_f32().into(),
        Elem::BF16 => half::bf16::from_ne_bytes(b.try_into().unwrap()).to_f32().into(),
        Elem::I32 => i32::from_ne_bytes(b.try_into().unwrap()).into(),
        Elem::U32 => u32::from_ne_bytes(b.try_into().unwrap()).into(),
        Elem::Bool => {
            assert!(b[0] < 2, "a bool of {}", b[0]);
            (b[0] == 1).into()
        }
    };
    bytes.chunks(elem(dtype).bytes()).map(one).collect()
}

pub(crate) fn fixed(sizes: &[usize]) -> Vec<Dim> {
    sizes.iter().map(|&n| Dim::Const(n as u32)).collect()
}

pub(crate) fn dense(sizes: &[usize]) -> Strided {
    Strided::dense(&fixed(sizes)).unwrap()
}

pub(crate) fn sizes(sizes: &[usize]) -> LoopSizes {
    LoopSizes::new(sizes).unwrap()
}

/// Sizes of up to `most` elements.
pub(crate) fn random_sizes(rng: &mut Rng, rank: usize, most: usize) -> Vec<usize> {
    let mut sizes = vec![1; rank];
    for _ in 0..3 * rank {
        let axis = rng.below(rank.max(1) as u64) as usize;
        let grown = rng.choose(&[1, 2, 3, 5, 16, 17, 31, 64, 70, 300, 1000]);
        if sizes.iter().product::<usize>() / sizes[axis] * grown <= most {
            sizes[axis] = *grown;
        }
    }
    sizes
}

/// Any strides: dimensions in any order, backwards, with gaps, and where it is allowed the same element again.
pub(crate) fn random_view(rng: &mut Rng, sizes: &[usize], repeats: bool) -> Strided {
    if rng.one_in(3) {
        return dense(sizes);
    }
    let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
    if rng.one_in(2) {
        rng.shuffle(&mut order);
    }
    let mut view = dense(sizes);
    let mut next = if rng.one_in(3) { 1 + rng.below(3) as i64 } else { 1 };
    for &axis in &order {
        if repeats && rng.one_in(4) {
            view.strides[axis] = 0;
            continue;
        }
        view.strides[axis] = if rng.one_in(5) { -next } else { next };
        next *= sizes[axis] as i64;
        if rng.one_in(6) {
            next += rng.below(5) as i64;
        }
    }
    let (low, _) = view.reach(&Dims::default()).unwrap_or((0, 0));
    view.offset = -low;
    view
}

/// Elements that a view's memory has.
pub(crate) fn held(view: &Strided) -> usize {
    view.reach(&Dims::default()).map_or(0, |(_, high)| high as usize + 1)
}

/// Where in its memory each element of a view is, in row-major order.
pub(crate) fn places(view: &Strided, sizes: &[usize]) -> Vec<usize> {
    let place = |mut i: usize| {
        let mut at = view.offset;
        for (&size, stride) in sizes.iter().zip(&view.strides).rev() {
            at += (i % size) as i64 * stride;
            i /= size;
        }
        at as usize
    };
    (0..sizes.iter().product()).map(place).collect()
}

/// A value that a type holds; now and then an unpleasant one.
pub(crate) fn random_scalar(rng: &mut Rng, dtype: DType) -> Scalar {
    let odd = rng.one_in(12);
    match elem(dtype) {
        Elem::I32 if odd => (*rng.choose(&[i32::MIN, i32::MAX, 0, -1])).into(),
        Elem::I32 => (rng.below(2000) as i32 - 1000).into(),
        Elem::U32 if odd => (*rng.choose(&[u32::MAX, 1 << 31, 0, 1])).into(),
        Elem::U32 => (rng.below(2000) as u32).into(),
        Elem::Bool => rng.one_in(2).into(),
        _ if odd => {
            let any = f32::from_bits(rng.next_u64() as u32);
            let all = [0.0, -0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -3e38, 65519.0, any];
            Scalar::from(*rng.choose(&all)).cast(dtype)
        }
        _ => Scalar::from(rng.signed_f32() * 4.0).cast(dtype),
    }
}

/// A random well-typed expression that reads all of its inputs, made of the functions that are allowed.
pub(crate) fn random_expr(rng: &mut Rng, inputs: &[DType], calls: usize, funcs: &[Func]) -> Expr {
    loop {
        let mut pool: Vec<Expr> = (0..inputs.len() as u32).map(Expr::input).collect();
        let mut made = 0;
        for _ in 0..40 * calls.max(1) {
            let next = match rng.below(10) {
                0 => {
                    let dtype = *rng.choose(&TYPES);
                    Expr::constant(random_scalar(rng, dtype))
                }
                1 | 2 => {
                    let to = *rng.choose(&TYPES);
                    rng.choose(&pool).cast(to)
                }
                _ => {
                    let func = *rng.choose(funcs);
                    let args: Vec<Expr> = (0..func.arity()).map(|_| rng.choose(&pool).clone()).collect();
                    Expr::call(func, &args)
                }
            };
            let read: Vec<DType> = inputs[..next.inputs()].to_vec();
            let typed = next.infer(inputs).is_ok()
                || infer_some(&next, inputs).is_some() && next.terms().len() < 200 && !read.is_empty();
            if typed {
                pool.push(next);
                made += 1;
            }
            if made >= calls && pool.last().is_some_and(|e| e.infer(inputs).is_ok()) {
                return pool.pop().unwrap();
            }
        }
    }
}

/// The type of an expression that need not read all inputs.
fn infer_some(expr: &Expr, inputs: &[DType]) -> Option<DType> {
    let used: Vec<u32> =
        (0..inputs.len() as u32).filter(|i| expr.terms().contains(&yirage_ir::expr::Term::Input(*i))).collect();
    let packed = expr.substitute(|i| Expr::input(used.iter().position(|u| *u == i).unwrap() as u32));
    let types: Vec<DType> = used.iter().map(|&i| inputs[i as usize]).collect();
    packed.infer(&types).ok().and_then(|t| t.last().copied())
}

/// Whether two results are the same to the bit; any NaN is any other.
pub(crate) fn same(dtype: DType, a: &[u8], b: &[u8]) -> Result<(), String> {
    let (a, b) = (scalars(dtype, a), scalars(dtype, b));
    let bits = |s: &Scalar| match s {
        Scalar::F32(x) => x.0.to_bits(),
        Scalar::I32(x) => *x as u32,
        Scalar::U32(x) => *x,
        Scalar::Bool(x) => u32::from(*x),
    };
    match a.iter().zip(&b).position(|(a, b)| bits(a) != bits(b)) {
        None => Ok(()),
        Some(i) => Err(format!("element {i} of {}: {:?} and {:?}", a.len(), a[i], b[i])),
    }
}
