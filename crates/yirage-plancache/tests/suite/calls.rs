//! Kernel graphs called with arrays, on the reference device and on the CPU: every operation gives what NumPy gives,
//! each call its own results; what does not fit is told.

#[path = "../../../yirage-graph/tests/suite/support/cases.rs"]
mod cases;

use std::collections::HashMap;
use std::sync::Arc;
use yirage_graph::workloads::ALL;
use yirage_graph::{KernelGraph, Parameters, Scale};
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions, Record};
use yirage_ir::interp::evaluate;
use yirage_ir::op::{KvAppend, Map};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Dims, Expr, Format, Graph, GraphBuilder, Sym, Tensor, Type, ValueId, ValueSource, rng};
use yirage_plancache::{CallError, CallOptions, Callable, HostArray};

fn devices() -> Vec<Arc<dyn Device>> {
    let open =
        |backend: &dyn Backend| backend.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0;
    vec![open(&Reference::default()), open(&yirage_cpu::Cpu)]
}

fn array(ty: &Type, bytes: &[u8]) -> HostArray {
    HostArray::new(ty.clone(), Record::of(bytes)).unwrap()
}

fn floats(sizes: &[u32], values: &[f32]) -> HostArray {
    HostArray::new(Type::new(DType::F32, sizes.iter().copied()), Record::of(values)).unwrap()
}

fn callable(device: &dyn Device, graph: &Graph) -> Result<Callable, CallError> {
    Callable::new(device, graph, &[], &CallOptions::default())
}

#[test]
fn operations_give_what_numpy_gives() {
    for device in devices() {
        for case in cases::all() {
            let mut graph = callable(&*device, &case.graph()).unwrap_or_else(|e| panic!("{}: {e}", case.line));
            let ins: Vec<HostArray> = case.ins.iter().map(|t| array(&t.ty(), &t.memory())).collect();
            let got = graph.call(&ins).unwrap_or_else(|e| panic!("{}: {e}", case.line));
            let data = |a: &HostArray| Tensor::from_memory(a.ty(), &Dims::default(), a.bytes()).data;
            // Kernels add in f32, and their functions are near, not rounded.
            case.check(&got.iter().map(data).collect::<Vec<Data>>(), 4.0);
        }
    }
}

#[test]
fn workloads_give_what_the_reference_gives_fused_or_not() {
    let dtypes = [DType::F32, DType::Stored(Format::F16), DType::Stored(Format::BF16)];
    for (workload, dtype) in ALL.into_iter().flat_map(|w| dtypes.map(|dtype| (w, dtype))) {
        let graph = workload.graph(Parameters { batch: 3, dtype, scale: Scale::Small }).unwrap();
        let mut tensors = HashMap::new();
        for (number, &id) in graph.inputs.iter().enumerate() {
            let shape: Vec<usize> = graph.ty(id).shape.iter().map(|d| d.as_const().unwrap()).collect();
            // Numbers that each type holds exactly.
            let element = |i: usize| ((rng::at(number as u64, i as u64) >> 56) as f32 - 128.0) / 256.0;
            let data = Data::F32((0..shape.iter().product()).map(element).collect());
            tensors.insert(graph.value(id).name.clone(), Tensor { dtype, shape, data });
        }
        let array_of = |id: ValueId| array(graph.ty(id), &tensors[&graph.value(id).name].memory());
        let weights: Vec<_> =
            graph.inputs_of(ValueSource::Weight).map(|id| (graph.value(id).name.clone(), array_of(id))).collect();
        let slots: Vec<_> = graph.inputs_of(ValueSource::StepInput).map(array_of).collect();
        let want = evaluate(&graph, &mut tensors.clone()).unwrap().remove(0);
        let largest = want.floats().iter().fold(0f32, |m, x| m.max(x.abs()));
        for (device, fuse) in devices().into_iter().flat_map(|d| [(d.clone(), true), (d, false)]) {
            let options = CallOptions { fuse, ..CallOptions::default() };
            let mut callable = Callable::new(&*device, &graph, &weights, &options).unwrap();
            let got = callable.call(&slots).unwrap().remove(0);
            let got = Tensor::from_memory(got.ty(), &Dims::default(), got.bytes());
            let worst = got.floats().iter().zip(want.floats()).fold(0f32, |m, (g, w)| m.max((g - w).abs()));
            // What is fused rounds less, so that results are a rounding of each op apart.
            let of_type = match dtype.name() {
                "f32" => 4e-6,
                "f16" => 6.0 / 2048.0,
                _ => 6.0 / 256.0,
            };
            let name = workload.name;
            assert!(worst <= of_type * largest, "{name} {dtype} fuse {fuse}: off by {worst} of {largest}");
        }
    }
}

fn scaled() -> Graph {
    let mut g = KernelGraph::new("scaled");
    let a = g.named_input("a", &[2, 3], None, DType::F32).unwrap();
    let b = g.named_input("b", &[2, 3], Some(&[1, 2]), DType::F32).unwrap();
    let sum = g.add(a, b).unwrap();
    let twice = g.mul_scalar(sum, 2.0).unwrap();
    g.named_output("twice", twice, None).unwrap();
    g.named_output("sum", sum, None).unwrap();
    g.finish().unwrap()
}

fn column() -> Type {
    Type { strides: Some(vec![1, 2]), ..Type::new(DType::F32, [2u32, 3]) }
}

#[test]
fn results_come_in_the_order_of_marking_and_in_memory_of_their_own() {
    for device in devices() {
        let mut graph = callable(&*device, &scaled()).unwrap();
        let a = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let b = HostArray::new(column(), Record::of(&[10.0f32, 40.0, 20.0, 50.0, 30.0, 60.0])).unwrap();
        let first = graph.call(&[a.clone(), b.clone()]).unwrap();
        let as_floats = |a: &HostArray| Tensor::from_memory(a.ty(), &Dims::default(), a.bytes()).floats().to_vec();
        assert_eq!(as_floats(&first[0]), [22.0, 44.0, 66.0, 88.0, 110.0, 132.0]);
        assert_eq!(as_floats(&first[1]), [11.0, 22.0, 33.0, 44.0, 55.0, 66.0]);
        let kept = first[0].bytes().to_vec();
        let second = graph.call(&[floats(&[2, 3], &[0.0; 6]), b]).unwrap();
        assert_eq!(as_floats(&second[1]), [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(first[0].bytes(), kept, "an earlier result stays what it was");
        assert_eq!(graph.outputs().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["twice", "sum"]);
        assert!(!graph.kernels().is_empty());
    }
}

/// Whoever transposes a row has a column whose other stride is what it was, and means nothing.
#[test]
fn strides_of_single_elements_do_not_count() {
    let lying = |shape: &[u32], strides: &[u32]| Type {
        strides: Some(strides.to_vec()),
        ..Type::new(DType::F32, shape.iter().copied())
    };
    for device in devices() {
        let mut g = KernelGraph::new("column");
        let x = g.named_input("x", &[3, 2, 1], Some(&[1, 3, 6]), DType::F32).unwrap();
        let twice = g.mul_scalar(x, 2.0).unwrap();
        g.named_output("twice", twice, None).unwrap();
        let mut graph = callable(&*device, &g.finish().unwrap()).unwrap();
        for strides in [[1, 3, 6], [1, 3, 1], [1, 3, 700]] {
            let x = Record::of(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
            let twice = graph.call(&[HostArray::new(lying(&[3, 2, 1], &strides), x).unwrap()]).unwrap();
            let twice = Tensor::from_memory(twice[0].ty(), &Dims::default(), twice[0].bytes());
            assert_eq!(twice.floats(), [2.0, 8.0, 4.0, 10.0, 6.0, 12.0], "{strides:?}");
        }
        let x = HostArray::new(lying(&[3, 2, 1], &[2, 1, 1]), Record::of(&[0.0f32; 6])).unwrap();
        refused(graph.call(&[x]), &["`x`", "[2, 1, 1] is given"]);
    }
}

fn refused<T>(result: Result<T, CallError>, wanted: &[&str]) {
    let message = result.err().unwrap().to_string();
    wanted.iter().for_each(|part| assert!(message.contains(part), "`{part}` is not in: {message}"));
}

#[test]
fn what_does_not_fit_is_told() {
    let device = &devices()[0];
    let mut graph = callable(&**device, &scaled()).unwrap();
    let a = || floats(&[2, 3], &[0.0; 6]);
    let b = || HostArray::new(column(), Record::of(&[0.0f32; 6])).unwrap();
    refused(graph.call(&[a()]), &["1 inputs are given", "takes 2", "a f32[2, 3], b f32[2, 3]/[1, 2]"]);
    refused(graph.call(&[a(), a()]), &["input `b` is f32[2, 3]/[1, 2], f32[2, 3] is given"]);
    refused(graph.call(&[b(), b()]), &["input `a` is f32[2, 3], f32[2, 3]/[1, 2] is given"]);
    refused(graph.call(&[floats(&[3, 2], &[0.0; 6]), b()]), &["`a`", "f32[3, 2] is given"]);
    refused(graph.call(&[floats(&[6], &[0.0; 6]), b()]), &["f32[6] is given"]);
    let half = Type::new(DType::Stored(Format::F16), [2u32, 3]);
    refused(graph.call(&[HostArray::new(half, Record::zeroed(12)).unwrap(), b()]), &["f16[2, 3] is given"]);
    graph.call(&[a(), b()]).unwrap();
    refused(HostArray::new(column(), Record::zeroed(20)), &["20 bytes", "24"]);
    refused(HostArray::new(Type::rows(Sym::Tokens, 4), Record::zeroed(16)), &["fixed sizes"]);
    refused(HostArray::new(Type::new(DType::Stored(Format::Q4_0), [32u32]), Record::zeroed(18)), &["f32, f16"]);
}

#[test]
fn weights_are_given_once_and_checked() {
    for device in devices() {
        let mut g = KernelGraph::new("product");
        let x = g.named_input("x", &[1, 2], None, DType::F32).unwrap();
        let w = g.new_weight("w", &[2, 2], None, DType::F32).unwrap();
        let y = g.matmul(x, w).unwrap();
        g.mark_output(y, None).unwrap();
        let graph = g.finish().unwrap();
        let new = |weights: &[(String, HostArray)]| Callable::new(&*device, &graph, weights, &CallOptions::default());
        refused(new(&[]), &["weight `w`", "not given"]);
        refused(new(&[("w".into(), floats(&[4], &[0.0; 4]))]), &["the weight `w` is f32[2, 2], f32[4] is given"]);
        let good = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        refused(new(&[("w".into(), good.clone()), ("v".into(), good.clone())]), &["`v`", "none of that name"]);
        let mut product = new(&[("w".into(), good)]).unwrap();
        let got = product.call(&[floats(&[1, 2], &[10.0, 1.0])]).unwrap();
        assert_eq!(Record::of(got[0].bytes()).values::<f32>(), [13.0, 24.0]);
    }
}

#[test]
fn a_value_may_be_several_outputs() {
    for device in devices() {
        let mut g = KernelGraph::new("twice");
        let x = g.named_input("x", &[3], None, DType::F32).unwrap();
        let y = g.relu(x).unwrap();
        [y, y].into_iter().for_each(|id| g.mark_output(id, None).unwrap());
        let mut graph = callable(&*device, &g.finish().unwrap()).unwrap();
        let got = graph.call(&[floats(&[3], &[-1.0, 0.0, 2.0])]).unwrap();
        let values: Vec<Vec<f32>> = got.iter().map(|a| Record::of(a.bytes()).values::<f32>().to_vec()).collect();
        assert_eq!(values, [[0.0, 0.0, 2.0], [0.0, 0.0, 2.0]]);
    }
}

#[test]
fn symbols_have_the_sizes_of_the_options_and_states_are_the_engines() {
    for device in devices() {
        let mut g = GraphBuilder::new("tokens");
        let x = g.step_input("x", Type::rows(Sym::Tokens, 2)).unwrap();
        let y = g.op("y", Map { expr: Expr::unary(yirage_ir::expr::Func::Neg) }, &[x]).unwrap();
        g.output(y);
        let options = CallOptions { dims: Dims { tokens: 3, ..Dims::default() }, ..CallOptions::default() };
        let mut graph = Callable::new(&*device, &g.finish(), &[], &options).unwrap();
        assert_eq!(graph.outputs()[0].1.to_string(), "f32[3, 2]");
        let got = graph.call(&[floats(&[3, 2], &[1.0; 6])]).unwrap();
        assert_eq!(Record::of(got[0].bytes()).values::<f32>(), [-1.0; 6]);
        refused(graph.call(&[floats(&[4, 2], &[1.0; 8])]), &["f32[3, 2]", "f32[4, 2] is given"]);
        let mut g = GraphBuilder::new("cached");
        let state = g.kv_cache("cache", Type::new(DType::F32, [32u32, 1, 8])).unwrap();
        let k = g.step_input("k", Type::rows(Sym::Tokens, 4)).unwrap();
        let v = g.step_input("v", Type::rows(Sym::Tokens, 4)).unwrap();
        let ids = g.step_input("ids", Type::new(DType::I32, [Sym::Tokens])).unwrap();
        let appended = g.op("appended", KvAppend { kv_heads: 1 }, &[state, k, v, ids]).unwrap();
        g.output(appended);
        refused(
            Callable::new(&*device, &g.finish(), &[], &options).map(drop),
            &["`cached`", "`cache`", "the engine's"],
        );
    }
}

/// Norms whose weights are inputs and weights of 16 bits, of one dimension and of two.
#[test]
fn norms_take_weights_of_every_kind_and_width() {
    for device in devices() {
        for (dtype, dims) in [("f16", &[16u32][..]), ("bf16", &[16]), ("f16", &[2, 8]), ("f32", &[2, 8])] {
            let dtype = DType::parse(dtype).unwrap();
            let mut g = KernelGraph::new("norms");
            let shape = [&[3], dims].concat();
            let x = g.new_input(&shape, None, dtype).unwrap();
            let (slot, weight) =
                (g.new_input(dims, None, dtype).unwrap(), g.new_weight("w", dims, None, dtype).unwrap());
            let a = g.scaled_rms_norm(x, dims, Some(slot), 1e-5).unwrap();
            let b = g.scaled_rms_norm(x, dims, Some(weight), 1e-5).unwrap();
            let c = g.layer_norm(x, dims, Some(weight), Some(slot), 1e-5).unwrap();
            let d = g.layer_norm(x, dims, Some(slot), Some(weight), 1e-5).unwrap();
            [a, b, c, d].into_iter().for_each(|id| g.mark_output(id, None).unwrap());
            let values = |sizes: &[u32]| {
                let ty = Type::new(dtype, sizes.iter().copied());
                let numbers: Vec<f32> = (0..sizes.iter().product()).map(|i: u32| (i % 7) as f32 - 2.5).collect();
                let sizes: Vec<usize> = sizes.iter().map(|&n| n as usize).collect();
                let scalars: Vec<_> = numbers.into_iter().map(Into::into).collect();
                array(&ty, &Tensor::from_scalars(dtype, sizes, &scalars).memory())
            };
            let weights = [("w".to_owned(), values(dims))];
            let graph = g.finish().unwrap();
            let mut norms = Callable::new(&*device, &graph, &weights, &CallOptions::default()).unwrap();
            let got = norms.call(&[values(&shape), values(dims)]).unwrap();
            assert_eq!(got[0].bytes(), got[1].bytes(), "a weight is a weight, wherever it comes from");
            assert_eq!(got[2].bytes(), got[3].bytes());
        }
    }
}
