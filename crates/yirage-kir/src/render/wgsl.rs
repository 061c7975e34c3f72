//! WGSL (W3C, WebGPU Shading Language), as naga reads it: what every graphics driver is reached by.
//!
//! A buffer that shares its memory with others is declared `read_write` whatever the kernel does with it: WebGPU lets no
//! buffer be bound in two ways to one dispatch, however far apart the parts.

use crate::computation::{BinaryFunction, Computation, SubgroupFunction, UnaryFunction};
use crate::kernel::{BufferAccess, BufferOwnership, ComputeKernel, Instruction, KernelBuffer};
use crate::place::{KernelMemory, Register};
use crate::scalar::{ScalarConst, ScalarType};
use std::fmt::{self, Write};

/// A kernel as a WGSL module whose entry point has the kernel's name. Buffer i is binding i of group 0.
pub fn wgsl(kernel: &ComputeKernel) -> String {
    let mut source = String::new();
    // A text grows without end or not at all.
    let _ = Source { kernel, out: &mut source }.module();
    source
}

/// Whether WGSL declares the buffer as one that is only read.
pub fn is_read_only(buffer: &KernelBuffer) -> bool {
    buffer.access == BufferAccess::Read && buffer.ownership == BufferOwnership::Own
}

struct Source<'a> {
    kernel: &'a ComputeKernel,
    out: &'a mut String,
}

impl Source<'_> {
    fn module(&mut self) -> fmt::Result {
        let kernel = self.kernel;
        for (at, buffer) in kernel.buffers.iter().enumerate() {
            let access = if is_read_only(buffer) { "read" } else { "read_write" };
            let KernelBuffer { name, ty, .. } = buffer;
            writeln!(self.out, "@group(0) @binding({at}) var<storage, {access}> b{at}: array<{ty}>; // {name}")?;
        }
        for (at, array) in kernel.shared.iter().enumerate() {
            writeln!(self.out, "var<workgroup> s{at}: array<{}, {}>;", array.ty, array.len)?;
        }
        // WGSL has no constants beyond the finite numbers, and none may come of a constant expression.
        writeln!(self.out, "var<private> zero_bits: u32 = 0u;")?;
        writeln!(self.out, "@compute @workgroup_size({})", kernel.threads)?;
        write!(self.out, "fn {}(@builtin(local_invocation_index) thread: u32, ", kernel.name)?;
        write!(self.out, "@builtin(workgroup_id) group: vec3<u32>")?;
        if uses(&kernel.body, |c| matches!(c, Computation::SubgroupLane)) {
            write!(self.out, ", @builtin(subgroup_invocation_id) subgroup_lane: u32")?;
        }
        if uses(&kernel.body, |c| matches!(c, Computation::SubgroupSize)) {
            write!(self.out, ", @builtin(subgroup_size) subgroup_size: u32")?;
        }
        writeln!(self.out, ") {{")?;
        self.body(&kernel.body, 1)?;
        writeln!(self.out, "}}")
    }

    fn body(&mut self, body: &[Instruction], depth: usize) -> fmt::Result {
        body.iter().try_for_each(|instruction| self.instruction(instruction, depth))
    }

    fn instruction(&mut self, instruction: &Instruction, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match instruction {
            Instruction::Compute(register, computation) => {
                let value = self.computation(computation);
                writeln!(self.out, "{indent}let r{}: {} = {value};", register.0, self.kernel.ty(*register))
            }
            Instruction::Declare(variable, first) => {
                writeln!(self.out, "{indent}var v{}: {} = r{};", variable.0, self.kernel.ty(*first), first.0)
            }
            Instruction::Set(variable, value) => writeln!(self.out, "{indent}v{} = r{};", variable.0, value.0),
            Instruction::Store { memory, at, value } => {
                writeln!(self.out, "{indent}{}[r{}] = r{};", name(*memory), at.0, value.0)
            }
            Instruction::Loop { counter, from, to, step, body } => {
                let Register(c) = counter;
                writeln!(
                    self.out,
                    "{indent}for (var r{c}: u32 = r{}; r{c} < r{}; r{c} = r{c} + r{}) {{",
                    from.0, to.0, step.0
                )?;
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
            Instruction::Barrier => writeln!(self.out, "{indent}workgroupBarrier(); storageBarrier();"),
        }
    }

    fn computation(&self, computation: &Computation) -> String {
        match *computation {
            Computation::Const(value) => constant(value),
            Computation::Thread => "thread".into(),
            Computation::Group(axis) => format!("group[{axis}]"),
            Computation::SubgroupLane => "subgroup_lane".into(),
            Computation::SubgroupSize => "subgroup_size".into(),
            Computation::Get(variable) => format!("v{}", variable.0),
            Computation::Load(memory, at) => format!("{}[r{}]", name(memory), at.0),
            Computation::Unary(function, x) => unary(function, x, self.kernel.ty(x)),
            Computation::Binary(function, a, b) => binary(function, a, b),
            Computation::Select(condition, a, b) => format!("select(r{}, r{}, r{})", b.0, a.0, condition.0),
            Computation::Convert(to, x) => format!("{to}(r{})", x.0),
            Computation::Bitcast(to, x) => format!("bitcast<{to}>(r{})", x.0),
            Computation::UnpackHalf(word, high) => {
                format!("unpack2x16float(r{}).{}", word.0, if high { "y" } else { "x" })
            }
            Computation::PackHalf(low, high) => format!("pack2x16float(vec2<f32>(r{}, r{}))", low.0, high.0),
            Computation::Subgroup(function, x) => format!("{}(r{})", subgroup(function), x.0),
            Computation::SubgroupShuffle(x, lane) => format!("subgroupShuffle(r{}, r{})", x.0, lane.0),
        }
    }
}

fn uses(body: &[Instruction], wanted: fn(&Computation) -> bool) -> bool {
    body.iter().any(|instruction| match instruction {
        Instruction::Compute(_, computation) => wanted(computation),
        Instruction::Loop { body, .. } => uses(body, wanted),
        Instruction::If { then, otherwise, .. } => uses(then, wanted) || uses(otherwise, wanted),
        Instruction::Declare(..) | Instruction::Set(..) | Instruction::Store { .. } | Instruction::Barrier => false,
    })
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
        ScalarType::I32 if bits == 0x8000_0000 => "bitcast<i32>(0x80000000u)".into(),
        ScalarType::I32 => format!("{}i", bits as i32),
        ScalarType::Bool => (bits != 0).to_string(),
        ScalarType::F32 if !float.is_finite() => format!("bitcast<f32>(0x{bits:08x}u | zero_bits)"),
        ScalarType::F32 if float == 0.0 || float.is_subnormal() => format!("bitcast<f32>(0x{bits:08x}u)"),
        ScalarType::F32 => format!("{float:?}f"),
    }
}

fn unary(function: UnaryFunction, x: Register, ty: ScalarType) -> String {
    let Register(x) = x;
    match function {
        UnaryFunction::Neg => format!("-r{x}"),
        UnaryFunction::Abs => format!("abs(r{x})"),
        UnaryFunction::Not if ty == ScalarType::Bool => format!("!r{x}"),
        UnaryFunction::Not => format!("~r{x}"),
        UnaryFunction::Sqrt => format!("sqrt(r{x})"),
        UnaryFunction::Floor => format!("floor(r{x})"),
        UnaryFunction::Round => format!("round(r{x})"),
        UnaryFunction::CountOnes => format!("countOneBits(r{x})"),
    }
}

fn binary(function: BinaryFunction, a: Register, b: Register) -> String {
    let sign = match function {
        BinaryFunction::Min => return format!("min(r{}, r{})", a.0, b.0),
        BinaryFunction::Max => return format!("max(r{}, r{})", a.0, b.0),
        // naga's `!=` is false where one is NaN; its `==` is, too, as it has to be.
        BinaryFunction::NotEqual => return format!("!(r{} == r{})", a.0, b.0),
        BinaryFunction::Add => "+",
        BinaryFunction::Sub => "-",
        BinaryFunction::Mul => "*",
        BinaryFunction::Div => "/",
        BinaryFunction::Rem => "%",
        BinaryFunction::And => "&",
        BinaryFunction::Or => "|",
        BinaryFunction::Xor => "^",
        BinaryFunction::ShiftLeft => "<<",
        BinaryFunction::ShiftRight => ">>",
        BinaryFunction::Less => "<",
        BinaryFunction::LessEqual => "<=",
        BinaryFunction::Equal => "==",
    };
    format!("r{} {sign} r{}", a.0, b.0)
}

fn subgroup(function: SubgroupFunction) -> &'static str {
    match function {
        SubgroupFunction::Add => "subgroupAdd",
        SubgroupFunction::Max => "subgroupMax",
        SubgroupFunction::Min => "subgroupMin",
    }
}
