//! The library: what the compiler is told of the kernels, and what a step of a plan launches.

use yirage_hal::HalError;
use yirage_hal::driver::{KernelArg, Launch, Library, ModuleId, ValueAddresses};
use yirage_ir::{DType, Dims, NodeKind, Op};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind, WeightLayout};
use yirage_plan::weights::ROWS;
use yirage_plan::{ExecutorKind, KernelCapabilities, KernelFacts, Plan, Target};

/// The ops that there are kernels for.
pub(crate) const OPS: [&str; 3] = ["embed", "softmax", "rms_norm"];

pub(crate) struct DemoLibrary;

impl Library for DemoLibrary {
    fn target(&self) -> Target {
        let any = [OperandKind::Arena, OperandKind::StepInput, OperandKind::Weight(WeightLayout::Rows)];
        let of = |dtype: DType| any.map(|kind| OperandConstraint::new(kind, [dtype])).to_vec();
        let (floats, ids) = (of(DType::F32), of(DType::I32));
        let rules = vec![
            OpRule::new("embed", vec![floats.clone(), ids]),
            OpRule::new("softmax", vec![floats.clone()]),
            OpRule::new("rms_norm", vec![floats.clone(), floats]),
        ];
        let (name, variant, regions, stages) = ("demo/rows@1".into(), "host".into(), Vec::new(), Vec::new());
        Target {
            family: "demo".into(),
            arch: "host".into(),
            capabilities: KernelCapabilities::LEAST,
            workers: 1,
            matmul_layout: ROWS.into(),
            activation_formats: Vec::new(),
            align: 64,
            block_bytes: None,
            executors: vec![ExecutorKind::Steps],
            kernels: vec![KernelFacts { name, variant, regions, rules, stages, scratch: false }],
        }
    }

    fn code(&self, _: &Plan) -> Result<Vec<u8>, HalError> {
        Ok(Vec::new())
    }

    fn launches(
        &self,
        plan: &Plan,
        module: ModuleId,
        step: usize,
        dims: &Dims,
        places: &dyn ValueAddresses,
    ) -> Result<Vec<Launch>, HalError> {
        let node = &plan.graph.nodes[plan.steps[step].node as usize];
        let at = |value| places.address(value).map(KernelArg::Address);
        let mut args = node.ins.iter().chain(&node.outs).map(|&value| at(value)).collect::<Result<Vec<_>, _>>()?;
        let out = plan.graph.ty(node.outs[0]);
        let (count, width) = (out.elems(dims) as u32, out.width().unwrap_or(1) as u32);
        args.push(KernelArg::U32(count));
        args.extend(match &node.kind {
            NodeKind::Op(Op::Softmax(_)) => vec![KernelArg::U32(width)],
            NodeKind::Op(Op::RmsNorm(op)) => {
                vec![
                    KernelArg::U32(op.width),
                    KernelArg::U32(op.eps.0.to_bits()),
                    KernelArg::U32(op.unit_offset.into()),
                ]
            }
            NodeKind::Op(Op::Embed(op)) => {
                let rows = plan.graph.ty(node.ins[0]).shape[0].get(dims) as u32;
                vec![KernelArg::U32(width), KernelArg::U32(op.scale.0.to_bits()), KernelArg::U32(rows)]
            }
            _ => return Err(HalError::Load(format!("there is no kernel for {}", node.name()))),
        });
        Ok(vec![Launch { module, entry: node.name().into(), grid: [1; 3], block: [1; 3], args }])
    }
}
