//! Every fusion and every refusal has its reason, and what others want is never fused away.

use crate::support::target;
use yirage_compile::{
    CompileOptions, Decision, PIPELINE, PassDecisions, PassVerdict, compile, compile_explained, plan_weights,
};
use yirage_ir::{Dims, Format, Graph, NodeKind, ValueSource, text};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{
    DeviceLimits, KernelFacts, KernelRef, KvCacheLayout, NumberTest, Plan, Precision, Predicate, Quantity, Target,
    VerifiedPlan, WeightLayout,
};

const BUCKET: Dims = Dims { tokens: 33, seqs: 2, blocks: 4, rows: 2 };

fn parsed(body: &str) -> Graph {
    text::parse(&format!("graph g {{ {body} }}")).unwrap()
}

fn explained_on(graph: &Graph, target: &Target, options: &CompileOptions) -> (VerifiedPlan, Vec<PassDecisions>) {
    let weights = plan_weights(graph, target).unwrap();
    let mut told = Vec::new();
    let plan = compile_explained(graph, BUCKET, target, &weights, options, &mut told).unwrap();
    (plan, told)
}

fn decisions_of(body: &str) -> Vec<PassDecisions> {
    explained_on(&parsed(body), &target(), &CompileOptions::default()).1
}

/// What a pass decided of a value.
fn of<'a>(told: &'a [PassDecisions], pass: &str, value: &str) -> Vec<&'a Decision> {
    let decisions = told.iter().filter(|p| p.pass == pass).flat_map(|p| &p.decisions);
    decisions.filter(|d| d.values.iter().any(|v| v == value)).collect()
}

/// That the pass decided so of the value, for a reason with all of these words.
#[track_caller]
fn assert_decision(told: &[PassDecisions], pass: &str, value: &str, verdict: PassVerdict, words: &[&str]) {
    let found = of(told, pass, value);
    let fits =
        |d: &&Decision| d.verdict == verdict && words.iter().all(|w| format!("{} {}", d.what, d.why).contains(w));
    assert!(found.iter().any(fits), "{pass} of `{value}`: {found:#?}");
}

const SOFTMAX: &str = r#"input %x: f32[Tokens, 8]
    %m = reduce{kind=max, axes="[1]", keep=true}(%x): f32[Tokens, 1]
    %e = map{expr="exp(sub(x0, x1))"}(%x, %m): f32[Tokens, 8]
    %s = reduce{kind=sum, axes="[1]", keep=true}(%e): f32[Tokens, 1]
    %y = map{expr="div(x0, x1)"}(%e, %s): f32[Tokens, 8]"#;

#[test]
fn an_op_is_recognised_or_told_what_it_lacks() {
    let found = decisions_of(&format!("{SOFTMAX} output %y"));
    assert_decision(&found, "recognise", "y", PassVerdict::Done, &["softmax", "nothing else reads"]);
    let output = decisions_of(&format!("{SOFTMAX} output %y, %e"));
    assert_decision(&output, "recognise", "y", PassVerdict::Refused, &["softmax", "`e` is an output"]);
    let shared = decisions_of(&format!("{SOFTMAX} %z = map{{expr=\"neg(x0)\"}}(%e): f32[Tokens, 8] output %y, %z"));
    assert_decision(&shared, "recognise", "y", PassVerdict::Refused, &["softmax", "`e` is shared", "`z`"]);
    let other = decisions_of(&format!("{} output %y", SOFTMAX.replace("kind=max", "kind=min")));
    assert_decision(
        &other,
        "recognise",
        "y",
        PassVerdict::Refused,
        &["softmax", "`m` is made by", "kind=min", "kind=max"],
    );
    let slot = decisions_of(
        r#"input %x: f32[Tokens, 8] input %w: f32[4, 8] %t = view{form="permute(1, 0)"}(%w): f32[8, 4]
           %y = contract(%x, %t): f32[Tokens, 4] output %y"#,
    );
    assert_decision(&slot, "recognise", "y", PassVerdict::Refused, &["linear", "`w` is no weight"]);
}

#[test]
fn what_is_removed_or_computed_once_is_told() {
    let found = decisions_of(
        r#"input %x: f32[Tokens, 8] %a = map{expr="exp(x0)"}(%x): f32[Tokens, 8]
           %b = map{expr="exp(x0)"}(%x): f32[Tokens, 8] %dead = map{expr="neg(x0)"}(%a): f32[Tokens, 8]
           %y = concat{axis=1}(%a, %b): f32[Tokens, 16] output %y"#,
    );
    assert_decision(&found, "canonicalise", "dead", PassVerdict::Done, &["removed"]);
    assert_decision(&found, "canonicalise", "b", PassVerdict::Done, &["computed once", "`a` is the same op"]);
}

#[test]
fn maps_of_maps_are_told() {
    let body = r#"input %x: f32[Tokens, 8] input %r: f32[Tokens, 1]
        %a = map{expr="exp(x0)"}(%x): f32[Tokens, 8] %b = map{expr="neg(x0)"}(%a): f32[Tokens, 8]
        %c = map{expr="exp(x0)"}(%r): f32[Tokens, 1] %d = map{expr="mul(x0, x1)"}(%b, %c): f32[Tokens, 8]"#;
    let found = decisions_of(&format!("{body} output %d"));
    assert_decision(&found, "compose", "a", PassVerdict::Done, &["inside of the map `b`"]);
    assert_decision(&found, "compose", "c", PassVerdict::Refused, &["smaller"]);
    let output = decisions_of(&format!("{body} output %d, %a"));
    assert_decision(&output, "compose", "a", PassVerdict::Refused, &["`a` is an output"]);
}

#[test]
fn chains_are_told() {
    let body = r#"input %a: f32[8, 16] input %b: f32[16, 8] input %c: f32[8, 8]
        %t = view{form="permute(1, 0)"}(%b): f32[8, 16] %e = map{expr="mul(x0, x1)"}(%a, %t): f32[8, 16]
        %p = contract(%e, %b): f32[8, 8] %q = contract(%p, %c): f32[8, 8]"#;
    let found = decisions_of(&format!("{body} output %q"));
    assert_decision(&found, "chains", "e", PassVerdict::Done, &["chain of 3 ops"]);
    assert_decision(&found, "chains", "p", PassVerdict::Refused, &["reads another one"]);
    let output = decisions_of(&format!("{body} output %q, %e"));
    assert_decision(&output, "chains", "e", PassVerdict::Refused, &["`e` is an output"]);
}

const PRODUCTS: &str = r#"input %x: f32[Tokens, 64] input %late0: f32[Tokens, 32]
    weight %wq: q8_0[32, 64] weight %wk: q8_0[32, 64] weight %bias: f32[32]
    %q = linear{groups=1}(%x, %wq): f32[Tokens, 32] %k = linear{groups=1}(%x, %wk): f32[Tokens, 32]
    %qb = map{expr="add(x0, x1)"}(%q, %bias): f32[Tokens, 32]
    %kq = map{expr="add(x0, x1)"}(%k, %qb): f32[Tokens, 32]"#;

#[test]
fn regions_and_what_joins_products_are_told() {
    let found = decisions_of(&format!("{PRODUCTS} output %kq, %qb"));
    assert_decision(&found, "legalise", "q", PassVerdict::Done, &["`x` as codes", "q8_0[32, 64]"]);
    assert_decision(&found, "fuse", "qb", PassVerdict::Done, &["joining the product `q`"]);
    assert_decision(&found, "fuse", "kq", PassVerdict::Refused, &["joining the product `k`", "`qb` is an output"]);
    let joined = decisions_of(&format!("{PRODUCTS} output %kq"));
    assert_decision(&joined, "fuse", "kq", PassVerdict::Done, &["joining the products `q`, `k`"]);
    let late = decisions_of(
        r#"input %x: f32[Tokens, 64] weight %wq: q8_0[64, 64] weight %wk: q8_0[64, 64] weight %norm: f32[64]
           %q = linear{groups=1}(%x, %wq): f32[Tokens, 64] %n = rms_norm{eps=1e-5, width=64, unit_offset=false}(%q, %norm): f32[Tokens, 64]
           %k = linear{groups=1}(%x, %wk): f32[Tokens, 64] %y = map{expr="add(x0, x1)"}(%k, %n): f32[Tokens, 64] output %y"#,
    );
    assert_decision(&late, "fuse", "y", PassVerdict::Refused, &["`n` is not there before the product runs"]);
    assert_decision(&found, "fuse", "k", PassVerdict::Done, &["region `matmul_group` of 3 nodes", "products of"]);
    let shared = decisions_of(&format!("{PRODUCTS} output %kq, %q, %qb"));
    assert_decision(&shared, "fuse", "qb", PassVerdict::Refused, &["`q` is an output"]);
    let exact =
        explained_on(&parsed(&format!("{PRODUCTS} output %kq")), &target(), &CompileOptions::new(Precision::Exact)).1;
    assert_decision(&exact, "legalise", "q", PassVerdict::Refused, &["precision is exact"]);
    let rows = decisions_of(
        r#"input %x: f32[Tokens, 8] weight %w: f32[8] input %s: f32[Seqs, 8]
           %n = rms_norm{eps=1e-5, width=8, unit_offset=false}(%x, %w): f32[Tokens, 8]
           %m = softmax(%n): f32[Tokens, 8] %o = softmax(%s): f32[Seqs, 8] output %m, %o"#,
    );
    assert_decision(&rows, "fuse", "m", PassVerdict::Done, &["region `rows` of 2 nodes", "Tokens"]);
}

#[test]
fn copies_and_kernels_are_told() {
    let mut target = target();
    // This kernel wants its input computed, and those before it do not run the op.
    let rows = target.kernels.iter_mut().find(|facts| facts.kernel.name == "test/rows@1").unwrap();
    let rule = rows.rules.iter_mut().find(|r| r.op == "softmax").unwrap();
    *rule = OpRule::new("softmax", vec![vec![OperandConstraint::new(OperandKind::Arena, Format::ALL.to_vec())]]);
    let graph = parsed("input %x: f32[Tokens, 8] %y = softmax(%x): f32[Tokens, 8] output %y");
    let found = explained_on(&graph, &target, &CompileOptions::default()).1;
    assert_decision(&found, "copies", "y", PassVerdict::Done, &["a copy of `x`", "test/rows@1"]);
    assert_decision(&found, "select", "y", PassVerdict::Done, &["run by test/rows@1"]);
}

#[test]
fn a_pass_that_may_not_fuse_says_so() {
    let graph = parsed(&format!("{PRODUCTS} output %kq"));
    let (_, told) = explained_on(&graph, &target(), &CompileOptions::default().unfused());
    for pass in ["compose", "chains", "fuse"] {
        let of_pass = told.iter().find(|p| p.pass == pass).unwrap();
        assert_eq!(of_pass.decisions.len(), 1, "{pass}");
        assert!(of_pass.decisions[0].why.contains("turned off") && of_pass.before == of_pass.after, "{pass}");
    }
    let mut target = target();
    target.kernels.iter_mut().for_each(|k| k.regions.clear());
    let (_, told) = explained_on(&graph, &target, &CompileOptions::default());
    assert_decision(&told, "fuse", "k", PassVerdict::Refused, &["no kernel of the target runs regions"]);
}

#[test]
fn listening_changes_no_byte_of_the_plan() {
    for body in [format!("{SOFTMAX} output %y"), format!("{PRODUCTS} output %kq")] {
        let graph = parsed(&body);
        let weights = plan_weights(&graph, &target()).unwrap();
        let silent = compile(&graph, BUCKET, &target(), &weights, &CompileOptions::default()).unwrap();
        let (heard, told) = explained_on(&graph, &target(), &CompileOptions::default());
        assert_eq!(yirage_plan::text::print(&silent), yirage_plan::text::print(&heard));
        let names: Vec<&str> = told.iter().map(|p| p.pass).collect();
        let passes: Vec<&str> = PIPELINE.iter().map(|p| p.name).chain(["copies", "select"]).collect();
        assert_eq!(names, passes);
        assert_eq!(explained_on(&graph, &target(), &CompileOptions::default()).1, told, "told twice, told the same");
        for decision in told.iter().flat_map(|p| &p.decisions) {
            assert!(!decision.what.is_empty() && !decision.why.is_empty(), "{decision:?}");
        }
    }
}

#[test]
fn what_was_decided_before_an_error_is_told() {
    let graph = parsed(
        "input %x: f32[Tokens, 64] weight %w: iq4_nl[64, 64] %y = linear{groups=1}(%x, %w): f32[Tokens, 64] output %y",
    );
    let weights = plan_weights(&graph, &target()).unwrap();
    let mut told = Vec::new();
    let failed = compile_explained(&graph, BUCKET, &target(), &weights, &CompileOptions::default(), &mut told);
    assert!(failed.is_err() && told.last().unwrap().pass == "select");
}

/// The names of all values that a node of the plan gives, of the graph or out of a region.
fn value_names(plan: &Plan) -> Vec<&str> {
    plan.graph.nodes.iter().flat_map(|n| &n.outs).map(|&v| plan.graph.value(v).name.as_str()).collect()
}

/// Every value of these graphs as an output, one after the other, and read once more: it is given by the plan, whatever is
/// fused around it.
#[test]
fn an_output_is_never_fused_away() {
    for body in [SOFTMAX, PRODUCTS] {
        let plain = parsed(&format!("{body} output %{}", if body == SOFTMAX { "y" } else { "kq" }));
        for node in &plain.nodes {
            let mut seen = plain.clone();
            seen.outputs = [plain.outputs.clone(), vec![node.outs[0]]].concat();
            seen.outputs.dedup();
            let name = &plain.value(node.outs[0]).name;
            let (plan, _) = explained_on(&seen, &target(), &CompileOptions::default());
            assert!(value_names(&plan).contains(&name.as_str()), "{name}: {}", text::print(&plan.graph));
            let wanted: Vec<&str> = seen.outputs.iter().map(|&o| seen.value(o).name.as_str()).collect();
            let got: Vec<&str> = plan.graph.outputs.iter().map(|&o| plan.graph.value(o).name.as_str()).collect();
            assert_eq!(got, wanted);
            for &o in &plan.graph.outputs {
                assert!(matches!(plan.graph.value(o).source, ValueSource::Node { .. }));
            }
        }
        assert!(plain.nodes.iter().all(|n| matches!(n.kind, NodeKind::Op(_))));
    }
}

const ATTENTION: &str = r#"input %q: f32[2, 16, 8] input %k: f32[2, 8, 32] input %v: f32[2, 32, 8]
    %s = contract(%q, %k): f32[2, 16, 32] %e = map{expr="exp(x0)"}(%s): f32[2, 16, 32]
    %z = reduce{kind=sum, axes="[2]", keep=true}(%e): f32[2, 16, 1]
    %w = map{expr="div(x0, x1)"}(%e, %z): f32[2, 16, 32]
    %y = contract(%w, %v): f32[2, 16, 8]"#;

#[test]
fn attention_without_its_scores_is_told_or_what_it_lacks() {
    let pass = "attention";
    let found = decisions_of(&format!("{ATTENTION} output %y"));
    assert_decision(&found, pass, "w", PassVerdict::Done, &["blocks of 16 rows", "32 keys", "no bit changes"]);
    let output = decisions_of(&format!("{ATTENTION} output %y output %w"));
    assert_decision(&output, pass, "s", PassVerdict::Refused, &["`w` is an output"]);
    let shared =
        decisions_of(&format!("{ATTENTION} %n = map{{expr=\"neg(x0)\"}}(%s): f32[2, 16, 32] output %y output %n"));
    assert_decision(&shared, pass, "s", PassVerdict::Refused, &["`s` is shared", "`n`"]);
    let across = decisions_of(&format!(
        "{} output %y",
        ATTENTION
            .replace("axes=\"[2]\"", "axes=\"[1]\"")
            .replace("f32[2, 16, 1]", "f32[2, 1, 32]")
            .replace("16", "128")
    ));
    assert_decision(&across, pass, "s", PassVerdict::Refused, &["reads across them"]);
    let graph = parsed(&format!("{ATTENTION} output %y"));
    let mut without = target();
    without.capabilities.flash_attention = false;
    let told = explained_on(&graph, &without, &CompileOptions::default()).1;
    assert_decision(&told, pass, "s", PassVerdict::Refused, &["has no attention without scores"]);
    let small = Target {
        limits: DeviceLimits { block_bytes: Some(512), right_side_piece: Some(4096), ..DeviceLimits::aligned(64) },
        ..target()
    };
    let told = explained_on(&graph, &small, &CompileOptions::default()).1;
    assert_decision(&told, pass, "s", PassVerdict::Refused, &["no room for the scores of 8 rows"]);
    let unfused = explained_on(&graph, &target(), &CompileOptions::default().unfused()).1;
    assert!(of(&unfused, pass, "s").is_empty());
}

#[test]
fn attention_of_a_steps_sizes_is_told() {
    let found = decisions_of(
        r#"input %q: f32[Tokens, 8] input %k: f32[8, 32] input %v: f32[32, 8]
           %s = contract(%q, %k): f32[Tokens, 32] %p = softmax(%s): f32[Tokens, 32]
           %y = contract(%p, %v): f32[Tokens, 8] output %y"#,
    );
    assert_decision(&found, "attention", "p", PassVerdict::Refused, &["blocks have fixed sizes"]);
}

#[test]
fn a_norm_in_front_of_a_product_is_told() {
    let found = decisions_of(
        r#"input %x: f32[Tokens, 64] weight %g: f32[64] weight %w: f32[96, 64]
           %n = rms_norm{eps=1e-5, width=64, unit_offset=false}(%x, %g): f32[Tokens, 64]
           %y = linear{groups=1}(%n, %w): f32[Tokens, 96] output %y"#,
    );
    assert_decision(
        &found,
        "fuse",
        "n",
        PassVerdict::Refused,
        &["joining the product `y`", "normalised once for all", "round otherwise"],
    );
}

#[test]
fn a_region_is_cut_where_kernels_are_bound_to_fewer_values() {
    // Sixteen sums of their own inputs, all ready together.
    let names: Vec<String> =
        (0..16).map(|i| format!("input %a{i}: f32[Tokens, 8] input %b{i}: f32[Tokens, 8]")).collect();
    let sums: Vec<String> =
        (0..16).map(|i| format!("%s{i} = map{{expr=\"add(x0, x1)\"}}(%a{i}, %b{i}): f32[Tokens, 8]")).collect();
    let outputs: Vec<String> = (0..16).map(|i| format!("output %s{i}")).collect();
    let graph =
        text::parse(&format!("graph g {{ {} {} {} }}", names.join(" "), sums.join(" "), outputs.join(" "))).unwrap();
    let nodes = |bindings: Option<u32>| {
        let target = Target { limits: DeviceLimits { bindings, ..DeviceLimits::aligned(64) }, ..target() };
        let (weights, options) = (plan_weights(&graph, &target).unwrap(), CompileOptions::default());
        let mut told = Vec::new();
        let plan = compile_explained(&graph, BUCKET, &target, &weights, &options, &mut told);
        (plan.map(|plan| plan.graph.nodes.len()).map_err(|e| e.to_string()), told)
    };
    assert_eq!(nodes(None).0, Ok(1));
    // Ten values: the sizes and three sums of three.
    let (cut, told) = nodes(Some(10));
    assert_eq!(cut, Ok(6));
    let fuse = told.iter().find(|pass| pass.pass == "fuse").unwrap();
    assert!(fuse.decisions.iter().any(|d| d.why.contains("it is bound to 49 values, a kernel of the target to 10")));
    let refused = nodes(Some(3)).0.unwrap_err();
    assert!(refused.contains("it is bound to 4 values") && refused.contains("3 at most"), "{refused}");
}

#[test]
fn a_weight_larger_than_a_binding_is_for_kernels_that_read_it_in_parts_wherever_they_read_it() {
    let compiled = |body: &str, binding_bytes: u64, in_parts: bool| {
        let graph = parsed(body);
        let mut target = Target {
            limits: DeviceLimits { binding_bytes: Some(binding_bytes), ..DeviceLimits::aligned(64) },
            ..target()
        };
        let rules = target.kernels.iter_mut().flat_map(|kernel| &mut kernel.rules);
        let ways = rules.filter(|rule| rule.op == "linear").flat_map(|rule| rule.inputs.iter_mut().flatten());
        ways.filter(|way| matches!(way.kind, OperandKind::Weight(_))).for_each(|way| way.in_parts = in_parts);
        let weights = plan_weights(&graph, &target).unwrap();
        let plan = compile(&graph, BUCKET, &target, &weights, &CompileOptions::default());
        plan.map(drop).map_err(|why| why.to_string())
    };
    let product =
        "input %x: f32[Tokens, 64] weight %w: f32[96, 64] %y = linear{groups=1}(%x, %w): f32[Tokens, 96] output %y";
    let table = "input %x: f32[Tokens, 64] input %i: i32[Tokens] weight %w: f32[96, 64]
        %y = linear{groups=1}(%x, %w): f32[Tokens, 96] %e = embed{scale=1.0}(%w, %i): f32[Tokens, 64] output %y, %e";
    assert_eq!(compiled(product, 96 * 256, false), Ok(()));
    assert_eq!(compiled(product, 256, true), Ok(()));
    for (body, bytes, in_parts, wanted) in [
        (product, 96 * 256 - 1, false, "`w` takes 24576 bytes; a kernel of the target is bound to 24575 at most"),
        (table, 96 * 256 - 1, true, "`w` takes 24576 bytes; a kernel of the target is bound to 24575 at most"),
        (
            product,
            255,
            true,
            "read in parts: its smallest part, 1 along its first dimension, takes 256 bytes, 255 at most",
        ),
    ] {
        let told = compiled(body, bytes, in_parts).unwrap_err();
        assert!(told.contains(wanted), "{told}");
    }
}

#[test]
fn a_kernel_that_wants_a_multiple_leaves_other_sizes_to_the_next() {
    let mut target = target();
    let k = Quantity::Size { input: 1, from_last: 0 };
    let tiles = KernelFacts {
        kernel: KernelRef { name: "test/tiles@1".into(), ..target.kernels[0].kernel.clone() },
        rules: vec![
            OpRule::new(
                "linear",
                vec![OperandConstraint::any(
                    &[WeightLayout::ROWS, WeightLayout::named("tiles")],
                    &[KvCacheLayout::ROWS],
                )],
            )
            .wanting(Predicate::Number(k, NumberTest::MultipleOf(64)))
            .wanting(Predicate::Number(Quantity::Size { input: 0, from_last: 1 }, NumberTest::AtMost(33))),
        ],
        regions: Vec::new(),
        ..target.kernels[0].clone()
    };
    target.kernels.insert(0, tiles);
    let kernel = |k: u32, tokens: u32| {
        let body = format!(
            "input %x: f32[Tokens, {k}] weight %w: f32[32, {k}] %y = linear{{groups=1}}(%x, %w): f32[Tokens, 32] output %y"
        );
        let graph = text::parse(&format!("graph g {{ {body} }}")).unwrap();
        let (weights, options) = (plan_weights(&graph, &target).unwrap(), CompileOptions::default());
        let mut told = Vec::new();
        let bucket = Dims { tokens, ..BUCKET };
        let plan = compile_explained(&graph, bucket, &target, &weights, &options, &mut told).unwrap();
        let select = told.iter().find(|pass| pass.pass == "select").unwrap();
        (plan.kernels[0].name.clone(), select.decisions[0].why.clone())
    };
    assert_eq!(kernel(128, 33).0, "test/tiles@1");
    let (other, why) = kernel(100, 33);
    assert_ne!(other, "test/tiles@1");
    let wanted = "has the width of input 1 = 100; test/tiles@1 wants the width of input 1 a multiple of 64";
    assert!(why.contains(wanted), "{why}");
    let (_, why) = kernel(128, 34);
    assert!(why.contains("the rows of input 0 up to 34, as each step has it"), "{why}");
}
