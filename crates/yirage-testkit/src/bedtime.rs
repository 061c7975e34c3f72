//! `bedtime`: a Llama of 250,000 parameters that tells something like stories, with a vocabulary of 512 pieces.
//!
//! Trained for these tests on public-domain children's books by `tools/oracle/bedtime.py`, which also wrote the golden file:
//! what transformers computes in float32 from the very weights that are stored. The repository has the Q8_0 file; the other
//! forms have the same values, de-quantised.

use crate::{fixtures, gguf, safetensors};
use serde_json::{Value, json};
use std::path::PathBuf;

const Q8_0: &[u8] = include_bytes!("../fixtures/bedtime/bedtime-q8_0.gguf");
const CONTENTS: &str = include_str!("../fixtures/bedtime/contents.json");
const GOLDEN: &str = include_str!("../fixtures/bedtime/golden.json");

/// Prompts with greedy continuations and their top logits (`cases`), a passage with its likelihood (`nll`), and texts with
/// their tokens (`texts`).
#[must_use]
pub fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

/// The stored file, `bedtime-q8_0.gguf`.
#[must_use]
pub fn q8_0() -> PathBuf {
    folder().join("bedtime-q8_0.gguf")
}

/// The same de-quantised, `bedtime-f32.gguf`.
#[must_use]
pub fn f32() -> PathBuf {
    folder().join("bedtime-f32.gguf")
}

/// The folder of both, for those who name models by their files.
#[must_use]
pub fn folder() -> PathBuf {
    fixtures::folder("bedtime", &[("bedtime-q8_0.gguf", Q8_0.to_vec()), ("bedtime-f32.gguf", f32_bytes())])
}

/// A folder with config.json and model.safetensors in f32, without a tokenizer.
#[must_use]
pub fn safetensors() -> PathBuf {
    fixtures::folder("bedtime-hf", &hf_files())
}

/// The same with tokenizer.json.
#[must_use]
pub fn safetensors_with_tokenizer() -> PathBuf {
    let mut files = hf_files();
    files.push(("tokenizer.json", tokenizer_json().to_string().into_bytes()));
    fixtures::folder("bedtime-hf", &files)
}

/// The same as a model that fills gaps in: its last three pieces are the marks of a text's beginning, end and middle.
#[must_use]
pub fn that_fills_in() -> PathBuf {
    with_marks("bedtime-fills-in", &["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"])
}

/// The same as a model that thinks and calls tools: its last four pieces are special tokens that mark both.
#[must_use]
pub fn that_calls_tools() -> PathBuf {
    with_marks("bedtime-calls-tools", &["[TOOL_CALLS]", "[ARGS]", "<think>", "</think>"])
}

/// The model with special tokens in the place of its last pieces.
fn with_marks(folder: &'static str, marks: &[&str]) -> PathBuf {
    let mut tokenizer = tokenizer_json();
    let contents = contents();
    let pieces = pieces(&contents);
    let first = pieces.len() - marks.len();
    for (at, mark) in marks.iter().enumerate() {
        let (id, piece) = (first + at, pieces[first + at].0);
        let vocabulary = tokenizer["model"]["vocab"].as_object_mut().unwrap();
        vocabulary.remove(piece);
        vocabulary.insert((*mark).to_owned(), id.into());
        let uses = |merge: &Value| {
            let (a, b) = (merge[0].as_str().unwrap(), merge[1].as_str().unwrap());
            a == piece || b == piece || [a, b].concat() == piece
        };
        tokenizer["model"]["merges"].as_array_mut().unwrap().retain(|merge| !uses(merge));
        tokenizer["added_tokens"].as_array_mut().unwrap().push(json!({"id": id, "content": mark, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false, "special": true}));
    }
    let mut files = hf_files();
    files.push(("tokenizer.json", tokenizer.to_string().into_bytes()));
    fixtures::folder(folder, &files)
}

fn contents() -> Value {
    serde_json::from_str(CONTENTS).unwrap()
}

fn hf_files() -> Vec<(&'static str, Vec<u8>)> {
    let contents = contents();
    let stored: Vec<BedtimeTensor<'_>> =
        contents["tensors"].as_array().unwrap().iter().map(BedtimeTensor::of).collect();
    let tensors: Vec<safetensors::NamedTensor<'_>> =
        stored.iter().map(|t| (t.hf, &t.shape[..], t.halves(t.values()))).collect();
    vec![
        ("config.json", contents["config"].to_string().into_bytes()),
        ("model.safetensors", safetensors::file(&tensors)),
    ]
}

fn f32_bytes() -> Vec<u8> {
    let contents = contents();
    let (config, pieces) = (&contents["config"], pieces(&contents));
    let number = |key: &str| u32::try_from(config[key].as_u64().unwrap()).unwrap();
    let head = number("hidden_size") / number("num_attention_heads");
    let mut file = gguf::GgufWriter::new()
        .str("general.architecture", "llama")
        .str("general.name", "bedtime")
        .u32("llama.context_length", number("max_position_embeddings"))
        .u32("llama.embedding_length", number("hidden_size"))
        .u32("llama.block_count", number("num_hidden_layers"))
        .u32("llama.feed_forward_length", number("intermediate_size"))
        .u32("llama.attention.head_count", number("num_attention_heads"))
        .u32("llama.attention.head_count_kv", number("num_key_value_heads"))
        .u32("llama.rope.dimension_count", head)
        .f32("llama.rope.freq_base", config["rope_theta"].as_f64().unwrap() as f32)
        .f32("llama.attention.layer_norm_rms_epsilon", config["rms_norm_eps"].as_f64().unwrap() as f32)
        .u32("llama.vocab_size", number("vocab_size"))
        .str("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &pieces.iter().map(|p| p.0).collect::<Vec<_>>())
        .f32_list("tokenizer.ggml.scores", &pieces.iter().map(|p| p.1).collect::<Vec<_>>())
        .i32_list("tokenizer.ggml.token_type", &(0..pieces.len()).map(token_type).collect::<Vec<_>>())
        .u32("tokenizer.ggml.bos_token_id", number("bos_token_id"))
        .u32("tokenizer.ggml.eos_token_id", number("eos_token_id"))
        .u32("tokenizer.ggml.unknown_token_id", 0)
        .raw("tokenizer.ggml.add_bos_token", BOOL, &[1])
        .raw("tokenizer.ggml.add_space_prefix", BOOL, &[1]);
    for entry in contents["tensors"].as_array().unwrap() {
        let stored = BedtimeTensor::of(entry);
        file = file.f32s(stored.gguf, &stored.shape, &stored.values());
    }
    file.bytes()
}

/// GGUF's number of the type.
const BOOL: u32 = 7;
/// The pieces before those that merges make: three control tokens and all bytes.
const FIRST_BYTE: usize = 3;
const FIRST_PIECE: usize = FIRST_BYTE + 256;

/// Each piece and its score.
fn pieces(contents: &Value) -> Vec<(&str, f32)> {
    let list = contents["vocabulary"].as_array().unwrap().iter();
    list.map(|p| (p[0].as_str().unwrap(), p[1].as_f64().unwrap() as f32)).collect()
}

/// GGUF's kinds of tokens.
fn token_type(id: usize) -> i32 {
    const UNKNOWN: i32 = 2;
    const CONTROL: i32 = 3;
    const BYTE: i32 = 6;
    const NORMAL: i32 = 1;
    match id {
        0 => UNKNOWN,
        1..FIRST_BYTE => CONTROL,
        FIRST_BYTE..FIRST_PIECE => BYTE,
        _ => NORMAL,
    }
}

/// The vocabulary as a tokenizer.json: whatever two pieces join to a third may be joined, the highest score first.
fn tokenizer_json() -> Value {
    let contents = contents();
    let pieces = pieces(&contents);
    let known = |piece: &str| pieces.iter().any(|p| p.0 == piece);
    let mut merges = Vec::new();
    for (piece, score) in &pieces[FIRST_PIECE..] {
        let cuts = piece.char_indices().map(|(at, _)| piece.split_at(at)).filter(|(a, b)| known(a) && known(b));
        merges.extend(cuts.map(|(a, b)| (*score, json!([a, b]))));
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0));
    let added = |id: usize| json!({"id": id, "content": pieces[id].0, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let vocabulary: serde_json::Map<String, Value> =
        pieces.iter().enumerate().map(|(id, (piece, _))| ((*piece).to_owned(), id.into())).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": (0..FIRST_BYTE).map(added).collect::<Vec<_>>(),
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u{2581}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}]},
        "pre_tokenizer": null,
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": vocabulary, "merges": merges.into_iter().map(|m| m.1).collect::<Vec<_>>()}
    })
}

/// A tensor of the stored file.
struct BedtimeTensor<'a> {
    gguf: &'a str,
    hf: &'a str,
    shape: Vec<usize>,
    offset: usize,
    /// Heads whose rows GGUF keeps in another order, or 0.
    heads: usize,
}

impl<'a> BedtimeTensor<'a> {
    fn of(entry: &'a Value) -> Self {
        let number = |v: &Value| v.as_u64().unwrap() as usize;
        BedtimeTensor {
            gguf: entry["gguf"].as_str().unwrap(),
            hf: entry["hf"].as_str().unwrap(),
            shape: entry["shape"].as_array().unwrap().iter().map(number).collect(),
            offset: number(&entry["offset"]),
            heads: number(&entry["heads"]),
        }
    }

    /// De-quantised: matrices are in Q8_0 (a scale in f16 and 32 whole numbers), vectors in f32.
    fn values(&self) -> Vec<f32> {
        const BLOCK: usize = 32;
        let (elements, bytes) = (self.shape.iter().product::<usize>(), &Q8_0[self.offset..]);
        if self.shape.len() == 1 {
            return bytes.chunks_exact(4).take(elements).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
        }
        let block = |block: &[u8]| {
            let scale = f16(u16::from_le_bytes([block[0], block[1]]));
            block[2..].iter().map(move |x| scale * f32::from(x.cast_signed())).collect::<Vec<f32>>()
        };
        bytes.chunks_exact(2 + BLOCK).take(elements / BLOCK).flat_map(block).collect()
    }

    /// Rows of each head from neighbouring pairs, GGUF's order, to halves.
    fn halves(&self, values: Vec<f32>) -> Vec<f32> {
        if self.heads == 0 {
            return values;
        }
        let width = self.shape[1];
        let head = self.shape[0] / self.heads;
        let row = |r: usize| {
            let (of, at) = (r / head, r % head);
            let (half, pair) = (at / (head / 2), at % (head / 2));
            of * head + 2 * pair + half
        };
        (0..self.shape[0]).flat_map(|r| values[row(r) * width..][..width].iter().copied()).collect()
    }
}

/// A finite half-precision number that is not subnormal, or zero: no scale of the file is anything else.
fn f16(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, bits & 1023);
    assert!((1..31).contains(&exponent) || bits & 0x7fff == 0, "a scale of {bits:#06x}");
    if bits & 0x7fff == 0 {
        return 0.0;
    }
    f32::from_bits(u32::from(sign) << 31 | (u32::from(exponent) + 112) << 23 | u32::from(fraction) << 13)
}
