//! The kernels: the references of the ops, one for each node of the plan, as launches or as operations of a library.

use crate::arguments::{KernelOperand, encode};
use crate::operation;
use yirage_hal::HalError;
use yirage_hal::driver::{
    Access, Binding, KernelCall, KernelLaunch, Library, LibraryOperation, OperandBindings, ValueSlices,
};
use yirage_hal::reference;
use yirage_ir::{Format, text};
use yirage_plan::{DeviceLimits, Plan, Target};

/// The name that plans have for the one kernel.
const KERNEL: &str = "sim/eval@1";

/// The library.
pub(crate) struct References {
    /// Whether kernels are operations of a vendor's library.
    pub(crate) operations: bool,
    /// What the device bounds.
    pub(crate) limits: DeviceLimits,
    /// The type of a model's activations in `fast`.
    pub(crate) activations: Format,
}

impl Library for References {
    fn target(&self) -> Target {
        Target {
            limits: self.limits.clone(),
            activation_dtype: self.activations.into(),
            ..reference::target("sim", KERNEL)
        }
    }

    /// The plan's graph in its text form: what a compiler of a real device makes of its own language.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError> {
        Ok(if self.operations { Vec::new() } else { text::print(&plan.graph).into_bytes() })
    }

    /// One kernel, bound to the sizes of the step and to the node's operands.
    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        let (number, graph) = (plan.steps[step].node, &plan.graph);
        let node = &graph.nodes[number as usize];
        let bound = OperandBindings::of(graph, node, values)?;
        let operand = |(&value, binding): (_, u32)| {
            let is_cache = graph.kv_cache_of(value).is_some();
            let blocks = if is_cache { Some(values.blocks(value)?) } else { None };
            // The sizes come first.
            Ok(KernelOperand { binding: binding + 1, blocks })
        };
        let operands = node.ins.iter().chain(&node.outs).zip(bound.operands);
        let arguments = encode(&operands.map(operand).collect::<Result<Vec<_>, HalError>>()?);
        let mut bindings = vec![Binding { slice: values.sizes(), access: Access::Read }];
        bindings.extend(bound.bindings);
        Ok(vec![match self.operations {
            true => KernelCall::Operation(LibraryOperation {
                descriptor: operation::describe(graph, node, &arguments),
                bindings,
            }),
            false => {
                KernelCall::Launch(KernelLaunch { arguments, ..KernelLaunch::new(number.to_string(), bindings) })
            }
        }])
    }
}
