//! What a verifier takes, and for each of its rules a kernel that breaks it.

use crate::random_kernel::random_kernel;
use yirage_kir::text::{parse, print};
use yirage_kir::{
    BufferAccess, ComputeKernel, Instruction, Register, ScalarConst, ScalarType, SharedArray, Variable, verify,
};

/// Sums 64 parts in each of so many groups, and uses everything that rules are about.
const SUM: &str = "\
kernel sum_parts threads 64 {
buffer b0 u32 read own sizes
buffer b1 f32 read pooled x
buffer b2 f32 write pooled y
buffer b3 f32 read_write own scratch
shared s0 f32 64
r0: u32 = thread
r1: u32 = group 0
r2: u32 = const 0
r3: u32 = load b0 r2
r4: u32 = const 64
r5: f32 = load b1 r0
r6: bool = lt r0 r3
var v0: f32 = r5
var v1: u32 = r3
loop r7 from r0 to r3 step r4 {
 r8: f32 = get v0
 r9: f32 = add r8 r5
 set v0 r9
}
r10: f32 = get v0
store s0 r0 r10
barrier
loop r11 from r2 to r3 step r4 {
 r12: bool = lt r11 r1
 if r12 {
  barrier
 } else {
  r13: f32 = load s0 r2
  store b2 r1 r13
 }
 r14: f32 = subgroup_add r5
 r15: u32 = get v1
 r16: bool = eq r15 r2
 if r16 {
  r17: f32 = shuffle r5 r2
 }
}
if r6 {
 r18: f32 = load b3 r0
 store b3 r0 r18
}
}
";

fn sum() -> ComputeKernel {
    parse(SUM).unwrap().remove(0)
}

/// What is said of a kernel of which a line is another.
#[track_caller]
fn broken(from: &str, to: &str) -> String {
    assert!(SUM.contains(from), "{from}");
    let kernels = parse(&SUM.replacen(from, to, 1)).unwrap();
    verify(&kernels[0]).unwrap_err().to_string()
}

/// What is said of a kernel that no text has.
fn changed(change: impl FnOnce(&mut ComputeKernel)) -> String {
    let mut kernel = sum();
    change(&mut kernel);
    verify(&kernel).unwrap_err().to_string()
}

#[test]
fn kernels_that_keep_all_rules_are_taken() {
    assert_eq!(verify(&sum()), Ok(()));
    for seed in 0..500 {
        let kernel = random_kernel(seed);
        assert_eq!(verify(&kernel), Ok(()), "{}", print(&kernel));
    }
}

#[test]
fn names_are_words_that_no_source_uses_itself() {
    for name in ["", "2d", "a-b", "a b", "a__b", "naïve", "min", "r1", "b12", "thread", "override", "root", "u32"] {
        let message = changed(|kernel| kernel.name = name.into());
        assert_eq!(message, format!("kernel `{name}`: its name is no word that every source can have for a kernel"));
    }
    assert_eq!(
        changed(|kernel| kernel.buffers[1].name = "x\ny".into()),
        "kernel `sum_parts`: the name of b1, \"x\\ny\", is no word"
    );
}

#[test]
fn sizes_are_within_limits() {
    assert_eq!(broken("threads 64", "threads 0"), "kernel `sum_parts`: a group of 0 threads: it has 1 to 1024");
    assert_eq!(broken("threads 64", "threads 1025"), "kernel `sum_parts`: a group of 1025 threads: it has 1 to 1024");
    let large = "kernel `sum_parts`: a group shares 65540 bytes: at most 65536";
    assert_eq!(broken("s0 f32 64", "s0 f32 16385"), large);
    assert_eq!(changed(|kernel| kernel.shared.push(SharedArray { ty: ScalarType::U32, len: 16_321 })), large);
    assert_eq!(broken("s0 f32 64", "s0 f32 0"), "kernel `sum_parts`: s0 has no elements");
    let most = changed(|kernel| kernel.registers.resize((1 << 20) + 1, ScalarType::U32));
    assert_eq!(most, "kernel `sum_parts`: 1048577 registers: at most 1048576");
    let deep = changed(|kernel| {
        let condition = Register(6);
        let nest = |then, _| vec![Instruction::If { condition, then, otherwise: Vec::new() }];
        kernel.body.extend((0..65).fold(Vec::new(), nest));
    });
    assert_eq!(deep, "kernel `sum_parts`, `if r6 {`: more than 64 bodies in one another");
}

#[test]
fn memory_has_no_bools() {
    assert_eq!(broken("b1 f32", "b1 bool"), "kernel `sum_parts`: elements of b1 are bools, which no memory has");
    assert_eq!(broken("s0 f32", "s0 bool"), "kernel `sum_parts`: elements of s0 are bools, which no memory has");
}

#[test]
fn what_is_used_exists_and_is_in_scope() {
    let cases = [
        ("set v0 r9", "set v0 r99", "the kernel has no r99"),
        ("set v0 r9", "set v0 r10", "r10 is not computed yet"),
        ("store s0 r0 r10", "store s0 r0 r9", "r9 is computed in a body that has ended"),
        ("store s0 r0 r10", "store s0 r7 r10", "r7 is computed in a body that has ended"),
        ("store s0 r0 r10", "store s1 r0 r10", "the kernel has no s1"),
        ("store s0 r0 r10", "store b4 r0 r10", "the kernel has no b4"),
        ("set v0 r9", "set v2 r9", "the kernel has no v2"),
    ];
    for (from, to, message) in cases {
        assert_eq!(broken(from, to), format!("kernel `sum_parts`, `{}`: {message}", to));
    }
    let early = broken("var v1: u32 = r3\n", "set v1 r3\nvar v1: u32 = r3\n");
    assert_eq!(early, "kernel `sum_parts`, `set v1 r3`: v1 is not declared yet");
    let behind =
        broken(" r9: f32 = add r8 r5\n set v0 r9\n}\n", " r9: f32 = add r8 r5\n var v2: f32 = r9\n}\nset v2 r5\n");
    assert_eq!(behind, "kernel `sum_parts`, `set v2 r5`: v2 is declared in a body that has ended");
    let beyond =
        changed(|kernel| kernel.body.push(Instruction::Compute(Register(99), yirage_kir::Computation::Thread)));
    assert_eq!(beyond, "kernel `sum_parts`, `r99: unknown = thread`: the kernel has no r99");
    let beyond = changed(|kernel| kernel.body.push(Instruction::Declare(Variable(9), Register(0))));
    assert_eq!(beyond, "kernel `sum_parts`, `var v9: unknown = r0`: the kernel has no v9");
}

#[test]
fn registers_are_computed_once_and_variables_declared_once() {
    let twice = changed(|kernel| kernel.body.push(kernel.body[0].clone()));
    assert_eq!(twice, "kernel `sum_parts`, `r0: u32 = thread`: r0 is computed twice");
    let twice = broken("loop r7", "var v0: f32 = r5\nloop r7");
    assert_eq!(twice, "kernel `sum_parts`, `var v0: f32 = r5`: v0 is declared twice");
    let never = changed(|kernel| kernel.registers.push(ScalarType::U32));
    assert_eq!(never, "kernel `sum_parts`: r19 is computed nowhere");
    let never = changed(|kernel| kernel.variables.push(ScalarType::U32));
    assert_eq!(never, "kernel `sum_parts`: v2 is declared nowhere");
}

#[test]
fn types_are_those_that_are_taken() {
    let lines = [
        ("r14: f32 = thread", "r14 is f32, and what is computed u32"),
        ("r14: u32 = group 3", "a grid has axes 0, 1 and 2, and not 3"),
        ("r14: f32 = get v1", "r14 is f32, and what is computed u32"),
        ("r14: f32 = load s0 r5", "r5 is f32, where u32 is taken"),
        ("r14: u32 = load s0 r0", "r14 is u32, and what is computed f32"),
        ("r14: u32 = neg r0", "r0 is u32, which is not taken"),
        ("r14: f32 = not r5", "r5 is f32, which is not taken"),
        ("r14: u32 = sqrt r0", "r0 is u32, which is not taken"),
        ("r14: f32 = count_ones r5", "r5 is f32, which is not taken"),
        ("r14: f32 = add r5 r0", "r0 is u32, where f32 is taken"),
        ("r14: bool = add r6 r6", "r6 is bool, which is not taken"),
        ("r14: f32 = rem r5 r5", "r5 is f32, which is not taken"),
        ("r14: f32 = and r5 r5", "r5 is f32, which is not taken"),
        ("r14: f32 = shl r5 r5", "r5 is f32, which is not taken"),
        ("r14: bool = lt r6 r6", "r6 is bool, which is not taken"),
        ("r14: f32 = lt r5 r5", "r14 is f32, and what is computed bool"),
        ("r14: f32 = select r0 r5 r5", "r0 is u32, where bool is taken"),
        ("r14: f32 = select r6 r5 r0", "r0 is u32, where f32 is taken"),
        ("r14: bool = convert r5", "r5 is f32, which is not taken"),
        ("r14: bool = bitcast r0", "no bits are a bool's"),
        ("r14: u32 = bitcast r6", "r6 is bool, which is not taken"),
        ("r14: f32 = unpack_low r5", "r5 is f32, where u32 is taken"),
        ("r14: u32 = pack_half r5 r0", "r0 is u32, where f32 is taken"),
        ("r14: bool = subgroup_max r6", "r6 is bool, which is not taken"),
        ("r14: bool = shuffle r6 r0", "r6 is bool, which is not taken"),
        ("r14: f32 = shuffle r5 r5", "r5 is f32, where u32 is taken"),
        ("store b2 r5 r5", "r5 is f32, where u32 is taken"),
        ("store b2 r0 r0", "r0 is u32, where f32 is taken"),
        ("set v1 r5", "r5 is f32, where u32 is taken"),
        ("loop r14 from r5 to r0 step r0 {", "r5 is f32, where u32 is taken"),
        ("loop r14 from r0 to r5 step r0 {", "r5 is f32, where u32 is taken"),
        ("loop r14 from r0 to r0 step r5 {", "r5 is f32, where u32 is taken"),
        ("if r0 {", "r0 is u32, where bool is taken"),
    ];
    for (line, message) in lines {
        let mut to = line.to_string();
        if !line.contains("r14") {
            to.push_str(if line.ends_with('{') { "\n }\nr14: u32 = thread" } else { "\n r14: u32 = thread" });
        } else if line.ends_with('{') {
            to.push_str("\n }");
        }
        assert_eq!(broken("r14: f32 = subgroup_add r5", &to), format!("kernel `sum_parts`, `{line}`: {message}"));
    }
    let first = changed(|kernel| kernel.variables[0] = ScalarType::U32);
    assert_eq!(first, "kernel `sum_parts`, `var v0: u32 = r5`: v0 is u32, and its first value f32");
    let counter = changed(|kernel| kernel.registers[7] = ScalarType::I32);
    let line = "loop r7 from r0 to r3 step r4 {";
    assert_eq!(counter, format!("kernel `sum_parts`, `{line}`: r7 is i32, and what is computed u32"));
    let truth = changed(|kernel| {
        kernel.registers.push(ScalarType::Bool);
        let constant = yirage_kir::Computation::Const(ScalarConst { ty: ScalarType::Bool, bits: 2 });
        kernel.body.push(Instruction::Compute(Register(19), constant));
    });
    assert_eq!(truth, "kernel `sum_parts`, `r19: bool = const 2`: a bool is 0 or 1, and not 2");
}

#[test]
fn buffers_are_accessed_as_they_say() {
    let read = broken("r14: f32 = subgroup_add r5", "r14: f32 = load b2 r0");
    assert_eq!(read, "kernel `sum_parts`, `r14: f32 = load b2 r0`: b2 is declared `write`, and read");
    let written = broken("store b2 r1 r13", "store b1 r1 r13");
    assert_eq!(written, "kernel `sum_parts`, `store b1 r1 r13`: b1 is declared `read`, and written");
    let both = changed(|kernel| kernel.buffers[3].access = BufferAccess::Write);
    assert_eq!(both, "kernel `sum_parts`, `r18: f32 = load b3 r0`: b3 is declared `write`, and read");
}

#[test]
fn barriers_stand_where_all_threads_come_to() {
    let barrier = "kernel `sum_parts`, `barrier`: a barrier where maybe not all threads of a group come to";
    // A condition, bounds and a variable that threads have each their own of.
    assert_eq!(broken("r12: bool = lt r11 r1", "r12: bool = lt r11 r0"), barrier);
    for bounds in ["from r0 to r3 step r4", "from r2 to r0 step r4", "from r2 to r3 step r0"] {
        assert_eq!(broken("loop r11 from r2 to r3 step r4", &format!("loop r11 {bounds}")), barrier);
    }
    let shuffle = "kernel `sum_parts`, `r17: f32 = shuffle r5 r2`: a function of a subgroup where maybe not all threads of a \
                   group come to";
    assert_eq!(broken("r15: u32 = get v1\n", "r15: u32 = get v1\n set v1 r0\n"), shuffle, "set behind its use");
    assert_eq!(broken("set v0 r9", "set v0 r9\n set v1 r2"), shuffle, "set where not all come to");
    assert_eq!(broken("store b3 r0 r18", "barrier"), barrier);
    // What others may write in the launch, and what a group shares, differs from thread to thread.
    assert_eq!(broken("buffer b0 u32 read own", "buffer b0 u32 read pooled"), barrier);
    assert_eq!(broken("buffer b0 u32 read own", "buffer b0 u32 read_write own"), barrier);
    let subgroup = "kernel `sum_parts`, `r19: f32 = subgroup_max r5`: a function of a subgroup where maybe not all threads of \
                    a group come to";
    assert_eq!(broken("store b3 r0 r18", "r19: f32 = subgroup_max r5"), subgroup);
    for value in ["subgroup_lane", "subgroup_size", "load b0 r0", "subgroup_add r0", "shuffle r0 r2"] {
        let condition = format!("r19: u32 = {value}\n r12: bool = lt r11 r19");
        assert_eq!(broken("r12: bool = lt r11 r1", &condition), barrier, "{value}");
    }
}
