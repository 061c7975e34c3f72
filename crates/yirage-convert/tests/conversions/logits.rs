//! Logits of a model by the reference interpreter, to compare those of two files.

use std::collections::HashMap;
use std::path::Path;
use yirage_ir::dim::Dims;
use yirage_ir::{Tensor, ValueSource};
use yirage_model::arch::{BuildOptions, build};
use yirage_model::weights::materialise;
use yirage_model::{Checkpoint, RawConfig};

/// Positions of a block of the cache.
const BLOCK: usize = 32;

/// The logits of each position of `ids`.
pub(crate) fn logits(path: &Path, ids: &[u32]) -> Vec<Vec<f32>> {
    let checkpoint = Checkpoint::open(path).unwrap();
    let config = RawConfig::load(&checkpoint).unwrap();
    let context = ids.len().next_multiple_of(BLOCK);
    let options = BuildOptions::plain(context as u32);
    let model = build(&checkpoint, &config, options).unwrap();
    let (mut tensors, mut scratch) = (HashMap::new(), Vec::new());
    for w in &model.weights {
        let bytes = materialise(&checkpoint, w, 0..w.rows(), &mut scratch).unwrap().to_vec();
        tensors.insert(w.name.clone(), Tensor::stored(w.format, w.shape.clone(), bytes));
    }
    for state in model.graph.inputs_of(ValueSource::KvCache) {
        let ty = model.graph.ty(state);
        let mut shape = vec![context / BLOCK];
        shape.extend(ty.shape.iter().map(|d| d.get(&Dims::default())));
        let mut tensor = Tensor::f32(shape.clone(), vec![f32::NAN; shape.iter().product()]);
        tensor.dtype = ty.dtype;
        tensors.insert(model.graph.value(state).name.clone(), tensor);
    }
    let n = ids.len();
    let each: Vec<i32> = (0..n as i32).collect();
    let mut put =
        |name: &str, shape: Vec<usize>, values: Vec<i32>| tensors.insert(name.into(), Tensor::i32(shape, values));
    put("ids", vec![n], ids.iter().map(|&i| i as i32).collect());
    put("seqs", vec![n], vec![0; n]);
    put("rows", vec![n], each.clone());
    put("positions", vec![n], each.clone());
    for group in 0..model.groups.len() {
        put(&format!("slots.{group}"), vec![n], each.clone());
        put(&format!("table.{group}"), vec![1, context / BLOCK], (0..(context / BLOCK) as i32).collect());
    }
    if let Some(dynamic) = &model.dynamic_rope {
        let (cos, sin) = dynamic.frequencies(context as u32).tables(0..n as u32);
        tensors.insert("rope.cos".into(), Tensor::f32(vec![n, cos.len() / n], cos));
        tensors.insert("rope.sin".into(), Tensor::f32(vec![n, sin.len() / n], sin));
    }
    let out = yirage_ir::interp::evaluate(&model.graph, &mut tensors).expect("all inputs are given");
    (0..n).map(|row| out[0].row(row)).collect()
}
