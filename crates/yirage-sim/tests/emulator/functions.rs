//! Every function that a kernel may compute, as C++ of every dialect: the bits that the interpreter gives.

use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings};
use yirage_kir::render::CDialect;
use yirage_kir::{
    BinaryFunction, BufferAccess, BufferOwnership, ComputeKernel, KernelWriter, Register, ScalarType, SubgroupFunction,
    UnaryFunction,
};
use yirage_sim::{EmulatedLaunch, Emulator};
use yirage_testkit::rng::Rng;

const WORDS: [ScalarType; 3] = [ScalarType::F32, ScalarType::I32, ScalarType::U32];
const THREADS: u32 = 64;
/// Words of each buffer.
const COUNT: usize = 4096;

/// Corners of floats and of whole numbers, as bits.
const CORNERS: [u32; 20] = [
    0,
    1,
    2,
    7,
    0x8000_0000,
    0x8000_0001,
    0x7fff_ffff,
    0xffff_ffff,
    0xffff_fffe,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x4020_0000,
    0xc060_0000,
    0x7f7f_ffff,
    0x0080_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x477f_f000,
];

/// Which pairs of words a function is tried on.
type IsTried = fn(u32, u32) -> bool;

/// A kernel, what of its two inputs it is tried on, and whether floats come out.
struct Trial {
    kernel: ComputeKernel,
    tried: IsTried,
    gives_floats: bool,
}

/// A kernel that stores a function of two words of these types, element by element.
fn trial(
    name: String,
    types: [ScalarType; 2],
    tried: IsTried,
    function: impl FnOnce(&mut KernelWriter, Register, Register) -> Register,
) -> Trial {
    let mut w = KernelWriter::new(name, THREADS);
    let buffers = types.map(|ty| w.buffer("x", ty, BufferAccess::Read, BufferOwnership::Own));
    let (group, thread, threads) = (w.group(0), w.thread(), w.u32(THREADS));
    let first = w.mul(group, threads);
    let at = w.add(first, thread);
    let [x, y] = buffers.map(|buffer| w.load(buffer, at));
    let made = function(&mut w, x, y);
    let ty = w.ty(made);
    let made = if ty == ScalarType::Bool { w.convert(ScalarType::U32, made) } else { made };
    let stored = w.ty(made);
    let out = w.buffer("y", stored, BufferAccess::Write, BufferOwnership::Own);
    w.store(out, at, made);
    Trial { kernel: w.finish(), tried, gives_floats: stored == ScalarType::F32 }
}

fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn unary() -> Vec<Trial> {
    use UnaryFunction::{Abs, CountOnes, Floor, Neg, Not, Round, Sqrt};
    let types = |function| match function {
        Neg | Abs => vec![ScalarType::F32, ScalarType::I32],
        Not => vec![ScalarType::I32, ScalarType::U32],
        Sqrt | Floor | Round => vec![ScalarType::F32],
        CountOnes => vec![ScalarType::U32],
    };
    let all = UnaryFunction::ALL.iter().flat_map(|&f| types(f).into_iter().map(move |ty| (f, ty)));
    let mut trials: Vec<Trial> = all
        .map(|(f, ty)| trial(format!("{}_{ty}", f.name()), [ty, ty], |_, _| true, |w, x, _| w.unary(f, x)))
        .collect();
    trials.push(trial(
        "not_bool".into(),
        [ScalarType::U32; 2],
        |_, _| true,
        |w, x, y| {
            let less = w.less(x, y);
            w.unary(Not, less)
        },
    ));
    trials
}

/// What a function of these words is not defined for, or not to the bit.
fn tried(function: BinaryFunction, ty: ScalarType) -> IsTried {
    use BinaryFunction::{Div, Max, Min, Rem, ShiftLeft, ShiftRight};
    match (function, ty) {
        (Min | Max, ScalarType::F32) => {
            |a, b| !float(a).is_nan() && !float(b).is_nan() && (float(a) != 0.0 || float(b) != 0.0)
        }
        (Div | Rem, ScalarType::I32 | ScalarType::U32) => |_, b| b != 0,
        (ShiftLeft | ShiftRight, _) => |_, b| b < 32,
        _ => |_, _| true,
    }
}

fn binary() -> Vec<Trial> {
    use BinaryFunction::{And, Equal, NotEqual, Or, Rem, ShiftLeft, ShiftRight, Xor};
    let types = |function| match function {
        Rem | And | Or | Xor => &WORDS[1..],
        ShiftLeft | ShiftRight => &WORDS[2..],
        _ => &WORDS[..],
    };
    let all = BinaryFunction::ALL.iter().flat_map(|&f| types(f).iter().map(move |&ty| (f, ty)));
    let words =
        all.map(|(f, ty)| trial(format!("{}_{ty}", f.name()), [ty, ty], tried(f, ty), |w, x, y| w.binary(f, x, y)));
    let bools = [And, Or, Xor, Equal, NotEqual].map(|f| {
        trial(
            format!("{}_bool", f.name()),
            [ScalarType::U32; 2],
            |_, _| true,
            |w, x, y| {
                let (one, less) = (w.u32(1), w.less(x, y));
                let odd = w.and(x, one);
                let odd = w.equal(odd, one);
                w.binary(f, odd, less)
            },
        )
    });
    words.chain(bools).collect()
}

/// The range of what a float may be converted to.
fn converted(from: ScalarType, to: ScalarType) -> IsTried {
    match (from, to) {
        (ScalarType::F32, ScalarType::I32) => |x, _| (-2_147_483_648.0..2_147_483_648.0).contains(&float(x)),
        (ScalarType::F32, ScalarType::U32) => |x, _| float(x) > -1.0 && float(x) < 4_294_967_296.0,
        _ => |_, _| true,
    }
}

fn conversions() -> Vec<Trial> {
    let pairs = WORDS.into_iter().flat_map(|from| WORDS.map(|to| (from, to)));
    let mut trials = Vec::new();
    for (from, to) in pairs {
        let name = |what: &str| format!("{what}_{from}_{to}");
        trials.push(trial(name("convert"), [from, from], converted(from, to), |w, x, _| w.convert(to, x)));
        trials.push(trial(name("bitcast"), [from, from], |_, _| true, |w, x, _| w.bitcast(to, x)));
        trials.push(trial(
            name("of_bool"),
            [from, from],
            |_, _| true,
            |w, x, y| {
                let less = w.less(x, y);
                w.convert(to, less)
            },
        ));
        trials.push(trial(
            name("select"),
            [from, to],
            |_, _| true,
            |w, x, y| {
                let (bits, other) = (w.bitcast(to, x), w.bitcast(ScalarType::U32, y));
                let less = w.less(x, x);
                let zero = w.u32(0x8000_0000);
                let large = w.less(zero, other);
                let condition = w.binary(BinaryFunction::Or, less, large);
                w.select(condition, bits, y)
            },
        ));
    }
    for ty in &WORDS[1..] {
        trials.push(trial(format!("to_bool_{ty}"), [*ty, *ty], |_, _| true, |w, x, _| w.convert(ScalarType::Bool, x)));
    }
    let [f32, u32] = [[ScalarType::F32; 2], [ScalarType::U32; 2]];
    // A NaN of 16 bits is one of several.
    let numbers: IsTried = |x, y| !float(x).is_nan() && !float(y).is_nan();
    trials.push(trial("pack_half".into(), f32, numbers, |w, x, y| w.pack_half(x, y)));
    for high in [false, true] {
        trials.push(trial(format!("unpack_half_{high}"), u32, |_, _| true, |w, x, _| w.unpack_half(x, high)));
    }
    trials
}

/// Kernels in which threads meet, for groups of so many threads: what a subgroup makes of whole numbers, which are exact in
/// any order, and what another thread of it has.
fn subgroups(threads: u32) -> Vec<ComputeKernel> {
    let writer = |name: String, ty, made: &dyn Fn(&mut KernelWriter, Register) -> Register| {
        let mut w = KernelWriter::new(name, threads);
        let [x, y] =
            [BufferAccess::Read, BufferAccess::Write].map(|access| w.buffer("x", ty, access, BufferOwnership::Own));
        let (group, thread, many) = (w.group(0), w.thread(), w.u32(threads));
        let first = w.mul(group, many);
        let at = w.add(first, thread);
        let given = w.load(x, at);
        let made = made(&mut w, given);
        w.store(y, at, made);
        w.finish()
    };
    let mut kernels = Vec::new();
    for ty in WORDS {
        for &function in SubgroupFunction::ALL {
            let name = format!("subgroup_{}_{ty}_{threads}", function.name());
            kernels.push(writer(name, ty, &|w, x| w.subgroup(function, x)));
        }
        kernels.push(writer(format!("shuffle_{ty}_{threads}"), ty, &|w, x| {
            // The lane behind this one, and of the last thread's its own.
            let (lane, thread, one, last) = (w.subgroup_lane(), w.thread(), w.u32(1), w.u32(threads - 1));
            let (size, next) = (w.subgroup_size(), w.add(lane, one));
            let next = w.binary(BinaryFunction::Rem, next, size);
            let is_last = w.equal(thread, last);
            let other = w.select(is_last, lane, next);
            w.shuffle(x, other)
        }));
    }
    kernels
}

/// Pairs of words that a function is tried on; what it is not tried on is in their place a pair that it is.
fn inputs(tried: IsTried) -> [Vec<u32>; 2] {
    let mut rng = Rng::new(3);
    let mut word = |at: usize| match at % 4 {
        0 => rng.next_u64() as u32,
        1 => (rng.signed_f32() * 3.0e4).to_bits(),
        2 => rng.below(64) as u32,
        _ => (rng.below(64) as u32).wrapping_neg(),
    };
    let corners = CORNERS.iter().flat_map(|&a| CORNERS.iter().map(move |&b| (a, b)));
    let mut pairs: Vec<(u32, u32)> = corners.collect();
    pairs.extend((pairs.len()..COUNT).map(|at| (word(at), word(at / 4))));
    let fine = pairs.iter().copied().find(|&(a, b)| tried(a, b)).unwrap();
    pairs.iter().map(|&(a, b)| if tried(a, b) { (a, b) } else { fine }).unzip::<u32, u32, Vec<u32>, Vec<u32>>().into()
}

/// What the interpreter and an emulator leave in a buffer for what is in the others.
fn both(emulator: &Emulator, subgroup: u32, kernel: &ComputeKernel, inputs: &[Vec<u32>]) -> [Vec<u32>; 2] {
    let grid = [COUNT as u32 / kernel.threads, 1, 1];
    let run = |how: &dyn Fn(&mut [&mut [u32]])| {
        let mut buffers = inputs.to_vec();
        buffers.push(vec![0; COUNT]);
        how(&mut buffers.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
        buffers.pop().unwrap()
    };
    let interpreter = InterpretedKernel::new(kernel.clone()).unwrap();
    let settings = InterpreterSettings { subgroup_size: subgroup, ..InterpreterSettings::default() };
    [
        run(&|buffers| interpreter.run(grid, buffers, &settings).unwrap()),
        run(&|buffers| emulator.run(EmulatedLaunch { kernel, grid, seed: 1, buffers }).unwrap()),
    ]
}

#[test]
#[ignore = "needs a compiler of C++"]
fn every_function_of_every_dialect_gives_the_interpreters_bits() {
    let trials: Vec<Trial> = unary().into_iter().chain(binary()).chain(conversions()).collect();
    let meeting: Vec<ComputeKernel> = [1, 5, 16, 32, 48, 64, 96, 100].into_iter().flat_map(subgroups).collect();
    let whole: [Vec<u32>; 3] = [
        (0..COUNT as u32).map(|at| ((at * 7919 % 1009) as f32 - 500.0).to_bits()).collect(),
        (0..COUNT as u32).map(|at| at.wrapping_mul(2_654_435_761)).collect(),
        (0..COUNT as u32).map(|at| at.wrapping_mul(2_246_822_519)).collect(),
    ];
    for dialect in CDialect::ALL {
        let emulator = Emulator::new(dialect);
        let kernels: Vec<ComputeKernel> = trials.iter().map(|t| &t.kernel).chain(&meeting).cloned().collect();
        emulator.compile(&kernels).unwrap();
        for Trial { kernel, tried, gives_floats } in &trials {
            let inputs = inputs(*tried);
            let [wanted, got] = both(&emulator, dialect.subgroup, kernel, &inputs);
            for (at, (&wanted, &got)) in wanted.iter().zip(&got).enumerate() {
                let same = got == wanted || *gives_floats && float(got).is_nan() && float(wanted).is_nan();
                let (name, [x, y]) = (&kernel.name, [inputs[0][at], inputs[1][at]]);
                assert!(same, "{}, {name}: {x:#x} {y:#x} give {got:#x}, {wanted:#x} wanted", dialect.name);
            }
        }
        for kernel in &meeting {
            let of_type = WORDS.iter().position(|&ty| ty == kernel.buffers[0].ty).unwrap();
            let [wanted, got] = both(&emulator, dialect.subgroup, kernel, &whole[of_type..=of_type]);
            assert_eq!(got, wanted, "{}, {}", dialect.name, kernel.name);
        }
        println!("{}: {} kernels", dialect.name, kernels.len());
    }
}
