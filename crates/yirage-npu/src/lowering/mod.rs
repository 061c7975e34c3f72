//! Nodes as calls of operators, for the sizes of a step: one file for each kind of op.
//!
//! What an op means is said once, by its reference; here floats are computed with as f32 and rounded once, and an operator of
//! 16 bits is called only where it does that by itself. Which nodes come here is said by the rules of `library.rs`; what none of
//! these files has calls for is evaluated on the host.

mod elementary;
mod lookup;
mod map;
mod moves;
mod normal;
mod product;

use crate::node_operation::NodeOperation;
use crate::operators::{OperatorSequence, TensorView};
use yirage_ir::expr::Func;
use yirage_ir::{Dims, Op};

pub(crate) use map::FUNCTIONS;

/// Which operators a maker's library has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperatorSupport {
    /// All of them, on tensors of any strides.
    Whole,
    /// Those that others are made of, and on dense tensors alone but for copies (`elementary.rs`).
    Elementary,
}

/// Tensors of a node in a step.
struct NodeTensors {
    inputs: Vec<TensorView>,
    output: TensorView,
}

/// The calls of a node in a step of these sizes; none where no operators compute it.
pub(crate) fn lower(node: &NodeOperation, dims: &Dims, support: OperatorSupport) -> Option<OperatorSequence> {
    let inputs = node.inputs.iter().map(|operand| operand.tensor(dims)).collect::<Option<Vec<_>>>()?;
    let [output] = &node.outputs[..] else { return None };
    let tensors = NodeTensors { inputs, output: output.tensor(dims)? };
    let mut made = OperatorSequence::default();
    match &node.op {
        Op::Map(map) => map::map(&map.expr, &tensors, &mut made)?,
        Op::View(view) => moves::view(view, &node.inputs[0].ty, dims, &tensors, &mut made)?,
        Op::Concat(concat) => moves::concat(concat.axis as usize, &tensors, &mut made),
        Op::KvAppend(_) => moves::kv_append(&tensors, &mut made)?,
        Op::Embed(embed) => lookup::embed(embed.scale.0, &tensors, &mut made)?,
        Op::Rope(rope) => lookup::rope(rope, &tensors, &mut made)?,
        Op::RmsNorm(norm) => normal::rms_norm(norm, &tensors, &mut made)?,
        Op::Softmax(_) => normal::softmax(&tensors, &mut made)?,
        Op::Linear(linear) if linear.groups == 1 => product::linear(&tensors, &mut made)?,
        Op::MatMul(product) => product::matmul(product, &tensors, &mut made)?,
        _ => return None,
    }
    Some(match support {
        OperatorSupport::Whole => made,
        OperatorSupport::Elementary => elementary::made_of_parts(made),
    })
}

/// The ops that have calls.
pub(crate) const OPS: [&str; 10] =
    ["map", "view", "concat", "kv_append", "embed", "rope", "rms_norm", "softmax", "linear", "matmul"];

/// The first inputs, where there are as many.
fn inputs<const N: usize>(tensors: &NodeTensors) -> Option<&[TensorView; N]> {
    tensors.inputs.first_chunk()
}

/// The function of two tensors that numbers are multiplied by.
const MUL: crate::operators::Operator = crate::operators::Operator::Function(Func::Mul);
