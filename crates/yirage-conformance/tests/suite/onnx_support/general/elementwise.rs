//! Element by element.

use super::OnnxNode;
use yirage_ir::attr::F32;
use yirage_ir::expr::{Func, Scalar, is_float};
use yirage_ir::{DType, Expr, Format, ValueId};

pub(super) fn import(node: &mut OnnxNode<'_>) -> Option<Result<Vec<ValueId>, String>> {
    let one = |node: &mut OnnxNode<'_>, func| function(node, func).map(|y| vec![y]);
    let made = match node.case.op.as_str() {
        "Neg" => one(node, Func::Neg),
        "Abs" => one(node, Func::Abs),
        "Exp" => one(node, Func::Exp),
        "Log" => one(node, Func::Log),
        "Sqrt" => one(node, Func::Sqrt),
        "Reciprocal" => one(node, Func::Recip),
        "Tanh" => one(node, Func::Tanh),
        "Sigmoid" => one(node, Func::Sigmoid),
        "Relu" => one(node, Func::Relu),
        "Gelu" => match node.case.attr("approximate", "none".to_string()).as_str() {
            "none" => one(node, Func::GeluErf),
            "tanh" => one(node, Func::GeluTanh),
            other => Err(format!("gelu by {other}")),
        },
        "Add" => two(node, Func::Add).map(|y| vec![y]),
        "Sub" => two(node, Func::Sub).map(|y| vec![y]),
        "Mul" => two(node, Func::Mul).map(|y| vec![y]),
        "Div" => two(node, Func::Div).map(|y| vec![y]),
        "Pow" => two(node, Func::Pow).map(|y| vec![y]),
        "Min" => extreme(node, Func::Min).map(|y| vec![y]),
        "Max" => extreme(node, Func::Max).map(|y| vec![y]),
        "Where" => choose(node).map(|y| vec![y]),
        "Clip" => clip(node).map(|y| vec![y]),
        "Cast" => cast(node).map(|y| vec![y]),
        _ => return None,
    };
    Some(made)
}

fn function(node: &mut OnnxNode<'_>, func: Func) -> Result<ValueId, String> {
    let x = node.input(0)?;
    node.map(&Expr::unary(func), node.dtype(x), &[x])
}

fn two(node: &mut OnnxNode<'_>, func: Func) -> Result<ValueId, String> {
    let (a, b) = (node.input(0)?, node.input(1)?);
    let b = placed(node, a, b)?;
    let (mut left, mut right) = (Expr::input(0), Expr::input(1));
    let result = node.dtype(a);
    if func == Func::Pow {
        if !is_float(result) {
            return Err(format!("powers of {result}: ours are of floats"));
        }
        // A base and an exponent of two types meet as floats.
        (left, right) = (left.cast(DType::F32), right.cast(DType::F32));
    }
    if func == Func::Div && !is_float(result) {
        return Err(format!("quotients of {result}: ours are of floats"));
    }
    node.map(&Expr::call(func, &[left, right]), result, &[a, b])
}

/// Before version 7 the second input said at which dimension of the first it stands.
fn placed(node: &mut OnnxNode<'_>, a: ValueId, b: ValueId) -> Result<ValueId, String> {
    if node.case.opset >= 7 || node.case.attr("broadcast", 0) == 0 || !node.case.has_attr("axis") {
        return Ok(b);
    }
    let (rank, mut shape) = (node.shape(a).len(), node.shape(b));
    let at = super::axis(node.case.attr("axis", 0), rank)?;
    let behind = rank.checked_sub(at + shape.len()).ok_or("the second input reaches past the first")?;
    shape.extend(vec![1; behind]);
    node.reshape(b, &shape)
}

fn extreme(node: &mut OnnxNode<'_>, func: Func) -> Result<ValueId, String> {
    let ins = node.inputs()?;
    let (&first, rest) = ins.split_first().ok_or("there is no input")?;
    if rest.is_empty() {
        return node.reshape(first, &node.shape(first));
    }
    let dtype = node.dtype(first);
    rest.iter().try_fold(first, |y, &x| node.map(&Expr::binary(func), dtype, &[y, x]))
}

fn choose(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let ins = node.inputs()?;
    let [_, x, _] = ins[..] else { return Err(format!("{} inputs, three wanted", ins.len())) };
    let dtype = node.dtype(x);
    node.map(&Expr::call(Func::Select, &[Expr::input(0), Expr::input(1), Expr::input(2)]), dtype, &ins)
}

/// The bounds were attributes before version 11; either may be left out.
fn clip(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let dtype = node.dtype(x);
    let (mut ins, mut y) = (vec![x], Expr::input(0));
    for (input, name, func) in [(1, "min", Func::Max), (2, "max", Func::Min)] {
        let bound = if node.array(input).is_some() {
            ins.push(node.input(input)?);
            Expr::input(ins.len() as u32 - 1)
        } else if node.case.has_attr(name) {
            Expr::constant(Scalar::F32(F32(node.case.attr(name, 0.0))))
        } else {
            continue;
        };
        y = Expr::call(func, &[y, bound]);
    }
    node.map(&y, dtype, &ins)
}

/// The numbers of ONNX's element types; they were names before version 6.
fn cast(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let to = match node.case.attr("to", String::new()).as_str() {
        "1" | "FLOAT" => DType::F32,
        "6" | "INT32" => DType::I32,
        "9" | "BOOL" => DType::Bool,
        "10" | "FLOAT16" => Format::F16.into(),
        "12" | "UINT32" => DType::U32,
        "16" | "BFLOAT16" => Format::BF16.into(),
        other => return Err(format!("no cast to element type {other}")),
    };
    node.map(&Expr::input(0), to, &[x])
}
