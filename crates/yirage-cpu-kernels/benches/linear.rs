//! Speed of the matrix kernels as shares of what the machine can do, measured in the same run.
//!
//! `cargo bench -p yirage-cpu --bench linear -- [isa] [format,..] [tokens,..] [cached] [variant]`. Few tokens: GB/s of weights
//! against a plain read of the same bytes. Many tokens: GOP/s against a loop of dot-product instructions only. Every
//! figure is the best of several runs of baseline and kernel in turn, because the machine is shared. Caches are evicted
//! between runs of few tokens; `cached` instead multiplies by one small matrix again and again, on one thread, which
//! shows what the kernel could do if memory were no limit.
#![allow(clippy::print_stdout)] // printing is its purpose

use std::sync::atomic::{AtomicUsize, Ordering};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::{Dispatch, Linear, MatmulVariant, linear};
use yirage_cpu_kernels::memory::HugeBuf;
use yirage_cpu_kernels::pack::PackedMatrix;
use yirage_ir::Format;
use yirage_plan::Precision;

/// Rows x k.
const SHAPES: [(usize, usize); 4] = [(1536, 8960), (8960, 1536), (151_936, 1536), (8192, 2048)];
const RUNS: usize = 5;
/// Larger than any last-level cache this is run on.
const EVICT: usize = 96 << 20;
/// A matrix that a second-level cache holds, and how often it is used in a run.
const CACHED: (usize, usize) = (256 << 10, 200);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let arg = |i: usize| args.get(i).map(String::as_str).filter(|a| *a != "-");
    let isa = arg(0).map_or(Ok(Isa::detect()), Isa::parse).unwrap_or_else(|e| panic!("{e}"));
    let wanted: Vec<Format> = match arg(1) {
        Some(names) => names.split(',').map(|n| Format::parse(n).unwrap_or_else(|| panic!("no format {n}"))).collect(),
        None => Format::ALL.to_vec(),
    };
    let tokens: Vec<usize> = arg(2).unwrap_or("1,4,8,512").split(',').filter_map(|n| n.parse().ok()).collect();
    let cached = arg(3).is_some_and(|a| a == "cached");
    let variant = MatmulVariant::of_level(isa).with(arg(4).unwrap_or_default()).unwrap_or_else(|e| panic!("{e}"));
    println!("{variant}");
    println!("{isa}; share = of a plain read of the same bytes (few tokens), of the dot-product peak (16 and more)");
    println!("format  rows    k     tokens threads |  GB/s  GOP/s  share");
    let evict = HugeBuf::zeroed(EVICT).unwrap_or_else(|e| panic!("{e}"));
    for format in wanted {
        let small = ((CACHED.0 / format.info().row_bytes(2048) / 64 * 64).max(64), 2048);
        for (rows, k) in if cached { vec![small] } else { SHAPES.to_vec() } {
            if !k.is_multiple_of(format.info().block) || rows * format.info().row_bytes(k) > 1 << 30 {
                continue;
            }
            let m = random_matrix(format, rows, k);
            for &n in &tokens {
                // the widest matrix is the vocabulary, which prefill computes for few tokens only
                if n < 64 || rows < 100_000 {
                    // a matrix so small has no panels for a second thread
                    for threads in 1..=if cached { 1 } else { 2 } {
                        row((isa, variant), &m, n, threads, if cached { &[] } else { evict.as_slice() });
                    }
                }
            }
        }
    }
}

fn random_matrix(format: Format, rows: usize, k: usize) -> PackedMatrix {
    let m = PackedMatrix::new(format, rows, k).unwrap_or_else(|e| panic!("{e}"));
    let mut seed = 1u32;
    let bytes: Vec<u8> = (0..64 * format.info().row_bytes(k))
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8 & 0x3f // small finite scales in every format
        })
        .collect();
    for first in (0..rows).step_by(64) {
        let n = 64.min(rows - first);
        // SAFETY: one thread.
        unsafe { m.pack_rows(Isa::detect(), 0, first, &bytes[..n * format.info().row_bytes(k)]) }
            .unwrap_or_else(|e| panic!("{e}"));
    }
    m
}

fn row((isa, variant): (Isa, MatmulVariant), m: &PackedMatrix, tokens: usize, threads: usize, evict: &[u8]) {
    let kernel = Dispatch::new(isa, variant, Precision::Fast, m.format()).unwrap_or_else(|e| panic!("{e}"));
    let layout = kernel.layout(tokens, m.k());
    let x: Vec<f32> = (0..tokens * m.k()).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let mut activations = HugeBuf::zeroed(layout.bytes()).unwrap_or_else(|e| panic!("{e}"));
    // SAFETY: sizes as the layout says, one thread.
    unsafe { layout.store(isa, x.as_ptr(), m.k(), 0..tokens, activations.as_mut_ptr()) };
    let out = HugeBuf::zeroed(tokens * m.rows() * 4).unwrap_or_else(|e| panic!("{e}")).shared();
    let work = |thread: usize| {
        let job = Linear {
            kernel: &kernel,
            weights: m,
            matrix: 0,
            layout,
            activations: activations.as_ptr(),
            out: out.first().cast(),
            ldo: m.rows(),
            rows: None,
        };
        // SAFETY: threads get disjoint panels.
        unsafe { linear(&job, m.panels() * thread / threads..m.panels() * (thread + 1) / threads, 0..tokens) };
    };
    let (few, times) = (tokens < 16, if evict.is_empty() { CACHED.1 } else { 1 });
    let again = |work: &(dyn Fn(usize) + Sync)| timed(threads, &|t| (0..times).for_each(|_| work(t))) / times as f64;
    let (mut best, mut base, mut peak) = (f64::MAX, f64::MAX, 0f64);
    for _ in 0..RUNS {
        if few {
            read(evict);
            base = base.min(again(&|t| read(part(m.packed_bytes(), t, threads))));
            read(evict);
        } else {
            let seconds = timed(threads, &|_| peak_loop(isa, m.format()));
            peak = peak.max(threads as f64 * peak_ops(isa, m.format()) / seconds / 1e9);
        }
        best = best.min(again(&work));
    }
    let (gb, gop) = (m.bytes() as f64 / best / 1e9, 2.0 * (m.rows() * m.k() * tokens) as f64 / best / 1e9);
    let share = if few { base / best } else { gop / peak };
    let name = m.format().info().name;
    println!("{name:<7} {:<7} {:<5} {tokens:<6} {threads:<7} | {gb:5.1} {gop:6.0}  {share:.2}", m.rows(), m.k());
}

fn part(bytes: &[u8], thread: usize, threads: usize) -> &[u8] {
    &bytes[bytes.len() * thread / threads..bytes.len() * (thread + 1) / threads]
}

/// Seconds of one parallel run: threads start together, the busiest counts. Processor time, so that other processes
/// on the machine take no part in it.
fn timed(threads: usize, work: &(dyn Fn(usize) + Sync)) -> f64 {
    let ready = AtomicUsize::new(0);
    let run = &|thread: usize| {
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < threads {
            std::thread::yield_now();
        }
        let start = thread_seconds();
        work(thread);
        thread_seconds() - start
    };
    std::thread::scope(|s| {
        let others: Vec<_> = (1..threads).map(|t| s.spawn(move || run(t))).collect();
        let own = run(0);
        others.into_iter().fold(own, |a, o| a.max(o.join().unwrap_or_else(|_| panic!("a bench thread failed"))))
    })
}

/// Processor seconds of this thread.
#[cfg(unix)]
fn thread_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the struct it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Seconds of the clock, where threads have none of their own.
#[cfg(not(unix))]
fn thread_seconds() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

/// A plain read with many sums.
fn read(bytes: &[u8]) {
    let (words, _) = bytes.as_chunks::<8>();
    let mut sums = [0u64; 32];
    for chunk in words.as_chunks::<32>().0 {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum ^= u64::from_ne_bytes(*word);
        }
    }
    std::hint::black_box(sums);
}

const PEAK_ROUNDS: usize = 2_000_000;

/// Operations of [`peak_loop`].
fn peak_ops(isa: Isa, format: Format) -> f64 {
    let lanes = match isa {
        Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx => 16.0,
        _ => 8.0,
    };
    let per_lane = match (format.info().block > 1, format, isa) {
        (true, ..) => 8.0,
        (false, Format::BF16, Isa::Avx512Bf16 | Isa::Amx) => 4.0,
        _ => 2.0,
    };
    (PEAK_ROUNDS * 12) as f64 * lanes * per_lane
}

/// Twelve independent dot-product (or FMA) instructions a round. Without a dot-product instruction, `vpmaddubsw` and
/// its 16-bit addition.
fn peak_loop(isa: Isa, format: Format) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::asm;
        macro_rules! rounds {
            ($first:literal, $then:literal, $op:literal, $rest:literal) => {
                rounds!($first, $then, $op, $rest, ["0" "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11"])
            };
            ($first:literal, $then:literal, $op:literal, $rest:literal, [$($r:literal)*]) => {
                asm!("2:", $($first, concat!($op, $r, $then, $r, $rest)),*, "dec {n}", "jnz 2b",
                    n = inout(reg) PEAK_ROUNDS => _, out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                    out("xmm10") _, out("xmm11") _, out("xmm12") _)
            };
        }
        // SAFETY: `isa` was found on this CPU; registers only.
        unsafe {
            match (isa, format.info().block > 1, format) {
                (Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx, true, _) => {
                    rounds!("", ", zmm14, zmm15 #", "vpdpbusd zmm", "")
                }
                (Isa::Avx512Bf16 | Isa::Amx, false, Format::BF16) => {
                    rounds!("", ", zmm14, zmm15 #", "vdpbf16ps zmm", "")
                }
                (Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx, false, _) => {
                    rounds!("", ", zmm14, zmm15 #", "vfmadd231ps zmm", "")
                }
                (Isa::AvxVnni, true, _) if is_x86_feature_detected!("avxvnni") => {
                    rounds!("", ", ymm14, ymm15 #", "{{vex}} vpdpbusd ymm", "")
                }
                (Isa::AvxVnni, true, _) => rounds!("", ", ymm14, ymm15 #", "{{evex}} vpdpbusd ymm", ""),
                (Isa::Avx2, true, _) => rounds!("vpmaddubsw ymm12, ymm13, ymm14", ", ymm", "vpaddw ymm", ", ymm12"),
                (Isa::Avx2 | Isa::AvxVnni, false, _) => rounds!("", ", ymm14, ymm15 #", "vfmadd231ps ymm", ""),
                _ => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (isa, format);
}
