//! Inputs that are views of other memory; what cannot be one says so.

use std::collections::HashMap;
use yirage_compile::{CompileError, CompileOptions, compile};
use yirage_conformance::GraphSetup;
use yirage_cpu::Cpu;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, HalError, OpenOptions, Record, write_view};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Dims, Format, Type, text};
use yirage_plan::{Precision, WeightEntry, WeightPlan};

fn view(dtype: DType, shape: [u32; 2], strides: [u32; 2]) -> Type {
    Type { strides: Some(strides.into()), ..Type::new(dtype, shape) }
}

/// A slot of two rows, four elements each, column by column with a gap behind each.
fn strided(body: &str) -> GraphSetup {
    let graph = text::parse(&format!("graph g {{ input %x: f32[2, 4]/[1, 3] {body} output %y }}")).unwrap();
    let elements = Record::of(&(0..11).map(|i| i as f32).collect::<Vec<_>>());
    let dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };
    let (step_inputs, precision) = (HashMap::from([("x".to_string(), elements)]), Precision::Exact);
    GraphSetup { graph, weights: HashMap::new(), step_inputs, kv_caches: Vec::new(), dims, precision }
}

#[test]
fn a_strided_slot_is_read_where_it_lies_or_copied() {
    for backend in [&Reference::new() as &dyn Backend, &Cpu] {
        let device = backend.open(0, &OpenOptions { guarded: cfg!(unix), ..OpenOptions::default() }).unwrap().0;
        let target = device.target();
        let run = |body: &str| {
            let setup = strided(body);
            let plan =
                compile(&setup.graph, setup.dims, &target, &WeightPlan::default(), &CompileOptions::default()).unwrap();
            let Data::F32(got) = setup.run(&*device).unwrap().remove(0) else { panic!("floats") };
            (yirage_plan::text::print(&plan), got)
        };
        let (plan, got) = run("%y = map{expr=\"neg(x0)\"}(%x): f32[2, 4]");
        assert!(!plan.contains(".copy"), "{plan}");
        assert_eq!(got, [0.0, -3.0, -6.0, -9.0, -1.0, -4.0, -7.0, -10.0]);
        let (_, got) = run("%r = reduce{kind=sum, axes=\"[1]\", keep=false}(%x): f32[2]
             %y = map{expr=\"mul(x0, 2.0)\"}(%r): f32[2]");
        assert_eq!(got, [36.0, 44.0]);
        let (plan, got) = run("%y = hadamard{part=4}(%x): f32[2, 4]");
        assert_eq!(plan.contains("%x.copy = view{form=\"reshape(2, 4)\"}(%x): f32[2, 4]"), backend.name() == "cpu");
        assert_eq!(got, [9.0, -3.0, -6.0, 0.0, 11.0, -3.0, -6.0, 0.0]);
        // As many elements as it holds, gaps among them.
        let mut short = strided("%y = map{expr=\"neg(x0)\"}(%x): f32[2, 4]");
        short.step_inputs.insert("x".into(), Record::of(&[0.0f32; 8]));
        let error = String::from(short.run(&*device).unwrap_err());
        assert!(error.contains("32") && error.contains("44"), "{error}");
    }
}

#[test]
fn a_strided_state_is_not_supported() {
    let text = "graph g { input %k: f32[Tokens, 16] input %v: f32[Tokens, 16] input %at: i32[Tokens]
        kv_cache %kv: f32[32, 1, 32]/[64, 32, 1] %s = kv_append{kv_heads=1}(%kv, %k, %v, %at): f32[32, 1, 32] output %s }";
    let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let graph = text::parse(text).unwrap();
    let (dims, target) = (Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 }, device.target());
    let error = compile(&graph, dims, &target, &WeightPlan::default(), &CompileOptions::default()).unwrap_err();
    assert!(matches!(&error, CompileError::Unsupported { what, .. } if what.contains("`kv`")), "{error}");
}

#[test]
fn views_that_cannot_be_read_are_errors() {
    let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let write = |ty: Type, elements: usize| {
        let entry =
            WeightEntry { name: "w".into(), ty: ty.dense(), layout: "rows".into(), groups: 1, shard_axis: None };
        write_view(&mut *device.weight(&entry).unwrap(), "w", &ty, &vec![0; elements * 4])
    };
    assert_eq!(write(view(DType::F32, [3, 4], [4, 1]), 12), Ok(()));
    assert_eq!(write(view(DType::F32, [3, 4], [0, 1]), 4), Ok(()), "one row for all");
    for (strides, elements) in [([4, 1], 11), ([1, 4], 14), ([u32::MAX, u32::MAX], 1000)] {
        let error = write(view(DType::F32, [3, 4], strides), elements).unwrap_err();
        assert!(matches!(error, HalError::Weight { .. }), "{error}");
    }
    let error = write(view(DType::Stored(Format::Q8_0), [2, 32], [64, 1]), 1000).unwrap_err();
    assert!(matches!(error, HalError::Unsupported { .. }), "{error}");
}
