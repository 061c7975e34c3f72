//! The single-node cases of ONNX as graphs of our ops.

mod attention;
mod case;
mod import;
mod nodes;

pub(crate) use case::{Case, read};
pub(crate) use import::{Import, Wanted};

/// The case as a graph of our ops, with what its outputs must be.
pub(crate) fn import(case: &Case) -> Result<Import, String> {
    let mut import = Import::new(&case.name);
    let done = match case.op.as_str() {
        "Attention" => attention::attention(case, &mut import),
        "RotaryEmbedding" => nodes::rotary_embedding(case, &mut import),
        "RMSNormalization" => nodes::rms_normalization(case, &mut import),
        "LayerNormalization" => nodes::layer_normalization(case, &mut import),
        "Softmax" => nodes::softmax(case, &mut import),
        "MatMul" => nodes::matmul(case, &mut import),
        "Gelu" => nodes::gelu(case, &mut import),
        "TopK" => nodes::top_k(case, &mut import),
        other => return Err(format!("no node `{other}`")),
    };
    done.map_err(|e| e.to_string())?;
    Ok(import)
}
