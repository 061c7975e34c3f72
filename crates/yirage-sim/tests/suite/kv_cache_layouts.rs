//! Layouts of caches and weights as data: each kind of accelerator has its own, and what one has cached another goes on with.

use std::collections::HashSet;
use std::sync::Arc;
use yirage_conformance::{CaseOutcome, Suite};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, KvBlocks, KvCacheHandle, OpenOptions, copy_kv_blocks};
use yirage_ir::{DType, Dims, Format, Type};
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_sim::{Settings, Sim};
use yirage_testkit::json::{self, ids};
use yirage_testkit::rng::Rng;
use yirage_testkit::tiny;

fn devices() -> [Arc<dyn Device>; 3] {
    [Settings::with_pointers(), Settings::with_bindings(), Settings::with_operations()]
        .map(|settings| Sim::with(settings).open(0, &OpenOptions::default()).unwrap().0)
}

const FORMATS: [Format; 4] = [Format::F32, Format::F16, Format::BF16, Format::Q8_0];

fn block(format: Format, positions: u32) -> Type {
    Type::new(DType::Stored(format), [positions, 3u32, 96])
}

#[test]
fn each_kind_has_layouts_and_lengths_of_its_own() {
    let targets = devices().map(|device| device.target());
    let weights: HashSet<_> = targets.iter().map(|target| target.weight_layouts[0].layout).collect();
    let caches: HashSet<_> = targets.iter().map(|target| target.kv_cache_layouts[0].layout).collect();
    assert_eq!((weights.len(), caches.len()), (3, 3));
    let lengths: Vec<_> = targets.iter().map(|target| target.kv_block_positions(Format::F16)).collect();
    assert_eq!(lengths, [Some(64), Some(16), Some(32)]);
}

/// What is padded is in the accounts of the device.
#[test]
fn a_cache_takes_what_its_layout_says() {
    for device in devices() {
        for format in FORMATS {
            // A head of 31 floats is no multiple of 32 bytes.
            let width = if format == Format::Q8_0 { 32u32 } else { 31 };
            let ty = Type::new(DType::Stored(format), [16u32, 3, width]);
            let plain = ty.bytes(&Dims::default()) as u64;
            let target = device.target();
            let layout = target.kv_cache_layout(&ty).unwrap();
            let each = device.kv_block_bytes(&ty, width).unwrap();
            let row = ty.dtype.row_bytes(width as usize) as u64;
            assert_eq!(each, 16 * 3 * row.next_multiple_of(u64::from(layout.align)), "{layout:?}");
            assert!(each > plain || layout.align == 1, "{layout:?}");
            let before = device.memory().cache.used;
            let cache = device.kv_cache(&ty, width, 5).unwrap();
            assert_eq!(device.memory().cache.used - before, 5 * each);
            drop(cache);
            assert_eq!(device.memory().cache.used, before);
        }
    }
}

#[test]
fn blocks_go_from_any_layout_to_any_other() {
    let devices = devices();
    let mut rng = Rng::new(48);
    let own = |device: &Arc<dyn Device>, format| block(format, device.target().kv_block_positions(format).unwrap());
    for format in FORMATS {
        for (from, to) in devices.iter().flat_map(|from| devices.iter().map(move |to| (from, to))) {
            let (given, taken) = (own(from, format), own(to, format));
            let numbers = |ty: &Type| {
                let count = 128 / ty.shape[0].get(&Dims::default());
                (0..count as u32).map(|at| count as u32 - at).collect::<Vec<u32>>()
            };
            let make = |device: &dyn Device, ty: &Type| device.kv_cache(ty, 48, 10).unwrap();
            let (a, b): (KvCacheHandle, KvCacheHandle) = (make(&**from, &given), make(&**to, &taken));
            let rows: Vec<u8> =
                (0..given.bytes(&Dims::default()) * numbers(&given).len()).map(|_| rng.next_u64() as u8).collect();
            from.write_kv_blocks(&a, &numbers(&given), &rows).unwrap();
            assert!(from.read_kv_blocks(&a, &numbers(&given)).unwrap() == rows);
            let from = KvBlocks { device: &**from, cache: &a, block: &given, blocks: &numbers(&given) };
            let whole = KvBlocks { device: &**to, cache: &b, block: &taken, blocks: &numbers(&taken) };
            copy_kv_blocks(from, whole).unwrap();
            assert!(to.read_kv_blocks(&b, &numbers(&taken)).unwrap() == rows, "{given} to {taken}");
            let short = KvBlocks { blocks: &numbers(&taken)[1..], ..whole };
            assert!(copy_kv_blocks(from, short).unwrap_err().to_string().contains("positions of"));
        }
    }
}

#[test]
fn lengths_that_no_layout_has_are_refused_by_name() {
    let [device, ..] = devices();
    let ty = block(Format::F16, 48);
    let refused = device.kv_cache(&ty, 48, 1).err().unwrap().to_string();
    assert!(refused.contains("sim-heads") && refused.contains("48"), "{refused}");
}

/// Every case of what reads and writes caches, in each layout.
#[test]
fn each_layout_passes_the_cases_of_caches() {
    let suite = Suite::of(&["kv_append", "attention"]);
    for device in devices() {
        for report in suite.run(&*device, &[]) {
            assert_eq!(report.outcome, CaseOutcome::Passed, "{}", report.name);
        }
    }
}

fn engine(model: &str, device: Arc<dyn Device>) -> Engine {
    let options = EngineOptions {
        kv: Some(Format::F32),
        context: Some(256),
        precision: Precision::Exact,
        max_seqs: 2,
        ..EngineOptions::default()
    };
    Engine::load(&Checkpoint::open(tiny::model(model)).unwrap(), device, &options, &mut |_, _| {}).unwrap()
}

/// The tokens that follow a prompt.
fn follow(engine: &mut Engine, prompt: &[u32], count: u32) -> Vec<u32> {
    engine.add(Request::greedy(prompt.to_vec(), count)).unwrap();
    let mut tokens = Vec::new();
    while !engine.is_idle() {
        let token = |event| if let Event::Token { token, .. } = event { Some(token) } else { None };
        tokens.extend(engine.step().unwrap().into_iter().filter_map(token));
    }
    tokens
}

/// A beginning that one accelerator has computed goes on on another, whose blocks lie otherwise and are longer or shorter.
#[test]
fn a_beginning_moves_between_layouts() {
    for model in ["llama", "gemma3", "deepseek-v3"] {
        let golden = json::read(&tiny::model(model).join("golden.json"));
        let seed = ids(&golden["cases"].as_array().unwrap()[0]["ids"]);
        // Two blocks of the longest.
        let prompt: Vec<u32> = seed.iter().copied().cycle().take(129).collect();
        let mut engines = devices().map(|device| engine(model, device));
        let wanted = follow(&mut engines[0], &prompt, 8);
        for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)] {
            let [mut from, mut to] = [from, to].map(|at| engine(model, devices()[at].clone()));
            assert_eq!(follow(&mut from, &prompt, 8), wanted);
            let saved = from.cached_prefix(&prompt, b"").unwrap();
            let tokens = prompt[..128].to_vec();
            assert_eq!(saved.positions(), 128);
            let contents: Vec<_> =
                saved.caches().into_iter().map(|(name, _)| (name.clone(), saved.contents(&name).unwrap())).collect();
            let mut restored = to.restore_prefix(tokens, b"").unwrap();
            for (name, rows) in &contents {
                restored.write(name, rows).unwrap();
            }
            assert_eq!(restored.finish().unwrap(), 128);
            assert_eq!(follow(&mut to, &prompt, 8), wanted, "{model}");
        }
    }
}
