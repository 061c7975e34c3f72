//! Tiny models that read pictures beside transformers: the tower's rows, logits and tokens of prompts, and the same bytes
//! however a prompt is computed. A program of its own, as it needs a crate that no other test of the engine does.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use yirage_cpu::Cpu;
use yirage_engine::scheduler::{LogitsWanted, SequenceUsage};
use yirage_engine::{
    CacheSize, EmbeddedError, EmbeddedSpan, EmbeddingRows, Engine, EngineError, EngineOptions, Event, Picture, Request,
    Speculation, VisionTower,
};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_image::{ImageProcessor, PixelValues, decode};
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_testkit::json::{floats, ids};
use yirage_testkit::rows::argmax;
use yirage_testkit::{tiny, vision};

/// What may lie between two orders of additions, in deviations.
const CLOSE: f64 = 1e-4;

fn cpu() -> Arc<dyn Device> {
    Cpu.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0
}

fn options() -> EngineOptions {
    EngineOptions { embedded: true, chunk: 64, ..EngineOptions::default() }
}

fn engine(folder: &Path, options: &EngineOptions) -> Engine {
    Engine::load(&Checkpoint::open(folder).unwrap(), cpu(), options, &mut |_, _| {}).unwrap()
}

fn tower(folder: &Path, options: &EngineOptions) -> VisionTower {
    VisionTower::load(&Checkpoint::open(folder).unwrap(), &*cpu(), options, &mut |_, _| {}).unwrap().unwrap()
}

/// The tiles of a picture of a fixture as the processor of its model gives them.
fn tiles(golden: &Value, name: &str) -> Vec<Picture> {
    let file = base64::engine::general_purpose::STANDARD.decode(golden["pictures"][name].as_str().unwrap()).unwrap();
    let settings = golden["files"]["preprocessor_config.json"].to_string();
    let processor = ImageProcessor::from_json(settings.as_bytes(), "preprocessor_config.json").unwrap();
    let tiles = processor.tiles(decode(&file).unwrap()).unwrap().tiles;
    let picture = |pixels: PixelValues| Picture { width: pixels.width, height: pixels.height, values: pixels.values };
    tiles.into_iter().map(picture).collect()
}

/// The request of a case, whose pictures stand where its prompt has their token.
fn request(golden: &Value, case: &Value, tower: &mut VisionTower, new: u32) -> Request {
    let prompt = ids(&case["ids"]);
    let token = tower.token();
    let mut places = (0..prompt.len()).filter(|&at| prompt[at] == token);
    let mut embedded = Vec::new();
    let names = case["pictures"].as_array().unwrap().iter();
    for tile in names.flat_map(|name| tiles(golden, name.as_str().unwrap())) {
        let rows = tower.embed(&tile).unwrap();
        let at = places.next().unwrap();
        embedded.push(EmbeddedSpan { at, rows: rows.clone() });
        assert!(places.by_ref().take(rows.rows() as usize - 1).eq(at + 1..at + rows.rows() as usize));
    }
    assert_eq!(places.next(), None);
    Request { embedded, ..Request::greedy(prompt, new) }
}

/// What a request gave.
#[derive(Clone, Default)]
struct Output {
    logits: Vec<Vec<f32>>,
    tokens: Vec<u32>,
    usage: SequenceUsage,
}

/// What each request gives, all run together.
fn run(engine: &mut Engine, requests: Vec<Request>) -> Vec<Output> {
    let seqs: Vec<_> = requests.into_iter().map(|request| engine.add(request).unwrap()).collect();
    let mut out = vec![Output::default(); seqs.len()];
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            let place = |seq| seqs.iter().position(|s| *s == seq).unwrap();
            match event {
                Event::Token { seq, token, .. } => out[place(seq)].tokens.push(token),
                Event::Logits { seq, logits, .. } => out[place(seq)].logits.push(logits),
                Event::Finished { seq, reason, usage, .. } => {
                    assert!(!format!("{reason:?}").contains("Error"), "{reason:?}");
                    out[place(seq)].usage = usage;
                }
                _ => {}
            }
        }
    }
    out
}

fn tokens(engine: &mut Engine, requests: Vec<Request>) -> Vec<Vec<u32>> {
    run(engine, requests).into_iter().map(|of| of.tokens).collect()
}

fn cases(golden: &Value) -> &Vec<Value> {
    golden["cases"].as_array().unwrap()
}

#[test]
fn rows_of_pictures_are_those_of_transformers() {
    for name in vision::NAMES {
        let golden = vision::golden(name);
        for precision in [Precision::Exact, Precision::Fast] {
            let mut tower = tower(&vision::model(name), &EngineOptions { precision, ..options() });
            for (picture_name, seen) in golden["seen"].as_object().unwrap() {
                let tiles = tiles(&golden, picture_name);
                let bytes: Vec<u8> = tiles.iter().flat_map(|tile| &tile.values).flat_map(|x| x.to_le_bytes()).collect();
                let hash: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
                assert_eq!(hash, seen["pixels"].as_str().unwrap(), "{name}, {picture_name}");
                let rows: Vec<_> = tiles.iter().map(|tile| tower.embed(tile).unwrap()).collect();
                assert_eq!(rows.iter().map(|of| u64::from(of.rows())).sum::<u64>(), seen["count"].as_u64().unwrap());
                let width = rows[0].width() as usize;
                let values: Vec<f32> = rows.iter().flat_map(|of| of.values().iter().copied()).collect();
                for row in seen["rows"].as_array().unwrap() {
                    let at = row[0].as_u64().unwrap() as usize;
                    let found = values.chunks_exact(width).nth(at).unwrap();
                    let wanted = floats(&row[1]);
                    assert_eq!(found.len(), wanted.len());
                    let worst = found.iter().zip(wanted).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
                    let std = seen["std"].as_f64().unwrap();
                    assert!(worst / std < CLOSE, "{name}, {picture_name}, row {at}: {:e}", worst / std);
                }
            }
        }
    }
}

#[test]
fn prompts_with_pictures_give_the_logits_and_tokens_of_transformers() {
    for name in vision::NAMES {
        let golden = vision::golden(name);
        let options = EngineOptions { precision: Precision::Exact, ..options() };
        let (mut tower, mut engine) = (tower(&vision::model(name), &options), engine(&vision::model(name), &options));
        for case in cases(&golden) {
            let wanted = ids(&case["greedy"]);
            let request = request(&golden, case, &mut tower, wanted.len() as u32);
            let tokens = tokens(&mut engine, vec![request.clone()]).remove(0);
            assert_eq!(tokens, wanted, "{name}: {}", case["text"]);
            let all = Request { logits: Some(LogitsWanted::All), max_new_tokens: Some(0), ..request };
            let rows = run(&mut engine, vec![all]).remove(0).logits;
            assert_eq!(rows.iter().map(|row| argmax(row)).collect::<Vec<_>>(), ids(&case["argmax_each_pos"]));
            let (last, std) = (rows.last().unwrap(), case["std"].as_f64().unwrap());
            let want = floats(&case["last_logits"]);
            let worst = last.iter().zip(want).map(|(a, b)| (f64::from(*a) - b).abs() / std).fold(0.0, f64::max);
            assert!(worst < CLOSE, "{name}: {}: {worst:e}", case["text"]);
        }
    }
}

/// The bits of an answer's logits, and its tokens.
type Answer = (Vec<u32>, Vec<u32>);

/// Bits of the last prompt row's logits and the tokens of every case of a model, in an engine of these options, together or
/// alone. With how often one lost its blocks.
fn bits(name: &str, options: &EngineOptions, together: bool) -> (Vec<Answer>, u32) {
    let (golden, folder) = (vision::golden(name), vision::model(name));
    let (mut tower, mut engine) = (tower(&folder, options), engine(&folder, options));
    let last = |request: Request| Request { logits: Some(LogitsWanted::Last), ..request };
    let requests: Vec<Request> =
        cases(&golden).iter().map(|case| last(request(&golden, case, &mut tower, 60))).collect();
    let found = match together {
        true => run(&mut engine, requests),
        false => requests.into_iter().flat_map(|request| run(&mut engine, vec![request])).collect(),
    };
    let bits = |rows: Vec<Vec<f32>>| rows.concat().iter().map(|x| x.to_bits()).collect();
    let preempted = found.iter().map(|of| of.usage.preemptions).sum();
    (found.into_iter().map(|of| (bits(of.logits), of.tokens)).collect(), preempted)
}

#[test]
fn a_prompt_has_the_same_bytes_in_chunks_batches_and_after_preemption() {
    // Blocks too few for all that run at once, and enough for the longest alone.
    for (name, blocks) in [("llava", 7), ("idefics3", 13), ("smolvlm", 12)] {
        let (alone, _) = bits(name, &options(), false);
        let same = |options: &EngineOptions, together, how: &str| {
            let (found, preempted) = bits(name, options, together);
            assert!(alone == found, "{name} {how}");
            preempted
        };
        let (few, small) = (EngineOptions { chunk: 16, max_seqs: 4, ..options() }, CacheSize::Blocks(blocks));
        same(&EngineOptions { max_seqs: 4, ..options() }, true, "together");
        same(&EngineOptions { max_seqs: 1, chunk: 7, prefix_cache: false, ..options() }, false, "in chunks");
        same(&few, true, "in chunks, together");
        assert!(same(&EngineOptions { cache: small, ..few }, true, "preempted") > 0, "{name}");
        let speculation = Speculation { most: 4, ..Speculation::lookup() };
        same(&EngineOptions { speculation, ..options() }, false, "with guesses");
    }
}

#[test]
fn cached_beginnings_are_shared_where_their_pictures_are_equal_and_only_there() {
    let (golden, folder) = (vision::golden("llava"), vision::model("llava"));
    let (mut tower, mut engine) = (tower(&folder, &options()), engine(&folder, &options()));
    let mut first = request(&golden, &cases(&golden)[0], &mut tower, 8);
    // A second block in front of what follows the picture.
    first.prompt.extend([70; 40]);
    let Output { tokens: wanted, usage, .. } = run(&mut engine, vec![first.clone()]).remove(0);
    assert_eq!(usage.cached_tokens, 0);
    // The same picture, computed by another tower.
    let mut other_tower = self::tower(&folder, &options());
    let again =
        Request { embedded: request(&golden, &cases(&golden)[0], &mut other_tower, 8).embedded, ..first.clone() };
    let Output { tokens, usage, .. } = run(&mut engine, vec![again]).remove(0);
    assert_eq!((tokens, usage.cached_tokens), (wanted, 64));
    let rows = tower.embed(&tiles(&golden, "second")[0]).unwrap();
    let other = Request { embedded: vec![EmbeddedSpan { at: first.embedded[0].at, rows }], ..first.clone() };
    let Output { tokens, usage, .. } = run(&mut engine, vec![other.clone()]).remove(0);
    assert_eq!(usage.cached_tokens, 0, "another picture");
    assert_eq!(tokens, self::tokens(&mut self::engine(&folder, &options()), vec![other]).remove(0));
    let usage = run(&mut engine, vec![Request { embedded: Vec::new(), ..first }]).remove(0).usage;
    assert_eq!(usage.cached_tokens, 0, "no picture");
}

#[test]
fn an_engine_with_a_place_for_rows_gives_the_tokens_of_one_without() {
    let (golden, folder) = (vision::golden("llava"), vision::model("llava"));
    let prompt = ids(&cases(&golden)[3]["ids"]);
    let plain = EngineOptions { embedded: false, ..options() };
    let of = |options: &EngineOptions| tokens(&mut engine(&folder, options), vec![Request::greedy(prompt.clone(), 12)]);
    assert_eq!(of(&plain), of(&options()));
    let rows = Arc::new(EmbeddingRows::new([0; 32], 64, vec![0.0; 64]).unwrap());
    let given = Request { embedded: vec![EmbeddedSpan { at: 0, rows }], ..Request::greedy(prompt, 1) };
    let refused = engine(&folder, &plain).add(given);
    assert!(matches!(refused, Err(EngineError::Embedded(EmbeddedError::NoPlace))));
}

#[test]
fn what_a_tower_does_not_take_is_named() {
    let mut tower = tower(&vision::model("llava"), &options());
    let error = tower.embed(&Picture { width: 44, height: 40, values: vec![0.0; 3 * 44 * 40] }).unwrap_err();
    assert!(error.to_string().contains("44 x 40 pixels") && error.to_string().contains("44 x 44"), "{error}");
    let error = tower.embed(&Picture { width: 44, height: 44, values: vec![0.0; 5] }).unwrap_err();
    assert!(matches!(error, EngineError::Embedded(EmbeddedError::Picture { numbers: 5, .. })), "{error}");
    let checkpoint = Checkpoint::open(tiny::model("llama")).unwrap();
    assert!(VisionTower::load(&checkpoint, &*cpu(), &options(), &mut |_, _| {}).unwrap().is_none());
}
