//! One process, several backends: a graph and a model go from the processor to a Vulkan device, to a simulated accelerator and
//! back, and give the same results.
use crate::models::greedy;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cpu::Cpu;
use yirage_engine::{Engine, EngineOptions};
use yirage_hal::{Backend, Bindings, Device, Executor, OpenOptions};
use yirage_ir::{Dims, Format, text};
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_probe::ProbeEnvironment;
use yirage_sim::{Settings, Sim};
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;
use yirage_wgpu::{GraphicsApi, WgpuBackend};

/// Devices in the order in which they are used: each is opened before the first of them computes.
fn devices() -> Vec<Arc<dyn Device>> {
    let vulkan = WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process());
    let sim = Sim::with(Settings::with_interpreter());
    let backends: [&dyn Backend; 5] = [&Cpu, &vulkan, &sim, &vulkan, &Cpu];
    backends.map(|backend| backend.open(0, &OpenOptions::default()).unwrap().0).into()
}

const ROW_SHARES: &str =
    "graph g { input %x: f32[Tokens, 2] %r = reduce{kind=sum, axes=\"[1]\", keep=true}(%x): f32[Tokens, 1]
    %y = map{expr=\"div(x0, x1)\"}(%x, %r): f32[Tokens, 2] output %y }";

#[test]
#[ignore = "needs a Vulkan device"]
fn a_graph_moves_from_backend_to_backend() {
    let dims = Dims { tokens: 2, seqs: 1, blocks: 1, rows: 1 };
    let graph = text::parse(ROW_SHARES).unwrap();
    for device in devices() {
        let target = device.target();
        let weights = plan_weights(&graph, &target).unwrap();
        let plan = compile(&graph, dims, &target, &weights, &CompileOptions::default()).unwrap();
        let mut executor = Executor::new(&*device, &plan, &Bindings::default()).unwrap();
        executor.set_floats("x", [1.0, 3.0, -2.0, 6.0]);
        let outputs = executor.run(&dims).unwrap();
        assert_eq!(outputs.floats(0).unwrap(), [0.25, 0.75, -0.5, 1.5], "{}", device.info().backend);
    }
}

/// Engines of the same model on all of them are alive at once and take turns.
#[test]
#[ignore = "needs a Vulkan device"]
fn a_model_answers_alike_on_every_backend() {
    let folder = tiny::model("qwen3");
    let (checkpoint, golden) = (Checkpoint::open(&folder).unwrap(), json::read(&folder.join("golden.json")));
    let options =
        EngineOptions { kv: Some(Format::F32), precision: Precision::Exact, max_seqs: 2, ..EngineOptions::default() };
    let load = |device: Arc<dyn Device>| {
        let name = device.info().backend;
        (name, Engine::load(&checkpoint, device, &options, &mut |_, _| {}).unwrap())
    };
    let mut engines: Vec<(&str, Engine)> = devices().into_iter().take(3).map(load).collect();
    for case in golden["cases"].as_array().unwrap() {
        let (prompt, wanted) = (ids(&case["ids"]), ids(&case["greedy16"]));
        for (name, engine) in &mut engines {
            assert_eq!(greedy(engine, &prompt, wanted.len()), wanted, "{name}");
        }
    }
}
