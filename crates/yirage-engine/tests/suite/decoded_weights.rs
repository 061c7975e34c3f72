//! Models in formats that nothing computes with: they compute what the same values computed as plain floats do, and their
//! owner is told what was decoded and what it takes.

use crate::golden_support::{all_logits, engine, greedy, options};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use yirage_engine::{EngineOptions, Notice};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_testkit::bedtime;
use yirage_testkit::gguf::GgufWriter;
use yirage_testkit::rng::Rng;
use yirage_testkit::scratch::ScratchFolder;

const IDS: [u32; 10] = [1, 403, 407, 261, 378, 3, 5, 9, 21, 30];

/// A tensor as a safetensors file has it.
type StoredTensor = (String, &'static str, Vec<usize>, Vec<u8>);

fn safetensors(tensors: &[StoredTensor]) -> Vec<u8> {
    let (mut header, mut at) = (Map::new(), 0);
    for (name, dtype, shape, bytes) in tensors {
        let end = at + bytes.len();
        header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [at, end]}));
        at = end;
    }
    let header = serde_json::to_vec(&header).unwrap();
    let data = tensors.iter().flat_map(|t| t.3.clone());
    (header.len() as u64).to_le_bytes().into_iter().chain(header.clone()).chain(data).collect()
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn words(codes: impl Fn(usize, usize) -> u32, lines: usize, columns: usize, down: bool) -> Vec<u8> {
    let (lines, columns, step) = if down { (lines / 8, columns, 8) } else { (lines, columns / 8, 1) };
    let word = |l: usize, c: usize| {
        (0..8).fold(0, |word, k| {
            let code = if down { codes(l * step + k, c) } else { codes(l, c * 8 + k) };
            word | code << (4 * k)
        })
    };
    (0..lines).flat_map(|l| (0..columns).map(move |c| (l, c))).flat_map(|(l, c)| word(l, c).to_le_bytes()).collect()
}

/// A matrix as GPTQ packs it, rounded to the nearest, and its values; `of` gives the group of an input.
fn gptq(
    name: &str,
    values: &[f32],
    [rows, width]: [usize; 2],
    of: &dyn Fn(usize) -> usize,
) -> (Vec<StoredTensor>, Vec<f32>) {
    let groups = width / 32;
    let info = Format::F16.info();
    let mut scales = vec![0f32; groups * rows];
    for (i, v) in values.iter().enumerate() {
        let scale = &mut scales[of(i % width) * rows + i / width];
        *scale = scale.max(v.abs() / 7.0);
    }
    let mut halves = vec![0u8; scales.len() * 2];
    (info.encode.unwrap())(&scales, &mut halves);
    (info.decode)(&halves, &mut scales);
    let scale = |row: usize, column: usize| scales[of(column) * rows + row];
    let code = |row: usize, column: usize| {
        let steps = values[row * width + column] / scale(row, column).max(f32::MIN_POSITIVE);
        (steps.round() + 8.0).clamp(0.0, 15.0) as u32
    };
    let stem = name.strip_suffix(".weight").unwrap();
    let order: Vec<u8> = (0..width).flat_map(|c| (of(c) as i32).to_le_bytes()).collect();
    let parts = vec![
        (format!("{stem}.qweight"), "I32", vec![width / 8, rows], words(|c, r| code(r, c), width, rows, true)),
        (format!("{stem}.qzeros"), "I32", vec![groups, rows / 8], words(|_, _| 7, groups, rows, false)),
        (format!("{stem}.scales"), "F16", vec![groups, rows], halves.clone()),
        (format!("{stem}.g_idx"), "I32", vec![width], order),
    ];
    let decoded = (0..rows * width).map(|i| {
        let (row, column) = (i / width, i % width);
        scale(row, column) * (code(row, column) as f32 - 8.0)
    });
    (parts, decoded.collect())
}

/// The small Llama with its projections packed, and the same with the packed values as f32.
fn packed_bedtime(ordered: bool) -> (ScratchFolder, ScratchFolder) {
    let checkpoint = Checkpoint::open(bedtime::safetensors()).unwrap();
    let (mut packed, mut plain) = (Vec::new(), Vec::new());
    for t in checkpoint.tensors() {
        let format = checkpoint.format(t).unwrap();
        let mut values = vec![0f32; t.elements()];
        (format.info().decode)(checkpoint.bytes(t), &mut values);
        if !t.name.ends_with("_proj.weight") {
            packed.push((t.name.clone(), "F32", t.shape.clone(), bytes_of(&values)));
            plain.push((t.name.clone(), "F32", t.shape.clone(), bytes_of(&values)));
            continue;
        }
        let groups = t.shape[1] / 32;
        let of = |column: usize| if ordered { column * 7 % groups } else { column / 32 };
        let (parts, decoded) = gptq(&t.name, &values, [t.shape[0], t.shape[1]], &of);
        packed.extend(parts);
        plain.push((t.name.clone(), "F32", t.shape.clone(), bytes_of(&decoded)));
    }
    let config = std::fs::read(bedtime::safetensors().join("config.json")).unwrap();
    let folder = |name: &str, tensors: &[StoredTensor], config: &[u8]| {
        let folder = ScratchFolder::new(name);
        folder.write("model.safetensors", &safetensors(tensors));
        folder.write("config.json", config);
        folder
    };
    let mut quantised: Value = serde_json::from_slice(&config).unwrap();
    quantised["quantization_config"] =
        json!({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": ordered});
    let quantised = serde_json::to_vec(&quantised).unwrap();
    (folder("gptq", &packed, &quantised), folder("gptq-plain", &plain, &config))
}

fn exact() -> EngineOptions {
    EngineOptions { kv: Some(Format::F32), context: Some(64), ..options(Precision::Exact) }
}

#[test]
fn a_model_decoded_into_floats_computes_the_bytes_of_one_in_floats() {
    let (packed, plain) = packed_bedtime(true);
    let (mut packed, mut plain) = (engine(&packed.0, &exact()), engine(&plain.0, &exact()));
    assert_eq!(packed.memory().weights.used, plain.memory().weights.used);
    let notices = packed.notices();
    let [Notice::Decoded(told)] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((told.len(), told[0].format), (1, Format::F32));
    assert!(told[0].stored.starts_with("GPTQ 4-bit") && told[0].stored_bytes * 6 < told[0].bytes, "{told:?}");
    assert!(notices[0].to_string().contains("bytes in memory"), "{}", notices[0]);
    assert_eq!(plain.notices(), []);
    let bits = |rows: Vec<Vec<f32>>| rows.into_iter().flatten().map(f32::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(all_logits(&mut packed, &IDS)), bits(all_logits(&mut plain, &IDS)));
}

#[test]
fn a_model_decoded_into_blocks_computes_what_one_in_floats_does_and_takes_less() {
    let (packed, plain) = packed_bedtime(false);
    let (mut packed, mut plain) = (engine(&packed.0, &exact()), engine(&plain.0, &exact()));
    let notices = packed.notices();
    let [Notice::Decoded(told)] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((told.len(), told[0].format), (1, Format::Q4_0));
    assert!(packed.memory().weights.used * 2 < plain.memory().weights.used);
    for (got, want) in all_logits(&mut packed, &IDS).iter().zip(all_logits(&mut plain, &IDS)) {
        let worst = got.iter().zip(&want).map(|(g, w)| (g - w).abs()).fold(0f32, f32::max);
        assert!(worst < 1e-3, "{worst}");
    }
    assert_eq!(greedy(&mut packed, &IDS, 20), greedy(&mut plain, &IDS, 20));
}

/// A Llama of one layer, 256 wide, whose matrices are what `matrix` writes.
fn wide_llama(
    file: &str,
    folder: &ScratchFolder,
    matrix: &dyn Fn(GgufWriter, &str, [usize; 2]) -> GgufWriter,
) -> PathBuf {
    let mut w = GgufWriter::new()
        .str("general.architecture", "llama")
        .u32("llama.context_length", 64)
        .u32("llama.embedding_length", 256)
        .u32("llama.block_count", 1)
        .u32("llama.feed_forward_length", 512)
        .u32("llama.attention.head_count", 4)
        .u32("llama.attention.head_count_kv", 2)
        .u32("llama.rope.dimension_count", 64)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        .u32("llama.vocab_size", 48);
    for norm in ["blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"] {
        w = w.f32s(norm, &[256], &[1.0; 256]);
    }
    for (name, rows, width) in [
        ("token_embd.weight", 48, 256),
        ("output.weight", 48, 256),
        ("blk.0.attn_q.weight", 256, 256),
        ("blk.0.attn_k.weight", 128, 256),
        ("blk.0.attn_v.weight", 128, 256),
        ("blk.0.attn_output.weight", 256, 256),
        ("blk.0.ffn_gate.weight", 512, 256),
        ("blk.0.ffn_up.weight", 512, 256),
        ("blk.0.ffn_down.weight", 256, 512),
    ] {
        w = matrix(w, name, [rows, width]);
    }
    folder.write(file, &w.bytes())
}

fn decoded(checkpoint: &Checkpoint, name: &str) -> Vec<f32> {
    let t = checkpoint.tensor(name).unwrap();
    let format = checkpoint.format(t).unwrap();
    let mut values = vec![0f32; t.elements()];
    let mut scratch = Vec::new();
    (format.info().decode)(checkpoint.elements(t, 0..t.elements(), &mut scratch).unwrap(), &mut values);
    values
}

fn logits_of(model: &Path) -> Vec<u32> {
    let mut engine = engine(model, &exact());
    all_logits(&mut engine, &[1, 40, 7, 26, 31, 3]).into_iter().flatten().map(f32::to_bits).collect()
}

#[test]
fn i_quants_compute_the_bytes_of_their_values_in_floats() {
    const IQ4_XS: u32 = 23;
    let folder = ScratchFolder::new("i-quants");
    let packed = wide_llama("iq4_xs.gguf", &folder, &|mut w, name, [rows, width]| {
        let mut rng = Rng::new(name.len() as u64);
        w.data.resize(w.data.len().next_multiple_of(32), 0);
        let at = w.data.len() as u64;
        w = w.tensor(name, &[width as u64, rows as u64], IQ4_XS, at);
        for _ in 0..rows * width / 256 {
            // A scale of 2^-15 to 2^-14, so that weights are some hundredths.
            w.data.extend([rng.next_u64() as u8, 0x02]);
            w.data.extend((0..134).map(|_| rng.next_u64() as u8));
        }
        w
    });
    let values = Checkpoint::open(&packed).unwrap();
    let plain = wide_llama("f32.gguf", &folder, &|w, name, shape| w.f32s(name, &shape, &decoded(&values, name)));
    let (got, want) = (logits_of(&packed), logits_of(&plain));
    assert!(want.iter().any(|&bits| f32::from_bits(bits).abs() > 0.01));
    assert_eq!(got, want);
}
