//! The text form of kernels: what is printed is read again, and no text does harm.

use crate::random_kernel::random_kernel;
use yirage_kir::text::{parse, print};
use yirage_kir::{BufferAccess, BufferOwnership, KernelWriter, ScalarType};
use yirage_testkit::rng::Rng;

const DOUBLE: &str = "\
kernel double threads 64 {
buffer b0 u32 read own sizes
buffer b1 f32 read_write pooled x
r0: u32 = thread
r1: u32 = const 0
r2: u32 = load b0 r1
r3: u32 = const 64
loop r4 from r0 to r2 step r3 {
 r5: f32 = load b1 r4
 r6: f32 = add r5 r5
 r7: bool = lt r6 r5
 if r7 {
  store b1 r4 r5
 } else {
  store b1 r4 r6
 }
}
barrier
}
";

#[test]
fn a_kernel_is_an_instruction_a_line() {
    let mut w = KernelWriter::new("double", 64);
    let sizes = w.buffer("sizes", ScalarType::U32, BufferAccess::Read, BufferOwnership::Own);
    let x = w.buffer("x", ScalarType::F32, BufferAccess::ReadWrite, BufferOwnership::Pooled);
    let (thread, zero) = (w.thread(), w.u32(0));
    let (count, step) = (w.load(sizes, zero), w.u32(64));
    w.for_each(thread, count, step, |w, at| {
        let element = w.load(x, at);
        let twice = w.add(element, element);
        let less = w.less(twice, element);
        w.either(less, |w| w.store(x, at, element), |w| w.store(x, at, twice));
    });
    w.barrier();
    let kernel = w.finish();
    assert_eq!(print(&kernel), DOUBLE);
    assert_eq!(parse(DOUBLE), Ok(vec![kernel]));
}

#[test]
fn what_is_printed_is_read_again() {
    let kernels: Vec<_> = (0..300).map(random_kernel).collect();
    let text: Vec<String> = kernels.iter().map(print).collect();
    for (kernel, text) in kernels.iter().zip(&text) {
        assert_eq!(parse(text).as_deref(), Ok(std::slice::from_ref(kernel)), "{text}");
    }
    assert_eq!(parse(&text.join("\n")), Ok(kernels), "one after the other");
}

#[test]
fn broken_lines_are_named() {
    let broken = |from: &str, to: &str| {
        assert!(DOUBLE.contains(from), "{from}");
        parse(&DOUBLE.replacen(from, to, 1)).unwrap_err().to_string()
    };
    let cases = [
        ("kernel double", "colonel double", "line 1: `colonel` stands where `kernel` is expected"),
        ("threads 64 {", "threads many {", "line 1: `many` is no whole number of 32 bits"),
        ("threads 64 {", "threads +64 {", "line 1: `+64` is no whole number of 32 bits"),
        ("buffer b1", "buffer b2", "line 3: `b2` stands where `b1` is expected"),
        ("read own sizes", "read own", "line 2: the line ends where the buffer's name is expected"),
        ("read own sizes", "keep own sizes", "line 2: `keep` is no access"),
        ("read own sizes", "read mine sizes", "line 2: `mine` is no ownership"),
        ("read own sizes", "read own block sizes", "line 2: `sizes` stands behind the line's end"),
        ("r1: u32", "r1: u64", "line 5: `u64` is no type"),
        ("const 0", "const 0.5", "line 5: `0.5` is no constant of u32"),
        ("r1: u32", "r0: u32", "line 5: r0 is computed twice"),
        ("r7: bool", "r9: bool", "line 19: the kernel has r9, but no r7"),
        ("r7: bool", "r4294967295: bool", "line 11: r4294967295: a kernel has at most 1048576 registers"),
        ("add r5 r5", "plus r5 r5", "line 10: `plus` is no computation"),
        ("add r5 r5", "add r5", "line 10: the line ends where a register is expected"),
        ("add r5 r5", "add r5 v5", "line 10: `v5` stands where `rNUMBER` is expected"),
        ("store b1 r4 r5", "store x r4 r5", "line 13: `x` stands where `sNUMBER` is expected"),
        ("barrier", "barriers", "line 18: `barriers` is neither an instruction nor `NAME:`"),
        ("barrier", "}", "line 19: `}` stands where `kernel` is expected"),
        ("barrier\n}\n", "barrier\n", "line 18: kernel `double` is not closed"),
        (" } else {", " } otherwise {", "line 14: `otherwise` stands behind the line's end"),
    ];
    for (from, to, message) in cases {
        assert_eq!(broken(from, to), format!("kernels, {message}"));
    }
}

#[test]
fn bodies_are_64_deep_at_most() {
    let nested = |depth: usize| {
        let (open, close) = ("if r0 {\n".repeat(depth), "}\n".repeat(depth));
        format!("kernel deep threads 1 {{\nr0: bool = const 1\n{open}{close}}}\n")
    };
    assert!(parse(&nested(64)).is_ok());
    let error = parse(&nested(65)).unwrap_err();
    assert_eq!(error.to_string(), "kernels, line 67: more than 64 bodies in one another");
}

#[test]
fn no_text_does_harm() {
    let mut rng = Rng::new(5);
    let texts: Vec<String> = (0..8).map(|seed| print(&random_kernel(seed))).chain([DOUBLE.to_string()]).collect();
    let words: Vec<&str> = texts.iter().flat_map(|text| text.split_inclusive([' ', '\n'])).collect();
    for _ in 0..2_000 {
        let text = rng.choose(&texts);
        let mut pieces: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(pieces.len() as u64) as usize;
            match rng.below(3) {
                0 => pieces[at] = *rng.choose::<&str>(&words),
                1 => pieces.insert(at, *rng.choose::<&str>(&words)),
                _ => drop(pieces.drain(at..(at + 3).min(pieces.len()))),
            }
            if pieces.is_empty() {
                break;
            }
        }
        // What is still a kernel is printed as it was read.
        if let Ok(kernels) = parse(&pieces.concat()) {
            let text: String = kernels.iter().map(print).collect();
            assert_eq!(parse(&text), Ok(kernels));
        }
    }
}
