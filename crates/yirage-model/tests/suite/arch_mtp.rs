//! MTP heads: what they compute, where their tables come from, their names in both containers, and what is refused.

use crate::arch_support::ArchRunner;
use std::path::Path;
use yirage_ir::Tensor;
use yirage_model::arch::{BuildOptions, Model, PREVIOUS_HIDDEN, build, build_mtp_head, mtp_layer};
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_testkit::gguf::GgufWriter;
use yirage_testkit::mtp::{MtpModel, MtpTables, NAMES};
use yirage_testkit::{scratch::ScratchFolder, tiny};

const CONTEXT: u32 = 64;
const OPTIONS: BuildOptions = BuildOptions::plain(CONTEXT);
const TABLES: [MtpTables; 3] = [MtpTables::Own, MtpTables::Copied, MtpTables::Missing];
const WIDTH: usize = 64;
const VOCABULARY: usize = 256;

fn open(path: &Path) -> (Checkpoint, RawConfig) {
    let checkpoint = Checkpoint::open(path).unwrap();
    let config = RawConfig::load(&checkpoint).unwrap();
    (checkpoint, config)
}

fn head(path: &Path) -> Result<Model, ModelError> {
    let (checkpoint, config) = open(path);
    build_mtp_head(&checkpoint, &config, OPTIONS)
}

fn head_runner(path: &Path) -> ArchRunner {
    ArchRunner::of_model(&open(path).0, head(path).unwrap(), CONTEXT).unwrap()
}

/// One step of a head: logits and states of `rows`.
fn step(head: &mut ArchRunner, ids: &[u32], hidden: &[Vec<f32>], rows: &[usize]) -> [Vec<Vec<f32>>; 2] {
    head.give(PREVIOUS_HIDDEN, Tensor::f32([ids.len(), WIDTH], hidden.concat()));
    let out = head.outputs(ids, rows);
    [0, 1].map(|output| (0..rows.len()).map(|row| out[output].row(row)).collect())
}

fn ids(count: usize) -> Vec<u32> {
    (0..count).map(|i| (3 + 37 * i % 250) as u32).collect()
}

fn hidden(count: usize) -> Vec<Vec<f32>> {
    let at = |i: usize| ((i * 2_654_435_761 % 1009) as f32 - 504.0) / 300.0;
    (0..count).map(|row| (0..WIDTH).map(|column| at(row * WIDTH + column)).collect()).collect()
}

fn rms_norm(row: &[f32], weight: &[f32], eps: f64) -> Vec<f64> {
    let square = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / row.len() as f64;
    row.iter().zip(weight).map(|(x, w)| f64::from(*x) / (square + eps).sqrt() * f64::from(*w)).collect()
}

/// The head as a plain model of one layer, whose embedding is what the head's projection gives for each place: written
/// out here. What a plain model computes is known from elsewhere.
fn plain_model(of: &MtpModel, ids: &[u32], hidden: &[Vec<f32>], tables: MtpTables) -> ArchRunner {
    let own = format!("model.layers.{}.", of.layer());
    let values = |name: &str| of.tensor(&format!("{own}{name}")).1;
    let (embedding, output) = match tables {
        MtpTables::Missing => (of.tensor("model.embed_tokens.weight").1, of.tensor("lm_head.weight").1),
        MtpTables::Own | MtpTables::Copied => (values("embed_tokens.weight"), values("shared_head.head.weight")),
    };
    let eps = of.config["rms_norm_eps"].as_f64().unwrap();
    let mut rows = vec![0.0; VOCABULARY * WIDTH];
    for (place, (&id, state)) in ids.iter().zip(hidden).enumerate() {
        let token = &embedding[id as usize * WIDTH..][..WIDTH];
        let token = rms_norm(token, values("enorm.weight"), eps);
        let both = [token, rms_norm(state, values("hnorm.weight"), eps)].concat();
        for (to, weights) in rows[place * WIDTH..][..WIDTH].iter_mut().zip(values("eh_proj.weight").chunks(2 * WIDTH)) {
            *to = weights.iter().zip(&both).map(|(w, x)| f64::from(*w) * x).sum::<f64>() as f32;
        }
    }
    let mut plain = of.clone();
    plain.config["num_hidden_layers"] = 1.into();
    plain.config["first_k_dense_replace"] = 0.into();
    plain.config["num_nextn_predict_layers"] = 0.into();
    let layer = plain.tensors.iter().filter_map(|(name, shape, values)| {
        let rest = name.strip_prefix(&own)?;
        let of_head = ["enorm", "hnorm", "eh_proj", "shared_head", "embed_tokens"].iter().any(|n| rest.starts_with(n));
        (!of_head).then(|| (format!("model.layers.0.{rest}"), shape.clone(), values.clone()))
    });
    let table = vec![VOCABULARY, WIDTH];
    let mut tensors: Vec<_> = layer.collect();
    tensors.push(("model.embed_tokens.weight".into(), table.clone(), rows));
    tensors.push(("lm_head.weight".into(), table, output.to_vec()));
    tensors.push(("model.norm.weight".into(), vec![WIDTH], values("shared_head.norm.weight").to_vec()));
    plain.tensors = tensors;
    let (checkpoint, config) = open(&plain.folder());
    let model = build(&checkpoint, &config, BuildOptions { hidden: true, ..OPTIONS }).unwrap();
    ArchRunner::of_model(&checkpoint, model, CONTEXT).unwrap()
}

fn assert_near(a: &[f32], b: &[f32], bound: f32, what: &str) {
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let size = b.iter().map(|x| x.abs()).fold(0.0, f32::max);
    assert!(a.len() == b.len() && worst <= bound * size.max(1.0), "{what}: {worst} of {size}");
}

#[test]
fn a_head_is_a_layer_behind_norms_and_a_projection() {
    const PLACES: usize = 11;
    let (ids, hidden) = (ids(PLACES), hidden(PLACES));
    let all: Vec<usize> = (0..PLACES).collect();
    let places: Vec<u32> = (0..PLACES as u32).collect();
    for name in NAMES {
        for tables in TABLES {
            let of = MtpModel::random(name, tables);
            let expected = plain_model(&of, &ids, &hidden, tables).outputs(&places, &all);
            let mut head = head_runner(&of.folder());
            let [logits, states] = step(&mut head, &ids, &hidden, &all);
            let weight = of.tensor(&format!("model.layers.{}.shared_head.norm.weight", of.layer())).1;
            let eps = of.config["rms_norm_eps"].as_f64().unwrap();
            for place in 0..PLACES {
                let what = format!("{name}, {tables:?} tables, place {place}");
                assert_near(&logits[place], &expected[0].row(place), 1e-5, &what);
                let normalised: Vec<f32> = rms_norm(&states[place], weight, eps).iter().map(|&x| x as f32).collect();
                assert_near(&normalised, &expected[1].row(place), 1e-5, &what);
            }
            // The cache makes steps of one what one step is.
            head.reset();
            for place in 0..PLACES {
                let [alone, state] = step(&mut head, &ids[place..=place], &hidden[place..=place], &[0]);
                assert_near(&alone[0], &logits[place], 1e-6, name);
                assert_near(&state[0], &states[place], 1e-6, name);
            }
        }
    }
}

#[test]
fn tables_that_are_the_models_once_more_are_the_models() {
    for name in NAMES {
        for tables in TABLES {
            let path = MtpModel::random(name, tables).folder();
            let head = head(&path).unwrap();
            let own = tables == MtpTables::Own;
            for (weight, wanted) in [("mtp.embed.w", own), ("mtp.head.w", own), ("embed.w", !own), ("head.w", !own)] {
                assert_eq!(head.weights.iter().any(|w| w.name == weight), wanted, "{name}, {tables:?}: {weight}");
            }
            assert_eq!((head.previous_hidden(), head.groups.len()), (Some(WIDTH as u32), 1));
            let (checkpoint, config) = open(&path);
            assert_eq!(mtp_layer(&checkpoint, &config).unwrap(), Some(3));
            assert_eq!(build(&checkpoint, &config, OPTIONS).unwrap().previous_hidden(), None);
        }
    }
}

#[test]
fn a_model_gives_the_hidden_states_of_all_its_tokens() {
    for name in NAMES {
        let (checkpoint, config) = open(&MtpModel::random(name, MtpTables::Missing).folder());
        let run = |options, rows: &[usize]| {
            let model = build(&checkpoint, &config, options).unwrap();
            ArchRunner::of_model(&checkpoint, model, CONTEXT).unwrap().outputs(&ids(9), rows)
        };
        let all = run(BuildOptions { all_hidden: true, ..OPTIONS }, &[8]);
        let wanted = run(BuildOptions { hidden: true, ..OPTIONS }, &(0..9).collect::<Vec<_>>());
        assert_eq!((all.len(), all[0].row(0)), (2, wanted[0].row(8)), "{name}: the logits are what they were");
        for place in 0..9 {
            assert_eq!(all[1].row(place), wanted[1].row(place), "{name}, place {place}");
        }
        let three = run(BuildOptions { all_hidden: true, hidden: true, ..OPTIONS }, &[8]);
        assert_eq!((three[1].row(0), three[2].row(3)), (wanted[1].row(8), wanted[1].row(3)), "{name}: the last output");
    }
}

/// GLM-4.5 as GGUF files have it.
fn as_gguf(of: &MtpModel) -> GgufWriter {
    const NAMES: [(&str, &str); 26] = [
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.norm.weight", "output_norm.weight"),
        ("lm_head.weight", "output.weight"),
        ("input_layernorm.weight", "attn_norm.weight"),
        ("post_attention_layernorm.weight", "post_attention_norm.weight"),
        ("self_attn.q_proj.weight", "attn_q.weight"),
        ("self_attn.k_proj.weight", "attn_k.weight"),
        ("self_attn.v_proj.weight", "attn_v.weight"),
        ("self_attn.q_proj.bias", "attn_q.bias"),
        ("self_attn.k_proj.bias", "attn_k.bias"),
        ("self_attn.v_proj.bias", "attn_v.bias"),
        ("self_attn.o_proj.weight", "attn_output.weight"),
        ("self_attn.q_norm.weight", "attn_q_norm.weight"),
        ("self_attn.k_norm.weight", "attn_k_norm.weight"),
        ("mlp.gate.weight", "ffn_gate_inp.weight"),
        ("mlp.gate.e_score_correction_bias", "exp_probs_b.bias"),
        ("mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight"),
        ("mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight"),
        ("mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight"),
        ("enorm.weight", "nextn.enorm.weight"),
        ("hnorm.weight", "nextn.hnorm.weight"),
        ("eh_proj.weight", "nextn.eh_proj.weight"),
        ("shared_head.norm.weight", "nextn.shared_head_norm.weight"),
        ("shared_head.head.weight", "nextn.shared_head_head.weight"),
        ("embed_tokens.weight", "nextn.embed_tokens.weight"),
        ("mlp.", "ffn_"),
    ];
    let number = |key: &str| of.config[key].as_u64().unwrap() as u32;
    let mut file = GgufWriter::new().str("general.architecture", "glm4moe");
    let layers = number("num_hidden_layers") + 1;
    for (suffix, value) in [
        ("block_count", layers),
        ("nextn_predict_layers", 1),
        ("context_length", number("max_position_embeddings")),
        ("embedding_length", number("hidden_size")),
        ("feed_forward_length", number("intermediate_size")),
        ("attention.head_count", number("num_attention_heads")),
        ("attention.head_count_kv", number("num_key_value_heads")),
        ("attention.key_length", number("head_dim")),
        ("attention.value_length", number("head_dim")),
        ("rope.dimension_count", number("head_dim") / 2),
        ("expert_count", number("n_routed_experts")),
        ("expert_used_count", number("num_experts_per_tok")),
        ("expert_group_count", 1),
        ("expert_group_used_count", 1),
        ("expert_gating_func", 2),
        ("expert_shared_count", 1),
        ("expert_feed_forward_length", number("moe_intermediate_size")),
        ("leading_dense_block_count", number("first_k_dense_replace")),
    ] {
        file = file.u32(&format!("glm4moe.{suffix}"), value);
    }
    for (suffix, value) in [
        ("rope.freq_base", 10_000.0),
        ("attention.layer_norm_rms_epsilon", of.config["rms_norm_eps"].as_f64().unwrap() as f32),
        ("expert_weights_scale", of.config["routed_scaling_factor"].as_f64().unwrap() as f32),
    ] {
        file = file.f32(&format!("glm4moe.{suffix}"), value);
    }
    let stored = |part: &str| NAMES.iter().find(|(hf, _)| *hf == part).map(|(_, gguf)| (*gguf).to_owned());
    for (name, shape, values) in &of.tensors {
        let layer = name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
        file = match layer {
            None => file.f32s(&stored(name).unwrap(), shape, values),
            Some((_, part)) if part.starts_with("mlp.experts.") => file,
            Some((layer, part)) => {
                let dense = part.strip_prefix("mlp.").and_then(|rest| rest.strip_suffix("_proj.weight"));
                let own = stored(part).or_else(|| Some(format!("ffn_{}.weight", dense?))).unwrap();
                file.f32s(&format!("blk.{layer}.{own}"), shape, values)
            }
        };
    }
    for layer in 1..layers {
        for part in ["gate", "up", "down"] {
            let expert = |e: u32| format!("model.layers.{layer}.mlp.experts.{e}.{part}_proj.weight");
            let all: Vec<f32> = (0..8).flat_map(|e| of.tensor(&expert(e)).1.to_vec()).collect();
            let shape = [&[8], of.tensor(&expert(0)).0].concat();
            file = file.f32s(&format!("blk.{layer}.ffn_{part}_exps.weight"), &shape, &all);
        }
    }
    file
}

#[test]
fn a_gguf_file_has_the_same_head_under_its_own_names() {
    let scratch = ScratchFolder::new("mtp-gguf");
    for (at, tables) in TABLES.into_iter().enumerate() {
        let of = MtpModel::random("glm4moe", tables);
        let name = format!("{at}.gguf");
        scratch.write(&name, &as_gguf(&of).bytes());
        let path = scratch.0.join(&name);
        let (checkpoint, config) = open(&path);
        assert_eq!(mtp_layer(&checkpoint, &config).unwrap(), Some(3));
        build(&checkpoint, &config, OPTIONS).unwrap();
        let (ids, hidden) = (ids(7), hidden(7));
        let steps = [&path, &of.folder()].map(|path| step(&mut head_runner(path), &ids, &hidden, &[2, 6]));
        assert_eq!(steps[0], steps[1], "{tables:?}");
    }
}

#[test]
fn what_is_no_head_is_refused() {
    let refused = |path: &Path| head(path).unwrap_err();
    let error = refused(&tiny::model("qwen3"));
    assert!(matches!(&error, ModelError::Unsupported { .. }) && error.to_string().contains("eh_proj"), "{error}");
    let (checkpoint, config) = open(&tiny::model("deepseek-v3"));
    assert_eq!(mtp_layer(&checkpoint, &config).unwrap(), None);
    // A part of the layer that is absent, and one that has no place in it.
    let mut of = MtpModel::random("glm4moe", MtpTables::Missing);
    of.tensors.retain(|(name, ..)| !name.ends_with("hnorm.weight"));
    let error = refused(&of.folder());
    assert!(error.to_string().contains("model.layers.3.hnorm.weight"), "{error}");
    let mut of = MtpModel::random("glm4moe", MtpTables::Missing);
    of.tensors.push(("model.layers.3.self_attn.sinks".into(), vec![4], vec![0.0; 4]));
    let error = refused(&of.folder());
    assert!(matches!(&error, ModelError::UnusedTensors(_)) && error.to_string().contains("sinks"), "{error}");
    // A family whose layers are not emitted one by one.
    let error = refused(&MtpModel::random("olmo2", MtpTables::Missing).folder());
    assert!(matches!(&error, ModelError::Unsupported { .. }) && error.to_string().contains("olmo2"), "{error}");
}
