//! Llama, Qwen3 and a mixture of experts, built only of layer methods: their tokens are the engine's and transformers'.

use crate::support::{End, alone, behind, build, build_with, cpu, engine, meta};
use std::sync::Arc;
use yirage_engine::Request;
use yirage_engine::sampling::SamplingParams;
use yirage_model::Checkpoint;
use yirage_persistent::{
    KernelBuilder, KernelConfig, KernelMode, LaunchDims, MetaData, MetaTensor, MetaTensors, PromptLookup,
};
use yirage_testkit::json::ids;
use yirage_testkit::rng::Rng;
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::{bedtime, tiny};

const MODELS: [&str; 3] = ["llama", "qwen3", "qwen3moe"];

fn slots(requests: u32, tokens: u32, positions: u32) -> KernelConfig {
    KernelConfig {
        max_num_batched_requests: requests,
        max_num_batched_tokens: tokens,
        max_seq_length: positions,
        ..KernelConfig::default()
    }
}

#[test]
fn models_of_layers_give_the_tokens_of_transformers_and_of_the_engine() {
    for name in MODELS {
        let (folder, golden) = (tiny::model(name), tiny::golden(name));
        let mut engine = engine(&folder, 128);
        for case in golden["cases"].as_array().unwrap() {
            let (prompt, wanted) = (ids(&case["ids"]), ids(&case["greedy16"]));
            let whole = (prompt.len() + wanted.len()) as u32;
            let kernel = build(&folder, slots(1, 64, whole), meta(std::slice::from_ref(&prompt), whole as usize + 3));
            let mut kernel = kernel.compile(cpu(1), None).unwrap();
            let report = kernel.call(None).unwrap();
            assert!(report.finished && report.ended[0].reason == "length", "{name}: {report:?}");
            assert_eq!(behind(kernel.meta(), 0, prompt.len()), wanted, "{name}: transformers");
            assert_eq!(kernel.meta().step(), [whole as i32 - 1], "the position of the last token");
            assert_eq!(&kernel.meta().tokens()[whole as usize..], [0; 3], "nothing behind max_seq_length is written");
            assert_eq!(alone(&mut engine, Request::greedy(prompt, 16)), wanted, "{name}: engine");
        }
    }
}

/// The layers that the crate makes of a model's files are those that are written out here.
#[test]
fn models_of_files_give_the_tokens_of_transformers() {
    for name in MODELS {
        let (checkpoint, golden) = (Arc::new(Checkpoint::open(tiny::model(name)).unwrap()), tiny::golden(name));
        let case = &golden["cases"][1];
        let (prompt, wanted) = (ids(&case["ids"]), ids(&case["greedy16"]));
        let whole = (prompt.len() + wanted.len()) as u32;
        let meta = meta(std::slice::from_ref(&prompt), whole as usize);
        let mut builder = KernelBuilder::new(slots(1, 64, whole), meta).unwrap();
        builder.build_model(&checkpoint, None).unwrap();
        let mut kernel = builder.compile(cpu(1), None).unwrap();
        kernel.call(None).unwrap();
        assert_eq!(behind(kernel.meta(), 0, prompt.len()), wanted, "{name}");
    }
}

#[test]
fn what_no_layer_method_does_is_refused_by_name() {
    for (name, part) in [
        ("qwen2", "qwen2"),
        ("gpt2", "gpt2"),
        ("mistral-swa", "sliding window"),
        ("gemma2", "gemma2"),
        ("deepseek-v3", "deepseek_v3"),
    ] {
        let checkpoint = Arc::new(Checkpoint::open(tiny::model(name)).unwrap());
        let mut builder = KernelBuilder::new(slots(1, 64, 32), meta(&[vec![1]], 32)).unwrap();
        let refused = builder.build_model(&checkpoint, None).unwrap_err();
        assert!(refused.is_unsupported() && refused.to_string().contains(part), "{refused}");
    }
    let gguf = Arc::new(Checkpoint::open(bedtime::q8_0()).unwrap());
    let mut builder = KernelBuilder::new(slots(1, 64, 32), meta(&[vec![1]], 32)).unwrap();
    assert!(builder.build_model(&gguf, None).unwrap_err().to_string().contains("GGUF"));
}

#[test]
fn weights_that_are_decoded_are_refused_by_name() {
    const NAME: &str = "model.layers.0.self_attn.q_proj.weight";
    let folder = ScratchFolder::new("decoded");
    folder.copy(&bedtime::safetensors().join("config.json"));
    let file = std::fs::read(bedtime::safetensors().join("model.safetensors")).unwrap();
    let text = 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&file[8..text]).unwrap();
    // Four numbers of eight bits for each of 32.
    let rows = header[NAME]["shape"][0].as_u64().unwrap() * 4;
    header[NAME]["dtype"] = "F8_E4M3".into();
    header[NAME]["shape"][0] = rows.into();
    let header = serde_json::to_vec(&header).unwrap();
    let length = (header.len() as u64).to_le_bytes();
    folder.write("model.safetensors", &[&length[..], &header, &file[text..]].concat());
    let checkpoint = Arc::new(Checkpoint::open(&folder.0).unwrap());
    let mut builder = KernelBuilder::new(slots(1, 64, 32), meta(&[vec![1]], 32)).unwrap();
    let refused = builder.build_model(&checkpoint, None).unwrap_err();
    assert!(refused.is_unsupported() && refused.to_string().contains(NAME), "{refused}");
    assert!(refused.to_string().contains("F8_E4M3, no scales"), "{refused}");
}

/// Prompts of many lengths, some with a common beginning.
fn prompts(count: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut rng = Rng::new(seed);
    let prompt = |row: usize| {
        let length = 1 + rng.below(if row.is_multiple_of(7) { 90 } else { 30 }) as usize;
        let mut prompt: Vec<u32> = (0..length).map(|_| 3 + rng.below(250) as u32).collect();
        if row.is_multiple_of(3) {
            prompt.splice(0..0, (0..40).map(|i| 5 + i));
        }
        prompt
    };
    (0..count).map(prompt).collect()
}

#[test]
fn forty_requests_on_eight_slots_each_give_what_they_give_alone() {
    let folder = tiny::model("qwen3");
    let prompts = prompts(40, 3);
    let mut engine = engine(&folder, 160);
    let eos = 84;
    let solo: Vec<Vec<u32>> = prompts
        .iter()
        .map(|prompt| {
            let request = Request::greedy(prompt.clone(), 160 - prompt.len() as u32);
            alone(&mut engine, Request { stop_ids: vec![eos], ..request })
        })
        .collect();
    for (tokens, pages, threads) in [(16, None, 1), (64, Some(20), 2), (8, Some(9), 2)] {
        let config = KernelConfig { max_num_pages: pages, eos_token_id: Some(eos), ..slots(8, tokens, 160) };
        let mut kernel = build(&folder, config, meta(&prompts, 160)).compile(cpu(threads), None).unwrap();
        if let Some(pages) = pages {
            assert_eq!(kernel.kv().total_blocks(0), 2 * pages as usize, "pages of 64 positions are two blocks");
        }
        let mut ended = Vec::new();
        let before = kernel.kv().blocks_in_use(0);
        loop {
            let report = kernel.call(Some(1)).unwrap();
            assert!(report.steps <= 1 && report.tokens_run <= u64::from(tokens), "the budget of tokens: {report:?}");
            ended.extend(report.ended);
            if report.finished {
                break;
            }
        }
        for (row, (prompt, solo)) in prompts.iter().zip(&solo).enumerate() {
            assert_eq!(behind(kernel.meta(), row, prompt.len()), *solo, "request {row} in steps of {tokens}");
        }
        assert_eq!((before, kernel.kv().blocks_in_use(0)), (0, 0), "every page came back");
        let free = kernel.kv().free_blocks(0) + kernel.kv().cached_blocks(0);
        assert_eq!(free, kernel.kv().total_blocks(0), "every page came back");
        let mut rows: Vec<usize> = ended.iter().map(|of| of.row).collect();
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..40), "each ended once");
        for of in &ended {
            let last = solo[of.row].last() == Some(&eos);
            assert_eq!(of.reason, if last { "eos" } else { "length" }, "request {}", of.row);
        }
        assert!(ended.iter().any(|of| of.reason == "eos") && ended.iter().any(|of| of.reason == "length"));
    }
}

#[test]
fn a_call_can_be_bounded_and_goes_on_where_it_stopped() {
    let folder = tiny::model("llama");
    let prompts = prompts(5, 9);
    let whole = {
        let mut kernel = build(&folder, slots(2, 16, 150), meta(&prompts, 150)).compile(cpu(1), None).unwrap();
        assert!(kernel.call(None).unwrap().finished);
        let again = kernel.call(None).unwrap();
        assert_eq!((again.finished, again.steps), (true, 0), "what has ended is not run again");
        kernel.meta().clone()
    };
    let one_pass = KernelConfig { mode: KernelMode::OnePass, ..slots(2, 16, 150) };
    for (config, bound) in [(slots(2, 16, 150), Some(7)), (one_pass, None)] {
        let mut kernel = build(&folder, config, meta(&prompts, 150)).compile(cpu(1), None).unwrap();
        let mut calls = 0;
        loop {
            let report = kernel.call(bound).unwrap();
            assert!(report.steps <= bound.unwrap_or(1));
            calls += 1;
            if report.finished {
                break;
            }
        }
        assert!(calls > 20, "{calls}");
        assert_eq!(*kernel.meta(), whole);
    }
}

#[test]
fn a_row_gets_another_request_between_calls() {
    let folder = tiny::model("llama");
    let (first, second) = (vec![7, 8, 9], vec![30, 31, 32, 33, 34]);
    let mut engine = engine(&folder, 40);
    let mut kernel =
        build(&folder, slots(1, 8, 40), meta(std::slice::from_ref(&first), 40)).compile(cpu(1), None).unwrap();
    for prompt in [first, second] {
        let given: Vec<i64> = prompt.iter().map(|&id| i64::from(id)).collect();
        kernel.load_new_request(0, &given).unwrap();
        kernel.call(Some(3)).unwrap();
        assert!(kernel.load_new_request(0, &given).unwrap_err().to_string().contains("it runs"));
        kernel.call(None).unwrap();
        let wanted = alone(&mut engine, Request::greedy(prompt.clone(), 40 - prompt.len() as u32));
        assert_eq!(behind(kernel.meta(), 0, prompt.len()), wanted);
    }
}

/// As a program has it that writes into its own tensors between calls.
#[test]
fn rows_that_were_written_from_outside_are_new_requests() {
    let folder = tiny::model("llama");
    let first = [vec![7, 8, 9], vec![40, 41]];
    let mut kernel = build(&folder, slots(2, 8, 30), meta(&first, 30)).compile(cpu(1), None).unwrap();
    kernel.call(None).unwrap();
    let done = kernel.meta().clone();
    kernel.set_meta(done.clone()).unwrap();
    assert_eq!(kernel.call(None).unwrap().steps, 0, "nothing has changed");
    let mut changed = done.clone();
    changed.set_prompt(1, &[90, 91, 92, 93]).unwrap();
    kernel.set_meta(changed).unwrap();
    let report = kernel.call(Some(2)).unwrap();
    assert!(!report.finished);
    let refused = kernel.set_meta(done.clone()).unwrap_err().to_string();
    assert!(refused.contains("request 1: it runs"), "{refused}");
    kernel.call(None).unwrap();
    assert_eq!(kernel.meta().known(0).unwrap(), done.known(0).unwrap());
    let wanted = alone(&mut engine(&folder, 30), Request::greedy(vec![90, 91, 92, 93], 26));
    assert_eq!(behind(kernel.meta(), 1, 4), wanted);
    assert!(kernel.set_meta(meta(&first, 31)).unwrap_err().to_string().contains("[2, 31]"));
}

#[test]
fn prompts_by_their_lengths_are_those_by_their_steps() {
    let folder = tiny::model("llama");
    let prompts = prompts(3, 5);
    let by_step = meta(&prompts, 150);
    let named = |name: &str, shape: Vec<usize>, data| (name.to_owned(), MetaTensor { shape, data });
    let lengths = prompts.iter().map(|prompt| prompt.len() as i32).collect();
    let by_length = MetaTensors::from_named(vec![
        named("tokens", vec![3, 150], MetaData::Int64(by_step.tokens().to_vec())),
        named("prompt_lengths", vec![3], MetaData::Int32(lengths)),
        named("step", vec![3], MetaData::Int32(vec![0; 3])),
        named("qo_indptr_buffer", vec![4], MetaData::Int32(vec![0; 4])),
    ])
    .unwrap();
    let run = |meta| {
        let mut kernel = build(&folder, slots(2, 8, 150), meta).compile(cpu(1), None).unwrap();
        kernel.call(None).unwrap();
        (kernel.meta().step().to_vec(), kernel.meta().tokens().to_vec())
    };
    assert_eq!(run(by_length), run(by_step));
}

/// Guesses spare steps where text repeats, and change no token; fewer agree where more tokens have to.
#[test]
fn prompt_lookup_gives_the_tokens_of_greedy_decoding_in_fewer_steps() {
    let folder = bedtime::safetensors();
    let passage = [341, 349, 316, 343, 268];
    let repetitive: Vec<u32> = [1].into_iter().chain(passage.into_iter().cycle().take(48)).collect();
    let odd: Vec<Vec<u32>> = vec![repetitive, vec![1], vec![1, 496, 493], (0..50).map(|i| 260 + i * i % 200).collect()];
    let run = |spec_decode, executor_threads| {
        let config = KernelConfig { spec_decode, ..slots(4, 64, 120) };
        let mut kernel = build(&folder, config, meta(&odd, 120)).compile(cpu(executor_threads), None).unwrap();
        let report = kernel.call(None).unwrap();
        assert!(report.finished);
        (kernel.meta().tokens().to_vec(), report)
    };
    let (plain, without) = run(None, 1);
    assert_eq!((without.drafted, without.accepted), (0, 0));
    let mut drafted = Vec::new();
    for (ngram_size, spec_length) in [(2, 5), (3, 3), (3, 5), (8, 5)] {
        let (tokens, report) = run(Some(PromptLookup { ngram_size, spec_length }), 2);
        assert_eq!(tokens, plain, "{ngram_size} {spec_length}");
        assert!(report.accepted > 0 && report.steps < without.steps, "{ngram_size} {spec_length}: {report:?}");
        drafted.push(report.drafted);
    }
    assert!(drafted[0] > drafted[2] && drafted[2] > drafted[3], "less is guessed where more has to agree: {drafted:?}");
    assert!(drafted[1] < drafted[2], "shorter guesses are fewer: {drafted:?}");
}

#[test]
fn tokens_are_drawn_by_the_seed_whatever_runs_beside_them() {
    let folder = tiny::model("llama");
    let sampling = SamplingParams { temperature: 0.8, top_k: 40, top_p: 0.95, ..SamplingParams::default() };
    let prompts = prompts(6, 11);
    let run = |sampling: &SamplingParams, seed, requests| {
        let config = KernelConfig { sampling: sampling.clone(), ..slots(requests, 16, 150) };
        let kernel = build_with(&folder, config, meta(&prompts, 150), End::Sampled(seed), LaunchDims::ONE);
        let mut kernel = kernel.compile(cpu(1), None).unwrap();
        kernel.call(None).unwrap();
        kernel.meta().tokens().to_vec()
    };
    let (one, same, other) = (run(&sampling, 42, 1), run(&sampling, 42, 6), run(&sampling, 43, 6));
    assert_eq!(one, same);
    assert_ne!(one, other);
    let cold = SamplingParams { temperature: 0.0, ..sampling.clone() };
    let greedy = {
        let mut kernel = build_with(&folder, slots(6, 16, 150), meta(&prompts, 150), End::Halves, LaunchDims::ONE)
            .compile(cpu(1), None)
            .unwrap();
        kernel.call(None).unwrap();
        kernel.meta().tokens().to_vec()
    };
    assert_eq!(run(&cold, 1, 6), greedy, "a temperature of 0 takes the largest logit");
}

#[test]
fn grids_decide_nothing_and_are_told_once() {
    let folder = tiny::model("qwen3moe");
    let prompts = prompts(2, 2);
    let run = |launch| {
        let mut kernel = build_with(&folder, slots(2, 16, 140), meta(&prompts, 140), End::Argmax, launch)
            .compile(cpu(2), None)
            .unwrap();
        kernel.call(None).unwrap();
        let told: Vec<String> = kernel.notices().iter().map(ToString::to_string).collect();
        assert_eq!(told.iter().filter(|text| text.contains("grid_dim")).count(), 1, "{told:?}");
        kernel.meta().tokens().to_vec()
    };
    let one = run(LaunchDims::ONE);
    for grid in [[96, 1, 1], [8, 2, 1], [1, 1, 64]] {
        assert_eq!(run(LaunchDims { grid, block: [256, 1, 1] }), one);
    }
}
