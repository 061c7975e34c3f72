//! Operators of CNNL: operands are described, the library says what an operator wants to work in, and is told to run it.
//!
//! An operator is a call by itself: what describes its operands goes when the call has returned. Unknown here: how a node becomes
//! calls. The operators are elementary ones (`lowering/elementary.rs`): on dense tensors but for copies, with operands aligned.

use super::description::{CnnlDescription, data_type, tensor};
use super::numbers::LibraryNumbers;
use super::status;
use super::symbols::{NearOfElements, OfElements, OneOfTwo, OperatorFunctions, WorkspaceOfOneOfTwo};
use crate::operands::OperandMemory;
use crate::operators::{ElementaryOperator, OperandElement, Operator, OperatorCall, TensorView};
use crate::range::NpuRange;
use crate::status::refused;
use crate::symbols::LibraryPointer;
use std::ffi::c_void;
use std::ptr::{from_ref, null_mut};
use yirage_hal::driver::DriverError;
use yirage_ir::expr::Func;

/// `CNNL_COMPUTATION_HIGH_PRECISION`.
const NEAR: i32 = 1;
/// `CNNL_POINTER_MODE_HOST`: numbers lie in the host's memory and are read by the call.
const ON_HOST: i32 = 0;
/// `CNNL_PROPAGATE_NAN`.
const KEEP_NAN: i32 = 1;
/// `CNNL_OP_TENSOR_ADD`.
const ADD: i32 = 0;
/// `CNNL_LOGIC_OP_NE`.
const UNEQUAL: i32 = 1;
/// `CNNL_LOG_E`.
const BASE_E: i32 = 0;
/// `CNNL_REDUCE_ADD`.
const SUM: i32 = 0;
/// `CNNL_REDUCE_MAX`.
const LARGEST: i32 = 3;
/// `CNNL_REDUCE_NO_INDICES`.
const NO_INDICES: i32 = 0;
/// `CNNL_32BIT_INDICES`.
const INDICES_OF_32_BITS: i32 = 0;
/// `CNNL_SCATTERND_UPDATE`.
const REPLACE: i32 = 3;
/// `CNNL_MATMUL_DESC_COMPUTE_TYPE`: what products are added in.
const COMPUTE_TYPE: i32 = 0;
/// `CNNL_MATMUL_DESC_TRANSB`.
const TRANSPOSED_RIGHT: i32 = 4;
/// `CNNL_MATMUL_ALLOW_TF32`.
const ALLOW_TF32: i32 = 10;

/// The library with a handle, whose queue was set.
#[derive(Clone, Copy)]
pub(super) struct Cnnl<'a> {
    pub(super) f: &'a OperatorFunctions,
    pub(super) handle: LibraryPointer,
    pub(super) numbers: &'a LibraryNumbers,
}

/// What is wanted of an operator.
#[derive(Clone, Copy)]
pub(super) enum OperatorStep {
    /// What it wants to work in.
    Ask,
    /// That it runs, and works in this memory.
    Run(Option<NpuRange>),
}

impl OperatorStep {
    /// The memory to work in, of as many bytes as are wanted; none where the operator is only asked.
    fn working(self, call: &'static str, wanted: usize) -> Result<Option<LibraryPointer>, DriverError> {
        let OperatorStep::Run(working) = self else { return Ok(None) };
        let has = working.map_or(0, NpuRange::bytes);
        if wanted > has {
            let why = format!("it wants {wanted} bytes to work in, and was prepared for {has}");
            return Err(refused(call, why));
        }
        Ok(Some(working.filter(|_| wanted > 0).map_or(null_mut(), NpuRange::pointer)))
    }
}

/// A tensor that is described, and where its first element lies.
struct CnnlOperand<'a> {
    description: CnnlDescription<'a>,
    first: LibraryPointer,
}

impl<'a> CnnlOperand<'a> {
    fn new(cnnl: Cnnl<'a>, view: &TensorView, memory: &OperandMemory<'_>) -> Result<CnnlOperand<'a>, DriverError> {
        Ok(CnnlOperand { first: memory.first(view)?.pointer(), description: tensor(cnnl.f, view)? })
    }

    fn d(&self) -> LibraryPointer {
        self.description.pointer()
    }

    fn p(&self) -> *const c_void {
        self.first.cast_const()
    }
}

/// Calls a function of the library whose operands are described, and whose memory is as long as the descriptions reach.
macro_rules! told {
    ($call:literal, $function:expr, $($argument:expr),* $(,)?) => {
        // SAFETY: the arguments are of the types that `symbols.rs` has of the function, handles among them are of descriptions that are
        // there, and numbers of the host are read before the call returns; the memory is kept as `run_operator` asks.
        status::of_operators($call, unsafe { $function($($argument),*) })
    };
}

/// What a function of the library says that an operator wants to work in, in bytes.
macro_rules! asked {
    ($call:literal, $function:expr, $($argument:expr),* $(,)?) => {{
        let mut wanted = 0usize;
        told!($call, $function, $($argument,)* &mut wanted).map(|()| wanted)
    }};
}

/// A number in the host's memory.
fn number<T>(number: &T) -> *const c_void {
    from_ref(number).cast()
}

/// Asks or runs an operator; what it wants to work in, in bytes.
pub(super) fn perform(
    cnnl: Cnnl<'_>,
    call: &OperatorCall,
    memory: &OperandMemory<'_>,
    step: OperatorStep,
) -> Result<u64, DriverError> {
    let wanted = match call.operator {
        Operator::MatMul | Operator::BatchMatMul => product(cnnl, call, memory, step)?,
        Operator::IndexCopy => return scatter(cnnl, call, memory, step).map(|()| 0),
        _ => {
            let x = call.inputs.iter().map(|view| CnnlOperand::new(cnnl, view, memory));
            let x = x.collect::<Result<Vec<_>, DriverError>>()?;
            let y = CnnlOperand::new(cnnl, &call.output, memory)?;
            of_described(cnnl, call, &x, &y, step)?
        }
    };
    Ok(wanted as u64)
}

fn of_described(
    cnnl: Cnnl<'_>,
    call: &OperatorCall,
    x: &[CnnlOperand<'_>],
    y: &CnnlOperand<'_>,
    step: OperatorStep,
) -> Result<usize, DriverError> {
    match (call.operator, x) {
        (Operator::Function(func), _) => function(cnnl, func, x, y, step),
        (Operator::Copy, [a]) => copy(cnnl, a, y, step),
        (Operator::NotEqual, [a, b]) => compare(cnnl, [a, b], y, step),
        (Operator::Elementary(ElementaryOperator::Select), [which, a, b]) => select(cnnl, [which, a, b], y, step),
        (Operator::Elementary(ElementaryOperator::ReduceSum), [a]) => reduce(cnnl, SUM, call, [a, y], step),
        (Operator::Elementary(ElementaryOperator::ReduceMax), [a]) => reduce(cnnl, LARGEST, call, [a, y], step),
        _ if matches!(step, OperatorStep::Ask) => Ok(0),
        _ => without_workspace(cnnl, call, x, y).map(|()| 0),
    }
}

/// An operator that works in no memory.
fn without_workspace(
    cnnl: Cnnl<'_>,
    call: &OperatorCall,
    x: &[CnnlOperand<'_>],
    y: &CnnlOperand<'_>,
) -> Result<(), DriverError> {
    let Cnnl { f, handle: h, .. } = cnnl;
    match (call.operator, x) {
        (Operator::Fill(value), []) => fill(cnnl, value, call.output.element, y),
        (Operator::Cast, [a]) => {
            let (from, to) = (call.inputs[0].element, call.output.element);
            let none = || refused("cnnlCastDataType", format!("no number is known for {from:?} to {to:?}"));
            let which = cnnl.numbers.cast(from, to).ok_or_else(none)?;
            told!("cnnlCastDataType", (f.cast), h, a.d(), a.p(), which, y.d(), y.first)
        }
        (Operator::Scale(factor), [a]) => linear(cnnl, factor, 0.0, a, y),
        (Operator::AddScalar(term), [a]) => linear(cnnl, 1.0, term, a, y),
        (Operator::Clamp(low, high), [a]) => {
            let (low, high) = (number(&low), number(&high));
            told!("cnnlClip_v2", (f.clip), h, ON_HOST, a.d(), a.p(), low, high, y.d(), y.first)
        }
        (Operator::IndexSelect, [a, at]) => {
            told!("cnnlIndexSelect", (f.index_select), h, 0, a.d(), a.p(), at.d(), at.p(), y.d(), y.first)
        }
        (Operator::Elementary(ElementaryOperator::Expand), [a]) => {
            told!("cnnlExpand", (f.expand), h, a.d(), a.p(), y.d(), y.first)
        }
        (Operator::Elementary(ElementaryOperator::Erf), [a]) => near("cnnlErf_v2", cnnl, f.erf, a, y),
        (other, x) => Err(refused("operator", format!("{other:?} of {} tensors is none of CNNL's", x.len()))),
    }
}

/// `factor * x + term`.
fn linear(cnnl: Cnnl<'_>, factor: f32, term: f32, x: &CnnlOperand<'_>, y: &CnnlOperand<'_>) -> Result<(), DriverError> {
    let (factor, term) = (number(&factor), number(&term));
    told!("cnnlTransform_v2", (cnnl.f.linear), cnnl.handle, ON_HOST, factor, x.d(), x.p(), term, y.d(), y.first)
}

/// Makes every element this number, which the library reads as the elements' type.
fn fill(cnnl: Cnnl<'_>, value: f32, element: OperandElement, y: &CnnlOperand<'_>) -> Result<(), DriverError> {
    if element != OperandElement::F32 {
        return Err(refused("cnnlFill_v3", format!("a number for {element:?} is none of this driver's")));
    }
    told!("cnnlFill_v3", (cnnl.f.fill), cnnl.handle, ON_HOST, number(&value), y.d(), y.first)
}

fn copy(cnnl: Cnnl<'_>, x: &CnnlOperand<'_>, y: &CnnlOperand<'_>, step: OperatorStep) -> Result<usize, DriverError> {
    let Cnnl { f, handle: h, .. } = cnnl;
    let wanted = asked!("cnnlGetCopyWorkspaceSize", (f.copy_workspace), h, x.d(), y.d())?;
    let Some(working) = step.working("cnnlCopy_v2", wanted)? else { return Ok(wanted) };
    told!("cnnlCopy_v2", (f.copy), h, x.d(), x.p(), y.d(), y.first, working, wanted).map(|()| wanted)
}

fn compare(
    cnnl: Cnnl<'_>,
    [a, b]: [&CnnlOperand<'_>; 2],
    y: &CnnlOperand<'_>,
    step: OperatorStep,
) -> Result<usize, DriverError> {
    let Cnnl { f, handle: h, .. } = cnnl;
    let wanted = asked!("cnnlGetLogicOpWorkspaceSize", (f.compare_workspace), h, a.d(), b.d(), y.d())?;
    let Some(working) = step.working("cnnlLogicOp", wanted)? else { return Ok(wanted) };
    let done =
        told!("cnnlLogicOp", (f.compare), h, UNEQUAL, a.d(), a.p(), b.d(), b.p(), working, wanted, y.d(), y.first);
    done.map(|()| wanted)
}

fn select(
    cnnl: Cnnl<'_>,
    [which, a, b]: [&CnnlOperand<'_>; 3],
    y: &CnnlOperand<'_>,
    step: OperatorStep,
) -> Result<usize, DriverError> {
    let Cnnl { f, handle: h, .. } = cnnl;
    let wanted = asked!("cnnlGetSelectV2WorkspaceSize", (f.select_workspace), h, which.d(), a.d(), b.d())?;
    let Some(working) = step.working("cnnlSelectV2", wanted)? else { return Ok(wanted) };
    let done = told!(
        "cnnlSelectV2",
        (f.select),
        h,
        which.d(),
        which.p(),
        a.d(),
        a.p(),
        b.d(),
        b.p(),
        working,
        wanted,
        y.d(),
        y.first
    );
    done.map(|()| wanted)
}

/// Along the innermost dimension.
fn reduce(
    cnnl: Cnnl<'_>,
    how: i32,
    call: &OperatorCall,
    [x, y]: [&CnnlOperand<'_>; 2],
    step: OperatorStep,
) -> Result<usize, DriverError> {
    let Cnnl { f, handle: h, .. } = cnnl;
    let reduction = CnnlDescription::new(f, "cnnlCreateReduceDescriptor", (f.new_reduction, f.drop_reduction))?;
    let (r, axis) = (reduction.pointer(), call.output.shape.len() as i32 - 1);
    let element = data_type(call.output.element);
    told!(
        "cnnlSetReduceDescriptor_v2",
        (f.set_reduction),
        r,
        &axis,
        1,
        how,
        element,
        KEEP_NAN,
        NO_INDICES,
        INDICES_OF_32_BITS,
        0.0
    )?;
    let wanted = asked!("cnnlGetReduceOpWorkspaceSize", (f.reduction_workspace), h, x.d(), y.d(), r)?;
    let Some(working) = step.working("cnnlReduce", wanted)? else { return Ok(wanted) };
    let (one, zero) = (number(&1.0f32), number(&0.0f32));
    let done = told!(
        "cnnlReduce",
        (f.reduction),
        h,
        r,
        working,
        wanted,
        one,
        x.d(),
        x.p(),
        0,
        null_mut(),
        zero,
        y.d(),
        y.first
    );
    done.map(|()| wanted)
}

/// A function of elements that is told how near it has to come.
fn near(
    call: &'static str,
    cnnl: Cnnl<'_>,
    function: NearOfElements,
    x: &CnnlOperand<'_>,
    y: &CnnlOperand<'_>,
) -> Result<(), DriverError> {
    // SAFETY: as in `told!`.
    status::of_operators(call, unsafe { function(cnnl.handle, NEAR, x.d(), x.p(), y.d(), y.first) })
}

/// A function of elements.
fn plain(
    call: &'static str,
    cnnl: Cnnl<'_>,
    function: OfElements,
    x: &CnnlOperand<'_>,
    y: &CnnlOperand<'_>,
) -> Result<(), DriverError> {
    // SAFETY: as in `told!`.
    status::of_operators(call, unsafe { function(cnnl.handle, x.d(), x.p(), y.d(), y.first) })
}

fn function(
    cnnl: Cnnl<'_>,
    func: Func,
    x: &[CnnlOperand<'_>],
    y: &CnnlOperand<'_>,
    step: OperatorStep,
) -> Result<usize, DriverError> {
    let Cnnl { f, handle: h, numbers } = cnnl;
    match (func, x) {
        (Func::Add, [a, b]) => arithmetic(cnnl, ADD, 1.0, [a, b], y, step),
        (Func::Sub, [a, b]) => arithmetic(cnnl, ADD, -1.0, [a, b], y, step),
        (Func::Mul, [a, b]) => arithmetic(cnnl, numbers.multiply, 1.0, [a, b], y, step),
        (Func::Div, [a, b]) => {
            let wanted = asked!("cnnlGetDivWorkspaceSize", (f.divide_workspace), h, a.d(), b.d(), y.d())?;
            let Some(working) = step.working("cnnlDiv_v2", wanted)? else { return Ok(wanted) };
            let done =
                told!("cnnlDiv_v2", (f.divide), h, NEAR, a.d(), a.p(), b.d(), b.p(), working, wanted, y.d(), y.first);
            done.map(|()| wanted)
        }
        (Func::Max, [a, b]) => one_of_two("cnnlMaximum", cnnl, (f.maximum_workspace, f.maximum), [a, b], y, step),
        (Func::Min, [a, b]) => one_of_two("cnnlMinimum", cnnl, (f.minimum_workspace, f.minimum), [a, b], y, step),
        (_, [_]) if matches!(step, OperatorStep::Ask) => Ok(0),
        (_, [a]) => of_one(cnnl, func, a, y).map(|()| 0),
        _ => Err(refused("operator", format!("`{}` of {} tensors is none of CNNL's", func.name(), x.len()))),
    }
}

fn of_one(cnnl: Cnnl<'_>, func: Func, x: &CnnlOperand<'_>, y: &CnnlOperand<'_>) -> Result<(), DriverError> {
    let f = cnnl.f;
    match func {
        Func::Exp => near("cnnlExp_v2", cnnl, f.exp, x, y),
        Func::Log => told!("cnnlLog_v2", (f.log), cnnl.handle, NEAR, BASE_E, x.d(), x.p(), y.d(), y.first),
        Func::Sqrt => near("cnnlSqrt_v2", cnnl, f.sqrt, x, y),
        Func::Rsqrt => near("cnnlRsqrt_v2", cnnl, f.rsqrt, x, y),
        Func::Recip => plain("cnnlReciprocal", cnnl, f.reciprocal, x, y),
        Func::Neg => plain("cnnlNegTensor", cnnl, f.negate, x, y),
        Func::Abs => plain("cnnlAbs", cnnl, f.abs, x, y),
        other => Err(refused("operator", format!("no operator computes `{}`", other.name()))),
    }
}

/// `a`, with `share` of `b`.
fn arithmetic(
    cnnl: Cnnl<'_>,
    how: i32,
    share: f32,
    [a, b]: [&CnnlOperand<'_>; 2],
    y: &CnnlOperand<'_>,
    step: OperatorStep,
) -> Result<usize, DriverError> {
    let Cnnl { f, handle: h, .. } = cnnl;
    let made = CnnlDescription::new(f, "cnnlCreateOpTensorDescriptor", (f.new_arithmetic, f.drop_arithmetic))?;
    let (r, element) = (made.pointer(), data_type(OperandElement::F32));
    told!("cnnlSetOpTensorDescriptor", (f.set_arithmetic), r, how, element, KEEP_NAN)?;
    let (one, share, zero) = (number(&1.0f32), number(&share), number(&0.0f32));
    let wanted = asked!(
        "cnnlGetOpTensorWorkspaceSize_v2",
        (f.arithmetic_workspace),
        h,
        r,
        one,
        a.d(),
        a.p(),
        share,
        b.d(),
        b.p(),
        zero,
        y.d(),
        y.first
    )?;
    let Some(working) = step.working("cnnlOpTensor", wanted)? else { return Ok(wanted) };
    let done = told!(
        "cnnlOpTensor",
        (f.arithmetic),
        h,
        r,
        one,
        a.d(),
        a.p(),
        share,
        b.d(),
        b.p(),
        working,
        wanted,
        zero,
        y.d(),
        y.first
    );
    done.map(|()| wanted)
}

fn one_of_two(
    call: &'static str,
    cnnl: Cnnl<'_>,
    (ask, run): (WorkspaceOfOneOfTwo, OneOfTwo),
    [a, b]: [&CnnlOperand<'_>; 2],
    y: &CnnlOperand<'_>,
    step: OperatorStep,
) -> Result<usize, DriverError> {
    let mut wanted = 0;
    // SAFETY: as in `told!`.
    status::of_operators(call, unsafe { ask(cnnl.handle, y.d(), &mut wanted) })?;
    let Some(working) = step.working(call, wanted)? else { return Ok(wanted) };
    let code =
        // SAFETY: as in `told!`.
        unsafe { run(cnnl.handle, a.d(), a.p(), b.d(), b.p(), y.d(), y.first, working, wanted) };
    status::of_operators(call, code).map(|()| wanted)
}

/// Rows of the second input to those places along the outermost dimension that the first names.
fn scatter(
    cnnl: Cnnl<'_>,
    call: &OperatorCall,
    memory: &OperandMemory<'_>,
    step: OperatorStep,
) -> Result<(), DriverError> {
    let [at, rows] = &call.inputs[..] else { return Err(refused("cnnlScatterNd_v2", "it is given no rows")) };
    // A place is a list of one number.
    let at = at.reshaped(vec![at.elements(), 1]);
    let operand = |view: &TensorView| CnnlOperand::new(cnnl, view, memory);
    let (at, rows, y) = (operand(&at)?, operand(rows)?, operand(&call.output)?);
    if matches!(step, OperatorStep::Ask) {
        return Ok(());
    }
    told!(
        "cnnlScatterNd_v2",
        (cnnl.f.scatter),
        cnnl.handle,
        REPLACE,
        at.d(),
        at.p(),
        rows.d(),
        rows.p(),
        y.d(),
        y.p(),
        y.d(),
        y.first
    )
}

/// Products of matrices, of which the right ones may be given by their columns: f32 is added up, whatever the elements are.
fn product(
    cnnl: Cnnl<'_>,
    call: &OperatorCall,
    memory: &OperandMemory<'_>,
    step: OperatorStep,
) -> Result<usize, DriverError> {
    let Cnnl { f, handle: h, .. } = cnnl;
    let [a, b] = &call.inputs[..] else { return Err(refused("cnnlBatchMatMulEx", "it is given no two matrices")) };
    let (b, by_columns) = if b.is_dense() { (b.clone(), 0i32) } else { (b.transposed(), 1) };
    let operand = |view: &TensorView| CnnlOperand::new(cnnl, view, memory);
    let (a, b, y) = (operand(a)?, operand(&b)?, operand(&call.output)?);
    let made = CnnlDescription::new(f, "cnnlMatMulDescCreate", (f.new_product, f.drop_product))?;
    let settings = [(COMPUTE_TYPE, data_type(OperandElement::F32)), (TRANSPOSED_RIGHT, by_columns), (ALLOW_TF32, 0)];
    for (which, value) in settings {
        let value = number(&value);
        told!("cnnlSetMatMulDescAttr", (f.set_product), made.pointer(), which, value, size_of::<i32>())?;
    }
    let algorithm = CnnlDescription::new(f, "cnnlMatMulAlgoCreate", (f.new_algorithm, f.drop_algorithm))?;
    let choice = CnnlDescription::new(f, "cnnlCreateMatMulHeuristicResult", (f.new_choice, f.drop_choice))?;
    let (mut chosen, mut count) = (choice.pointer(), 0);
    told!(
        "cnnlGetBatchMatMulExAlgoHeuristic",
        (f.choose_product),
        h,
        made.pointer(),
        a.d(),
        b.d(),
        y.d(),
        null_mut(),
        1,
        &mut chosen,
        &mut count
    )?;
    if count < 1 {
        return Err(refused("cnnlGetBatchMatMulExAlgoHeuristic", "it has no algorithm for these matrices"));
    }
    let (r, t) = (made.pointer(), algorithm.pointer());
    let wanted = asked!("cnnlGetBatchMatMulExHeuristicResult", (f.chosen_product), choice.pointer(), t)?;
    let Some(working) = step.working("cnnlBatchMatMulEx", wanted)? else { return Ok(wanted) };
    let (one, zero) = (number(&1.0f32), number(&0.0f32));
    let done = told!(
        "cnnlBatchMatMulEx",
        (f.product),
        h,
        r,
        t,
        one,
        a.d(),
        a.p(),
        b.d(),
        b.p(),
        zero,
        y.d(),
        y.first,
        working,
        wanted
    );
    done.map(|()| wanted)
}
