//! Texts as kernels. Any text gives kernels or an error: what a text claims costs no memory before it is there.
//!
//! What a text says is read; whether it makes a kernel that a device may run, [`verify()`](crate::verify()) tells.

use crate::computation::{BinaryFunction, Computation, SubgroupFunction, UnaryFunction};
use crate::kernel::{BufferAccess, BufferOwnership, ComputeKernel, Instruction, KernelBuffer, SharedArray};
use crate::limits::{MAX_BODY_DEPTH, MAX_REGISTERS};
use crate::place::{KernelMemory, Register, Variable};
use crate::scalar::{ScalarConst, ScalarType};
use std::collections::BTreeMap;
use std::str::SplitAsciiWhitespace;
use thiserror::Error;

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 256 << 20;

/// Why a text is no kernels.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("kernels, line {line}: {what}")]
pub struct KernelTextError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// The kernels of a text, one after the other.
///
/// # Errors
/// A line that is none of the form, with its number.
pub fn parse(text: &str) -> Result<Vec<ComputeKernel>, KernelTextError> {
    if text.len() > MAX_TEXT {
        let what = format!("the text has {} bytes, and at most {MAX_TEXT} are read", text.len());
        return Err(KernelTextError { line: 1, what });
    }
    let mut kernels = Vec::new();
    let mut open: Option<OpenKernel> = None;
    let mut last = 0;
    for (at, line) in text.lines().enumerate() {
        last = at + 1;
        let fail = |what| KernelTextError { line: at + 1, what };
        let mut words = Words(line.split_ascii_whitespace());
        let Some(first) = words.0.next() else { continue };
        open = match open {
            None => Some(OpenKernel::begin(first, &mut words).map_err(fail)?),
            Some(mut kernel) => match kernel.line(first, &mut words).map_err(fail)? {
                Line::Inside => Some(kernel),
                Line::End => {
                    kernels.push(kernel.end().map_err(fail)?);
                    None
                }
            },
        };
        words.end().map_err(fail)?;
    }
    match open {
        None => Ok(kernels),
        Some(kernel) => {
            let what = format!("kernel `{}` is not closed", kernel.kernel.name);
            Err(KernelTextError { line: last, what })
        }
    }
}

/// Whether a line closed the kernel.
enum Line {
    Inside,
    End,
}

/// A kernel of which the lines so far are read.
struct OpenKernel {
    kernel: ComputeKernel,
    /// Types of registers and variables by number.
    registers: BTreeMap<u32, ScalarType>,
    variables: BTreeMap<u32, ScalarType>,
    /// The bodies that are open around the one that is being read, the innermost last.
    outer: Vec<OuterBody>,
    body: Vec<Instruction>,
}

/// An instruction whose body is being read, with what stands before it.
struct OuterBody {
    before: Vec<Instruction>,
    of: BodyOwner,
}

enum BodyOwner {
    Loop { counter: Register, from: Register, to: Register, step: Register },
    Then(Register),
    Otherwise(Register, Vec<Instruction>),
}

impl OpenKernel {
    fn begin(first: &str, words: &mut Words<'_>) -> Result<OpenKernel, String> {
        if first != "kernel" {
            return Err(format!("`{first}` stands where `kernel` is expected"));
        }
        let name = words.word("the kernel's name")?.to_string();
        words.expect("threads")?;
        let threads = number(words.word("the number of threads")?)?;
        words.expect("{")?;
        let kernel = ComputeKernel {
            name,
            threads,
            buffers: Vec::new(),
            shared: Vec::new(),
            registers: Vec::new(),
            variables: Vec::new(),
            body: Vec::new(),
        };
        let (registers, variables) = (BTreeMap::new(), BTreeMap::new());
        Ok(OpenKernel { kernel, registers, variables, outer: Vec::new(), body: Vec::new() })
    }

    fn line(&mut self, first: &str, words: &mut Words<'_>) -> Result<Line, String> {
        match first {
            "buffer" => self.buffer(words)?,
            "shared" => self.shared(words)?,
            "var" => {
                let (variable, ty) = typed(words.word("a variable")?, words)?;
                let variable = Variable(numbered(variable, "v")?);
                self.variables.insert(variable.0, ty);
                self.body.push(Instruction::Declare(variable, words.register()?));
            }
            "set" => {
                let variable = words.variable()?;
                self.body.push(Instruction::Set(variable, words.register()?));
            }
            "store" => {
                let (memory, at, value) = (words.memory()?, words.register()?, words.register()?);
                self.body.push(Instruction::Store { memory, at, value });
            }
            "barrier" => self.body.push(Instruction::Barrier),
            "loop" => self.begin_loop(words)?,
            "if" => {
                let condition = words.register()?;
                words.expect("{")?;
                self.open(BodyOwner::Then(condition))?;
            }
            "}" if self.outer.is_empty() => return Ok(Line::End),
            "}" => self.close(words)?,
            register => {
                let (register, ty) = typed(register, words)?;
                let register = self.register(numbered(register, "r")?, ty)?;
                let computation = words.computation(ty)?;
                self.body.push(Instruction::Compute(register, computation));
            }
        }
        Ok(Line::Inside)
    }

    fn buffer(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        words.expect(&format!("b{}", self.kernel.buffers.len()))?;
        let ty = words.ty()?;
        let access = words.word("an access")?;
        let access = BufferAccess::parse(access).ok_or_else(|| format!("`{access}` is no access"))?;
        let ownership = words.word("an ownership")?;
        let ownership = BufferOwnership::parse(ownership).ok_or_else(|| format!("`{ownership}` is no ownership"))?;
        let name = words.word("the buffer's name")?.to_string();
        self.kernel.buffers.push(KernelBuffer { name, ty, access, ownership });
        Ok(())
    }

    fn shared(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        words.expect(&format!("s{}", self.kernel.shared.len()))?;
        let ty = words.ty()?;
        let len = number(words.word("a length")?)?;
        self.kernel.shared.push(SharedArray { ty, len });
        Ok(())
    }

    fn begin_loop(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let counter = numbered(words.word("a register")?, "r")?;
        let counter = self.register(counter, ScalarType::U32)?;
        words.expect("from")?;
        let from = words.register()?;
        words.expect("to")?;
        let to = words.register()?;
        words.expect("step")?;
        let step = words.register()?;
        words.expect("{")?;
        self.open(BodyOwner::Loop { counter, from, to, step })
    }

    fn open(&mut self, of: BodyOwner) -> Result<(), String> {
        if self.outer.len() == MAX_BODY_DEPTH {
            return Err(format!("more than {MAX_BODY_DEPTH} bodies in one another"));
        }
        self.outer.push(OuterBody { before: std::mem::take(&mut self.body), of });
        Ok(())
    }

    /// A closing brace, and what may stand behind it.
    fn close(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let Some(OuterBody { before, of }) = self.outer.pop() else { return Err("a brace closes nothing".into()) };
        let body = std::mem::replace(&mut self.body, before);
        let goes_on = words.0.next();
        match (of, goes_on) {
            (BodyOwner::Then(condition), Some("else")) => {
                words.expect("{")?;
                return self.open(BodyOwner::Otherwise(condition, body));
            }
            (_, Some(word)) => return Err(format!("`{word}` stands behind the line's end")),
            (BodyOwner::Loop { counter, from, to, step }, None) => {
                self.body.push(Instruction::Loop { counter, from, to, step, body });
            }
            (BodyOwner::Then(condition), None) => {
                self.body.push(Instruction::If { condition, then: body, otherwise: Vec::new() });
            }
            (BodyOwner::Otherwise(condition, then), None) => {
                self.body.push(Instruction::If { condition, then, otherwise: body });
            }
        }
        Ok(())
    }

    /// A register that is computed here.
    fn register(&mut self, number: u32, ty: ScalarType) -> Result<Register, String> {
        if number >= MAX_REGISTERS {
            return Err(format!("r{number}: a kernel has at most {MAX_REGISTERS} registers"));
        }
        match self.registers.insert(number, ty) {
            Some(_) => Err(format!("r{number} is computed twice")),
            None => Ok(Register(number)),
        }
    }

    fn end(mut self) -> Result<ComputeKernel, String> {
        self.kernel.registers = in_order("r", self.registers)?;
        self.kernel.variables = in_order("v", self.variables)?;
        self.kernel.body = self.body;
        Ok(self.kernel)
    }
}

/// The types of numbers of which none is left out.
fn in_order(letter: &str, types: BTreeMap<u32, ScalarType>) -> Result<Vec<ScalarType>, String> {
    let missing = types.keys().zip(0..).find(|(number, at)| **number != *at);
    match missing {
        Some((number, at)) => Err(format!("the kernel has {letter}{number}, but no {letter}{at}")),
        None => Ok(types.into_values().collect()),
    }
}

/// `NAME: TYPE =`, whose first word is read already.
fn typed<'a>(name: &'a str, words: &mut Words<'_>) -> Result<(&'a str, ScalarType), String> {
    let name = name.strip_suffix(':').ok_or_else(|| format!("`{name}` is neither an instruction nor `NAME:`"))?;
    let ty = words.ty()?;
    words.expect("=")?;
    Ok((name, ty))
}

/// A letter and a number.
fn numbered(word: &str, letter: &str) -> Result<u32, String> {
    let digits =
        word.strip_prefix(letter).ok_or_else(|| format!("`{word}` stands where `{letter}NUMBER` is expected"))?;
    number(digits)
}

fn number(digits: &str) -> Result<u32, String> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain).ok_or_else(|| format!("`{digits}` is no whole number of 32 bits"))
}

/// The words of a line that are not read yet.
struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        self.0.next().ok_or_else(|| format!("the line ends where {what} is expected"))
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        match self.0.next() {
            Some(word) if word == expected => Ok(()),
            Some(word) => Err(format!("`{word}` stands where `{expected}` is expected")),
            None => Err(format!("the line ends where `{expected}` is expected")),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.0.next().map_or(Ok(()), |word| Err(format!("`{word}` stands behind the line's end")))
    }

    fn register(&mut self) -> Result<Register, String> {
        numbered(self.word("a register")?, "r").map(Register)
    }

    fn variable(&mut self) -> Result<Variable, String> {
        numbered(self.word("a variable")?, "v").map(Variable)
    }

    fn memory(&mut self) -> Result<KernelMemory, String> {
        let word = self.word("memory")?;
        match word.strip_prefix('b') {
            Some(digits) => number(digits).map(KernelMemory::Buffer),
            None => numbered(word, "s").map(KernelMemory::Shared),
        }
    }

    fn ty(&mut self) -> Result<ScalarType, String> {
        let word = self.word("a type")?;
        ScalarType::parse(word).ok_or_else(|| format!("`{word}` is no type"))
    }

    fn constant(&mut self, ty: ScalarType) -> Result<ScalarConst, String> {
        let word = self.word("a constant")?;
        let bits = match ty {
            // Exactly as it is printed: a sign is no digit.
            ScalarType::F32 => word
                .strip_prefix("0x")
                .filter(|digits| digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
                .and_then(|digits| u32::from_str_radix(digits, 16).ok()),
            ScalarType::I32 => word.parse::<i32>().ok().map(|x| x as u32),
            ScalarType::U32 => number(word).ok(),
            ScalarType::Bool => number(word).ok().filter(|&bits| bits < 2),
        };
        let bits = bits.ok_or_else(|| format!("`{word}` is no constant of {ty}"))?;
        Ok(ScalarConst { ty, bits })
    }

    /// What a register of a type is.
    fn computation(&mut self, ty: ScalarType) -> Result<Computation, String> {
        let name = self.word("a computation")?;
        Ok(match name {
            "const" => Computation::Const(self.constant(ty)?),
            "thread" => Computation::Thread,
            "group" => {
                let word = self.word("an axis")?;
                let axis = number(word)?.try_into().map_err(|_| format!("{word} is no axis"))?;
                Computation::Group(axis)
            }
            "subgroup_lane" => Computation::SubgroupLane,
            "subgroup_size" => Computation::SubgroupSize,
            "get" => Computation::Get(self.variable()?),
            "load" => Computation::Load(self.memory()?, self.register()?),
            "select" => Computation::Select(self.register()?, self.register()?, self.register()?),
            "convert" => Computation::Convert(ty, self.register()?),
            "bitcast" => Computation::Bitcast(ty, self.register()?),
            "unpack_low" => Computation::UnpackHalf(self.register()?, false),
            "unpack_high" => Computation::UnpackHalf(self.register()?, true),
            "pack_half" => Computation::PackHalf(self.register()?, self.register()?),
            "shuffle" => Computation::SubgroupShuffle(self.register()?, self.register()?),
            name => self.function(name)?,
        })
    }

    fn function(&mut self, name: &str) -> Result<Computation, String> {
        if let Some(function) = UnaryFunction::parse(name) {
            return Ok(Computation::Unary(function, self.register()?));
        }
        if let Some(function) = BinaryFunction::parse(name) {
            return Ok(Computation::Binary(function, self.register()?, self.register()?));
        }
        match name.strip_prefix("subgroup_").and_then(SubgroupFunction::parse) {
            Some(function) => Ok(Computation::Subgroup(function, self.register()?)),
            None => Err(format!("`{name}` is no computation")),
        }
    }
}
