//! Small files with the names and shapes of models: sixteen layers of two rows and 256 columns.

/// A file by its name in the golden ones.
pub(crate) struct Synthetic {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Vec<u8>,
}

pub(crate) const SYNTHETIC: &[Synthetic] = &[
    Synthetic {
        name: "tied",
        make: || file(Shape { kv_heads: 4, experts: 0, output: false, columns: 256, half: false }),
    },
    Synthetic {
        name: "grouped",
        make: || file(Shape { kv_heads: 1, experts: 0, output: true, columns: 256, half: true }),
    },
    Synthetic {
        name: "experts",
        make: || file(Shape { kv_heads: 2, experts: 8, output: true, columns: 256, half: false }),
    },
    Synthetic {
        name: "narrow",
        make: || file(Shape { kv_heads: 4, experts: 0, output: true, columns: 96, half: false }),
    },
];

const LAYERS: u64 = 16;

struct Shape {
    kv_heads: u32,
    experts: u64,
    output: bool,
    columns: u64,
    half: bool,
}

/// A tensor: name, dimensions as the file has them (innermost first).
type Tensor = (String, Vec<u64>);

fn tensors(shape: &Shape) -> Vec<Tensor> {
    let columns = shape.columns;
    let mut all = vec![("token_embd.weight".into(), vec![columns, 4]), ("output_norm.weight".into(), vec![columns])];
    if shape.output {
        all.push(("output.weight".into(), vec![columns, 4]));
    }
    for layer in 0..LAYERS {
        let mut add = |name: &str, dims: Vec<u64>| all.push((format!("blk.{layer}.{name}"), dims));
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            add(&format!("{name}.weight"), vec![columns, 2]);
        }
        add("attn_norm.weight", vec![columns]);
        if shape.experts > 0 {
            add("ffn_gate_inp.weight", vec![columns, shape.experts]);
        }
        for name in ["ffn_gate", "ffn_up", "ffn_down"] {
            match shape.experts {
                0 => add(&format!("{name}.weight"), vec![columns, 2]),
                experts => add(&format!("{name}_exps.weight"), vec![columns, 2, experts]),
            }
        }
    }
    all
}

fn file(shape: Shape) -> Vec<u8> {
    let tensors = tensors(&shape);
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    put(&mut out, tensors.len() as u64);
    let numbers = [
        ("llama.context_length", 64),
        ("llama.embedding_length", shape.columns as u32),
        ("llama.block_count", LAYERS as u32),
        ("llama.feed_forward_length", shape.columns as u32),
        ("llama.attention.head_count", 4),
        ("llama.attention.head_count_kv", shape.kv_heads),
        ("llama.expert_count", shape.experts as u32),
        ("llama.expert_used_count", shape.experts as u32 / 4),
        ("general.file_type", 0),
    ];
    put(&mut out, numbers.len() as u64 + 3);
    entry(&mut out, "general.architecture", 8);
    text(&mut out, "llama");
    for (key, number) in numbers {
        entry(&mut out, key, 4);
        out.extend_from_slice(&number.to_le_bytes());
    }
    entry(&mut out, "llama.attention.layer_norm_rms_epsilon", 6);
    out.extend_from_slice(&1e-5f32.to_le_bytes());
    entry(&mut out, "tokenizer.ggml.tokens", 9);
    out.extend_from_slice(&8u32.to_le_bytes());
    put(&mut out, 2);
    text(&mut out, "a");
    text(&mut out, "béd");
    let mut data = Vec::new();
    for (name, dims) in &tensors {
        let count: u64 = dims.iter().product();
        let half = shape.half && dims.len() > 1;
        text(&mut out, name);
        out.extend_from_slice(&(dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| put(&mut out, *dim));
        out.extend_from_slice(&u32::from(half).to_le_bytes());
        put(&mut out, data.len() as u64);
        let first = data.len() as u64;
        (0..count).for_each(|i| match number(first + i) {
            x if half => data.extend_from_slice(&half::f16::from_f32(x).to_le_bytes()),
            x => data.extend_from_slice(&x.to_le_bytes()),
        });
        data.resize(data.len().next_multiple_of(32), 0);
    }
    out.resize(out.len().next_multiple_of(32), 0);
    out.extend_from_slice(&data);
    out
}

/// A number of splitmix64, from -1 to 1.
fn number(i: u64) -> f32 {
    let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ z >> 31) >> 41) as f32 * 2f32.powi(-22) - 1.0
}

fn put(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn entry(out: &mut Vec<u8>, key: &str, ty: u32) {
    text(out, key);
    out.extend_from_slice(&ty.to_le_bytes());
}
