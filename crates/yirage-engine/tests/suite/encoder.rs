//! Encoders on the CPU: vectors and scores of transformers, the same bytes whatever else is computed, and errors for
//! what cannot be.

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use yirage_cpu::Cpu;
use yirage_engine::{
    Embedding, Encoder, EncoderError, EncoderInput, EncoderOptions, Engine, EngineError, EngineOptions,
};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::Checkpoint;
use yirage_model::arch::ModelOutput;
use yirage_model::config::Pooling;
use yirage_model::tokenizer::{FramedTokens, Tokenizer};
use yirage_plan::ExecutorKind;
use yirage_testkit::rng::Rng;
use yirage_testkit::{absent, encoders, json, tiny};

/// What float32 in another order differs by from transformers.
const CLOSE: f64 = 1e-5;

fn cpu(threads: usize, isa: Option<&str>) -> Arc<dyn Device> {
    let options = OpenOptions { threads: Some(threads), isa: isa.map(str::to_owned), ..OpenOptions::default() };
    Cpu.open(0, &options).unwrap().0
}

fn load(folder: &Path, device: Arc<dyn Device>, options: &EncoderOptions) -> Result<Encoder, EngineError> {
    Encoder::load(&Checkpoint::open(folder).unwrap(), device, options, &mut |_, _| {})
}

fn encoder(name: &str) -> Encoder {
    load(&encoders::model(name), cpu(2, None), &EncoderOptions::default()).unwrap()
}

fn tokenizer(folder: &Path) -> Tokenizer {
    Tokenizer::from_json(&std::fs::read(folder.join("tokenizer.json")).unwrap(), "tokenizer.json").unwrap()
}

fn input(framed: FramedTokens) -> EncoderInput {
    EncoderInput { ids: framed.ids, types: framed.types }
}

/// The texts of a fixture's cases, and the cases; all tokenizers frame a text alike.
fn texts(golden: &Value) -> (Vec<EncoderInput>, &Vec<Value>) {
    let tokenizer = tokenizer(&encoders::model("embed"));
    let cases = golden["cases"].as_array().unwrap();
    (cases.iter().map(|c| input(tokenizer.frame(c["text"].as_str().unwrap(), None).unwrap())).collect(), cases)
}

/// The pairs of a fixture's cases, framed by its own tokenizer.
fn pairs(name: &str) -> Vec<EncoderInput> {
    let golden = encoders::golden(name);
    let tokenizer = tokenizer(&encoders::model(name));
    let text = |case: &Value, key: &str| case[key].as_str().unwrap().to_owned();
    let pair = |c: &Value| input(tokenizer.frame_pair(&text(c, "first"), &text(c, "second"), None).unwrap());
    golden["cases"].as_array().unwrap().iter().map(pair).collect()
}

fn check_row(what: &Value, found: &[f32], wanted: &Value) {
    let wanted = json::floats(wanted);
    assert_eq!(found.len(), wanted.len(), "{what}");
    let worst = found.iter().zip(&wanted).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(worst < CLOSE, "{what}: differs by {worst:e}");
}

const MEAN: Embedding = Embedding { pooling: Pooling::Mean, normalise: true };
const CLS: Embedding = Embedding { pooling: Pooling::Cls, normalise: false };
const LAST: Embedding = Embedding { pooling: Pooling::Last, normalise: false };

/// Threads and instruction sets, among them those that compute in another way.
const WAYS: [(usize, Option<&str>); 3] = [(1, None), (3, None), (2, Some("scalar"))];

#[test]
fn vectors_are_those_of_transformers() {
    ["embed", "roberta-embed", "modernbert-embed"].into_iter().for_each(check_vectors);
}

fn check_vectors(name: &str) {
    let golden = encoders::golden(name);
    let (inputs, cases) = texts(&golden);
    for (threads, isa) in WAYS {
        let options = EncoderOptions { chunk: 40, ..EncoderOptions::default() };
        let mut encoder = load(&encoders::model(name), cpu(threads, isa), &options).unwrap();
        assert_eq!(encoder.facts().embedding, MEAN, "as the model's files say");
        let (means, firsts) = (encoder.embed(&inputs, MEAN).unwrap(), encoder.embed(&inputs, CLS).unwrap());
        let lasts = encoder.embed(&inputs, LAST).unwrap();
        for (i, case) in cases.iter().enumerate() {
            let rows = case["rows"].as_array().unwrap();
            check_row(&case["text"], &means[i], &case["mean"]);
            check_row(&case["text"], &firsts[i], &rows[0][1]);
            check_row(&case["text"], &lasts[i], &rows[rows.len() - 1][1]);
        }
    }
}

#[test]
fn scores_are_those_of_transformers() {
    for name in ["score", "roberta-score", "modernbert-score"] {
        let golden = encoders::golden(name);
        let found = encoder(name).score(&pairs(name)).unwrap();
        let cases = golden["cases"].as_array().unwrap();
        assert_eq!(found.len(), cases.len());
        found.iter().zip(cases).for_each(|(row, case)| check_row(&case["first"], row, &case["scores"]));
    }
}

#[test]
fn a_text_has_the_same_bytes_whatever_is_computed_with_it() {
    let golden = encoders::golden("embed");
    let (inputs, _) = texts(&golden);
    let mut rng = Rng::new(5);
    let kinds = [None, Some(ExecutorKind::Steps), Some(ExecutorKind::Persistent)];
    let mut alone: Option<Vec<Vec<u32>>> = None;
    for (round, chunk) in [1, 24, 130, 512, 4096].into_iter().enumerate() {
        let options = EncoderOptions { chunk, executor: kinds[round % 3], ..EncoderOptions::default() };
        let mut encoder = load(&encoders::model("embed"), cpu(1 + round % 3, None), &options).unwrap();
        let mut order: Vec<usize> = (0..inputs.len()).collect();
        (1..order.len()).rev().for_each(|i| order.swap(i, rng.index(i + 1)));
        let shuffled: Vec<EncoderInput> = order.iter().map(|&i| inputs[i].clone()).collect();
        let found = encoder.embed(&shuffled, MEAN).unwrap();
        let mut bits = vec![Vec::new(); inputs.len()];
        order.iter().zip(&found).for_each(|(&i, row)| bits[i] = row.iter().map(|x| x.to_bits()).collect());
        let wanted = alone.get_or_insert(bits.clone());
        assert!(*wanted == bits, "steps of {chunk} tokens give other bytes");
    }
}

#[test]
fn pairs_have_the_same_bytes_alone_and_together() {
    let inputs = pairs("score");
    let mut encoder = encoder("score");
    let together = encoder.score(&inputs).unwrap();
    for (input, row) in inputs.iter().zip(&together) {
        assert_eq!(encoder.score(std::slice::from_ref(input)).unwrap(), std::slice::from_ref(row));
    }
    assert!(encoder.score(&[]).unwrap().is_empty());
}

#[test]
fn inputs_that_do_not_fit_the_model_are_named() {
    let mut encoder = encoder("embed");
    assert_eq!((encoder.facts().longest, encoder.facts().output), (320, ModelOutput::Hidden { width: 48 }));
    let good = EncoderInput { ids: vec![2, 3], types: vec![0, 1] };
    let mut refused = |bad: EncoderInput| match encoder.embed(&[good.clone(), bad], MEAN) {
        Err(EngineError::Encoder(error)) => error,
        other => panic!("{other:?}"),
    };
    let of = |ids: Vec<u32>, types: Vec<u32>| EncoderInput { ids, types };
    assert_eq!(refused(of(vec![], vec![])), EncoderError::Empty { input: 1 });
    assert_eq!(refused(of(vec![2; 3], vec![0; 2])), EncoderError::Types { input: 1, tokens: 3, types: 2 });
    let long = EncoderError::TooLong { input: 1, tokens: 321, most: 320 };
    assert_eq!(refused(of(vec![2; 321], vec![0; 321])), long);
    let unknown = refused(of(vec![2, 900], vec![0; 2]));
    assert!(matches!(unknown, EncoderError::UnknownToken { input: 1, at: 1, id: 900, .. }), "{unknown}");
    let unknown = refused(of(vec![2, 3], vec![2, 0]));
    assert_eq!(unknown, EncoderError::UnknownType { input: 1, at: 0, of_type: 2, types: 2 });
    for chunk in [0, u32::MAX] {
        let options = EncoderOptions { chunk, ..EncoderOptions::default() };
        let error = load(&encoders::model("embed"), cpu(1, None), &options).err().unwrap();
        assert!(matches!(error, EngineError::Encoder(EncoderError::Step { .. })), "{error}");
    }
}

#[test]
fn a_model_is_used_for_what_it_is() {
    let unsupported = |error: EngineError, named: &str| {
        assert!(error.is_unsupported() && error.to_string().contains(named), "{error}");
    };
    let input = [EncoderInput { ids: vec![2, 3], types: vec![0, 0] }];
    unsupported(encoder("embed").score(&input).unwrap_err(), "yirage embed");
    unsupported(encoder("score").embed(&input, MEAN).unwrap_err(), "yirage rerank");
    unsupported(load(&tiny::model("llama"), cpu(1, None), &EncoderOptions::default()).err().unwrap(), "yirage run");
    let checkpoint = Checkpoint::open(encoders::model("embed")).unwrap();
    let engine = Engine::load(&checkpoint, cpu(1, None), &EngineOptions::default(), &mut |_, _| {});
    unsupported(engine.err().unwrap(), "yirage embed");
}

/// Vectors by sentence-transformers; one text is longer than the model takes, and is cut by both.
#[test]
#[ignore = "needs all-MiniLM-L6-v2 in YIRAGE_MODELS"]
fn a_real_model_gives_the_vectors_of_sentence_transformers() {
    let folder = absent::model("all-MiniLM-L6-v2");
    let (golden, tokenizer) = (encoders::minilm(), tokenizer(&folder));
    let cases = golden["cases"].as_array().unwrap();
    let mut encoder = load(&folder, cpu(2, None), &EncoderOptions::default()).unwrap();
    assert_eq!(
        (encoder.facts().embedding, u64::from(encoder.facts().longest)),
        (MEAN, golden["longest"].as_u64().unwrap())
    );
    let framed = |case: &Value| {
        let text = case["text"].as_str().unwrap();
        assert_eq!(tokenizer.frame(text, None).unwrap().ids, json::ids(&case["ids"]), "{text:?}");
        tokenizer.frame(text, Some(encoder.facts().longest as usize)).unwrap()
    };
    let framed: Vec<FramedTokens> = cases.iter().map(framed).collect();
    assert_eq!(framed.iter().filter(|text| text.cut > 0).count(), 1);
    let found = encoder.embed(&framed.into_iter().map(input).collect::<Vec<_>>(), MEAN).unwrap();
    found.iter().zip(cases).for_each(|(row, case)| check_row(&case["text"], row, &case["embedding"]));
}
