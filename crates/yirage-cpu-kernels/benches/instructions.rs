//! Cycles that the inner loops of the AVX2 kernels take at best: their instructions on data in the first-level cache.
//!
//! `cargo bench -p yirage-cpu --bench instructions`. A cycle is an eighth of 16 `vpmaddwd`, which the processors this was
//! made for do two at a time, measured before and after each run: other users of the same core, who change what one does
//! in a cycle from one second to the next, show as the distance from the lowest to the highest tenth.
#![allow(clippy::print_stdout)] // printing is its purpose

#[cfg(target_arch = "x86_64")]
fn main() {
    if !yirage_cpu_kernels::isa::Isa::Avx2.available() {
        println!("this processor has no AVX2: nothing measured");
        return;
    }
    println!(
        "loop                                                     instructions | cycles: lowest tenth, median, highest"
    );
    for (name, instructions, run) in loops::ALL {
        let mut cycles: Vec<f64> = (0..RUNS)
            .map(|_| {
                let (before, took, after) = (loops::unit(), run(), loops::unit());
                16.0 * took as f64 / (before + after) as f64
            })
            .collect();
        cycles.sort_by(f64::total_cmp);
        let [low, middle, high] = [RUNS / 10, RUNS / 2, RUNS - RUNS / 10].map(|at| cycles[at]);
        println!("{name:<56} {instructions:>12} | {low:5.2} {middle:5.2} {high:5.2}");
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("the loops are those of x86-64: nothing measured");
}

#[cfg(target_arch = "x86_64")]
const RUNS: usize = 400;

#[cfg(target_arch = "x86_64")]
mod loops {
    use std::arch::{asm, x86_64::_rdtsc};

    const ROUNDS: u64 = 20_000;
    static DATA: [u64; 64] = [0x0102_0304_0506_0708; 64];

    /// A function that takes the time of rounds of a text of instructions, which may read `DATA` at `{x}`.
    macro_rules! timed {
        ($name:ident, $text:expr) => {
            pub(super) fn $name() -> u64 {
                // SAFETY: registers only, and reads inside `DATA`; `main` has checked for AVX2.
                unsafe {
                    let start = _rdtsc();
                    asm!("/* {x} */ .p2align 6", "2:", $text, "dec {n}", "jnz 2b", n = inout(reg) ROUNDS => _,
                        x = in(reg) DATA.as_ptr(), out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                        out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
                        out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
                        out("ymm15") _, options(nostack, readonly));
                    _rdtsc() - start
                }
            }
        };
    }

    /// Four instructions, apart from each other.
    macro_rules! four {
        ($op:literal) => {
            concat!(
                $op,
                " ymm0, ymm12, ymm13\n",
                $op,
                " ymm1, ymm12, ymm13\n",
                $op,
                " ymm2, ymm12, ymm13\n",
                $op,
                " ymm3, ymm12, ymm13\n"
            )
        };
    }

    /// Products of unsigned codes in ymm12 and ymm13 with a token, added in 16 bits.
    macro_rules! small {
        ($at:literal, $a:literal, $b:literal) => {
            concat!(
                "vpbroadcastd ymm14, dword ptr [{x} + ",
                $at,
                "]\n",
                "vpmaddubsw ymm11, ymm12, ymm14\n",
                "vpaddw ymm",
                $a,
                ", ymm",
                $a,
                ", ymm11\n",
                "vpmaddubsw ymm15, ymm13, ymm14\n",
                "vpaddw ymm",
                $b,
                ", ymm",
                $b,
                ", ymm15\n"
            )
        };
    }

    /// Products of 8-bit codes with a token: the sign moved over, widened at once.
    macro_rules! whole {
        ($at:literal, $a:literal, $b:literal) => {
            concat!(
                "vpbroadcastd ymm14, dword ptr [{x} + ",
                $at,
                "]\n",
                "vpsignb ymm10, ymm14, ymm12\n",
                "vpmaddubsw ymm10, ymm12, ymm10\n",
                "vpmaddwd ymm10, ymm10, ymm15\n",
                "vpaddd ymm",
                $a,
                ", ymm",
                $a,
                ", ymm10\n",
                "vpsignb ymm11, ymm14, ymm13\n",
                "vpmaddubsw ymm11, ymm13, ymm11\n",
                "vpmaddwd ymm11, ymm11, ymm15\n",
                "vpaddd ymm",
                $b,
                ", ymm",
                $b,
                ", ymm11\n"
            )
        };
    }

    /// Products of 16-bit codes with a token.
    macro_rules! wide {
        ($at:literal, $a:literal, $b:literal) => {
            concat!(
                "vpbroadcastd ymm14, dword ptr [{x} + ",
                $at,
                "]\n",
                "vpmaddwd ymm11, ymm12, ymm14\n",
                "vpaddd ymm",
                $a,
                ", ymm",
                $a,
                ", ymm11\n",
                "vpmaddwd ymm15, ymm13, ymm14\n",
                "vpaddd ymm",
                $b,
                ", ymm",
                $b,
                ", ymm15\n"
            )
        };
    }

    /// Products of f32 weights with a token.
    macro_rules! float {
        ($at:literal, $a:literal, $b:literal) => {
            concat!(
                "vbroadcastss ymm14, dword ptr [{x} + ",
                $at,
                "]\n",
                "vfmadd231ps ymm",
                $a,
                ", ymm12, ymm14\n",
                "vfmadd231ps ymm",
                $b,
                ", ymm13, ymm14\n"
            )
        };
    }

    /// Weights of 16 rows, and four tokens.
    macro_rules! tile {
        ($token:ident, $from:literal, $to:literal) => {
            concat!(
                "vmovdqu ymm12, ymmword ptr [{x} + ",
                $from,
                "]\n",
                "vmovdqu ymm13, ymmword ptr [{x} + ",
                $to,
                "]\n",
                $token!(128, 0, 1),
                $token!(160, 2, 3),
                $token!(192, 4, 5),
                $token!(224, 6, 7)
            )
        };
    }

    timed!(unit, concat!(four!("vpmaddwd"), four!("vpmaddwd"), four!("vpmaddwd"), four!("vpmaddwd")));
    timed!(sums, concat!(four!("vpaddd"), four!("vpaddd"), four!("vpaddd"), four!("vpaddd")));
    timed!(mixed, concat!(four!("vpmaddwd"), four!("vpaddd"), four!("vpmaddwd"), four!("vpaddd")));
    timed!(four_bits, tile!(small, 0, 32));
    timed!(eight_bits, tile!(whole, 0, 32));
    timed!(sixteen_bits, concat!(tile!(wide, 0, 32), tile!(wide, 64, 96)));
    timed!(floats, concat!(tile!(float, 0, 32), float!(256, 8, 9), float!(288, 10, 11)));

    /// Its name, its instructions, and what takes the time of its rounds.
    type Loop = (&'static str, usize, fn() -> u64);

    /// What is measured.
    pub(super) const ALL: [Loop; 7] = [
        ("vpmaddwd", 16, unit),
        ("vpaddd", 16, sums),
        ("vpmaddwd and vpaddd in turn", 16, mixed),
        ("codes of 4 bits: 16 rows, 4 tokens, 4 k", 22, four_bits),
        ("codes of 8 bits: 16 rows, 4 tokens, 4 k", 38, eight_bits),
        ("the same as 16 bits", 44, sixteen_bits),
        ("f32: 16 rows, 6 tokens, 1 k", 20, floats),
    ];
}
