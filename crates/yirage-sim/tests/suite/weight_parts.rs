//! Weights that are larger than what a kernel is bound to, in the interpreter: ops within their tolerance, and a model's tokens
//! as they are where all of it fits.
#![allow(clippy::print_stdout)] // says what it ran

use std::sync::Arc;
use yirage_conformance::{CaseOutcome, Suite};
use yirage_engine::{Engine, EngineError, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::{DeviceLimits, Precision};
use yirage_sim::{Settings, Sim};
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

/// An accelerator whose kernels are bound to so many bytes at most.
fn bound_to(bytes: u64) -> Sim {
    let bindings = Settings::with_interpreter();
    let limits = DeviceLimits { binding_bytes: Some(bytes), align: 64, ..bindings.limits };
    Sim::with(Settings { limits, ..bindings })
}

fn engine(model: &str, device: Arc<dyn Device>) -> Result<Engine, EngineError> {
    let options = EngineOptions {
        kv: Some(Format::F32),
        precision: Precision::Exact,
        context: Some(64),
        chunk: 16,
        max_seqs: 1,
        ..EngineOptions::default()
    };
    Engine::load(&Checkpoint::open(tiny::model(model)).unwrap(), device, &options, &mut |_, _| {})
}

fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
    let (seq, mut tokens) = (engine.add(Request::greedy(prompt.to_vec(), count as u32)).unwrap(), Vec::new());
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { seq: of, token, .. } if of == seq => tokens.push(token),
                Event::Finished { reason, .. } => assert!(!format!("{reason:?}").contains("Error"), "{reason:?}"),
                _ => {}
            }
        }
    }
    tokens
}

/// The cases that do not run where bindings have so many bytes: each says that something is larger which has no parts.
fn beyond(most: u64) -> Vec<String> {
    let (device, _) = bound_to(most).open(0, &OpenOptions::default()).unwrap();
    let reports = Suite::of(&["linear", "embed", "expert_linear"]).run(&*device, &[]);
    // What a step gives, and what is computed, is bound whole; so is an expert, and rows up to where a binding may begin.
    let told = [format!("bindings have at most {most} bytes"), format!("{most} at most may be bound")];
    let (mut passed, mut beyond) = (0, Vec::new());
    for report in reports {
        match report.outcome {
            CaseOutcome::Passed => passed += 1,
            CaseOutcome::Refused(_) if report.name.contains(" q8a") => {}
            CaseOutcome::Failed(why) | CaseOutcome::Refused(why) if told.iter().any(|told| why.contains(told)) => {
                beyond.push(report.name);
            }
            other => panic!("{}: {other:?}", report.name),
        }
    }
    println!("{passed} cases hold in bindings of {most} bytes, {} do not run", beyond.len());
    assert!(passed > 100, "{passed} cases hold in bindings of {most} bytes");
    beyond
}

#[test]
fn ops_of_weights_hold_where_bindings_are_small() {
    assert!(beyond(128 << 20).is_empty());
    // Activations of many tokens are larger by themselves.
    let large = beyond(64 << 10);
    assert!(large.iter().all(|name| name.starts_with("expert_linear: crowded")), "{large:?}");
    beyond(8 << 10);
}

#[test]
fn a_models_tokens_do_not_depend_on_the_largest_binding() {
    // Tables of 64 KiB are bound in parts, and so is what has several experts. A cache of more heads leaves less to choose.
    for (model, kib) in [("llama", 40), ("llama", 32), ("gemma3", 40), ("gpt2", 56), ("mixtral", 40), ("qwen3moe", 40)]
    {
        let golden = json::read(&tiny::model(model).join("golden.json"));
        let case = &golden["cases"].as_array().unwrap()[0];
        let (prompt, wanted) = (ids(&case["ids"]), ids(&case["greedy16"]));
        let (device, _) = bound_to(kib << 10).open(0, &OpenOptions::default()).unwrap();
        let mut engine = engine(model, device).unwrap_or_else(|why| panic!("{model} in {kib} KiB: {why}"));
        assert_eq!(greedy(&mut engine, &prompt, wanted.len()), wanted, "{model} in bindings of {kib} KiB");
    }
}

#[test]
fn a_weight_of_which_one_row_is_beyond_a_binding_is_refused_with_numbers() {
    let (device, _) = bound_to(255).open(0, &OpenOptions::default()).unwrap();
    let told = engine("llama", device).err().unwrap().to_string();
    let wanted = "its smallest part, 1 along its first dimension, takes 256 bytes, 255 at most may be bound";
    assert!(told.contains(wanted), "{told}");
}
