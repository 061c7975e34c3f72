//! Operators of aclnn: tensors and scalars that describe operands, executors that are made of them and run once.
//!
//! In two phases: the first makes an executor and says what it wants to work in, the second runs it on a stream and takes it. An
//! executor that only answered the question is made repeatable, which is the one way to give it back unused. Descriptions outlive
//! both phases and no more.

use super::libraries::AscendRuntime;
use super::symbols::{OperatorFunctions, RunExecutor};
use crate::operands::OperandMemory;
use crate::operators::{OperandElement, Operator, OperatorCall, TensorView};
use crate::range::NpuRange;
use crate::runtime::LibraryHandle;
use crate::status::refused;
use crate::symbols::LibraryPointer;
use std::ptr::null_mut;
use yirage_hal::driver::DriverError;
use yirage_ir::expr::Func;

/// `ACL_FORMAT_ND`: as the strides say.
const AS_THE_STRIDES_SAY: i32 = 2;
/// `KEEP_DTYPE`: products of f32 are products of f32.
const KEEP_ELEMENTS: i8 = 0;
/// How `aclnnGeluV2` computes.
const GELU_BY_ERF: i64 = 0;
/// How else.
const GELU_BY_TANH: i64 = 1;

/// The number of `aclDataType`.
fn data_type(element: OperandElement) -> i32 {
    match element {
        OperandElement::F32 => 0,
        OperandElement::F16 => 1,
        OperandElement::I32 => 3,
        OperandElement::Bool => 12,
        OperandElement::BF16 => 27,
    }
}

/// A tensor as the library knows it.
struct DescribedTensor<'a> {
    runtime: &'a AscendRuntime,
    tensor: LibraryPointer,
}

impl<'a> DescribedTensor<'a> {
    fn new(
        runtime: &'a AscendRuntime,
        view: &TensorView,
        memory: &OperandMemory<'_>,
    ) -> Result<DescribedTensor<'a>, DriverError> {
        let range = memory.range(view)?;
        let number = |n: &u64| i64::try_from(*n).map_err(|e| refused("aclCreateTensor", e.to_string()));
        let shape = view.shape.iter().map(number).collect::<Result<Vec<i64>, _>>()?;
        let strides = view.strides.iter().map(number).collect::<Result<Vec<i64>, _>>()?;
        let (offset, storage) = (number(&view.offset)?, [number(&view.reach())?]);
        // SAFETY: the lists are as long as is said, and are copied; the memory is as long as the tensor reaches.
        let tensor = unsafe {
            (runtime.descriptions.new_tensor)(
                shape.as_ptr(),
                shape.len() as u64,
                data_type(view.element),
                strides.as_ptr(),
                offset,
                AS_THE_STRIDES_SAY,
                storage.as_ptr(),
                1,
                range.pointer(),
            )
        };
        made(runtime, "aclCreateTensor", tensor)?;
        Ok(DescribedTensor { runtime, tensor })
    }
}

impl Drop for DescribedTensor<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once; no executor of it is left to run.
        unsafe { (self.runtime.descriptions.drop_tensor)(self.tensor) };
    }
}

/// A number as the library knows it.
struct DescribedScalar<'a> {
    runtime: &'a AscendRuntime,
    scalar: LibraryPointer,
}

impl<'a> DescribedScalar<'a> {
    fn f32(runtime: &'a AscendRuntime, mut number: f32) -> Result<DescribedScalar<'a>, DriverError> {
        // SAFETY: a number of this type is read before the call returns.
        let scalar =
            unsafe { (runtime.descriptions.new_scalar)((&raw mut number).cast(), data_type(OperandElement::F32)) };
        made(runtime, "aclCreateScalar", scalar)?;
        Ok(DescribedScalar { runtime, scalar })
    }

    fn i32(runtime: &'a AscendRuntime, mut number: i32) -> Result<DescribedScalar<'a>, DriverError> {
        // SAFETY: a number of this type is read before the call returns.
        let scalar =
            unsafe { (runtime.descriptions.new_scalar)((&raw mut number).cast(), data_type(OperandElement::I32)) };
        made(runtime, "aclCreateScalar", scalar)?;
        Ok(DescribedScalar { runtime, scalar })
    }
}

impl Drop for DescribedScalar<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made here and goes back once; no executor of it is left to run.
        unsafe { (self.runtime.descriptions.drop_scalar)(self.scalar) };
    }
}

fn made(runtime: &AscendRuntime, call: &'static str, handle: LibraryPointer) -> Result<(), DriverError> {
    if handle.is_null() {
        // `ACL_ERROR_FAILURE`, with what the runtime says of it.
        return runtime.check(call, 500_000).and(Err(refused(call, "it gave nothing")));
    }
    Ok(())
}

/// What the first phase gives.
struct Prepared {
    name: &'static str,
    run: RunExecutor,
    code: i32,
    workspace: u64,
    executor: LibraryPointer,
}

/// Asks an operator what it wants to work in, and runs nothing.
pub(crate) fn wanted_workspace(
    runtime: &AscendRuntime,
    call: &OperatorCall,
    memory: &OperandMemory<'_>,
) -> Result<u64, DriverError> {
    with_executor(runtime, call, memory, |prepared| {
        // SAFETY: the executor was made by the first phase and was not run; it goes back once.
        unsafe {
            runtime.check(prepared.name, (runtime.descriptions.keep_executor)(prepared.executor))?;
            runtime.check(prepared.name, (runtime.descriptions.drop_executor)(prepared.executor))?;
        }
        Ok(prepared.workspace)
    })
}

/// Submits an operator, which works in the part of the workspace that is behind the temporaries.
pub(crate) fn submit(
    runtime: &AscendRuntime,
    stream: LibraryHandle,
    call: &OperatorCall,
    memory: &OperandMemory<'_>,
    working: Option<NpuRange>,
) -> Result<(), DriverError> {
    with_executor(runtime, call, memory, |prepared| {
        let has = working.map_or(0, |range| range.bytes() as u64);
        if prepared.workspace > has {
            let why = format!("it wants {} bytes to work in, and was prepared for {has}", prepared.workspace);
            // SAFETY: as in `wanted_workspace`.
            unsafe {
                (runtime.descriptions.keep_executor)(prepared.executor);
                (runtime.descriptions.drop_executor)(prepared.executor);
            }
            return Err(refused(prepared.name, why));
        }
        let given = working.filter(|_| prepared.workspace > 0).map_or(null_mut(), NpuRange::pointer);
        // SAFETY: the executor was made of descriptions that are there until this returns, and is taken by this call; the bytes
        // to work in lie in memory that the operation has until it has run.
        let code = unsafe { (prepared.run)(given, prepared.workspace, prepared.executor, stream.pointer()) };
        runtime.check(prepared.name, code)
    })
}

/// Describes the operands of a call, makes its executor, and gives that to `then`.
fn with_executor<T>(
    runtime: &AscendRuntime,
    call: &OperatorCall,
    memory: &OperandMemory<'_>,
    then: impl FnOnce(&Prepared) -> Result<T, DriverError>,
) -> Result<T, DriverError> {
    let described = call.inputs.iter().map(|view| DescribedTensor::new(runtime, view, memory));
    let inputs = described.collect::<Result<Vec<_>, DriverError>>()?;
    let output = DescribedTensor::new(runtime, &call.output, memory)?;
    let handles: Vec<LibraryPointer> = inputs.iter().map(|input| input.tensor).collect();
    let float = |number| DescribedScalar::f32(runtime, number);
    let scalars = match call.operator {
        Operator::Fill(number) | Operator::MaskedFill(number) | Operator::Scale(number) => vec![float(number)?],
        Operator::AddScalar(number) => vec![float(number)?, float(1.0)?],
        Operator::Clamp(low, high) => {
            vec![DescribedScalar::i32(runtime, low)?, DescribedScalar::i32(runtime, high)?]
        }
        Operator::Function(Func::Add | Func::Sub) => vec![float(1.0)?],
        _ => Vec::new(),
    };
    let scalars_of: Vec<LibraryPointer> = scalars.iter().map(|scalar| scalar.scalar).collect();
    let prepared = prepare(&runtime.operators, call, &handles, &scalars_of, output.tensor)?;
    runtime.check(prepared.name, prepared.code)?;
    then(&prepared)
}

/// The first phase of an operator with these operands.
macro_rules! first_phase {
    ($operator:expr, $($argument:expr),*) => {{
        let (operator, mut workspace, mut executor) = (&$operator, 0, null_mut());
        // SAFETY: the operands are of the types that `symbols.rs` has of the operator, and handles among them are of descriptions that
        // are there; two numbers are written.
        let code = unsafe { (operator.prepare)($($argument,)* &mut workspace, &mut executor) };
        Ok(Prepared { name: operator.name, run: operator.run, code, workspace, executor })
    }};
}

/// The first phase of a call whose operands are described.
fn prepare(
    f: &OperatorFunctions,
    call: &OperatorCall,
    inputs: &[LibraryPointer],
    scalars: &[LibraryPointer],
    y: LibraryPointer,
) -> Result<Prepared, DriverError> {
    let missing = || refused("operator", format!("{:?} is given {} tensors", call.operator, inputs.len()));
    let x = |at: usize| inputs.get(at).copied().ok_or_else(missing);
    let s = |at: usize| scalars.get(at).copied().ok_or_else(missing);
    let innermost = call.output.shape.len() as i64 - 1;
    match call.operator {
        Operator::Function(func) => function(f, func, x, s, y),
        Operator::Cast => first_phase!(f.cast, x(0)?, data_type(call.output.element), y),
        Operator::Copy => first_phase!(f.copy, y, x(0)?),
        Operator::Fill(_) => first_phase!(f.fill, y, s(0)?),
        Operator::MaskedFill(_) => first_phase!(f.masked_fill, y, x(0)?, s(0)?),
        Operator::Scale(_) => first_phase!(f.scale, x(0)?, s(0)?, y),
        Operator::AddScalar(_) => first_phase!(f.add_scalar, x(0)?, s(0)?, s(1)?, y),
        Operator::Clamp(..) => first_phase!(f.clamp, x(0)?, s(0)?, s(1)?, y),
        Operator::NotEqual => first_phase!(f.not_equal, x(0)?, x(1)?, y),
        Operator::IndexSelect => first_phase!(f.index_select, x(0)?, 0, x(1)?, y),
        Operator::IndexCopy => first_phase!(f.index_copy, y, 0, x(0)?, x(1)?),
        Operator::MatMul => first_phase!(f.matmul, x(0)?, x(1)?, y, KEEP_ELEMENTS),
        Operator::BatchMatMul => first_phase!(f.batch_matmul, x(0)?, x(1)?, y, KEEP_ELEMENTS),
        Operator::RmsNorm(eps) => first_phase!(f.rms_norm, x(0)?, x(1)?, f64::from(eps), y, x(2)?),
        Operator::Softmax => first_phase!(f.softmax, x(0)?, innermost, y),
        Operator::Elementary(part) => {
            Err(refused("operator", format!("{part:?} is a part of operators that aclnn has whole")))
        }
    }
}

/// The first phase of a function of elements: of the tensors `x`, and of the numbers `s` where it has some.
fn function(
    f: &OperatorFunctions,
    func: Func,
    x: impl Fn(usize) -> Result<LibraryPointer, DriverError>,
    s: impl Fn(usize) -> Result<LibraryPointer, DriverError>,
    y: LibraryPointer,
) -> Result<Prepared, DriverError> {
    match func {
        Func::Add => first_phase!(f.add, x(0)?, x(1)?, s(0)?, y),
        Func::Sub => first_phase!(f.sub, x(0)?, x(1)?, s(0)?, y),
        Func::Mul => first_phase!(f.mul, x(0)?, x(1)?, y),
        Func::Square => first_phase!(f.mul, x(0)?, x(0)?, y),
        Func::Div => first_phase!(f.div, x(0)?, x(1)?, y),
        Func::Max => first_phase!(f.maximum, x(0)?, x(1)?, y),
        Func::Min => first_phase!(f.minimum, x(0)?, x(1)?, y),
        Func::Silu => first_phase!(f.silu, x(0)?, y),
        Func::Tanh => first_phase!(f.tanh, x(0)?, y),
        Func::Sigmoid => first_phase!(f.sigmoid, x(0)?, y),
        Func::Exp => first_phase!(f.exp, x(0)?, y),
        Func::Log => first_phase!(f.log, x(0)?, y),
        Func::Sqrt => first_phase!(f.sqrt, x(0)?, y),
        Func::Rsqrt => first_phase!(f.rsqrt, x(0)?, y),
        Func::Recip => first_phase!(f.reciprocal, x(0)?, y),
        Func::Neg => first_phase!(f.neg, x(0)?, y),
        Func::Abs => first_phase!(f.abs, x(0)?, y),
        Func::Relu => first_phase!(f.relu, x(0)?, y),
        Func::GeluErf => first_phase!(f.gelu, x(0)?, GELU_BY_ERF, y),
        Func::GeluTanh => first_phase!(f.gelu, x(0)?, GELU_BY_TANH, y),
        other => Err(refused("operator", format!("no operator computes `{}`", other.name()))),
    }
}
