//! The workloads of Mirage's benchmarks: against NumPy at small sizes, and at the shapes that Mirage times.

use std::collections::HashMap;
use yirage_graph::workloads::ALL;
use yirage_graph::{Parameters, Scale, Workload};
use yirage_ir::interp::evaluate;
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Graph, Tensor, ValueSource, rng, verify};

const TYPES: [&str; 3] = ["f32", "f16", "bf16"];

fn graph(name: &str, batch: u32, dtype: &str, scale: Scale) -> Graph {
    let dtype = DType::parse(dtype).unwrap();
    let graph = Workload::named(name).unwrap().graph(Parameters { batch, dtype, scale }).unwrap();
    verify(&graph).unwrap();
    graph
}

/// The inputs as the oracle makes them, which every type holds exactly.
fn inputs(graph: &Graph) -> HashMap<String, Tensor> {
    let one = |(number, &id): (usize, &yirage_ir::ValueId)| {
        let value = graph.value(id);
        let shape: Vec<usize> = value.ty.shape.iter().map(|d| d.as_const().unwrap()).collect();
        let element = |i: u64| ((rng::at(number as u64, i) >> 56) as f32 - 128.0) / 256.0;
        let data = (0..shape.iter().product::<usize>() as u64).map(element).collect();
        (value.name.clone(), Tensor { dtype: value.ty.dtype, shape, data: Data::F32(data) })
    };
    graph.inputs.iter().enumerate().map(one).collect()
}

#[test]
fn small_workloads_give_what_numpy_gives() {
    let golden = include_str!("../golden/workloads.txt");
    let mut seen = Vec::new();
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let [name, batch, shape, data] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let shape: Vec<usize> = shape.split(',').map(|n| n.parse().unwrap()).collect();
        let word = |at: usize| f32::from_bits(u32::from_str_radix(&data[at..at + 8], 16).unwrap());
        let want: Vec<f32> = (0..data.len() / 8).map(|i| word(i * 8)).collect();
        let largest = want.iter().fold(0f32, |m, x| m.max(x.abs()));
        for dtype in TYPES {
            let graph = graph(name, batch.parse().unwrap(), dtype, Scale::Small);
            let outs = evaluate(&graph, &mut inputs(&graph)).unwrap();
            assert_eq!((outs.len(), outs[0].dtype.name(), &outs[0].shape), (1, dtype, &shape), "{name}");
            // Each op rounds what it gives; a workload has six in a row at most.
            let of_type = match dtype {
                "f32" => 4e-6,
                "f16" => 6.0 / 2048.0,
                _ => 6.0 / 256.0,
            };
            let worst = outs[0].floats().iter().zip(&want).fold(0f32, |m, (g, w)| m.max((g - w).abs()));
            assert!(worst <= of_type * largest, "{name} {dtype}: off by {worst} of {largest}");
        }
        seen.push(name);
    }
    assert!(ALL.iter().all(|w| seen.iter().filter(|name| **name == w.name).count() == 2));
}

#[test]
fn shapes_are_those_that_mirage_times() {
    // Inputs, then the output, as benchmark/*.py has them for a batch of one.
    let wanted = [
        ("group_query_attention", "q[2, 256, 64] k[2, 64, 4096] v[2, 4096, 64] o[2, 256, 64]"),
        ("qknorm_gqa", "q[2, 256, 64] k[2, 64, 4096] v[2, 4096, 64] o[2, 256, 64]"),
        ("rmsnorm", "x[2, 4096] w[4096, 6144] o[2, 6144]"),
        ("lora", "x[16, 256] w[256, 4096] a[256, 16] b[16, 4096] o[16, 4096]"),
        ("gated_mlp", "x[8, 4096] w1[4096, 4096] w2[4096, 4096] o[8, 4096]"),
        ("norm_transformer", "h[8, 4096] x[8, 4096] alpha[8, 4096] o[8, 4096]"),
        ("moe", "x[8, 8, 4096] a[8, 4096, 4096] b[8, 4096, 4096] o[8, 8, 4096]"),
        ("multi_head_attention", "q[32, 16, 64] k[32, 64, 4096] v[32, 4096, 64] o[32, 16, 64]"),
        ("multi_query_attention", "q[1, 1024, 64] k[1, 64, 4096] v[1, 4096, 64] o[1, 1024, 64]"),
    ];
    assert_eq!(wanted.map(|(name, _)| name), ALL.map(|w| w.name));
    for (name, wanted) in wanted {
        for dtype in TYPES {
            let graph = graph(name, 1, dtype, Scale::Mirage);
            let of = |id: &yirage_ir::ValueId| {
                let value = graph.value(*id);
                format!("{}{}", value.name, value.ty.to_string().trim_start_matches(dtype))
            };
            let shown: Vec<String> = graph.inputs.iter().chain(&graph.outputs).map(of).collect();
            assert_eq!(shown.join(" "), wanted);
            assert!(graph.values.iter().all(|v| v.ty.dtype.name() == dtype || v.ty.dtype == DType::F32), "{name}");
        }
        // The batch multiplies rows or heads, never weights.
        let (one, many) = (graph(name, 1, "f32", Scale::Mirage), graph(name, 16, "f32", Scale::Mirage));
        for (&a, &b) in one.inputs.iter().zip(&many.inputs) {
            let elements = |graph: &Graph, id| graph.ty(id).elems(&yirage_ir::Dims::default());
            let factor = if one.value(a).source == ValueSource::Weight { 1 } else { 16 };
            assert_eq!(elements(&one, a) * factor, elements(&many, b), "{name} {}", one.value(a).name);
        }
    }
}

#[test]
fn a_batch_that_makes_no_sense_is_refused() {
    for workload in ALL {
        for batch in [0, u32::MAX] {
            let parameters = Parameters { batch, dtype: DType::F32, scale: Scale::Mirage };
            assert!(workload.graph(parameters).is_err(), "{} {batch}", workload.name);
        }
        let parameters = Parameters { batch: 1, dtype: DType::I32, scale: Scale::Mirage };
        assert!(workload.graph(parameters).unwrap_err().to_string().contains("i32"));
    }
    assert!(Workload::named("gqa").is_none());
}
