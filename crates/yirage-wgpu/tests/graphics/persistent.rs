//! Persistent kernels on the first Vulkan device of this machine: their tokens are those of transformers and of the processor.
use std::sync::Arc;
use yirage_cpu::Cpu;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::Checkpoint;
use yirage_persistent::{KernelBuilder, KernelConfig, MetaData, MetaTensor, MetaTensors};
use yirage_probe::ProbeEnvironment;
use yirage_testkit::json::ids;
use yirage_testkit::tiny;
use yirage_wgpu::{GraphicsApi, WgpuBackend};

fn open(backend: &dyn Backend) -> Arc<dyn Device> {
    backend.open(0, &OpenOptions::default()).unwrap().0
}

/// `[step, tokens]` with one prompt each row.
fn meta(prompts: &[Vec<u32>], width: usize) -> MetaTensors {
    let row = |prompt: &Vec<u32>| {
        let mut row: Vec<i64> = prompt.iter().map(|&id| i64::from(id)).collect();
        row.resize(width, 0);
        row
    };
    let step = prompts.iter().map(|prompt| prompt.len() as i32 - 1).collect();
    let tokens = prompts.iter().flat_map(row).collect();
    MetaTensors::from_list(vec![
        MetaTensor { shape: vec![prompts.len()], data: MetaData::Int32(step) },
        MetaTensor { shape: vec![prompts.len(), width], data: MetaData::Int64(tokens) },
    ])
    .unwrap()
}

/// All rows of tokens of a model's kernel, and the steps where they ended.
fn run(
    device: Arc<dyn Device>,
    checkpoint: &Arc<Checkpoint>,
    config: KernelConfig,
    meta: MetaTensors,
) -> (Vec<i64>, Vec<i32>) {
    let mut builder = KernelBuilder::new(config, meta).unwrap();
    builder.build_model(checkpoint, None).unwrap();
    let mut kernel = builder.compile(device, None).unwrap();
    let report = kernel.call(None).unwrap();
    assert!(report.finished, "{report:?}");
    (kernel.meta().tokens().to_vec(), kernel.meta().step().to_vec())
}

#[test]
#[ignore = "needs a Vulkan device"]
fn models_of_layers_give_the_tokens_of_transformers() {
    let vulkan = open(&WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process()));
    for name in ["llama", "qwen3", "qwen3moe"] {
        let (checkpoint, golden) = (Arc::new(Checkpoint::open(tiny::model(name)).unwrap()), tiny::golden(name));
        for case in golden["cases"].as_array().unwrap() {
            let (prompt, wanted) = (ids(&case["ids"]), ids(&case["greedy16"]));
            let whole = prompt.len() + wanted.len();
            let config = KernelConfig {
                max_num_batched_requests: 1,
                max_num_batched_tokens: 64,
                max_seq_length: whole as u32,
                ..KernelConfig::default()
            };
            let (tokens, step) =
                run(vulkan.clone(), &checkpoint, config, meta(std::slice::from_ref(&prompt), whole + 3));
            let behind: Vec<u32> = tokens[prompt.len()..whole].iter().map(|&id| id as u32).collect();
            assert_eq!(behind, wanted, "{name}");
            assert_eq!(
                (step, &tokens[whole..]),
                (vec![whole as i32 - 1], &[0; 3][..]),
                "{name}: nothing behind the end"
            );
        }
    }
}

/// More requests than the kernel takes at once, which end at a token and at the longest length.
#[test]
#[ignore = "needs a Vulkan device"]
fn requests_end_where_they_do_on_the_processor() {
    let checkpoint = Arc::new(Checkpoint::open(tiny::model("qwen3")).unwrap());
    let prompts: Vec<Vec<u32>> =
        (0..5u32).map(|row| (0..3 + row * 5).map(|at| 3 + (row * 37 + at * 11) % 250).collect()).collect();
    let config = || KernelConfig {
        max_num_batched_requests: 2,
        max_num_batched_tokens: 16,
        max_seq_length: 64,
        eos_token_id: Some(84),
        ..KernelConfig::default()
    };
    let vulkan = open(&WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process()));
    let on = |device| run(device, &checkpoint, config(), meta(&prompts, 64));
    assert_eq!(on(vulkan), on(open(&Cpu)));
}
