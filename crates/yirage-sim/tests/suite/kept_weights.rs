//! Packed weights of a device that the host does not reach: read back, kept on disk, and taken at the next start as they are.

use std::sync::Arc;
use yirage_engine::{Engine, EngineOptions, Event, PackedOptions, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_sim::{Settings, Sim};
use yirage_testkit::scratch::ScratchFolder;
use yirage_testkit::tiny;

fn tokens(engine: &mut Engine) -> Vec<u32> {
    engine.add(Request::greedy(vec![1, 2, 3], 8)).unwrap();
    let mut tokens = Vec::new();
    while !engine.is_idle() {
        let token = |event| if let Event::Token { token, .. } = event { Some(token) } else { None };
        tokens.extend(engine.step().unwrap().into_iter().filter_map(token));
    }
    tokens
}

#[test]
fn packed_weights_are_kept_and_used_again() {
    for settings in [Settings::with_pointers(), Settings::with_bindings(), Settings::with_operations()] {
        let folder = ScratchFolder::new("sim-kept");
        let packed = Some(PackedOptions { folder: folder.0.join("packed"), limit: 1 << 30 });
        let options = EngineOptions {
            packed,
            kv: Some(Format::F32),
            precision: Precision::Exact,
            context: Some(64),
            ..EngineOptions::default()
        };
        let load = || {
            let sim = Sim::with(settings.clone());
            let device = sim.open(0, &OpenOptions::default()).unwrap().0;
            let checkpoint = Checkpoint::open(tiny::model(tiny::NAMES[0])).unwrap();
            let engine = Engine::load(&checkpoint, Arc::clone(&device), &options, &mut |_, _| {}).unwrap();
            (engine, device)
        };
        let (mut first, device) = load();
        let wanted = tokens(&mut first);
        first.settle(&mut |_, _| {});
        assert_eq!(first.notices(), []);
        assert!(first.facts().packed_weights.is_none());
        let held = device.memory().weights.used;
        drop(first);
        let (mut second, device) = load();
        assert!(second.facts().packed_weights.is_some(), "{:?}", second.notices());
        assert_eq!(device.memory().weights.used, held);
        assert_eq!(tokens(&mut second), wanted);
    }
}
