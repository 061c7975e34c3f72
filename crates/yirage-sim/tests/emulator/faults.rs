//! What the emulator finds in launches that do what none must.

use yirage_kir::render::CDialect;
use yirage_kir::text::parse;
use yirage_sim::{EmulatedLaunch, Emulator, EmulatorError};

/// The beginnings of kernels of 16 threads over a buffer to read and one to write: the thread's number, 0 and 8.
const BEGIN: &str = "threads 16 {\nbuffer b0 u32 read own x\nbuffer b1 u32 write own y\nr0: u32 = thread\nr1: u32 = const 0\n\
                     r2: u32 = const 8\nr3: bool = lt r0 r2\n";

#[test]
#[ignore = "needs a compiler of C++"]
fn a_launch_that_does_what_none_must_is_told_and_the_next_one_runs() {
    let kernels = [
        ("right", "store b1 r0 r0", ""),
        ("behind", "r4: u32 = const 16\nif r3 {\nr5: u32 = load b0 r4\nstore b1 r0 r5\n}", "an access beside a buffer"),
        ("before", "r4: u32 = const 4294967295\nstore b1 r4 r0", "an access beside a buffer"),
        ("apart", "if r3 {\nbarrier\n}", "it is not where the others meet"),
        ("no_value", "r4: u32 = div r2 r1\nstore b1 r0 r4", "an operation that has no value"),
    ];
    let text: String = kernels.iter().map(|(name, body, _)| format!("kernel {name} {BEGIN}{body}\n}}\n")).collect();
    let parsed = parse(&text).unwrap();
    let emulator = Emulator::new(CDialect::CUDA);
    emulator.compile(&parsed).unwrap();
    for (kernel, (name, _, wanted)) in parsed.iter().zip(kernels) {
        for seed in 0..8 {
            let (mut x, mut y) = ([7; 16], [9; 16]);
            let launch = EmulatedLaunch { kernel, grid: [1, 1, 1], seed, buffers: &mut [&mut x, &mut y] };
            match emulator.run(launch) {
                Ok(()) => assert!(wanted.is_empty() && y.iter().copied().eq(0..16), "{name}: {y:?}"),
                Err(e) => {
                    let said = e.to_string();
                    let place = format!("of group 0 0 0 of `{name}`: {wanted}");
                    assert!(!wanted.is_empty() && said.contains(&place), "{said}");
                }
            }
        }
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_kernel_that_was_not_compiled_is_named() {
    let kernel = &parse(&format!("kernel unknown {BEGIN}}}\n")).unwrap()[0];
    let launch = EmulatedLaunch { kernel, grid: [1, 1, 1], seed: 0, buffers: &mut [] };
    assert_eq!(Emulator::new(CDialect::HIP).run(launch), Err(EmulatorError::NoKernel("unknown".into())));
}
