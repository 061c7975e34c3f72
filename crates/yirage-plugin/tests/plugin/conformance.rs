//! The conformance suite and a tiny model on the examples: the kernels' own text by the way of a plug-in.

use crate::built::{example, examples};
use std::sync::Arc;
use yirage_conformance::{MeasuredCase, MeasuredOutcome, Suite};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::{ExecutorKind, Precision};
use yirage_plugin::PluginBackend;
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

fn device(backend: &PluginBackend) -> Arc<dyn Device> {
    let (device, notes) = backend.open(0, &OpenOptions::default()).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    device
}

fn holds(backend: &PluginBackend, suite: &Suite) {
    let device = device(backend);
    let (mut all, mut refused, mut wrong) = (0, 0, Vec::new());
    for MeasuredCase { name, outcome, .. } in suite.measured(&*device) {
        // Layouts of activations and values that no such device is bound to.
        let may_be = name.contains(" q8a") || name.starts_with("quantize: ") || name.starts_with("concat: as many");
        all += 1;
        match outcome {
            MeasuredOutcome::Passed => {}
            MeasuredOutcome::Refused(_) if may_be => refused += 1,
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    println!("{all} cases, {refused} refused, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} of {all} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[ignore = "needs compilers of C and C++"]
fn a_share_of_the_cases_holds() {
    examples().iter().for_each(|backend| holds(backend, &Suite::sample(96)));
}

#[test]
#[ignore = "needs compilers of C and C++, and an hour"]
fn every_case_holds_in_all_its_ways() {
    holds(&example(), &Suite::new());
}

#[test]
#[ignore = "needs compilers of C and C++"]
fn a_model_gives_the_golden_tokens() {
    for backend in examples() {
        let device = device(&backend);
        assert_eq!(device.target().executors, [ExecutorKind::Replay, ExecutorKind::Steps]);
        golden(device);
    }
}

fn golden(device: Arc<dyn Device>) {
    let folder = tiny::model(tiny::NAMES[0]);
    let golden = json::read(&folder.join("golden.json"));
    let options =
        EngineOptions { kv: Some(Format::F32), precision: Precision::Exact, max_seqs: 2, ..EngineOptions::default() };
    let checkpoint = Checkpoint::open(&folder).unwrap();
    let mut engine = Engine::load(&checkpoint, device, &options, &mut |_, _| {}).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let wanted = ids(&case["greedy16"]);
        let seq = engine.add(Request::greedy(ids(&case["ids"]), wanted.len() as u32)).unwrap();
        let mut tokens = Vec::new();
        while !engine.is_idle() {
            tokens.extend(engine.step().unwrap().into_iter().filter_map(|event| match event {
                Event::Token { seq: of, token, .. } if of == seq => Some(token),
                _ => None,
            }));
        }
        assert_eq!(tokens, wanted);
    }
}
