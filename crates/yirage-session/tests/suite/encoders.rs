//! Encoders under many callers: every vector is that of its text alone, whatever is computed and refused beside it.

use crate::support::{self, on_cpu, on_sim};
use std::sync::Barrier;
use yirage_engine::{Embedding, EncoderError, EncoderInput, EncoderOptions, EngineError};
use yirage_model::Checkpoint;
use yirage_model::config::Pooling;
use yirage_session::{SessionError, TextEncoder};
use yirage_testkit::encoders;

const MEAN: Embedding = Embedding { pooling: Pooling::Mean, normalise: true };
const CLS: Embedding = Embedding { pooling: Pooling::Cls, normalise: false };

fn encoder(open: &support::Open, name: &str) -> TextEncoder {
    let checkpoint = Checkpoint::open(encoders::model(name)).unwrap();
    let options = EncoderOptions { chunk: 48, ..EncoderOptions::default() };
    TextEncoder::load(&checkpoint, open(), &options, &mut |_, _| {}).unwrap()
}

fn inputs(encoder: &TextEncoder, texts: &[String]) -> Vec<EncoderInput> {
    let frame = |text: &String| encoder.tokenizer().frame(text, Some(encoder.facts().longest as usize)).unwrap();
    texts.iter().map(frame).map(|framed| EncoderInput { ids: framed.ids, types: framed.types }).collect()
}

/// Texts of a caller, of different lengths.
fn texts(caller: usize) -> Vec<String> {
    (0..3 + caller % 3).map(|i| format!("caller {caller} says {}", "word ".repeat(1 + (caller + i) % 5))).collect()
}

#[test]
fn vectors_are_those_of_each_text_alone() {
    for open in [on_cpu(), on_sim()] {
        let encoder = encoder(&open, "embed");
        let wanted = |caller: usize| {
            let how = if caller.is_multiple_of(2) { MEAN } else { CLS };
            let alone = |input: EncoderInput| encoder.embed(vec![input], how).unwrap().remove(0);
            (how, inputs(&encoder, &texts(caller)).into_iter().map(alone).collect::<Vec<_>>())
        };
        let wanted: Vec<_> = (0..8).map(wanted).collect();
        let together = Barrier::new(wanted.len());
        std::thread::scope(|scope| {
            for (caller, (how, wanted)) in wanted.iter().enumerate() {
                let (encoder, together) = (&encoder, &together);
                scope.spawn(move || {
                    for _ in 0..4 {
                        together.wait();
                        assert_eq!(&encoder.embed(inputs(encoder, &texts(caller)), *how).unwrap(), wanted);
                    }
                });
            }
        });
    }
}

#[test]
fn a_call_that_is_refused_harms_no_other() {
    let encoder = encoder(&on_cpu(), "embed");
    let good = inputs(&encoder, &texts(0));
    let wanted = encoder.embed(good.clone(), MEAN).unwrap();
    let unknown = vec![good[0].clone(), EncoderInput { ids: vec![encoder.facts().vocabulary], types: vec![0] }];
    let together = Barrier::new(6);
    std::thread::scope(|scope| {
        for caller in 0..6 {
            let (encoder, good, unknown, wanted, together) = (&encoder, &good, &unknown, &wanted, &together);
            scope.spawn(move || {
                for _ in 0..5 {
                    together.wait();
                    if caller % 3 > 0 {
                        assert_eq!(&encoder.embed(good.clone(), MEAN).unwrap(), wanted);
                        continue;
                    }
                    let refused = encoder.embed(unknown.clone(), MEAN).unwrap_err();
                    let SessionError::Engine(EngineError::Encoder(EncoderError::UnknownToken { input, .. })) = refused
                    else {
                        panic!("{refused}")
                    };
                    assert_eq!(input, 1, "counted from the call's first");
                }
            });
        }
    });
    assert!(encoder.score(good).unwrap_err().to_string().contains("use `yirage embed`"));
    assert_eq!(encoder.embed(Vec::new(), MEAN).unwrap(), Vec::<Vec<f32>>::new());
}

#[test]
fn pairs_are_scored() {
    let encoder = encoder(&on_cpu(), "score");
    let pair = |text| encoder.tokenizer().frame_pair("a question", text, None).unwrap();
    let framed = [pair("an answer"), pair("another one")];
    let inputs: Vec<EncoderInput> =
        framed.into_iter().map(|framed| EncoderInput { ids: framed.ids, types: framed.types }).collect();
    let both = encoder.score(inputs.clone()).unwrap();
    let alone: Vec<_> = inputs.into_iter().map(|input| encoder.score(vec![input]).unwrap().remove(0)).collect();
    assert_eq!((both.len(), &both), (2, &alone));
}
