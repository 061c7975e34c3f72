//! C++ as the compilers of accelerators read it: one printer, a row of the table for each language.
//!
//! A language differs in its prelude (the same few functions by other means), in how a kernel is declared, and in its words
//! for threads and groups; the body of a kernel is the same text in all of them. No vendor's header is included.

use super::c_preludes as preludes;
use crate::computation::{BinaryFunction, Computation, SubgroupFunction, UnaryFunction};
use crate::kernel::{BufferAccess, ComputeKernel, Instruction, SharedArray};
use crate::place::{KernelMemory, Register};
use crate::scalar::{ScalarConst, ScalarType};
use std::fmt::{self, Write};

/// A language of the C++ family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CDialect {
    /// Its name.
    pub name: &'static str,
    /// Threads of a subgroup.
    pub subgroup: u32,
    /// What its compiler is told, so that every operation of floats is rounded by itself.
    pub options: &'static [&'static str],
    /// What stands before the first kernel.
    prelude: &'static [&'static str],
    style: DeclarationStyle,
}

/// How a kernel and its memory are declared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum DeclarationStyle {
    /// As CUDA C++ has it: `__global__`, `__shared__`, `threadIdx`.
    Cuda,
    /// As the Metal Shading Language has it: attributes of parameters.
    Metal,
}

/// What a compiler that is clang underneath is told.
const CLANG_OPTIONS: &[&str] = &["-ffp-contract=off"];

/// Of a compiler that has CUDA's names and runs subgroups in step.
const IN_STEP: &[&str] =
    &[preludes::COMMON, preludes::CUDA, preludes::SOFT_HALF, preludes::STEP_SHUFFLE, preludes::SUBGROUP];

/// Of clang for AMD's processors.
const AMD: &[&str] = &[
    preludes::HIP_WORDS,
    preludes::COMMON,
    preludes::HIP,
    preludes::NATIVE_HALF,
    preludes::HIP_SHUFFLE,
    preludes::SUBGROUP,
];

impl CDialect {
    /// CUDA C++ for NVIDIA's NVRTC.
    pub const CUDA: CDialect = CDialect {
        name: "cuda",
        subgroup: 32,
        options: &["--fmad=false"],
        prelude: &[
            preludes::COMMON,
            preludes::CUDA,
            preludes::PTX_HALF,
            preludes::SOFT_HALF,
            preludes::END,
            preludes::CUDA_SHUFFLE,
            preludes::SUBGROUP,
        ],
        style: DeclarationStyle::Cuda,
    };
    /// HIP C++ for AMD's CDNA and Hygon, waves of 64.
    pub const HIP: CDialect = CDialect::cuda_like("hip", 64, AMD);
    /// HIP C++ for AMD's RDNA, waves of 32.
    pub const HIP_RDNA: CDialect = CDialect::cuda_like("hip-rdna", 32, AMD);
    /// MUSA C++ for Moore Threads.
    pub const MUSA: CDialect = CDialect::cuda_like(
        "musa",
        32,
        &[preludes::COMMON, preludes::CUDA, preludes::SOFT_HALF, preludes::CUDA_SHUFFLE, preludes::SUBGROUP],
    );
    /// MACA C++ for MetaX, waves of 64.
    pub const MACA: CDialect = CDialect::cuda_like("maca", 64, IN_STEP);
    /// CoreX C++ for Iluvatar, waves of 64.
    pub const COREX: CDialect = CDialect::cuda_like("corex", 64, IN_STEP);
    /// The Metal Shading Language.
    pub const METAL: CDialect = CDialect {
        name: "metal",
        subgroup: 32,
        options: &["-fno-fast-math"],
        prelude: &[preludes::METAL],
        style: DeclarationStyle::Metal,
    };

    /// All of them.
    pub const ALL: [CDialect; 7] = [
        CDialect::CUDA,
        CDialect::HIP,
        CDialect::HIP_RDNA,
        CDialect::MUSA,
        CDialect::MACA,
        CDialect::COREX,
        CDialect::METAL,
    ];

    const fn cuda_like(name: &'static str, subgroup: u32, prelude: &'static [&'static str]) -> CDialect {
        CDialect { name, subgroup, options: CLANG_OPTIONS, prelude, style: DeclarationStyle::Cuda }
    }

    /// A source with these kernels.
    pub fn source(&self, kernels: &[ComputeKernel]) -> String {
        self.text(kernels, KernelForm::Kernel)
    }

    /// The same as functions of one kernel that runs many, in a language of CUDA's family. Whoever compiles it defines
    /// `TASK_FUNCTION`, which stands before each, and `group_memory`, where the memory of a group begins, at a multiple of 16 bytes: a
    /// function takes [`group_memory_bytes`] from there on.
    pub fn functions(&self, kernels: &[ComputeKernel]) -> String {
        self.text(kernels, KernelForm::Function)
    }

    fn text(&self, kernels: &[ComputeKernel], form: KernelForm) -> String {
        let mut out = format!("#define SUBGROUP {}u\n", self.subgroup);
        self.prelude.iter().for_each(|part| out.push_str(part));
        for kernel in kernels {
            // A text grows without end or not at all.
            let _ = CSource { dialect: self, kernel, form, out: &mut out }.kernel();
        }
        out
    }
}

/// What the arrays of a group begin at a multiple of in the form of functions, in bytes.
const SHARED_ALIGN: usize = 16;

/// Bytes of a group's memory that a kernel takes in the form of a function.
pub fn group_memory_bytes(kernel: &ComputeKernel) -> usize {
    shared_offsets(kernel).1
}

/// Where each array of a group's memory begins, and where the last one ends.
fn shared_offsets(kernel: &ComputeKernel) -> (Vec<usize>, usize) {
    let mut end = 0;
    let begin = |array: &SharedArray| {
        let begin = end;
        end += (array.len as usize * 4).next_multiple_of(SHARED_ALIGN);
        begin
    };
    let offsets = kernel.shared.iter().map(begin).collect();
    (offsets, end)
}

/// What a kernel is written as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KernelForm {
    /// A kernel.
    Kernel,
    /// A function of one.
    Function,
}

struct CSource<'a> {
    dialect: &'a CDialect,
    kernel: &'a ComputeKernel,
    form: KernelForm,
    out: &'a mut String,
}

impl CSource<'_> {
    fn kernel(&mut self) -> fmt::Result {
        let ComputeKernel { name, threads, .. } = self.kernel;
        let parameters: Vec<String> = self.parameters();
        match self.dialect.style {
            DeclarationStyle::Cuda if self.form == KernelForm::Function => {
                writeln!(self.out, "\nTASK_FUNCTION void {name}(")?;
            }
            DeclarationStyle::Cuda => {
                writeln!(self.out, "\nextern \"C\" __global__ void __launch_bounds__({threads}) {name}(")?;
            }
            DeclarationStyle::Metal => {
                writeln!(self.out, "\n[[max_total_threads_per_threadgroup({threads})]] kernel void {name}(")?;
            }
        }
        writeln!(self.out, "    {}) {{", parameters.join(",\n    "))?;
        let shared = match self.dialect.style {
            DeclarationStyle::Cuda => "__shared__",
            DeclarationStyle::Metal => "threadgroup",
        };
        let (offsets, _) = shared_offsets(self.kernel);
        for (at, (array, offset)) in self.kernel.shared.iter().zip(offsets).enumerate() {
            let (ty, len) = (word(array.ty), array.len);
            match self.form {
                KernelForm::Kernel => writeln!(self.out, "  {shared} {ty} s{at}[{len}];")?,
                KernelForm::Function => {
                    writeln!(
                        self.out,
                        "  {ty} (&s{at})[{len}] = *({ty} (*)[{len}])((char*)group_memory + {offset}u);"
                    )?;
                }
            }
        }
        self.body(&self.kernel.body, 1)?;
        writeln!(self.out, "}}")
    }

    fn parameters(&self) -> Vec<String> {
        let metal = self.dialect.style == DeclarationStyle::Metal;
        let buffer = |(at, buffer): (usize, &crate::kernel::KernelBuffer)| {
            let (constant, ty) = (if buffer.access == BufferAccess::Read { "const " } else { "" }, word(buffer.ty));
            if metal {
                format!("device {constant}{ty}* b{at} [[buffer({at})]]")
            } else if self.form == KernelForm::Function {
                // Another group may have written it while this kernel ran: no cache may keep it.
                format!("{constant}{ty}* b{at}")
            } else {
                format!("{constant}{ty}* __restrict__ b{at}")
            }
        };
        let mut all: Vec<String> = self.kernel.buffers.iter().enumerate().map(buffer).collect();
        if metal {
            all.extend(preludes::METAL_PARAMETERS.map(String::from));
        }
        all
    }

    fn body(&mut self, body: &[Instruction], depth: usize) -> fmt::Result {
        body.iter().try_for_each(|instruction| self.instruction(instruction, depth))
    }

    fn instruction(&mut self, instruction: &Instruction, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match instruction {
            Instruction::Compute(register, computation) => {
                let (ty, value) = (word(self.kernel.ty(*register)), self.computation(computation));
                writeln!(self.out, "{indent}const {ty} r{} = {value};", register.0)
            }
            Instruction::Declare(variable, first) => {
                writeln!(self.out, "{indent}{} v{} = r{};", word(self.kernel.ty(*first)), variable.0, first.0)
            }
            Instruction::Set(variable, value) => writeln!(self.out, "{indent}v{} = r{};", variable.0, value.0),
            Instruction::Store { memory, at, value } => {
                writeln!(self.out, "{indent}{}[r{}] = r{};", name(*memory), at.0, value.0)
            }
            Instruction::Loop { counter, from, to, step, body } => {
                let c = counter.0;
                writeln!(self.out, "{indent}for (uint r{c} = r{}; r{c} < r{}; r{c} += r{}) {{", from.0, to.0, step.0)?;
                self.body(body, depth + 1)?;
                writeln!(self.out, "{indent}}}")
            }
            Instruction::If { condition, then, otherwise } => {
                writeln!(self.out, "{indent}if (r{}) {{", condition.0)?;
                self.body(then, depth + 1)?;
                if !otherwise.is_empty() {
                    writeln!(self.out, "{indent}}} else {{")?;
                    self.body(otherwise, depth + 1)?;
                }
                writeln!(self.out, "{indent}}}")
            }
            Instruction::Barrier => writeln!(self.out, "{indent}group_barrier();"),
        }
    }

    fn computation(&self, computation: &Computation) -> String {
        match *computation {
            Computation::Const(value) => constant(value),
            Computation::Thread => "thread_of_group()".into(),
            Computation::Group(axis) => format!("group_of_grid_{axis}()"),
            Computation::SubgroupLane => "lane_of_subgroup()".into(),
            Computation::SubgroupSize => "SUBGROUP".into(),
            Computation::Get(variable) => format!("v{}", variable.0),
            Computation::Load(memory, at) => format!("{}[r{}]", name(memory), at.0),
            Computation::Unary(function, x) => unary(function, x.0, self.kernel.ty(x)),
            Computation::Binary(function, a, b) => binary(function, a, b, self.kernel.ty(a)),
            Computation::Select(condition, a, b) => format!("r{} ? r{} : r{}", condition.0, a.0, b.0),
            Computation::Convert(to, x) => format!("({})r{}", word(to), x.0),
            Computation::Bitcast(to, x) => format!("bits_as_{to}(r{})", x.0),
            Computation::UnpackHalf(x, false) => format!("half_as_f32(r{} & 0xffffu)", x.0),
            Computation::UnpackHalf(x, true) => format!("half_as_f32(r{} >> 16)", x.0),
            Computation::PackHalf(low, high) => format!("f32_as_half(r{}) | f32_as_half(r{}) << 16", low.0, high.0),
            Computation::Subgroup(function, x) => format!("{}(r{}, {}u)", subgroup(function), x.0, self.kernel.threads),
            Computation::SubgroupShuffle(x, lane) => format!("subgroup_shuffle(r{}, r{})", x.0, lane.0),
        }
    }
}

/// The word for a type.
fn word(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::F32 => "float",
        ScalarType::I32 => "int",
        ScalarType::U32 => "uint",
        ScalarType::Bool => "bool",
    }
}

fn name(memory: KernelMemory) -> String {
    match memory {
        KernelMemory::Buffer(number) => format!("b{number}"),
        KernelMemory::Shared(number) => format!("s{number}"),
    }
}

fn constant(value: ScalarConst) -> String {
    let ScalarConst { ty, bits } = value;
    let float = f32::from_bits(bits);
    match ty {
        ScalarType::U32 => format!("{bits}u"),
        ScalarType::I32 => format!("(int){bits}u"),
        ScalarType::Bool => (bits != 0).to_string(),
        ScalarType::F32 if float.is_normal() => format!("{float:?}f"),
        ScalarType::F32 => format!("bits_as_f32({bits}u)"),
    }
}

fn unary(function: UnaryFunction, x: u32, ty: ScalarType) -> String {
    match function {
        UnaryFunction::Neg if ty == ScalarType::I32 => format!("(int)(0u - (uint)r{x})"),
        UnaryFunction::Neg => format!("-r{x}"),
        UnaryFunction::Abs => format!("magnitude(r{x})"),
        UnaryFunction::Not if ty == ScalarType::Bool => format!("!r{x}"),
        UnaryFunction::Not => format!("~r{x}"),
        UnaryFunction::Sqrt => format!("root(r{x})"),
        UnaryFunction::Floor => format!("round_down(r{x})"),
        UnaryFunction::Round => format!("round_to_even(r{x})"),
        UnaryFunction::CountOnes => format!("count_ones(r{x})"),
    }
}

fn binary(function: BinaryFunction, Register(a): Register, Register(b): Register, ty: ScalarType) -> String {
    use BinaryFunction::{Add, Div, Mul, Rem, Sub};
    let sign = match function {
        BinaryFunction::Min => return format!("r{a} < r{b} ? r{a} : r{b}"),
        BinaryFunction::Max => return format!("r{a} < r{b} ? r{b} : r{a}"),
        Div if ty == ScalarType::I32 => return format!("quotient(r{a}, r{b})"),
        Rem if ty == ScalarType::I32 => return format!("remainder_of(r{a}, r{b})"),
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Rem => "%",
        BinaryFunction::And => "&",
        BinaryFunction::Or => "|",
        BinaryFunction::Xor => "^",
        BinaryFunction::ShiftLeft => "<<",
        BinaryFunction::ShiftRight => ">>",
        BinaryFunction::Less => "<",
        BinaryFunction::LessEqual => "<=",
        BinaryFunction::Equal => "==",
        BinaryFunction::NotEqual => "!=",
    };
    // What leaves the range of `int` is anything at all in C++; here it wraps around.
    if ty == ScalarType::I32 && matches!(function, Add | Sub | Mul) {
        return format!("(int)((uint)r{a} {sign} (uint)r{b})");
    }
    format!("r{a} {sign} r{b}")
}

fn subgroup(function: SubgroupFunction) -> &'static str {
    match function {
        SubgroupFunction::Add => "subgroup_add",
        SubgroupFunction::Max => "subgroup_max",
        SubgroupFunction::Min => "subgroup_min",
    }
}
