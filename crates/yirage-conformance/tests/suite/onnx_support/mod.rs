//! The single-node cases of ONNX as graphs of our ops.

mod attention;
mod case;
mod general;
mod import;
mod kernel;
mod nodes;

use case::{Array, Element};
use import::Import;
use yirage_conformance::GraphSetup;

pub(crate) use case::{OnnxCase, read};
pub(crate) use import::Wanted;
pub(crate) use kernel::import as kernel_graph;

/// The case as graphs of our ops, each with what its outputs must be: of the named ops, of the general ones, or of both.
pub(crate) fn import(case: &OnnxCase) -> Result<Vec<(GraphSetup, Vec<Wanted>)>, String> {
    let mut made = Vec::new();
    let mut import = Import::new(&case.name);
    let named = match case.op.as_str() {
        "Attention" => Some(attention::attention(case, &mut import)),
        "RotaryEmbedding" => Some(nodes::rotary_embedding(case, &mut import)),
        "RMSNormalization" => Some(nodes::rms_normalization(case, &mut import)),
        "LayerNormalization" => Some(nodes::layer_normalization(case, &mut import)),
        "Softmax" if rows(case) => Some(nodes::softmax(case, &mut import)),
        "MatMul" if rows(case) => Some(nodes::matmul(case, &mut import)),
        "Gelu" if rows(case) => Some(nodes::gelu(case, &mut import)),
        "TopK" => Some(nodes::top_k(case, &mut import)),
        _ => None,
    };
    if let Some(done) = named {
        done.map_err(|e| e.to_string())?;
        made.push(import.finish());
    }
    let mut import = Import::new(&case.name);
    if let Some(done) = general::import(case, &mut import) {
        done?;
        made.push(import.finish());
    }
    if made.is_empty() { Err(format!("no node `{}`", case.op)) } else { Ok(made) }
}

/// Whether rows of f32 can be made of all inputs, as the named ops read them; what was another function before version 13
/// is not theirs.
fn rows(case: &OnnxCase) -> bool {
    let row = |array: &Array| array.element == Element::F32 && array.shape.iter().product::<usize>() > 0;
    case.opset >= 13 && case.ins.iter().all(|(_, a)| a.as_ref().is_some_and(|a| row(a) && !a.shape.is_empty()))
}
