//! Shared by the tests of general kernels: tensors of any strides, flush against pages that nobody may touch.
#![allow(dead_code)] // each test file uses a part

mod guarded;

pub(crate) use guarded::Guarded;
use half::{bf16, f16};
use yirage_cpu::general::{Elem, Input, Output, Strides};
use yirage_cpu::isa::Isa;
use yirage_ir::rng::Rng;
use yirage_testkit::skipped;

pub(crate) fn isas() -> Vec<Isa> {
    let (have, lack): (Vec<Isa>, Vec<Isa>) = Isa::ALL.iter().partition(|isa| isa.available());
    for isa in lack {
        skipped::note(&format!("kernels for {isa}"), "this processor lacks them");
    }
    have
}

/// A number below `n`.
pub(crate) fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.next_u64() % n as u64) as usize
}

/// One of them.
pub(crate) fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[below(rng, of.len())]
}

/// A tensor in memory that ends where it ends.
pub(crate) struct Tensor {
    pub(crate) elem: Elem,
    pub(crate) sizes: Vec<usize>,
    pub(crate) strides: Vec<i64>,
    offset: i64,
    pub(crate) memory: Guarded,
}

/// Places of all elements in row-major order, in elements from the first one.
pub(crate) fn places(sizes: &[usize], strides: &[i64]) -> Vec<i64> {
    sizes.iter().zip(strides).fold(vec![0], |at, (&n, &stride)| {
        at.iter().flat_map(|&from| (0..n as i64).map(move |i| from + i * stride)).collect()
    })
}

impl Tensor {
    /// Of these strides, all bytes `fill`.
    pub(crate) fn new(elem: Elem, sizes: &[usize], strides: &[i64], behind: bool, fill: u8) -> Tensor {
        let ends = |end: fn(i64) -> i64| -> i64 {
            sizes.iter().zip(strides).map(|(&n, &stride)| end((n as i64 - 1) * stride)).sum()
        };
        let empty = sizes.contains(&0);
        let (low, high) = if empty { (0, -1) } else { (ends(|x| x.min(0)), ends(|x| x.max(0))) };
        let memory = Guarded::new((high - low + 1) as usize * elem.bytes(), behind, fill);
        Tensor { elem, sizes: sizes.to_vec(), strides: strides.to_vec(), offset: -low, memory }
    }

    pub(crate) fn input(&self) -> Input {
        Input::at(self.first(), self.elem, Strides::new(&self.strides).unwrap())
    }

    pub(crate) fn output(&self) -> Output {
        Output::at(self.first(), self.elem, Strides::new(&self.strides).unwrap())
    }

    fn first(&self) -> *mut u8 {
        self.memory.as_ptr().wrapping_byte_offset(self.offset as isize * self.elem.bytes() as isize)
    }

    /// Where its elements lie, in bytes of the memory.
    fn bytes_at(&self) -> impl Iterator<Item = usize> {
        let size = self.elem.bytes();
        places(&self.sizes, &self.strides).into_iter().map(move |at| (at + self.offset) as usize * size)
    }

    /// Puts a value into every element; elements in the same place end with the last one's.
    pub(crate) fn fill(&mut self, mut value: impl FnMut() -> f32) {
        let at: Vec<usize> = self.bytes_at().collect();
        let elem = self.elem;
        for at in at {
            let bits = to_bytes(elem, value());
            self.memory.bytes_mut()[at..at + elem.bytes()].copy_from_slice(&bits[..elem.bytes()]);
        }
    }

    /// Its elements in row-major order.
    pub(crate) fn values(&self) -> Vec<f32> {
        let bytes = self.memory.bytes();
        self.bytes_at().map(|at| of_bytes(self.elem, &bytes[at..at + self.elem.bytes()])).collect()
    }

    /// The raw elements in row-major order.
    pub(crate) fn raw(&self) -> Vec<Vec<u8>> {
        let bytes = self.memory.bytes();
        self.bytes_at().map(|at| bytes[at..at + self.elem.bytes()].to_vec()).collect()
    }

    /// Bytes of the memory that belong to no element.
    pub(crate) fn gaps(&self) -> Vec<u8> {
        let mut gaps = vec![true; self.memory.bytes().len()];
        self.bytes_at().for_each(|at| gaps[at..at + self.elem.bytes()].fill(false));
        self.memory.bytes().iter().zip(gaps).filter(|(_, gap)| *gap).map(|(byte, _)| *byte).collect()
    }
}

/// A number as an element: the nearest one of its type.
pub(crate) fn to_bytes(elem: Elem, x: f32) -> [u8; 4] {
    let narrow = |x: u16| (u32::from(x)).to_ne_bytes();
    match elem {
        Elem::F16 => narrow(f16::from_f32(x).to_bits()),
        Elem::BF16 => narrow(bf16::from_f32(x).to_bits()),
        Elem::I32 => (x as i32).to_ne_bytes(),
        Elem::U32 => (x as u32).to_ne_bytes(),
        Elem::Bool => [u8::from(x != 0.0), 0, 0, 0],
        Elem::F32 => x.to_ne_bytes(),
    }
}

/// The number that a float element is.
pub(crate) fn of_bytes(elem: Elem, bytes: &[u8]) -> f32 {
    match (elem, bytes) {
        (Elem::F16, &[a, b]) => f16::from_ne_bytes([a, b]).to_f32(),
        (Elem::BF16, &[a, b]) => bf16::from_ne_bytes([a, b]).to_f32(),
        (Elem::F32, &[a, b, c, d]) => f32::from_ne_bytes([a, b, c, d]),
        other => panic!("no float: {other:?}"),
    }
}

/// A number rounded to a type of floats.
pub(crate) fn rounded(elem: Elem, x: f32) -> f32 {
    of_bytes(elem, &to_bytes(elem, x)[..elem.bytes()])
}

/// Strides of sizes: dense, with dimensions turned, gaps, and steps backwards, as the numbers want it.
pub(crate) fn any_strides(rng: &mut Rng, sizes: &[usize]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    if below(rng, 2) == 0 {
        for i in (1..order.len()).rev() {
            order.swap(i, below(rng, i + 1));
        }
    }
    let gaps = below(rng, 3) == 0;
    let (mut strides, mut next) = (vec![0; sizes.len()], 1i64);
    for &axis in order.iter().rev() {
        strides[axis] = if below(rng, 8) == 0 { -next } else { next };
        next *= sizes[axis].max(1) as i64 + i64::from(gaps && below(rng, 2) == 0);
        next *= if gaps && below(rng, 4) == 0 { 2 } else { 1 };
    }
    strides
}
