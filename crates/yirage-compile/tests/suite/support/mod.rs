//! A target for tests of passes.

use yirage_ir::{ActivationFormat, DType, Format, Op, RegionKind};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{
    ActivationFormatFacts, DeviceLimits, ExecutorKind, ExpertDivision, KernelCapabilities, KernelFacts, KernelOrigin,
    KernelRef, KvCacheLayout, KvCacheLayoutFacts, Partitioning, Stage, Target, WeightLayout, WeightLayoutFacts,
    WeightRole,
};

/// The layout of products' weights.
const TILES: WeightLayout = WeightLayout::named("tiles");

/// It runs everything but one format.
pub(crate) fn target() -> Target {
    let operands = || OperandConstraint::any(&[WeightLayout::ROWS, TILES], &[KvCacheLayout::ROWS]);
    let any = |op: &str| OpRule::new(op, vec![operands()]);
    let kernel = |name: &str, regions: &[RegionKind], rules: Vec<OpRule>| {
        let stages = vec![Stage::always(if name == "test/matmul_group@1" {
            Partitioning::WorkQueue
        } else {
            Partitioning::Static
        })];
        let (kernel, regions) = (KernelRef::new(name, "test", stages), regions.to_vec());
        KernelFacts { kernel, origin: KernelOrigin::Library, regions, rules }
    };
    let formats: Vec<Format> = Format::ALL.iter().copied().filter(|f| *f != Format::IQ4_NL).collect();
    let weight = vec![OperandConstraint::new(OperandKind::Weight(TILES), formats)];
    let product = |op: &str| OpRule::new(op, vec![operands(), weight.clone(), operands()]);
    let products = vec![product("linear"), product("expert_linear"), any("map"), any("view")];
    let row_wise = Op::NAMES.iter().filter(|op| !["linear", "expert_linear", "attention", "gather"].contains(*op));
    let tiles = ["map", "view", "reduce", "contract", "concat", "fill", "iota"];
    Target {
        family: "test".into(),
        arch: "none".into(),
        capabilities: KernelCapabilities { flash_attention: true, ..KernelCapabilities::LEAST },
        workers: 2,
        ranks: 1,
        experts: ExpertDivision::default(),
        weight_layouts: vec![
            WeightLayoutFacts::new(TILES, &[WeightRole::Matmul], Format::ALL),
            WeightLayoutFacts::new(WeightLayout::ELEMENTS, &[WeightRole::Factor], &[Format::F16, Format::BF16]),
            WeightLayoutFacts::rows(&[WeightRole::Factor, WeightRole::Plain]),
        ],
        kv_cache_layouts: vec![KvCacheLayoutFacts::rows(&[32])],
        activation_formats: vec![ActivationFormatFacts {
            format: ActivationFormat::Q8A,
            block_bytes: 72,
            row_multiple: 32,
        }],
        activation_dtype: DType::F32,
        limits: DeviceLimits::aligned(64),
        executors: vec![ExecutorKind::Steps, ExecutorKind::Persistent],
        kernels: vec![
            kernel("test/rows@1", &[RegionKind::Rows, RegionKind::Chain], row_wise.map(|op| any(op)).collect()),
            kernel("test/matmul_group@1", &[RegionKind::MatmulGroup], products),
            kernel("test/attention@1", &[], vec![any("attention")]),
            kernel("test/gather@1", &[], vec![any("gather")]),
            kernel("test/tiled@1", &[RegionKind::Tiled], tiles.map(any).into()),
        ],
    }
}
