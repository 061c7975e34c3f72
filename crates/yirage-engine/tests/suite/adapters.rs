//! Low-rank adapters: PEFT's outputs beside the model and merged into it, several at once, others in their place, and what is
//! refused.

use crate::golden_support::{all_logits, argmax, floats, greedy, ids};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use yirage_engine::{
    AdapterError, AdapterScale, EmbeddedSpan, EmbeddingRows, Engine, EngineAdapter, EngineError, EngineOptions, Event,
    Request,
};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::{Checkpoint, LoraAdapter, ModelError};
use yirage_plan::Precision;
use yirage_testkit::{adapters, fixtures, tiny};

fn cpu() -> Arc<dyn Device> {
    yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).unwrap().0
}

fn model_of(name: &str) -> Checkpoint {
    Checkpoint::open(tiny::model(adapters::golden(name)["model"].as_str().unwrap())).unwrap()
}

fn named(name: &str, scale: f32) -> EngineAdapter {
    EngineAdapter { name: name.into(), adapter: LoraAdapter::open(adapters::adapter(name)).unwrap(), scale }
}

fn options(adapters: Vec<EngineAdapter>) -> EngineOptions {
    EngineOptions { precision: Precision::Exact, context: Some(128), chunk: 16, adapters, ..EngineOptions::default() }
}

fn beside(checkpoint: &Checkpoint, adapters: Vec<EngineAdapter>) -> Engine {
    Engine::load(checkpoint, cpu(), &options(adapters), &mut |_, _| {}).unwrap()
}

/// An engine whose weights have adapters added to them.
fn merged(mut checkpoint: Checkpoint, adapters: &[EngineAdapter]) -> Engine {
    adapters.iter().for_each(|of| of.adapter.merge_into(&mut checkpoint, of.scale).unwrap());
    beside(&checkpoint, Vec::new())
}

/// Compares an engine with PEFT's outputs.
fn check(engine: &mut Engine, golden: &Value, what: &str) {
    for case in golden["cases"].as_array().unwrap() {
        let prompt = ids(&case["ids"]);
        let rows = all_logits(engine, &prompt);
        let best: Vec<u32> = rows.iter().map(|row| argmax(row)).collect();
        assert_eq!(best, ids(&case["argmax_each_pos"]), "{what}");
        let std = case["std"].as_f64().unwrap();
        for (got, want) in rows[rows.len() - 1].iter().zip(floats(&case["last_logits"])) {
            assert!((f64::from(*got) - want).abs() <= 1e-4 * std, "{what}: {got}, {want} wanted");
        }
        assert_eq!(greedy(engine, &prompt, 16), ids(&case["greedy16"]), "{what}");
    }
}

#[test]
fn adapters_of_peft_give_what_peft_gives() {
    for name in adapters::NAMES {
        let golden = adapters::golden(name);
        check(&mut beside(&model_of(name), vec![named(name, 1.0)]), &golden, &format!("{name} beside"));
        check(&mut merged(model_of(name), &[named(name, 1.0)]), &golden, &format!("{name} merged"));
    }
}

#[test]
fn two_at_once_give_what_peft_gives() {
    let golden = adapters::golden(adapters::TOGETHER);
    let both = || {
        let scales = golden["adapters"].as_object().unwrap().iter();
        scales.map(|(name, scale)| named(name, scale.as_f64().unwrap() as f32)).collect::<Vec<_>>()
    };
    check(&mut beside(&model_of(adapters::TOGETHER), both()), &golden, "beside");
    check(&mut merged(model_of(adapters::TOGETHER), &both()), &golden, "merged");
}

const PATTERNS: &str = "llama-patterns";
const HEAD: &str = "llama-rslora-head";

/// What four requests of one prompt get: nothing, one adapter, the other, and both.
fn four(prompt: &[u32]) -> Vec<Request> {
    let wanted: [&[(&str, f32)]; 4] = [&[], &[(PATTERNS, 1.0)], &[(HEAD, 1.0)], &[(PATTERNS, 0.5), (HEAD, -1.25)]];
    let request = |wanted: &[(&str, f32)]| {
        let scale = |&(name, scale): &(&str, f32)| AdapterScale { name: name.into(), scale };
        let adapters = Some(wanted.iter().map(scale).collect());
        Request { adapters, ..Request::greedy(prompt.to_vec(), 24) }
    };
    wanted.into_iter().map(request).collect()
}

/// The tokens of requests that run together.
fn together(engine: &mut Engine, requests: Vec<Request>) -> Vec<Vec<u32>> {
    let seqs: Vec<_> = requests.into_iter().map(|request| engine.add(request).unwrap()).collect();
    let mut tokens = vec![Vec::new(); seqs.len()];
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            if let Event::Token { seq, token, .. } = event {
                tokens[seqs.iter().position(|s| *s == seq).unwrap()].push(token);
            }
        }
    }
    tokens
}

/// Adapters and rows in the place of tokens, each with and without the other, also after adapters have come and gone.
#[test]
fn adapters_and_rows_of_embeddings_stand_in_one_batch() {
    let checkpoint = model_of(PATTERNS);
    let load = || {
        let adapters = vec![named(PATTERNS, 0.0), named(HEAD, 0.0)];
        let options = EngineOptions { embedded: true, ..options(adapters) };
        Engine::load(&checkpoint, cpu(), &options, &mut |_, _| {}).unwrap()
    };
    // Longer than two blocks, so that beginnings are cached.
    let prompt: Vec<u32> = (0..70).map(|i| 3 + i * 7 % 250).collect();
    let with_rows = |request: Request, value: u8| {
        let rows = Arc::new(EmbeddingRows::new([value; 32], 64, vec![f32::from(value); 2 * 64]).unwrap());
        Request { embedded: vec![EmbeddedSpan { at: 1, rows }], ..request }
    };
    let all = || -> Vec<Request> {
        let plain = four(&prompt).into_iter();
        plain.chain(four(&prompt).into_iter().map(|r| with_rows(r, 1))).collect()
    };
    let alone: Vec<_> = all().into_iter().map(|r| together(&mut load(), vec![r]).remove(0)).collect();
    assert!((0..4).all(|i| alone[i] != alone[i + 4]) && alone[4] != alone[5], "each does something: {alone:?}");
    let mut engine = load();
    assert_eq!(together(&mut engine, all()), alone);
    assert_eq!(together(&mut engine, all()), alone, "from the cache");
    engine.replace_adapters(&checkpoint, vec![named(PATTERNS, 0.0)]).unwrap();
    let rows_and_one = with_rows(four(&prompt).remove(1), 1);
    assert_eq!(together(&mut engine, vec![rows_and_one]).remove(0), alone[5], "beside fewer adapters");
}

#[test]
pub(crate) fn requests_of_one_batch_get_what_each_gets_alone() {
    let load = || beside(&model_of(PATTERNS), vec![named(PATTERNS, 0.0), named(HEAD, 0.0)]);
    // Longer than two blocks, so that beginnings are cached.
    let prompt: Vec<u32> = (0..70).map(|i| 3 + i * 7 % 250).collect();
    let alone: Vec<_> = four(&prompt).into_iter().map(|r| together(&mut load(), vec![r]).remove(0)).collect();
    assert!((1..4).all(|i| alone[i] != alone[0]) && alone[1] != alone[2], "each does something: {alone:?}");
    let mut engine = load();
    assert_eq!(together(&mut engine, four(&prompt)), alone);
    // The second time beginnings come from the cache, each from its own.
    assert_eq!(together(&mut engine, four(&prompt)), alone);
    let one_by_one: Vec<_> = four(&prompt).into_iter().map(|r| together(&mut engine, vec![r]).remove(0)).collect();
    assert_eq!(one_by_one, alone);
    assert_eq!(greedy(&mut engine, &prompt, 24), alone[0], "who says nothing gets the engine's own scales, here none");
    let scales = [AdapterScale { name: HEAD.into(), scale: 1.0 }];
    engine.set_adapter_scales(&scales).unwrap();
    assert_eq!(greedy(&mut engine, &prompt, 24), alone[2]);
}

#[test]
fn without_an_adapter_nothing_differs_from_the_model() {
    let prompt: Vec<u32> = (0..40).map(|i| 3 + i * 11 % 250).collect();
    let plain = all_logits(&mut beside(&model_of(PATTERNS), Vec::new()), &prompt);
    assert_eq!(all_logits(&mut beside(&model_of(PATTERNS), vec![named(PATTERNS, 0.0)]), &prompt), plain);
}

#[test]
fn adapters_come_and_go_while_the_engine_runs() {
    let checkpoint = model_of(PATTERNS);
    let prompt: Vec<u32> = (0..70).map(|i| 3 + i * 7 % 250).collect();
    let mut engine = beside(&checkpoint, Vec::new());
    let plain = greedy(&mut engine, &prompt, 24);
    let with = |name: &str| greedy(&mut beside(&checkpoint, vec![named(name, 1.0)]), &prompt, 24);
    engine.replace_adapters(&checkpoint, vec![named(PATTERNS, 1.0)]).unwrap();
    assert_eq!(greedy(&mut engine, &prompt, 24), with(PATTERNS));
    // One that runs goes on with its adapter, whatever comes beside it; and keeps it from going.
    let seq = engine.add(Request::greedy(prompt.clone(), 24)).unwrap();
    let mut tokens = Vec::new();
    let mut step = |engine: &mut Engine| {
        for event in engine.step().unwrap() {
            if let Event::Token { seq: of, token, .. } = event {
                assert_eq!(of, seq);
                tokens.push(token);
            }
        }
    };
    (0..8).for_each(|_| step(&mut engine));
    let refused = engine.replace_adapters(&checkpoint, vec![named(HEAD, 1.0)]);
    assert!(matches!(refused, Err(EngineError::Adapter(AdapterError::InUse { requests: 1, .. }))), "{refused:?}");
    engine.replace_adapters(&checkpoint, vec![named(HEAD, 0.0), named(PATTERNS, 0.0)]).unwrap();
    while !engine.is_idle() {
        step(&mut engine);
    }
    assert_eq!(tokens, with(PATTERNS));
    engine.replace_adapters(&checkpoint, vec![named(HEAD, 1.0)]).unwrap();
    assert_eq!(greedy(&mut engine, &prompt, 24), with(HEAD));
    engine.replace_adapters(&checkpoint, Vec::new()).unwrap();
    assert_eq!(greedy(&mut engine, &prompt, 24), plain);
}

#[test]
fn what_requests_cannot_have_is_refused() {
    let mut engine = beside(&model_of(PATTERNS), vec![named(PATTERNS, 1.0)]);
    let mut refused = |asked: &[(&str, f32)]| {
        let scale = |&(name, scale): &(&str, f32)| AdapterScale { name: name.into(), scale };
        let adapters = Some(asked.iter().map(scale).collect());
        match engine.add(Request { adapters, ..Request::greedy(vec![3], 1) }) {
            Err(EngineError::Adapter(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let unknown = AdapterError::Unknown { name: "other".into(), known: vec![PATTERNS.into()] };
    assert_eq!(refused(&[("other", 1.0)]), unknown);
    assert_eq!(refused(&[(PATTERNS, 1.0), (PATTERNS, 0.0)]), AdapterError::Twice { name: PATTERNS.into() });
    assert!(matches!(refused(&[(PATTERNS, f32::INFINITY)]), AdapterError::Scale { .. }));
    let twice = Engine::load(&model_of(PATTERNS), cpu(), &options(vec![named(PATTERNS, 1.0); 2]), &mut |_, _| {});
    assert!(matches!(twice, Err(EngineError::Adapter(AdapterError::Twice { .. }))));
}

/// What is said of an adapter with other settings or matrices.
fn refusal(called: &str, change: impl FnOnce(&mut Value, &mut Vec<(String, Vec<usize>, Vec<f32>)>)) -> String {
    let (mut config, mut matrices) = (adapters::golden("qwen2")["config"].clone(), adapters::matrices("qwen2"));
    change(&mut config, &mut matrices);
    let folder = adapters::folder(called, &config, &matrices);
    let error = match LoraAdapter::open(&folder) {
        Err(error) => error,
        Ok(adapter) => adapter.targets(&model_of("qwen2")).unwrap_err(),
    };
    assert!(matches!(
        error,
        ModelError::Config { .. } | ModelError::Unsupported { .. } | ModelError::MissingTensor { .. }
    ));
    error.to_string()
}

#[test]
fn adapters_that_do_not_fit_are_refused_with_file_tensor_and_numbers() {
    let says =
        |error: String, parts: &[&str]| parts.iter().for_each(|part| assert!(error.contains(part), "{error}: {part}"));
    let a = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    let b = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight";
    let reshape = |name: &'static str, shape: [usize; 2]| {
        move |_: &mut Value, all: &mut Vec<(String, Vec<usize>, Vec<f32>)>| {
            let at = all.iter().position(|m| m.0 == name).unwrap();
            all[at] = (name.into(), shape.to_vec(), vec![0.5; shape[0] * shape[1]]);
        }
    };
    says(refusal("rank", |config, _| config["r"] = json!(7)), &["adapter_model", "lora_A", "the rank 7", "8 rows"]);
    says(
        refusal("narrow", reshape("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", [8, 32])),
        &[a, "[64, 64]", "[64, 32]"],
    );
    says(
        refusal("columns", reshape("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", [64, 6])),
        &[b, "8 columns", "[64, 6]"],
    );
    says(refusal("half", |_, all| all.retain(|m| !m.0.ends_with("lora_B.weight"))), &["lora_B.weight", "missing"]);
    says(refusal("none", |_, all| all.clear()), &["none"]);
    let rename = |_: &mut Value, all: &mut Vec<(String, Vec<usize>, Vec<f32>)>| {
        all.iter_mut().for_each(|m| m.0 = m.0.replace("q_proj", "query_proj"));
    };
    says(refusal("elsewhere", rename), &["query_proj", "which it lacks"]);
    for (key, value) in [("modules_to_save", json!(["lm_head"])), ("use_dora", json!(true)), ("bias", json!("all"))] {
        says(refusal(key, |config, _| config[key] = value), &["not supported", key]);
    }
    says(refusal("kind", |config, _| config["peft_type"] = json!("IA3")), &["IA3"]);
    says(
        refusal("alpha", |config, _| config["lora_alpha"] = json!("much")),
        &["lora_alpha", "a number above 0", "much"],
    );
    says(refusal("pattern", |config, _| config["rank_pattern"] = json!({"(": 4})), &["rank_pattern", "regular"]);
    says(
        refusal("more", |_, all| all.push(("base_model.model.lm_head.weight".into(), vec![1, 1], vec![0.0]))),
        &["base_model.model.lm_head.weight", "not supported"],
    );
    // Another model, whose matrices have other sizes.
    let other = LoraAdapter::open(adapters::adapter("qwen2")).unwrap();
    let error = other.targets(&Checkpoint::open(tiny::model("qwen3")).unwrap()).unwrap_err().to_string();
    says(error, &["self_attn", "rank 8"]);
    let experts = LoraAdapter::open(expert_adapter()).unwrap();
    let moe = Checkpoint::open(tiny::model("qwen3moe")).unwrap();
    let beside = options(vec![EngineAdapter { name: "experts".into(), adapter: experts, scale: 1.0 }]);
    let Err(error) = Engine::load(&moe, cpu(), &beside, &mut |_, _| {}) else { panic!("experts stand beside") };
    says(error.to_string(), &["experts.0.up_proj", "--lora-merge"]);
}

/// An adapter for an expert, which can only be merged.
fn expert_adapter() -> PathBuf {
    let config = json!({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "bias": "none"});
    let of = "base_model.model.model.layers.0.mlp.experts.0.up_proj";
    let matrices = [
        (format!("{of}.lora_A.weight"), vec![1, 64], vec![0.5; 64]),
        (format!("{of}.lora_B.weight"), vec![48, 1], vec![0.5; 48]),
    ];
    adapters::folder("expert", &config, &matrices)
}

#[test]
fn an_expert_has_what_is_merged_into_it() {
    let mut checkpoint = Checkpoint::open(tiny::model("qwen3moe")).unwrap();
    let prompt = [3, 9, 200, 41, 5, 77, 30, 31, 90, 4];
    let plain = all_logits(&mut beside(&checkpoint, Vec::new()), &prompt);
    LoraAdapter::open(expert_adapter()).unwrap().merge_into(&mut checkpoint, 1.0).unwrap();
    assert_ne!(all_logits(&mut beside(&checkpoint, Vec::new()), &prompt), plain);
}

fn gguf_model(name: &str) -> Checkpoint {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/gguf");
    Checkpoint::open(folder.join(name)).unwrap()
}

#[test]
fn adapters_of_gguf_beside_a_model_and_merged_into_it_agree() {
    for (name, architecture) in [("qwen2", "qwen2"), ("llama", "llama")] {
        let model = gguf_model(name);
        let shape = |tensor: &str| model.tensor(tensor).unwrap().shape.clone();
        let names = ["blk.0.attn_q.weight", "blk.1.attn_k.weight", "blk.1.ffn_down.weight"];
        let targets: Vec<_> = names.iter().map(|name| (*name, shape(name)[0], shape(name)[1])).collect();
        let file = ("adapter.gguf", adapters::gguf(architecture, &targets));
        let path = fixtures::folder(&format!("lora-gguf-{name}"), &[file]).join("adapter.gguf");
        let adapter = EngineAdapter { name: name.into(), adapter: LoraAdapter::open(&path).unwrap(), scale: 1.5 };
        let prompt = [3, 9, 90, 41, 5, 77, 30, 31, 50, 4];
        let plain = all_logits(&mut beside(&model, Vec::new()), &prompt);
        let beside = all_logits(&mut beside(&model, vec![adapter.clone()]), &prompt);
        let merged = all_logits(&mut merged(gguf_model(name), &[adapter]), &prompt);
        let far = |a: &[Vec<f32>], b: &[Vec<f32>]| {
            let pairs = a.iter().flatten().zip(b.iter().flatten());
            pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max)
        };
        let (apart, moved) = (far(&beside, &merged), far(&beside, &plain));
        // What is stored in 16 bits is rounded to them once more when it is merged.
        assert!(moved > 0.3 && apart < 0.03 * moved, "{name}: {apart} between the ways, {moved} from the model");
    }
    let other =
        fixtures::folder("lora-gguf-other", &[("a.gguf", adapters::gguf("qwen3", &[("blk.0.attn_q.weight", 8, 8)]))]);
    let other = LoraAdapter::open(other.join("a.gguf")).unwrap();
    let error = other.targets(&gguf_model("llama")).unwrap_err().to_string();
    assert!(error.contains("\"qwen3\"") && error.contains("\"llama\""), "{error}");
    let error = other.targets(&model_of("qwen2")).unwrap_err().to_string();
    assert!(error.contains("GGUF for a model of safetensors"), "{error}");
    let peft = LoraAdapter::open(adapters::adapter("qwen2")).unwrap();
    let error = peft.targets(&gguf_model("qwen2")).unwrap_err().to_string();
    assert!(error.contains("convert_lora_to_gguf.py"), "{error}");
}
