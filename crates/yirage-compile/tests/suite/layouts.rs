//! Activations are in layouts that the target names, and in no other.

use crate::support::target;
use yirage_compile::{CompileError, CompileOptions, compile, plan_weights};
use yirage_ir::{ActivationFormat, Dims, Format, Graph, RegionKind, Type, text};
use yirage_plan::rules::{OperandConstraint, OperandKind};
use yirage_plan::{
    ActivationFormatFacts, KvCacheLayout, KvCacheLayoutFacts, KvCacheOrder, Plan, Precision, Target, VerifiedPlan,
    WeightLayout, WeightLayoutFacts, WeightRole,
};

const BUCKET: Dims = Dims { tokens: 8, seqs: 1, blocks: 1, rows: 1 };

fn without_layouts() -> Target {
    Target { activation_formats: Vec::new(), ..target() }
}

fn compiled(graph: &Graph, target: &Target, precision: Precision) -> Result<Plan, CompileError> {
    let weights = plan_weights(graph, target)?;
    compile(graph, BUCKET, target, &weights, &CompileOptions::new(precision)).map(VerifiedPlan::into_plan)
}

/// A product with a quantised weight.
fn product() -> Graph {
    text::parse(
        "graph g { input %x: f32[Tokens, 64] weight %w: q4_0[16, 64]
         %n = hadamard{part=64}(%x): f32[Tokens, 64]
         %y = linear{groups=1}(%n, %w): f32[Tokens, 16] output %y }",
    )
    .unwrap()
}

/// The same with activations that are quantised already.
fn quantised() -> Graph {
    text::parse(
        "graph g { input %x: f32[Tokens, 64] weight %w: q4_0[16, 64]
         %q = quantize{layout=q8a, parts=1}(%x): q8a[Tokens, 64]
         %y = linear{groups=1}(%q, %w): f32[Tokens, 16] output %y }",
    )
    .unwrap()
}

#[test]
fn fast_products_read_the_layout_that_the_target_wants() {
    let fast = compiled(&product(), &target(), Precision::Fast).unwrap();
    assert!(text::print(&fast.graph).contains("%n.q8 = quantize{layout=q8a, parts=1}"), "{}", text::print(&fast.graph));
    let exact = compiled(&product(), &target(), Precision::Exact).unwrap();
    assert!(!text::print(&exact.graph).contains("quantize"));
}

#[test]
fn activations_stay_floats_where_the_target_has_no_layout() {
    let fast = compiled(&product(), &without_layouts(), Precision::Fast).unwrap();
    let exact = compiled(&product(), &without_layouts(), Precision::Exact).unwrap();
    assert_eq!(text::print(&fast.graph), text::print(&exact.graph));
}

#[test]
fn a_layout_that_the_target_does_not_name_is_refused() {
    let wanted = "`q` is q8a[Tokens, 64]; of the layouts of activations the target has none";
    let refused = compiled(&quantised(), &without_layouts(), Precision::Fast).unwrap_err();
    assert!(matches!(&refused, CompileError::Unsupported { why, .. } if why == wanted), "{refused}");
    let plan = compiled(&quantised(), &target(), Precision::Fast).unwrap();
    let refused = VerifiedPlan::new(plan, &without_layouts()).unwrap_err().to_string();
    assert!(refused.contains(wanted), "{refused}");
}

#[test]
fn a_value_has_the_bytes_that_the_target_says_of_its_layout() {
    let bytes = |block_bytes, row_multiple| {
        let facts = ActivationFormatFacts { format: ActivationFormat::Q8A, block_bytes, row_multiple };
        let target = Target { activation_formats: vec![facts], ..target() };
        let plan = compiled(&quantised(), &target, Precision::Fast).unwrap();
        plan.placement(plan.graph.find("q").unwrap()).unwrap().bytes
    };
    assert_eq!([bytes(72, 32), bytes(72, 128), bytes(80, 32)], [8 * 2 * 72, 8 * 4 * 72, 8 * 2 * 80]);
}

/// A target whose general products read weights of 16 bits as they are in the file.
fn reads_elements() -> Target {
    let mut target = target();
    let kernel = target.kernels.iter_mut().find(|kernel| kernel.regions.contains(&RegionKind::Chain)).unwrap();
    let rule = kernel.rules.iter_mut().find(|rule| rule.op == "contract").unwrap();
    let kind = OperandKind::Weight(WeightLayout::ELEMENTS);
    rule.inputs.iter_mut().for_each(|ways| ways.push(OperandConstraint::new(kind, [Format::F16, Format::BF16])));
    target
}

#[test]
fn weights_that_products_alone_read_keep_their_elements() {
    let layout = |body: &str, target: &Target| {
        let graph = text::parse(&format!("graph g {{ input %x: bf16[Tokens, 64] {body} output %y }}")).unwrap();
        let plan = plan_weights(&graph, target).unwrap();
        plan.get("w").unwrap().layout.clone()
    };
    let product = "weight %w: bf16[64, 32] %y = contract(%x, %w): bf16[Tokens, 32]";
    let turned = r#"weight %w: bf16[32, 64] %t = view{form="permute(1, 0)"}(%w): bf16[64, 32]
        %y = contract(%x, %t): bf16[Tokens, 32]"#;
    assert_eq!([product, turned].map(|body| layout(body, &reads_elements())), ["elements", "elements"]);
    assert_eq!(layout(product, &target()), "rows", "no kernel of the target reads them so");
    let others = [
        // Something else reads it too, or reads what is seen of it.
        r#"weight %w: bf16[64, 32] %n = map{expr="neg(x0)"}(%w): f32[64, 32] output %n
            %y = contract(%x, %w): bf16[Tokens, 32]"#,
        r#"weight %w: bf16[32, 64] %t = view{form="permute(1, 0)"}(%w): bf16[64, 32]
            %n = map{expr="neg(x0)"}(%t): f32[64, 32] output %n %y = contract(%x, %t): bf16[Tokens, 32]"#,
        r#"weight %w: bf16[64] %y = map{expr="add(x0, x1)"}(%x, %w): f32[Tokens, 64]"#,
        // There is nothing to save.
        r#"weight %w: f32[64, 32] %z = map{expr="neg(x0)"}(%x): f32[Tokens, 64]
            %y = contract(%z, %w): f32[Tokens, 32]"#,
    ];
    assert_eq!(others.map(|body| layout(body, &reads_elements())), ["rows"; 4]);
}

#[test]
fn a_weight_lies_as_the_target_wants_for_its_role_and_format() {
    let mut several = target();
    let panels = WeightLayout::named("panels");
    several.weight_layouts.insert(0, WeightLayoutFacts::new(panels, &[WeightRole::Matmul], &[Format::BF16]));
    let layout = |target: &Target, format: &str| {
        let body = format!("weight %w: {format}[16, 64] %y = linear{{groups=1}}(%x, %w): f32[Tokens, 16] output %y");
        let graph = text::parse(&format!("graph g {{ input %x: f32[Tokens, 64] {body} }}")).unwrap();
        plan_weights(&graph, target).map(|plan| plan.entries[0].layout.clone()).map_err(|why| why.to_string())
    };
    assert_eq!(layout(&several, "bf16").unwrap(), "panels");
    assert_eq!(layout(&several, "q4_0").unwrap(), "tiles");
    several.weight_layouts.retain(|facts| facts.layout.name() != "tiles");
    let refused = layout(&several, "q4_0").unwrap_err();
    assert!(refused.contains("the weight `w` of q4_0") && refused.contains("(panels, elements, rows)"), "{refused}");
}

#[test]
fn a_layout_holds_its_formats_alone() {
    let plan = compiled(&product(), &target(), Precision::Exact).unwrap();
    let mut floats = target();
    let tiles = floats.weight_layouts.iter_mut().find(|facts| facts.layout.name() == "tiles").unwrap();
    tiles.formats = vec![Format::F32];
    let refused = VerifiedPlan::new(plan, &floats).unwrap_err().to_string();
    assert!(refused.contains("the weight `w` of q4_0 is of no format of the layout `tiles`"), "{refused}");
}

#[test]
fn a_plan_of_elements_holds_only_where_they_are_read() {
    let graph = text::parse(
        "graph g { input %x: bf16[Tokens, 64] weight %w: bf16[64, 32]
         %y = contract(%x, %w): bf16[Tokens, 32] output %y }",
    )
    .unwrap();
    let plan = compiled(&graph, &reads_elements(), Precision::Exact).unwrap();
    assert_eq!(plan.weights.entries[0].layout, "elements");
    let refused = VerifiedPlan::new(plan, &target()).unwrap_err().to_string();
    assert!(refused.contains("a weight held element by element of bf16"), "{refused}");
}

/// One token over a cache of blocks of so many positions.
fn cached(positions: u32) -> Graph {
    let op = "attention{heads=1, kv_heads=1, k_width=8, v_width=8, scale=0.5, softcap=0.0, window=0, causal=true, cached=true, \
              v_in_k=false}";
    let text = format!(
        "graph g {{ input %q: f32[Tokens, 8] kv_cache %kv: f16[{positions}, 1, 16] input %at: i32[Tokens] input %seqs: i32[Tokens]
         input %table: i32[Seqs, Blocks] %y = {op}(%q, %kv, %at, %seqs, %table): f32[Tokens, 8] output %y }}"
    );
    text::parse(&text).unwrap()
}

#[test]
fn blocks_of_a_cache_are_as_long_as_a_layout_of_the_target_says() {
    let heads = KvCacheLayout::named("heads");
    let own = KvCacheLayoutFacts { layout: heads, order: KvCacheOrder::Heads, ..KvCacheLayoutFacts::rows(&[48]) };
    let mut several = target();
    several.kv_cache_layouts.push(own);
    assert!(compiled(&cached(32), &several, Precision::Exact).is_ok());
    let refused = compiled(&cached(16), &several, Precision::Exact).unwrap_err().to_string();
    assert!(refused.contains("the cache `kv` of blocks of f16[16, 1, 16]") && refused.contains("[48]"), "{refused}");
    // A layout of the target's that no kernel reads: the refusal says what would be taken.
    let refused = compiled(&cached(48), &several, Precision::Exact).unwrap_err().to_string();
    assert!(refused.contains("a cache in the layout heads of f16"), "{refused}");
    let plan = compiled(&cached(32), &several, Precision::Exact).unwrap();
    several.kv_cache_layouts.remove(0);
    let refused = VerifiedPlan::new(plan, &several).unwrap_err().to_string();
    assert!(refused.contains("the KV cache `kv` of f16[32, 1, 16] has no layout of the target"), "{refused}");
}

#[test]
fn a_cache_lies_in_the_layout_that_is_wanted_most() {
    let mut several = target();
    let heads = KvCacheLayoutFacts {
        layout: KvCacheLayout::named("heads"),
        formats: vec![Format::F16],
        ..KvCacheLayoutFacts::rows(&[64, 32])
    };
    several.kv_cache_layouts.insert(0, heads);
    let block = |format: Format, positions: u32| Type::new(format.into(), [positions, 1u32, 16]);
    let layout = |format, positions| several.kv_cache_layout_of(&block(format, positions)).map(KvCacheLayout::name);
    assert_eq!((layout(Format::F16, 32), layout(Format::F32, 32)), (Some("heads"), Some("rows")));
    assert_eq!((layout(Format::F16, 64), layout(Format::F32, 64)), (Some("heads"), None));
    assert_eq!(several.kv_cache_layout_of(&Type::new(Format::F32.into(), [4u32, 8])), Some(KvCacheLayout::STATES));
    let lengths = [Format::F16, Format::F32, Format::Q4_0].map(|format| several.kv_block_positions(format));
    assert_eq!(lengths, [Some(64), Some(32), None]);
}
