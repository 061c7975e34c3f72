//! Any text as a plan: what parses prints to text that parses to the same plan. Shared by the fuzz target and the test
//! that replays its corpus.

use yirage_ir::{ActivationFormat, Format, Op, RegionKind};
use yirage_plan::rules::{OpRule, OperandConstraint};
use yirage_plan::{
    ActivationFormatFacts, ExecutorKind, ExpertDivision, KernelCapabilities, KernelFacts, KvCacheLayout,
    KvCacheLayoutFacts, Plan, Target, VerifiedPlan, WeightLayout, WeightLayoutFacts, WeightRole, text,
};

/// Parses, proves, prints and parses again.
pub(crate) fn run(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(plan) = text::parse(source) else { return };
    let printed = text::print(&plan);
    let again = text::parse(&printed).map(|p| text::print(&p)).map_err(|e| e.to_string());
    assert_eq!(again, Ok(printed), "{source}");
    let target = target(&plan);
    let _verdict = VerifiedPlan::new(plan, &target);
}

/// The layouts of weights that plans name.
const LAYOUTS: [WeightLayout; 3] = [WeightLayout::ROWS, WeightLayout::ELEMENTS, WeightLayout::named("tiles16x64@1")];

/// A target that has what the plan names, so that its proof goes as far as it can.
pub(crate) fn target(plan: &Plan) -> Target {
    let mut words = plan.target.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (family, arch, workers) = (word().to_owned(), word().to_owned(), word());
    let rules: Vec<OpRule> = Op::NAMES
        .iter()
        .map(|op| OpRule::new(op, vec![OperandConstraint::any(&LAYOUTS, &[KvCacheLayout::ROWS])]))
        .collect();
    let kernel = |k: &yirage_plan::KernelRef| KernelFacts {
        kernel: k.clone(),
        origin: yirage_plan::KernelOrigin::Library,
        regions: RegionKind::ALL.to_vec(),
        rules: rules.clone(),
    };
    Target {
        family,
        arch,
        capabilities: KernelCapabilities::LEAST,
        workers: workers.strip_prefix("workers=").and_then(|n| n.parse().ok()).unwrap_or(1),
        weight_layouts: LAYOUTS.map(|layout| WeightLayoutFacts::new(layout, &[WeightRole::Matmul], Format::ALL)).into(),
        kv_cache_layouts: vec![KvCacheLayoutFacts::rows(&[32, 16, 64])],
        activation_formats: vec![ActivationFormatFacts {
            format: ActivationFormat::Q8A,
            block_bytes: 72,
            row_multiple: 64,
        }],
        activation_dtype: yirage_ir::DType::F32,
        ranks: 1,
        experts: ExpertDivision::default(),
        limits: yirage_plan::DeviceLimits {
            block_bytes: Some(1 << 20),
            right_side_piece: Some(4096),
            ..yirage_plan::DeviceLimits::aligned(64)
        },
        executors: plan.programs.iter().map(|p| p.kind).filter(|&k| k != ExecutorKind::Replay).collect(),
        kernels: plan.kernels.iter().take(16).map(kernel).collect(),
    }
}
