//! A model of which fewer positions are computed than it was made for: an engine says so, and takes no more.

use crate::golden_support::engine;
use yirage_engine::{Engine, EngineError, EngineOptions, Notice};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::{Checkpoint, ModelError};
use yirage_testkit::{scratch::ScratchFolder, tiny};

#[test]
fn a_chunk_of_attention_is_told_and_is_the_longest_context() {
    let (model, scratch) = (tiny::model("llama4"), ScratchFolder::new("context-limit"));
    assert_eq!(engine(&model, &EngineOptions::default()).notices(), [], "all of its 512 positions are in one chunk");
    scratch.copy(&model.join("model.safetensors"));
    let config = std::fs::read_to_string(model.join("config.json")).unwrap();
    let (whole, short) = (r#""attention_chunk_size":8192"#, r#""attention_chunk_size":96"#);
    assert!(config.contains(whole));
    scratch.write("config.json", config.replace(whole, short).as_bytes());

    let mut limited = engine(&scratch.0, &EngineOptions::default());
    assert_eq!(limited.facts().context, 96);
    let notices = limited.notices();
    let [Notice::ContextLimited(limit)] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((limit.positions, limit.stated, &limit.key[..]), (96, 512, "attention_chunk_size is 96"));
    assert!(
        notices[0].to_string().starts_with("the context is shorter than the model's: 96 positions"),
        "{}",
        notices[0]
    );

    let longer = EngineOptions { context: Some(97), ..EngineOptions::default() };
    let device = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap().0;
    match Engine::load(&Checkpoint::open(&scratch.0).unwrap(), device, &longer, &mut |_, _| {}) {
        Err(EngineError::Model(ModelError::Unsupported { what, why })) => {
            assert!(what.contains("97 positions") && why.contains("take at most 96"), "{what}: {why}");
        }
        other => panic!("{:?}", other.err()),
    }
}
