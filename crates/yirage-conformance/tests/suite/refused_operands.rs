//! Operands that a kernel does not take: refused in compilation, by op, input, what it is and what would be taken. Each
//! of these graphs type-checks; before kernels said what they read, most compiled, loaded and read other memory.

use std::collections::HashMap;
use std::sync::Arc;
use yirage_compile::{CompileError, CompileOptions, compile, plan_weights};
use yirage_conformance::GraphSetup;
use yirage_cpu::Cpu;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Bindings, Device, HalError, OpenOptions, Record};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Dims, Graph, Tensor, ValueSource, text};
use yirage_plan::{Plan, Precision, Refusal, VerifiedPlan};

const BUCKET: Dims = Dims { tokens: 8, seqs: 2, blocks: 2, rows: 8 };

fn cpu() -> Arc<dyn Device> {
    Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).unwrap().0
}

fn compiled(device: &dyn Device, graph: &Graph) -> Result<VerifiedPlan, CompileError> {
    let target = device.target();
    let weights = plan_weights(graph, &target)?;
    compile(graph, BUCKET, &target, &weights, &CompileOptions::default())
}

fn graph(body: &str) -> Graph {
    text::parse(&format!("graph g {{ {body} }}")).unwrap_or_else(|e| panic!("{body}: {e:?}"))
}

/// A graph, the op and the input that the CPU does not take, and how it is given.
const REFUSED: &[(&str, &str, usize, &str)] = &[
    (
        "input %x: f32[Tokens, 32] weight %w: q8_0[32]
         %y = rms_norm{eps=1e-5, width=32, unit_offset=false}(%x, %w): f32[Tokens, 32] output %y",
        "rms_norm",
        1,
        "a weight in the layout tiles16x64@1 of q8_0 read as a whole",
    ),
    (
        "input %x: f32[Tokens, 32] input %w: f32[16, 32] %y = linear{groups=1}(%x, %w): f32[Tokens, 16] output %y",
        "linear",
        1,
        "a step input of f32",
    ),
    (
        "weight %w: f32[32, 32] %y = linear{groups=1}(%w, %w): f32[32, 32] output %y",
        "linear",
        0,
        "a weight in the layout tiles16x64@1 of f32",
    ),
    (
        "input %x: f32[Tokens, 64] weight %w: f32[16, 32] %q = quantize{layout=q8a, parts=1}(%x): q8a[Tokens, 64]
         %y = linear{groups=2}(%q, %w): f32[Tokens, 16] output %y",
        "linear",
        0,
        "a computed value of q8a",
    ),
    (
        "kv_cache %s: f32[32, 64] %y = softmax(%s): f32[32, 64] output %y",
        "softmax",
        0,
        "a recurrent state of f32",
    ),
    (
        "input %x: f32[Tokens, 8] weight %i: i32[8] %y = rms_norm{eps=1e-5, width=8, unit_offset=false}(%x, %i): f32[Tokens, 8]
         output %y",
        "rms_norm",
        1,
        "a weight in plain rows of i32 read as a whole",
    ),
];

/// Graphs whose operands were once read through a null pointer, or past their end, and that the CPU takes now.
const TAKEN: &[&str] = &[
    r#"weight %w: f32[4, 32] %y = map{expr="silu(x0)"}(%w): f32[4, 32] output %y"#,
    r#"input %x: f32[Tokens, 32] input %b: f32[32] %y = map{expr="add(x0, x1)"}(%x, %b): f32[Tokens, 32] output %y"#,
    r#"input %x: f32[4, 32] weight %b: f32[4, 32] %y = map{expr="add(x0, x1)"}(%x, %b): f32[4, 32] output %y"#,
    r#"weight %x: f32[4, 32] input %b: f32[4, 32] %y = map{expr="add(x0, x1)"}(%x, %b): f32[4, 32] output %y"#,
    "input %t: f32[8, 32] input %i: i32[Tokens] %y = embed{scale=1.0}(%t, %i): f32[Tokens, 32] output %y",
    "input %a: f32[8, 32] input %i: i32[Tokens] %t = softmax(%a): f32[8, 32]
         %y = embed{scale=1.0}(%t, %i): f32[Tokens, 32] output %y",
    "input %x: f32[Tokens, 32] input %w: f32[32]
         %y = rms_norm{eps=1e-5, width=32, unit_offset=false}(%x, %w): f32[Tokens, 32] output %y",
    "input %x: f32[Tokens, 32] input %w: f32[32]
         %y = layer_norm{eps=1e-5}(%x, %w): f32[Tokens, 32] output %y",
    "weight %x: f32[4, 32] weight %w: f32[16, 32] %y = linear{groups=1}(%x, %w): f32[4, 16] output %y",
    "input %l: f32[Tokens, 8] input %b: f32[8]
         %y, %e = route{top_k=2, scoring=softmax, normalize=true, scale=1.0, groups=1, top_groups=1}(%l, %b): f32[Tokens, 2], i32[Tokens, 2]
         output %y, %e",
    "input %x: f32[Tokens, 8] input %c: f32[4, 4] input %i: i32[Tokens] input %a: f32[4, 4] %s = softmax(%a): f32[4, 4]
         %y = rope{width=8, rotary=8, interleaved=false, per_row=false}(%x, %c, %s, %i): f32[Tokens, 8] output %y",
];

#[test]
fn operands_that_no_kernel_reads_are_refused_in_compilation() {
    let device = cpu();
    for (body, wanted_op, wanted_input, wanted) in REFUSED {
        let error = compiled(&*device, &graph(body)).unwrap_err();
        let CompileError::NoKernel { why, .. } = &error else { panic!("{body}: {error}") };
        let Refusal::Input(refused) = &**why else { panic!("{body}: {error}") };
        assert_eq!((&refused.op[..], refused.input), (*wanted_op, *wanted_input), "{body}: {error}");
        assert!(refused.given.starts_with(wanted) && !refused.accepted.is_empty(), "{error}");
    }
}

#[test]
fn operands_that_once_were_misread_are_read() {
    let device = cpu();
    for body in TAKEN {
        let setup = with_inputs(graph(body));
        let got = setup.run(&*device).unwrap_or_else(|e| panic!("{body}: {e:?}"));
        for (got, want) in got.iter().zip(setup.reference().unwrap()) {
            let (Data::F32(got), Data::F32(want)) = (got, &want.data) else {
                assert_eq!(*got, want.data, "{body}");
                continue;
            };
            let close = got.iter().zip(want).all(|(g, w)| (g - w).abs() <= 1e-5 + 1e-5 * w.abs());
            assert!(close && got.len() == want.len() && !got.is_empty(), "{body}: {got:?}, {want:?} wanted");
        }
    }
}

/// A graph with numbers for its weights and slots.
fn with_inputs(graph: Graph) -> GraphSetup {
    let dims = Dims { tokens: 3, seqs: 1, blocks: 1, rows: 1 };
    let number = |i: usize| ((i * 37 + 11) % 64) as f32 / 16.0 - 2.0;
    let (mut weights, mut step_inputs) = (HashMap::new(), HashMap::new());
    for v in graph.inputs.iter().map(|&id| graph.value(id)) {
        let shape: Vec<usize> = v.ty.shape.iter().map(|d| d.get(&dims)).collect();
        let n = v.ty.elems(&dims);
        if v.source == ValueSource::Weight {
            weights.insert(v.name.clone(), Tensor::f32(shape, (0..n).map(number).collect()));
        } else {
            let word = |i: usize| if v.ty.dtype == DType::I32 { i as i32 % 4 } else { number(i).to_bits() as i32 };
            step_inputs.insert(v.name.clone(), Record::of(&(0..n).map(word).collect::<Vec<_>>()));
        }
    }
    GraphSetup { graph, weights, step_inputs, kv_caches: Vec::new(), dims, precision: Precision::Exact }
}

#[test]
fn what_is_no_kernels_business_is_refused_as_well() {
    let device = cpu();
    for (body, wanted) in [
        ("input %x: f32[Tokens, 32] output %x", "no computed value of plain numbers"),
        ("weight %w: f32[4, 32] output %w", "no computed value of plain numbers"),
        (
            "input %x: f32[Tokens, 32] %q = quantize{layout=q8a, parts=1}(%x): q8a[Tokens, 32] output %q",
            "no computed value of plain numbers",
        ),
        ("input %x: f16[Tokens, 32] input %i: i32[Rows] %y = embed{scale=1.0}(%t, %i): f32[Rows, 32] output %y", ""),
        (
            "input %x: f32[Tokens, 64] input %c: i32[Tokens, 2] weight %w: f32[16, 64] weight %e: f32[2, 16, 64]
             %q = quantize{layout=q8a, parts=1}(%x): q8a[Tokens, 64] %y = linear{groups=1}(%q, %w): f32[Tokens, 16]
             %z = expert_linear{top_k=2, shared=true}(%q, %e, %c): f32[Tokens, 32] output %y, %z",
            "in two ways",
        ),
        (
            "input %x: f32[Tokens, 64] input %c: i32[Tokens, 2] weight %e: f32[2, 16, 32]
             %q = quantize{layout=q8a, parts=2}(%x): q8a[Tokens, 64]
             %z = expert_linear{top_k=2, shared=false}(%q, %e, %c): f32[Tokens, 32] output %z",
            "no multiple of 64",
        ),
        (
            "input %x: f32[Tokens, 64] input %c: i32[Tokens, 2] weight %e: f32[2, 16, 64]
             %q = quantize{layout=q8a, parts=2}(%x): q8a[Tokens, 64]
             %z = expert_linear{top_k=2, shared=true}(%q, %e, %c): f32[Tokens, 32] output %z",
            "quantised in Some(2) parts and read in 1",
        ),
        (
            "input %x: f32[Tokens, 64] input %i: i32[Tokens] weight %w: f32[16, 32]
             %t = embed{scale=1.0}(%w, %i): f32[Tokens, 32]
             %y = linear{groups=2}(%x, %w): f32[Tokens, 16] output %y, %t",
            "matrices",
        ),
    ] {
        let Ok(graph) = text::parse(&format!("graph g {{ {body} }}")) else {
            assert!(wanted.is_empty(), "{body}");
            continue;
        };
        let error = compiled(&*device, &graph).unwrap_err().to_string();
        assert!(error.contains(wanted), "{body}: {error}");
    }
}

#[test]
fn the_reference_takes_any_operand() {
    let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let refused = REFUSED.iter().map(|(body, ..)| body).filter(|body| !body.contains("i32[8]"));
    for body in TAKEN.iter().chain(refused) {
        compiled(&*device, &graph(body)).unwrap_or_else(|e| panic!("{body}: {e:?}"));
    }
}

#[test]
fn sizes_that_no_memory_has_are_errors() {
    let device = cpu();
    let target = device.target();
    let compile = |body: &str, bucket: Dims| {
        let graph = graph(body);
        let weights = plan_weights(&graph, &target).unwrap();
        compile(&graph, bucket, &target, &weights, &CompileOptions::default()).map(|_| ()).map_err(|e| e.to_string())
    };
    let most = Dims { tokens: i32::MAX as u32, seqs: i32::MAX as u32, blocks: i32::MAX as u32, rows: i32::MAX as u32 };
    let soft = "input %x: f32[Tokens, 65536] %y = softmax(%x): f32[Tokens, 65536] output %y";
    assert!(compile(soft, most).unwrap_err().contains("more than"));
    let table = "input %t: i32[Seqs, Blocks] input %x: f32[Tokens, 8] %y = softmax(%x): f32[Tokens, 8] output %y, %y";
    compile(table, BUCKET).unwrap();
    for bucket in [Dims { tokens: 0, ..BUCKET }, Dims { blocks: u32::MAX, ..BUCKET }] {
        assert!(compile(soft, bucket).unwrap_err().contains("the bucket has"));
    }
}

#[test]
fn a_device_loads_what_was_proved_for_it() {
    let body = "input %x: f32[Tokens, 32] %y = softmax(%x): f32[Tokens, 32] output %y";
    let (one, two) = (cpu(), Cpu.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0);
    let plan = compiled(&*two, &graph(body)).unwrap();
    let error = one.load(&plan, &Bindings::default()).map(|_| ()).unwrap_err();
    assert!(matches!(&error, HalError::Load(why) if why.contains("workers=2")), "{error}");
    let relabelled = Plan { target: one.target().describe(), ..plan.into_plan() };
    let error = VerifiedPlan::new(relabelled, &one.target()).unwrap_err().to_string();
    assert!(error.contains("it is for 2 workers, the target has 1"), "{error}");
}
