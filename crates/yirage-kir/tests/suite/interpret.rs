//! What kernels compute, and what the interpreter finds in those that do what none must.

use crate::random_kernel::random_kernel;
use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings, KernelFault, KernelProblem, ThreadSchedule};
use yirage_kir::text::{parse, print};
use yirage_kir::{KernelMemory, ScalarType, verify};

const SCHEDULES: [ThreadSchedule; 5] = [
    ThreadSchedule::Ascending,
    ThreadSchedule::Descending,
    ThreadSchedule::OneByOne(0),
    ThreadSchedule::OneByOne(1),
    ThreadSchedule::OneByOne(2),
];

fn settings(schedule: ThreadSchedule) -> InterpreterSettings {
    InterpreterSettings { schedule, subgroup_size: 8, budget: 1 << 20 }
}

fn interpreted(text: &str) -> InterpretedKernel {
    InterpretedKernel::new(parse(text).unwrap().remove(0)).unwrap()
}

/// Runs a kernel under all schedules, which leave the same.
#[track_caller]
fn run<const N: usize>(text: &str, grid: [u32; 3], buffers: [Vec<u32>; N]) -> [Vec<u32>; N] {
    let kernel = interpreted(text);
    assert_eq!(verify(kernel.kernel()), Ok(()));
    let results = SCHEDULES.map(|schedule| {
        let mut buffers = buffers.clone();
        kernel.run(grid, &mut buffers.each_mut().map(Vec::as_mut_slice), &settings(schedule)).unwrap();
        buffers
    });
    assert!(results.iter().all(|result| *result == results[0]));
    results.into_iter().next().unwrap()
}

/// The fault of a kernel, which each schedule finds.
#[track_caller]
fn fault(text: &str, grid: [u32; 3], buffers: &[usize]) -> KernelProblem {
    let kernel = interpreted(text);
    let found = SCHEDULES.map(|schedule| {
        let mut buffers: Vec<Vec<u32>> = buffers.iter().map(|&len| vec![0; len]).collect();
        let mut buffers: Vec<&mut [u32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        match kernel.run(grid, &mut buffers, &settings(schedule)) {
            Err(KernelFault::Thread { problem, .. }) => problem,
            other => panic!("{schedule:?}: {other:?}"),
        }
    });
    let kinds = found.map(|problem| std::mem::discriminant(&problem));
    assert!(kinds.iter().all(|kind| *kind == kinds[0]), "{found:?}");
    found[0]
}

/// A kernel of 16 threads over a buffer to read and one to write, with these instructions behind the thread's number, the
/// group's, and 0, 1 and 16.
fn kernel(instructions: &str) -> String {
    format!(
        "kernel tried threads 16 {{\nbuffer b0 u32 read own x\nbuffer b1 u32 read_write own y\nshared s0 u32 16\n\
         r0: u32 = thread\nr1: u32 = group 0\nr2: u32 = const 0\nr3: u32 = const 1\nr4: u32 = const 16\n\
         r5: u32 = mul r1 r4\nr6: u32 = add r5 r0\n{instructions}\n}}\n"
    )
}

const OWN: KernelMemory = KernelMemory::Buffer(1);
const SHARED: KernelMemory = KernelMemory::Shared(0);

#[test]
fn groups_turn_their_words_around() {
    let turned = kernel(
        "r7: u32 = load b0 r6\nstore s0 r0 r7\nbarrier\nr8: u32 = const 15\nr9: u32 = sub r8 r0\nr10: u32 = load s0 r9\n\
         store b1 r6 r10",
    );
    let [_, out] = run(&turned, [3, 1, 1], [(0..48).collect(), vec![9; 48]]);
    assert_eq!(out, (0..48).map(|at| at / 16 * 16 + 15 - at % 16).collect::<Vec<u32>>());
}

#[test]
fn groups_are_numbered_along_three_axes() {
    let numbers = "kernel numbers threads 1 {\nbuffer b0 u32 write own y\nr0: u32 = group 0\nr1: u32 = group 1\n\
                   r2: u32 = group 2\nr3: u32 = const 2\nr4: u32 = const 6\nr5: u32 = const 100\nr6: u32 = mul r1 r3\n\
                   r7: u32 = mul r2 r4\nr8: u32 = add r0 r6\nr9: u32 = add r8 r7\nr10: u32 = mul r2 r5\n\
                   r11: u32 = const 10\nr12: u32 = mul r1 r11\nr13: u32 = add r10 r12\nr14: u32 = add r13 r0\n\
                   store b0 r9 r14\n}\n";
    let [out] = run(numbers, [2, 3, 2], [vec![7; 12]]);
    assert_eq!(out, [0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121]);
    assert_eq!(run(numbers, [2, 0, 2], [vec![7; 12]]), [[7; 12]], "no group at all");
}

#[test]
fn loops_and_branches_run_for_each_thread_as_its_own_values_say() {
    // A sum of the odd numbers below the thread's.
    let sums = kernel(
        "var v0: u32 = r2\nloop r7 from r2 to r0 step r3 {\n r8: u32 = and r7 r3\n r9: bool = eq r8 r3\n if r9 {\n\
         r10: u32 = get v0\n  r11: u32 = add r10 r7\n  set v0 r11\n }\n}\nr12: u32 = get v0\nr13: bool = lt r0 r3\nif r13 {\n\
         store b1 r6 r4\n} else {\n store b1 r6 r12\n}",
    );
    let [_, out] = run(&sums, [1, 1, 1], [vec![], vec![0; 16]]);
    let odd = |below: u32| (0..below).filter(|n| n % 2 == 1).sum();
    assert_eq!(out, (0..16).map(|thread| if thread == 0 { 16 } else { odd(thread) }).collect::<Vec<u32>>());
}

/// What a computation, in r9, gives of two words, in r2 and r3.
fn computed(ty: &str, computation: &str, words: [u32; 2]) -> u32 {
    // A text leaves no register out.
    let unused = (4..9).filter(|number| !computation.contains(&format!("r{number}:")));
    let unused: String = unused.map(|number| format!("r{number}: u32 = thread\n")).collect();
    let text = format!(
        "kernel computed threads 1 {{\nbuffer b0 {ty} read own x\nbuffer b1 u32 write own y\nr0: u32 = const 0\n\
         r1: u32 = const 1\nr2: {ty} = load b0 r0\nr3: {ty} = load b0 r1\n{unused}{computation}\nstore b1 r0 r9\n}}\n"
    );
    run(&text, [1, 1, 1], [words.to_vec(), vec![0]])[1][0]
}

#[test]
fn whole_numbers_are_computed_as_the_vocabulary_says() {
    let minus = |x: i32| x as u32;
    for (ty, name, a, b, result) in [
        ("u32", "add", u32::MAX, 2, 1),
        ("u32", "sub", 1, 2, u32::MAX),
        ("u32", "mul", 1 << 31, 3, 1 << 31),
        ("u32", "div", u32::MAX, 2, 0x7fff_ffff),
        ("u32", "rem", u32::MAX, 16, 15),
        ("u32", "min", u32::MAX, 2, 2),
        ("u32", "max", u32::MAX, 2, u32::MAX),
        ("u32", "and", 12, 10, 8),
        ("u32", "or", 12, 10, 14),
        ("u32", "xor", 12, 10, 6),
        ("u32", "shl", 3, 31, 1 << 31),
        ("u32", "shr", u32::MAX, 31, 1),
        ("i32", "add", minus(i32::MIN), minus(-1), minus(i32::MAX)),
        ("i32", "div", minus(-7), 2, minus(-3)),
        ("i32", "div", minus(i32::MIN), minus(-1), minus(i32::MIN)),
        ("i32", "rem", minus(-7), 2, minus(-1)),
        ("i32", "rem", minus(i32::MIN), minus(-1), 0),
        ("i32", "min", minus(-1), 1, minus(-1)),
        ("i32", "max", minus(-1), 1, 1),
    ] {
        let line = format!("r8: {ty} = {name} r2 r3\nr9: u32 = bitcast r8");
        assert_eq!(computed(ty, &line, [a, b]), result, "{name} of {ty} {a} {b}");
    }
    for (ty, name, a, b, result) in [
        ("u32", "lt", 1, u32::MAX, 1),
        ("i32", "lt", 1, u32::MAX, 0),
        ("i32", "le", 1, 1, 1),
        ("i32", "le", 1, u32::MAX, 0),
        ("u32", "le", 2, 1, 0),
        ("u32", "eq", 2, 2, 1),
        ("u32", "ne", 2, 2, 0),
    ] {
        let line = format!("r8: bool = {name} r2 r3\nr9: u32 = convert r8");
        assert_eq!(computed(ty, &line, [a, b]), result, "{name} of {ty} {a} {b}");
    }
    for (ty, name, x, result) in [
        ("i32", "neg", 5, minus(-5)),
        ("i32", "abs", minus(-5), 5),
        ("i32", "abs", minus(i32::MIN), minus(i32::MIN)),
        ("i32", "not", 0, u32::MAX),
        ("u32", "not", 5, !5),
        ("u32", "count_ones", 0xf0f0, 8),
    ] {
        let line = format!("r8: {ty} = {name} r2\nr9: u32 = bitcast r8");
        assert_eq!(computed(ty, &line, [x, 0]), result, "{name} of {ty} {x}");
    }
    let not = "r7: bool = ne r2 r3\nr8: bool = not r7\nr9: u32 = convert r8";
    assert_eq!([computed("u32", not, [1, 1]), computed("u32", not, [1, 2])], [1, 0]);
    let truth = "r8: bool = convert r2\nr9: u32 = convert r8";
    assert_eq!([computed("i32", truth, [0, 0]), computed("i32", truth, [2, 0])], [0, 1]);
}

#[test]
fn floats_are_computed_as_the_vocabulary_says() {
    let float = |name: &str, a: f32, b: f32| {
        let operands = if b.is_nan() { "r2" } else { "r2 r3" };
        let line = format!("r8: f32 = {name} {operands}\nr9: u32 = bitcast r8");
        f32::from_bits(computed("f32", &line, [a.to_bits(), b.to_bits()]))
    };
    for (name, a, b, result) in [
        ("add", 1.0, 2.5, 3.5),
        ("sub", 1.0, 2.5, -1.5),
        ("mul", 3.0, 0.1, 3.0 * 0.1),
        ("div", 1.0, 3.0, 1.0 / 3.0),
        ("div", 1.0, 0.0, f32::INFINITY),
        ("min", -1.0, 2.0, -1.0),
        ("max", -1.0, f32::INFINITY, f32::INFINITY),
        ("neg", 1.0, f32::NAN, -1.0),
        ("abs", -2.0, f32::NAN, 2.0),
        ("sqrt", 2.0, f32::NAN, std::f32::consts::SQRT_2),
        ("floor", -1.5, f32::NAN, -2.0),
        ("round", 2.5, f32::NAN, 2.0),
        ("round", 3.5, f32::NAN, 4.0),
    ] {
        assert_eq!(float(name, a, b), result, "{name} of {a} {b}");
    }
    let compare = |name: &str, a: f32, b: f32| {
        let line = format!("r8: bool = {name} r2 r3\nr9: u32 = convert r8");
        computed("f32", &line, [a.to_bits(), b.to_bits()])
    };
    let all = |a, b| ["lt", "le", "eq", "ne"].map(|name| compare(name, a, b));
    assert_eq!(all(1.0, 2.0), [1, 1, 0, 1]);
    assert_eq!(all(0.0, -0.0), [0, 1, 1, 0]);
    assert_eq!(all(f32::NAN, 1.0), [0, 0, 0, 1]);
    let converted = |to: &str, x: f32| {
        let line = format!("r8: {to} = convert r2\nr9: u32 = bitcast r8");
        computed("f32", &line, [x.to_bits(), 0])
    };
    assert_eq!([converted("i32", -2.9) as i32, converted("i32", -2_147_483_648.0) as i32], [-2, i32::MIN]);
    assert_eq!([converted("u32", -0.9), converted("u32", 4_294_967_040.0)], [0, 4_294_967_040]);
    let whole =
        |from: &str, bits: u32| f32::from_bits(computed(from, "r8: f32 = convert r2\nr9: u32 = bitcast r8", [bits, 0]));
    assert_eq!(
        [whole("i32", -3i32 as u32), whole("u32", 16_777_217), whole("u32", 16_777_219)],
        [-3.0, 16_777_216.0, 16_777_220.0]
    );
    let half = computed("f32", "r9: u32 = pack_half r2 r3", [1.0f32.to_bits(), (-2.0f32).to_bits()]);
    assert_eq!(half, 0xc000_3c00);
    let unpacked =
        |part: &str| computed("u32", &format!("r8: f32 = unpack_{part} r2\nr9: u32 = bitcast r8"), [half, 0]);
    assert_eq!([unpacked("low"), unpacked("high")].map(f32::from_bits), [1.0, -2.0]);
}

#[test]
fn subgroups_are_parts_of_a_group() {
    let text = "kernel parts threads 20 {\nbuffer b0 u32 write own y\nr0: u32 = thread\nr1: u32 = subgroup_add r0\n\
                r2: u32 = subgroup_lane\nr3: u32 = subgroup_size\nr4: u32 = const 3\nr5: u32 = shuffle r0 r4\n\
                r6: u32 = const 1000\nr7: u32 = mul r5 r6\nr8: u32 = add r7 r1\nr9: u32 = const 100000\nr10: u32 = mul r2 r9\n\
                r11: u32 = add r8 r10\nr12: u32 = subgroup_max r0\nr13: u32 = subgroup_min r0\nr14: u32 = sub r12 r13\n\
                r15: u32 = add r11 r14\nr16: u32 = add r15 r3\nstore b0 r0 r16\n}\n";
    let sums = [28, 92, 70];
    let expected = |thread: u32| {
        let (part, lane) = (thread / 8, thread % 8);
        let width = if part == 2 { 3 } else { 7 };
        lane * 100_000 + (part * 8 + 3) * 1000 + sums[part as usize] + width + 8
    };
    assert_eq!(run(text, [1, 1, 1], [vec![0; 20]]), [(0..20).map(expected).collect::<Vec<u32>>()]);
    let beside = kernel("r7: u32 = const 8\nr8: u32 = shuffle r0 r7");
    assert_eq!(fault(&beside, [1, 1, 1], &[0, 0]), KernelProblem::Lane { lane: 8, size: 8 });
}

#[test]
fn elements_beside_memory_are_named() {
    let read = kernel("r7: u32 = load b0 r6\nstore b1 r6 r7");
    assert_eq!(run(&read, [2, 1, 1], [vec![5; 32], vec![0; 32]])[1], [5; 32]);
    let (memory, len) = (KernelMemory::Buffer(0), 31);
    assert_eq!(fault(&read, [2, 1, 1], &[31, 32]), KernelProblem::Beside { memory, index: 31, len });
    assert_eq!(fault(&read, [2, 1, 1], &[32, 31]), KernelProblem::Beside { memory: OWN, index: 31, len });
    let shared = kernel("r7: u32 = add r0 r3\nstore s0 r7 r0");
    assert_eq!(fault(&shared, [1, 1, 1], &[0, 0]), KernelProblem::Beside { memory: SHARED, index: 16, len: 16 });
    let kernel = interpreted(&read);
    let error = kernel.run([2, 1, 1], &mut [&mut [0; 31], &mut [0; 32]], &settings(ThreadSchedule::Ascending));
    let message =
        "kernel `tried`, `r7: u32 = load b0 r6`, thread 15 of group [1, 0, 0]: element 31 of b0, which has 31";
    assert_eq!(error.unwrap_err().to_string(), message);
}

#[test]
fn races_within_a_group_are_found_in_every_order() {
    let race = |instructions: &str| match fault(&kernel(instructions), [1, 1, 1], &[16, 16]) {
        KernelProblem::RaceInGroup { memory, .. } => memory,
        other => panic!("{other:?}"),
    };
    // Both write; one reads what the other writes; one writes what several have read.
    assert_eq!(race("store s0 r2 r0"), SHARED);
    assert_eq!(race("store b1 r2 r3"), OWN);
    let neighbour = "store s0 r0 r0\nr7: u32 = const 15\nr8: u32 = sub r7 r0";
    assert_eq!(race(&format!("{neighbour}\nbarrier\nr9: u32 = load s0 r8\nstore s0 r0 r9")), SHARED);
    assert_eq!(race("r7: u32 = load b1 r2\nr8: bool = eq r0 r2\nif r8 {\n store b1 r2 r7\n}"), OWN);
    assert_eq!(race("r8: bool = eq r0 r3\nif r8 {\n store b1 r2 r0\n}\nr7: u32 = load b1 r2"), OWN);
    // With a barrier between each write and what else touches the word there is none.
    let fine = "store s0 r0 r0\nr7: u32 = const 15\nr8: u32 = sub r7 r0\nbarrier\nr9: u32 = load s0 r8\nbarrier\nstore s0 r0 r9\n\
                r10: u32 = load s0 r0\nstore b1 r6 r10";
    assert_eq!(run(&kernel(fine), [2, 1, 1], [vec![], vec![0; 32]])[1][..16], (0..16).rev().collect::<Vec<u32>>());
}

#[test]
fn a_barrier_too_few_in_a_loop_is_found() {
    let text = |barrier: &str| {
        kernel(&format!(
            "r7: u32 = const 15\nr8: u32 = sub r7 r0\nloop r9 from r2 to r4 step r3 {{\n store s0 r0 r9\n barrier\n\
             r10: u32 = load s0 r8\n store b1 r6 r10\n{barrier}}}"
        ))
    };
    assert_eq!(run(&text(" barrier\n"), [2, 1, 1], [vec![], vec![0; 32]])[1], [15; 32]);
    let race = fault(&text(""), [2, 1, 1], &[0, 32]);
    assert!(matches!(race, KernelProblem::RaceInGroup { memory: SHARED, .. }), "{race:?}");
}

#[test]
fn races_between_groups_are_found_in_every_order() {
    let groups = |instructions: &str| fault(&kernel(instructions), [3, 1, 1], &[0, 64]);
    let race = KernelProblem::RaceOfGroups { memory: OWN, index: 0 };
    // All write a word, one of the groups writes what others read, and no barrier helps.
    let first = "r7: bool = eq r0 r2\nif r7 {\n store b1 r2 r0\n}";
    assert_eq!(groups(first), race);
    assert_eq!(groups(&format!("barrier\n{first}\nbarrier")), race);
    assert_eq!(groups("r7: u32 = load b1 r2\nr8: bool = eq r6 r4\nbarrier\nif r8 {\n store b1 r2 r7\n}"), race);
    // Shared memory is each group's own.
    let shared = "r7: bool = eq r0 r2\nif r7 {\n store s0 r2 r1\n}\nbarrier\nr8: u32 = load s0 r2\nstore b1 r6 r8";
    let expected: Vec<u32> = (0..48).map(|at| at / 16).collect();
    assert_eq!(run(&kernel(shared), [3, 1, 1], [vec![], vec![0; 48]])[1], expected);
}

#[test]
fn shared_memory_is_written_before_it_is_read() {
    let unwritten = KernelProblem::Unwritten { memory: SHARED, index: 3 };
    assert_eq!(fault(&kernel("r7: u32 = const 3\nr8: u32 = load s0 r7"), [1, 1, 1], &[0, 0]), unwritten);
    // What the group before has left does not count.
    let first = "r7: bool = eq r1 r2\nif r7 {\n store s0 r0 r0\n}\nbarrier\nr8: u32 = load s0 r0";
    let late = fault(&kernel(first), [2, 1, 1], &[0, 0]);
    assert!(matches!(late, KernelProblem::Unwritten { memory: SHARED, .. }), "{late:?}");
}

#[test]
fn threads_that_do_not_come_to_a_barrier_are_found() {
    let diverged = |instructions: &str| fault(&kernel(instructions), [1, 1, 1], &[0, 0]);
    let some = |here| KernelProblem::Diverged { here, all: 16 };
    assert_eq!(diverged("r7: bool = lt r0 r3\nif r7 {\n barrier\n}"), some(1));
    assert_eq!(diverged("r7: bool = lt r0 r3\nif r7 {\n r8: u32 = subgroup_add r0\n}"), some(1));
    assert_eq!(diverged("r7: bool = lt r0 r3\nif r7 {\n r8: u32 = shuffle r0 r2\n}"), some(1));
    assert_eq!(diverged("loop r7 from r2 to r0 step r3 {\n barrier\n}"), some(15));
}

#[test]
fn what_has_no_value_is_a_fault() {
    let undefined = |line: &str| fault(&kernel(line), [1, 1, 1], &[0, 0]);
    let float = |bits: &str, line: &str| undefined(&format!("r7: f32 = const {bits}\n{line}"));
    assert_eq!(undefined("r7: u32 = div r4 r2"), KernelProblem::DivisionByZero(16));
    assert_eq!(undefined("r7: u32 = rem r3 r2"), KernelProblem::DivisionByZero(1));
    assert_eq!(
        undefined("r7: i32 = const -5\nr8: i32 = const 0\nr9: i32 = div r7 r8"),
        KernelProblem::DivisionByZero(-5i32 as u32)
    );
    assert_eq!(undefined("r7: u32 = const 32\nr8: u32 = shl r3 r7"), KernelProblem::Shift(32));
    assert_eq!(undefined("r7: u32 = const 32\nr8: u32 = shr r3 r7"), KernelProblem::Shift(32));
    assert!(matches!(float("0x7fc00000", "r8: f32 = min r7 r7"), KernelProblem::OrderOfNan(..)));
    assert!(matches!(float("0x7fc00000", "r8: f32 = max r7 r7"), KernelProblem::OrderOfNan(..)));
    assert!(matches!(float("0x7fc00000", "r8: f32 = subgroup_max r7"), KernelProblem::OrderOfNan(..)));
    let out = |value, ty| KernelProblem::Conversion { value, ty };
    assert_eq!(float("0x4f000000", "r8: i32 = convert r7"), out(2_147_483_648.0, ScalarType::I32));
    assert_eq!(float("0xbf800000", "r8: u32 = convert r7"), out(-1.0, ScalarType::U32));
    assert_eq!(float("0x7f800000", "r8: u32 = convert r7"), out(f32::INFINITY, ScalarType::U32));
    assert!(matches!(float("0x7fc00000", "r8: i32 = convert r7"), KernelProblem::Conversion { .. }));
}

#[test]
fn loops_end() {
    let endless = |instructions: &str| fault(&kernel(instructions), [1, 1, 1], &[0, 0]);
    assert_eq!(endless("loop r7 from r2 to r3 step r2 {\n}"), KernelProblem::LoopStep);
    let most = "r7: u32 = const 4294967295\nr8: u32 = const 4294967294";
    let overflow = KernelProblem::LoopOverflow { counter: 4_294_967_294, step: 16 };
    assert_eq!(endless(&format!("{most}\nloop r9 from r8 to r7 step r4 {{\n}}")), overflow);
    let long = endless("r7: u32 = const 4294967295\nloop r9 from r2 to r7 step r3 {\n r8: u32 = add r9 r3\n}");
    assert_eq!(long, KernelProblem::Budget(1 << 20));
    let idle = endless("r7: u32 = const 4294967295\nloop r8 from r2 to r7 step r3 {\n}");
    assert_eq!(idle, KernelProblem::Budget(1 << 20));
    // What has no instruction costs the grid's groups.
    let empty = interpreted("kernel empty threads 1 {\n}\n");
    let settings = settings(ThreadSchedule::OneByOne(4));
    let run = |grid| empty.run(grid, &mut [], &settings).map_err(|fault| fault.to_string());
    assert_eq!(run([1000, 1000, 1]), Ok(()));
    assert_eq!(run([1 << 21, 1, 1]), Err("kernel `empty` is not launched: more than 1048576 instructions".to_string()));
    let beyond = "kernel `empty` is not launched: a grid of [4294967295, 4294967295, 4294967295] groups".to_string();
    assert_eq!(run([u32::MAX; 3]), Err(beyond));
}

#[test]
fn launches_bind_what_the_kernel_has() {
    let tried = interpreted(&kernel(""));
    let error = tried.run([1; 3], &mut [&mut [0]], &InterpreterSettings::default()).unwrap_err();
    assert_eq!(error.to_string(), "kernel `tried` is not launched: 1 buffers are bound, and it has 2");
    let none = InterpreterSettings { subgroup_size: 0, ..InterpreterSettings::default() };
    let error = tried.run([1; 3], &mut [&mut [0], &mut [0]], &none).unwrap_err();
    assert_eq!(error.to_string(), "kernel `tried` is not launched: a subgroup has 0 threads");
    let wrong = parse("kernel wrong threads 1 {\nr0: u32 = not r1\nr1: u32 = thread\n}\n").unwrap().remove(0);
    assert!(InterpretedKernel::new(wrong).is_err());
}

#[test]
fn kernels_at_random_end_alike_in_every_order() {
    let mut right = 0;
    for seed in 0..400 {
        let made = random_kernel(seed);
        if print(&made).contains("f32 = subgroup_add") {
            // The one function whose value depends on the order.
            continue;
        }
        let lengths: Vec<usize> = made.buffers.iter().map(|_| 64).collect();
        let kernel = InterpretedKernel::new(made).unwrap();
        let ends = SCHEDULES.map(|schedule| {
            let mut buffers: Vec<Vec<u32>> = lengths.iter().map(|&len| (0..len as u32).collect()).collect();
            let mut words: Vec<&mut [u32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
            let settings = InterpreterSettings { budget: 1 << 14, ..settings(schedule) };
            kernel.run([2, 1, 1], &mut words, &settings).ok().map(|()| buffers)
        });
        assert!(ends.iter().all(|end| *end == ends[0]), "{}", print(kernel.kernel()));
        right += usize::from(ends[0].is_some());
    }
    assert!(right > 50, "{right}");
}
