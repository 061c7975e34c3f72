//! Speed of products of matrices as shares of what the machine can do, measured in the same run.
//!
//! `cargo bench -p yirage-cpu --bench contract -- [isa]`. One thread. Few rows: against a plain read of the right side's
//! bytes. Many rows: against a loop of f32 multiply-adds only. Baseline and kernel run in turn, and each share is of the
//! best of both, because the machine is shared. Products with a map joined: against the same product and the map, one after
//! the other.
#![allow(clippy::print_stdout)] // printing is its purpose

use std::hint::black_box;
use std::time::Instant;
use yirage_cpu_kernels::general::contract::{BatchMatmul, Contract, Fused, contract};
use yirage_cpu_kernels::general::{Elem, ElementProgram, LoopSizes, StridedInput, StridedOutput, Strides, map};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::memory::{HugeBuf, SharedBuf};
use yirage_ir::expr::{Expr, Func};
use yirage_ir::{DType, Format};

const RUNS: usize = 15;
/// Multiply-adds of a sum in [`peak`].
const ROUNDS: usize = 1 << 20;
/// Sums in [`peak`] that do not wait for each other.
const SUMS: usize = 12;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let isa = args.first().map_or(Ok(Isa::detect()), |name| Isa::parse(name)).unwrap_or_else(|e| panic!("{e}"));
    println!("{isa}, one thread; share = of a plain read of b (few rows), of the multiply-add peak (many rows)");
    println!("m     k     n     b           |   GB/s  GFLOP/s  share");
    for (transposed, elem) in [(false, Elem::F32), (true, Elem::F32), (false, Elem::BF16)] {
        for m in [1, 2, 4, 8, 16, 32] {
            row(isa, [m, 4096, 4096], transposed, elem, true);
        }
    }
    // The last two are the products of an attention head.
    for sizes in [[512; 3], [1024; 3], [128, 4096, 4096], [256, 64, 4096], [256, 4096, 64]] {
        for (transposed, elem) in [(false, Elem::F32), (true, Elem::F32), (false, Elem::BF16)] {
            row(isa, sizes, transposed, elem, false);
        }
    }
    println!("m     k     n     type  map         | joined ms  apart ms  apart / joined");
    for dtype in [Format::F32, Format::BF16, Format::F16].map(DType::Stored) {
        joined(isa, [256, 64, 4096], dtype, Joined::Exponentials);
        joined(isa, [256, 4096, 64], dtype, Joined::Weights);
    }
}

/// A map beside a product of attention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Joined {
    /// Of the scores behind the product.
    Exponentials,
    /// In front of it: each row of its left side over the row's sum.
    Weights,
}

impl Joined {
    /// Its value of an element.
    fn of(self, x: Expr) -> Expr {
        let x = x.cast(DType::F32);
        match self {
            Joined::Exponentials => Expr::call(Func::Exp, &[x]),
            Joined::Weights => Expr::call(Func::Div, &[x, Expr::input(1).cast(DType::F32)]),
        }
    }
}

/// A product and a map, joined and one after the other.
fn joined(isa: Isa, [m, k, n]: [usize; 3], dtype: DType, what: Joined) {
    let elem = Elem::try_from(dtype).unwrap_or_else(|e| panic!("{e}"));
    let buffers = [m * k, k * n, m, m * k.max(n)].map(|elements| filled(elements, elem).shared());
    let [a, b, rows, between] = &buffers;
    let out = HugeBuf::zeroed(m * n * elem.bytes()).unwrap_or_else(|e| panic!("{e}")).shared();
    let strides = |s: [usize; 2]| Strides::new(&s.map(|s| s as i64)).unwrap_or_else(|e| panic!("{e}"));
    let program = |expr: Expr, inputs: &[DType]| ElementProgram::new(&expr, inputs).unwrap_or_else(|e| panic!("{e}"));
    let input = |x: &SharedBuf, s| StridedInput::at(x.first(), elem, strides(s));
    let further = if what == Joined::Weights { vec![input(rows, [1, 0])] } else { Vec::new() };
    let types = |first| [first, dtype][..=further.len()].to_vec();
    let apart = program(what.of(Expr::input(0)).cast(dtype), &types(dtype));
    // Sums reach a joined program as f32, and are rounded as the product alone would have rounded them.
    let together = match what {
        Joined::Exponentials => program(what.of(Expr::input(0).cast(dtype)).cast(dtype), &types(DType::F32)),
        Joined::Weights => program(what.of(Expr::input(0)).cast(dtype), &types(dtype)),
    };
    let fused = Some(Fused { program: &together, others: &further });
    let to = |x: &SharedBuf, n| StridedOutput::at(x.first(), elem, strides([n, 1]));
    let plain = |a: &SharedBuf, out: &SharedBuf| BatchMatmul {
        batch: &[],
        m,
        k,
        n,
        a: input(a, [k, 1]),
        b: input(b, [n, 1]),
        out: to(out, n),
        left: None,
        right: None,
        after: None,
        goes_on: false,
        workers: 2,
    };
    let mut scratch = HugeBuf::zeroed(Contract::scratch_bytes(m, n)).unwrap_or_else(|e| panic!("{e}"));
    let scratch = bytemuck::cast_slice_mut(scratch.as_mut_slice());
    let mut multiply = |product: BatchMatmul<'_>| {
        let call = Contract::new(isa, product).unwrap_or_else(|e| panic!("{e}"));
        // SAFETY: buffers of these sizes, one thread.
        unsafe { contract(isa, &call, 0..call.pieces(), scratch) };
    };
    let changed = |from: &SharedBuf, into: &SharedBuf, columns| {
        let sizes = LoopSizes::new(&[m, columns]).unwrap_or_else(|e| panic!("{e}"));
        let inputs = [&[input(from, [columns, 1])], &further[..]].concat();
        // SAFETY: buffers of these sizes, one thread.
        unsafe { map(isa, &apart, &sizes, &inputs, to(into, columns), 0..m * columns) };
    };
    let (mut one, mut two) = (f64::MAX, f64::MAX);
    for _ in 0..RUNS {
        match what {
            Joined::Exponentials => {
                one = one.min(timed(|| multiply(BatchMatmul { after: fused, ..plain(a, &out) })));
                two = two.min(timed(|| {
                    multiply(plain(a, between));
                    changed(between, &out, n);
                }));
            }
            Joined::Weights => {
                one = one.min(timed(|| multiply(BatchMatmul { left: fused, ..plain(a, &out) })));
                two = two.min(timed(|| {
                    changed(a, between, k);
                    multiply(plain(between, &out));
                }));
            }
        }
    }
    let (name, ms) = (format!("{elem:?}").to_lowercase(), 1e3);
    println!("{m:<5} {k:<5} {n:<5} {name:<5} {what:<12?} | {:8.2} {:9.2} {:9.2}", one * ms, two * ms, two / one);
}

/// Elements of 16 or 32 bits that are small numbers.
fn filled(elements: usize, elem: Elem) -> HugeBuf {
    let mut all = HugeBuf::zeroed(elements * elem.bytes()).unwrap_or_else(|e| panic!("{e}"));
    let pattern: &[u8] = if elem == Elem::F32 { &0.5f32.to_ne_bytes() } else { &[0, 0x3f] };
    all.as_mut_slice().chunks_exact_mut(pattern.len()).for_each(|x| x.copy_from_slice(pattern));
    all
}

fn row(isa: Isa, [m, k, n]: [usize; 3], transposed: bool, elem: Elem, few: bool) {
    let (a, b) = (filled(m * k, elem), filled(k * n, elem));
    let out = HugeBuf::zeroed(m * n * elem.bytes()).unwrap_or_else(|e| panic!("{e}")).shared();
    let strides = |s: [usize; 2]| Strides::new(&s.map(|s| s as i64)).unwrap_or_else(|e| panic!("{e}"));
    let product = BatchMatmul {
        batch: &[],
        m,
        k,
        n,
        a: StridedInput::at(a.as_ptr(), elem, strides([k, 1])),
        b: StridedInput::at(b.as_ptr(), elem, strides(if transposed { [1, k] } else { [n, 1] })),
        out: StridedOutput::at(
            out.first(),
            elem,
            Strides::dense(&LoopSizes::new(&[m, n]).unwrap_or_else(|e| panic!("{e}"))),
        ),
        left: None,
        right: None,
        after: None,
        goes_on: false,
        workers: 2,
    };
    let call = Contract::new(isa, product).unwrap_or_else(|e| panic!("{e}"));
    let mut scratch = HugeBuf::zeroed(Contract::scratch_bytes(m, n)).unwrap_or_else(|e| panic!("{e}"));
    let scratch = bytemuck::cast_slice_mut(scratch.as_mut_slice());
    let (mut best, mut base) = (f64::MAX, f64::MAX);
    for _ in 0..RUNS {
        base = base.min(timed(|| if few { read(b.as_slice()) } else { peak(isa) }));
        // SAFETY: buffers of these sizes, one thread.
        best = best.min(timed(|| unsafe { contract(isa, &call, 0..call.pieces(), scratch) }));
    }
    let (bytes, flops) = ((k * n * elem.bytes()) as f64, 2.0 * (m * k * n) as f64);
    let share = if few { base / best } else { flops / best / (peak_flops(isa) / base) };
    let name = format!("{}{elem:?}", if transposed { "turned " } else { "" }).to_lowercase();
    println!("{m:<5} {k:<5} {n:<5} {name:<11} | {:6.1} {:8.1}  {share:.2}", bytes / best / 1e9, flops / best / 1e9);
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// A plain read with many sums.
fn read(bytes: &[u8]) {
    let mut sums = [0u64; 32];
    for chunk in bytes.as_chunks::<8>().0.as_chunks::<32>().0 {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum ^= u64::from_ne_bytes(*word);
        }
    }
    black_box(sums);
}

/// Operations of [`peak`].
fn peak_flops(isa: Isa) -> f64 {
    let lanes = if matches!(isa, Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx) { 16 } else { 8 };
    (2 * lanes * SUMS * ROUNDS) as f64
}

/// Twelve sums of multiply-adds in registers; on processors that are not of x86-64, nothing to compare with.
fn peak(isa: Isa) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::asm;
        macro_rules! rounds {
            ($reg:literal, [$($r:literal)*]) => {
                asm!("2:", $(concat!("vfmadd231ps ", $reg, $r, ", ", $reg, "14, ", $reg, "15")),*, "dec {n}", "jnz 2b",
                    n = inout(reg) ROUNDS => _, out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                    out("xmm10") _, out("xmm11") _)
            };
        }
        // SAFETY: `isa` was found on this CPU; registers only.
        unsafe {
            match isa {
                Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx => {
                    rounds!("zmm", ["0" "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11"])
                }
                Isa::Avx2 | Isa::AvxVnni => rounds!("ymm", ["0" "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11"]),
                _ => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = isa;
}
