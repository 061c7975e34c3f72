//! A model in stages on several devices: the bytes of one device, whatever the request, and a reason for what has to be whole.

use crate::golden_support::{all_logits, engine_on, greedy, ids, json, options};
use std::sync::Arc;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{Encoder, EncoderOptions, Engine, EngineError, EngineOptions, Event, Forward, ForwardOptions};
use yirage_engine::{EngineAdapter, Request, Speculation, plan_step};
use yirage_hal::{Backend, Device, DevicePipeline, OpenOptions};
use yirage_ir::Format;
use yirage_model::{Checkpoint, LoraAdapter};
use yirage_plan::Precision;
use yirage_testkit::{adapters, encoders, tiny};

/// So many devices as the stages of a pipeline.
fn pipeline(stages: usize) -> Arc<dyn Device> {
    let options = OpenOptions { threads: Some(1), ..OpenOptions::default() };
    let devices = (0..stages).map(|_| yirage_cpu::Cpu.open(0, &options).unwrap().0).collect();
    Arc::new(DevicePipeline::new(devices).unwrap())
}

fn exact() -> EngineOptions {
    EngineOptions { kv: Some(Format::F32), ..options(Precision::Exact) }
}

/// An engine of a model in so many stages.
fn staged(name: &str, stages: usize, options: &EngineOptions) -> Engine {
    engine_on(&tiny::model(name), options, pipeline(stages))
}

/// The error of a load.
fn refused<T>(loaded: Result<T, EngineError>) -> String {
    loaded.err().map(|error| error.to_string()).expect("it is refused")
}

#[test]
fn every_architecture_in_stages_gives_the_bytes_of_one_device() {
    for name in tiny::staged() {
        let (mut whole, mut two) = (staged(name, 1, &exact()), staged(name, 2, &exact()));
        assert_eq!(whole.facts().bytes.cache, two.facts().bytes.cache, "{name}");
        for case in json(&tiny::model(name).join("golden.json"))["cases"].as_array().unwrap() {
            let (prompt, tokens) = (ids(&case["ids"]), ids(&case["greedy16"]));
            assert_eq!(all_logits(&mut two, &prompt), all_logits(&mut whole, &prompt), "{name}");
            assert_eq!(greedy(&mut two, &prompt, tokens.len()), tokens, "{name}");
        }
    }
}

/// Prompts of several microbatches beside sequences that decode, over more stages than two.
#[test]
fn batches_that_go_in_microbatches_give_the_bytes_of_one_device() {
    let options = EngineOptions { chunk: 512, max_seqs: 4, context: Some(512), prefix_cache: false, ..exact() };
    for stages in [2, 3, 5] {
        let last_rows = |engine: &mut Engine| {
            let mut rows = Vec::new();
            for (seed, len) in [(1u32, 5), (2, 400), (3, 300), (4, 129)] {
                let ids = (0..len).map(|i| 3 + (i * 7 + seed * 31) % 200).collect();
                let request = Request { logits: Some(LogitsWanted::Last), ..Request::greedy(ids, 4) };
                engine.add(request).unwrap();
            }
            while !engine.is_idle() {
                for event in engine.step().unwrap() {
                    if let Event::Logits { position, logits, .. } = event {
                        rows.push((position, logits));
                    }
                }
            }
            rows
        };
        let (mut whole, mut cut) = (staged("gemma3", 1, &options), staged("gemma3", stages, &options));
        let rows = last_rows(&mut cut);
        assert_eq!(rows.len(), 16);
        assert_eq!(rows, last_rows(&mut whole), "{stages} stages");
    }
}

#[test]
fn beginnings_go_from_a_pipeline_to_one_device_and_back() {
    let prompt: Vec<u32> = (0..80).map(|i| 3 + i * 5 % 90).collect();
    let (mut two, mut one) = (staged("llama", 2, &exact()), staged("llama", 1, &exact()));
    let tokens = greedy(&mut two, &prompt, 8);
    let kept = two.cached_prefix(&prompt, b"").unwrap();
    let positions = kept.positions();
    assert!(positions >= 64);
    let contents: Vec<(String, Vec<u8>)> =
        kept.caches().into_iter().map(|(name, _)| (name.clone(), kept.contents(&name).unwrap())).collect();
    drop(kept);
    for engine in [&mut one, &mut staged("llama", 2, &exact())] {
        let mut restored = engine.restore_prefix(prompt[..positions].to_vec(), b"").unwrap();
        contents.iter().for_each(|(name, bytes)| restored.write(name, bytes).unwrap());
        assert_eq!(restored.finish().unwrap(), positions);
        assert_eq!(greedy(engine, &prompt, 8), tokens);
    }
}

#[test]
fn a_draft_model_guesses_for_a_pipeline() {
    let prompt = [5, 9, 17, 33, 5, 9];
    let guessing = EngineOptions { speculation: Speculation { most: 3, ..Speculation::default() }, ..exact() };
    let mut two = staged("llama", 2, &guessing);
    let draft = Checkpoint::open(tiny::model("llama")).unwrap();
    two.load_draft(&draft, None, &mut |_, _| {}).unwrap();
    assert_eq!(greedy(&mut two, &prompt, 12), greedy(&mut staged("llama", 1, &exact()), &prompt, 12));
    assert!(two.stats().accepted > 0, "{:?}", two.stats());
}

/// Adapters beside the model, and others in their place while it is loaded.
#[test]
fn adapters_go_to_the_stages_of_their_layers() {
    for name in adapters::NAMES {
        let golden = adapters::golden(name);
        let folder = tiny::model(golden["model"].as_str().unwrap());
        let adapter = LoraAdapter::open(adapters::adapter(name)).unwrap();
        let adapters = vec![EngineAdapter { name: (*name).into(), adapter, scale: 1.0 }];
        let prompt = ids(&golden["cases"][0]["ids"]);
        let with = EngineOptions { adapters: adapters.clone(), ..exact() };
        let wanted = all_logits(&mut engine_on(&folder, &with, pipeline(1)), &prompt);
        let mut two = engine_on(&folder, &with, pipeline(2));
        assert_eq!(all_logits(&mut two, &prompt), wanted, "{name}");
        let checkpoint = Checkpoint::open(&folder).unwrap();
        two.replace_adapters(&checkpoint, Vec::new()).unwrap();
        let plain = all_logits(&mut engine_on(&folder, &exact(), pipeline(1)), &prompt);
        assert_eq!(all_logits(&mut two, &prompt), plain, "{name}");
        two.replace_adapters(&checkpoint, adapters).unwrap();
        assert_eq!(all_logits(&mut two, &prompt), wanted, "{name}");
    }
}

#[test]
fn what_has_to_be_whole_is_refused_on_a_pipeline() {
    let (checkpoint, encoder) =
        (Checkpoint::open(tiny::model("llama")).unwrap(), Checkpoint::open(encoders::model("embed")).unwrap());
    let many = refused(Engine::load(&checkpoint, pipeline(9), &exact(), &mut |_, _| {}));
    assert!(many.contains("in 9 pipeline stages") && many.contains("use 1 to"), "{many}");
    let wanted = "the device is a pipeline of 2 stages, and all layers are wanted on one device";
    let forward = refused(Forward::open(&checkpoint, pipeline(2), &ForwardOptions::default()).map(drop));
    let plan = refused(plan_step(&checkpoint, &*pipeline(2), &exact(), 1, &mut Vec::new()).map(drop));
    let encoder = refused(Encoder::load(&encoder, pipeline(2), &EncoderOptions::default(), &mut |_, _| {}).map(drop));
    for error in [forward, plan, encoder] {
        assert!(error.contains(wanted), "{error}");
    }
    let nested = DevicePipeline::new(vec![pipeline(2)]).err().unwrap().to_string();
    assert!(nested.contains("stage 0 is "), "{nested}");
    assert!(DevicePipeline::new(Vec::new()).is_err());
}
