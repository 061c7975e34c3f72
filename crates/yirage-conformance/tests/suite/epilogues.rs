//! What becomes of a product's results is computed where they are at hand, and the bytes are those of op by op.

use std::collections::HashMap;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_conformance::GraphSetup;
use yirage_cpu::Cpu;
use yirage_cpu_kernels::isa::Isa;
use yirage_hal::{Backend, OpenOptions, Record};
use yirage_ir::rng::Rng;
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Dims, Tensor, Type, ValueSource, text};
use yirage_plan::Precision;
use yirage_testkit::skipped;

/// What follows products, as one region of products, with how many of them.
const BODIES: [(&str, usize); 10] = [
    // A bias, and a scale beside it that another reader wants.
    (
        "input %b: f32[96] %p = linear{groups=1}(%x, %w): f32[Tokens, 96]
         %y = map{expr=\"add(x0, x1)\"}(%p, %b): f32[Tokens, 96]
         %h = map{expr=\"mul(x0, 0.5)\"}(%y): f32[Tokens, 96] output %y output %h",
        1,
    ),
    // Two products, one with an expression of other rows, one as it is.
    (
        "input %r: f32[Tokens, 96] weight %v: f32[200, 64] %p = linear{groups=1}(%x, %w): f32[Tokens, 96]
         %q = linear{groups=1}(%x, %v): f32[Tokens, 200]
         %y = map{expr=\"add(x1, mul(x0, sigmoid(x0)))\"}(%p, %r): f32[Tokens, 96] output %y output %q",
        1,
    ),
    // Rounded to 16 bits, and read by whoever is next.
    (
        "%p = linear{groups=1}(%x, %w): f32[Tokens, 96] %h = map{expr=\"cast.bf16(x0)\"}(%p): bf16[Tokens, 96]
         %n = reduce{kind=max, axes=\"[1]\", keep=true}(%h): bf16[Tokens, 1]
         %y = map{expr=\"cast.f32(sub(x0, x1))\"}(%h, %n): f32[Tokens, 96] output %y",
        1,
    ),
    // Of groups, each with rows of its own; the result is turned around.
    (
        "%p = linear{groups=2}(%x, %g): f32[Tokens, 96] %h = view{form=\"reshape(Tokens, 2, 48)\"}(%p): f32[Tokens, 2, 48]
         %t = view{form=\"permute(0, 2, 1)\"}(%h): f32[Tokens, 48, 2]
         %y = map{expr=\"relu(x0)\"}(%t): f32[Tokens, 48, 2] output %y",
        1,
    ),
    // The product reads the very rows that are added to it.
    (
        "weight %s: f32[64, 64] %p = linear{groups=1}(%x, %s): f32[Tokens, 64]
         %y = map{expr=\"add(x0, x1)\"}(%x, %p): f32[Tokens, 64]
         %q = linear{groups=1}(%y, %w): f32[Tokens, 96]
         %z = map{expr=\"mul(tanh(div(x0, 30.0)), 30.0)\"}(%q): f32[Tokens, 96] output %z",
        2,
    ),
    // A gate and what it gates, made together; the last panel has some rows alone.
    (
        "%p = linear{groups=1}(%x, %a): f32[Tokens, 600] %q = linear{groups=1}(%x, %e): f32[Tokens, 600]
         %y = map{expr=\"mul(silu(x0), x1)\"}(%p, %q): f32[Tokens, 600] output %y",
        1,
    ),
    // The same with biases, the other way round, of weights of two formats, and another product beside them.
    (
        "input %b: f32[600] input %c: f32[600] weight %v: f32[600, 64]
         %p = linear{groups=1}(%x, %a): f32[Tokens, 600] %q = linear{groups=1}(%x, %v): f32[Tokens, 600]
         %k = linear{groups=1}(%x, %w): f32[Tokens, 96]
         %pb = map{expr=\"add(x0, x1)\"}(%p, %b): f32[Tokens, 600] %qb = map{expr=\"add(x0, x1)\"}(%q, %c): f32[Tokens, 600]
         %y = map{expr=\"mul(gelu_tanh(x1), x0)\"}(%pb, %qb): f32[Tokens, 600] output %y output %k",
        1,
    ),
    // Of groups, and rounded: the gate is read twice.
    (
        "%p = linear{groups=2}(%x, %g): f32[Tokens, 96] %q = linear{groups=2}(%x, %i): f32[Tokens, 96]
         %y = map{expr=\"cast.bf16(mul(mul(x0, sigmoid(x0)), x1))\"}(%p, %q): bf16[Tokens, 96]
         %z = map{expr=\"cast.f32(x0)\"}(%y): f32[Tokens, 96] %m = softmax(%z): f32[Tokens, 96] output %m",
        1,
    ),
    // Three, by two maps, and what follows of rows of its own.
    (
        "input %r: f32[Tokens, 600] weight %v: f32[600, 64] %p = linear{groups=1}(%x, %a): f32[Tokens, 600]
         %q = linear{groups=1}(%x, %e): f32[Tokens, 600] %k = linear{groups=1}(%x, %v): f32[Tokens, 600]
         %t = map{expr=\"sub(x0, x1)\"}(%p, %q): f32[Tokens, 600] %u = map{expr=\"div(x0, x1)\"}(%k, %t): f32[Tokens, 600]
         %y = map{expr=\"add(tanh(x0), x1)\"}(%u, %r): f32[Tokens, 600] output %y",
        1,
    ),
    // What is gated is wanted by itself too, so the gate waits for neither.
    (
        "%p = linear{groups=1}(%x, %a): f32[Tokens, 600] %q = linear{groups=1}(%x, %e): f32[Tokens, 600]
         %y = map{expr=\"mul(silu(x0), x1)\"}(%p, %q): f32[Tokens, 600] output %y output %q",
        1,
    ),
];

fn setup(body: &str, format: &str, precision: Precision, tokens: u32) -> GraphSetup {
    let shapes = [("w", "96, 64"), ("g", "96, 32"), ("i", "96, 32"), ("a", "600, 64"), ("e", "600, 64")];
    let weights: String = shapes.map(|(name, shape)| format!("weight %{name}: {format}[{shape}] ")).concat();
    let used: String = weights.split_inclusive("] ").filter(|w| body.contains(&format!("{})", &w[7..9]))).collect();
    let text = format!("graph g {{ input %x: f32[Tokens, 64] {used} {body} }}");
    let graph = text::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let dims = Dims { tokens, seqs: 1, blocks: 1, rows: 1 };
    let (mut rng, mut weights, mut step_inputs) = (Rng::new(11), HashMap::new(), HashMap::new());
    for &id in &graph.inputs {
        let v = graph.value(id);
        let values: Vec<f32> = (0..v.ty.elems(&dims)).map(|_| rng.signed_f32()).collect();
        if v.source == ValueSource::Weight {
            weights.insert(v.name.clone(), weight(&v.ty, &values));
        } else {
            step_inputs.insert(v.name.clone(), Record::of(&values));
        }
    }
    GraphSetup { graph, weights, step_inputs, kv_caches: Vec::new(), dims, precision }
}

fn weight(ty: &Type, values: &[f32]) -> Tensor {
    let DType::Stored(format) = ty.dtype else { panic!("{ty}") };
    let mut blocks = vec![0; format.info().row_bytes(values.len())];
    format.info().encode.unwrap()(values, &mut blocks);
    Tensor::stored(format, ty.shape.iter().map(|d| d.get(&Dims::default())).collect::<Vec<_>>(), blocks)
}

fn bits(data: &[Data]) -> Vec<Vec<u32>> {
    let words = |d: &Data| match d {
        Data::F32(v) => v.iter().map(|x| x.to_bits()).collect(),
        other => panic!("{other:?}"),
    };
    data.iter().map(words).collect()
}

#[test]
fn epilogues_have_the_bytes_of_op_by_op() {
    for isa in Isa::ALL {
        if !isa.available() {
            skipped::note(&format!("level {isa}"), "this processor lacks it");
            continue;
        }
        let options =
            OpenOptions { threads: Some(2), isa: Some(isa.name().into()), guarded: true, ..OpenOptions::default() };
        let device = Cpu.open(0, &options).unwrap().0;
        for (body, regions) in BODIES {
            for (format, precision) in [
                ("f32", Precision::Exact),
                ("q8_0", Precision::Exact),
                ("q8_0", Precision::Fast),
                ("bf16", Precision::Fast),
            ] {
                for tokens in [1, 37, 150] {
                    let setup = setup(body, format, precision, tokens);
                    let (target, bucket) = (device.target(), Dims { tokens: tokens + 3, ..setup.dims });
                    let weights = plan_weights(&setup.graph, &target).unwrap();
                    let options = CompileOptions::new(precision);
                    let plan = compile(&setup.graph, bucket, &target, &weights, &options).unwrap();
                    let plan = yirage_plan::text::print(&plan);
                    assert_eq!(plan.matches("region matmul_group").count(), regions, "{plan}");
                    let fused = setup.run_in(&*device, bucket, &options).unwrap();
                    let alone = setup.run_in(&*device, bucket, &options.unfused()).unwrap();
                    assert!(bits(&fused) == bits(&alone), "{isa}, {format}, {tokens} tokens: {plan}");
                }
            }
        }
    }
}
