//! Runs a model's graph by the scalar reference, with a cache of f32 blocks that a test lays out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use yirage_ir::dim::Dims;
use yirage_ir::{Tensor, ValueSource};
use yirage_model::arch::{BuildOptions, Model, build};
use yirage_model::weights::materialise;
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_testkit::json;
use yirage_testkit::rows::argmax;

/// Folders of the committed tiny models, `safetensors` or `gguf`.
pub(crate) fn tiny(kind: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tiny").join(kind);
    let mut list: Vec<PathBuf> = std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().path()).collect();
    list.sort();
    list
}

/// A loaded model and one sequence's cache.
pub(crate) struct ArchRunner {
    pub(crate) model: Model,
    tensors: HashMap<String, Tensor>,
    context: u32,
    blocks: usize,
    length: usize,
}

/// Builds the model of `path` with an f32 cache.
pub(crate) fn load(path: &Path, context: u32) -> Result<(Checkpoint, Model), ModelError> {
    let checkpoint = Checkpoint::open(path)?;
    let config = RawConfig::load(&checkpoint)?;
    let model = build(&checkpoint, &config, BuildOptions::plain(context))?;
    Ok((checkpoint, model))
}

impl ArchRunner {
    /// Loads all weights; the cache has room for `context` positions, rounded up to blocks.
    pub(crate) fn new(path: &Path, context: u32) -> Result<ArchRunner, ModelError> {
        let checkpoint = Checkpoint::open(path)?;
        let config = RawConfig::load(&checkpoint)?;
        ArchRunner::with(&checkpoint, &config, context)
    }

    /// The same for a checkpoint with a configuration of the test's own.
    pub(crate) fn with(checkpoint: &Checkpoint, config: &RawConfig, context: u32) -> Result<ArchRunner, ModelError> {
        let model = build(checkpoint, config, BuildOptions::plain(context))?;
        ArchRunner::of_model(checkpoint, model, context)
    }

    /// The same for a model that was built.
    pub(crate) fn of_model(checkpoint: &Checkpoint, model: Model, context: u32) -> Result<ArchRunner, ModelError> {
        yirage_ir::verify(&model.graph).expect("a built graph verifies");
        let mut tensors = HashMap::new();
        let mut scratch = Vec::new();
        for w in &model.weights {
            let bytes = materialise(checkpoint, w, 0..w.rows(), &mut scratch)?.to_vec();
            tensors.insert(w.name.clone(), Tensor::stored(w.format, w.shape.clone(), bytes));
        }
        let blocks = (context as usize).div_ceil(32);
        let mut runner = ArchRunner { model, tensors, context, blocks, length: 0 };
        runner.reset();
        Ok(runner)
    }

    /// Forgets the sequence; what the cache held becomes garbage that must never be read.
    pub(crate) fn reset(&mut self) {
        self.length = 0;
        let graph = &self.model.graph;
        for state in graph.inputs_of(ValueSource::KvCache) {
            let ty = graph.ty(state);
            let mut shape = vec![self.blocks];
            shape.extend(ty.shape.iter().map(|d| d.get(&Dims::default())));
            let garbage = vec![f32::NAN; shape.iter().product()];
            let mut tensor = Tensor::f32(shape, garbage);
            tensor.dtype = ty.dtype;
            self.tensors.insert(graph.value(state).name.clone(), tensor);
        }
    }

    /// Appends `ids` to the sequence; logits of the wanted rows of this step. Blocks are used from the last to the
    /// first, differently in each group, so that a graph that confuses them fails.
    pub(crate) fn step(&mut self, ids: &[u32], rows: &[usize]) -> Vec<Vec<f32>> {
        let out = self.outputs(ids, rows);
        (0..rows.len()).map(|r| out[0].row(r)).collect()
    }

    /// Gives a step input that the runner knows nothing of.
    pub(crate) fn give(&mut self, name: &str, tensor: Tensor) {
        self.tensors.insert(name.into(), tensor);
    }

    /// As [`ArchRunner::step`], all outputs.
    pub(crate) fn outputs(&mut self, ids: &[u32], rows: &[usize]) -> Vec<Tensor> {
        let positions: Vec<i32> = (self.length..self.length + ids.len()).map(|p| p as i32).collect();
        let n = ids.len();
        let t = &mut self.tensors;
        t.insert("ids".into(), Tensor::i32([n], ids.iter().map(|&i| i as i32).collect()));
        t.insert("seqs".into(), Tensor::i32([n], vec![0; n]));
        t.insert("rows".into(), Tensor::i32([rows.len()], rows.iter().map(|&r| r as i32).collect()));
        for (g, _) in self.model.groups.iter().enumerate() {
            let table: Vec<i32> =
                (0..self.blocks).map(|b| ((2 * self.blocks - 1 - b - g) % self.blocks) as i32).collect();
            let slots = positions.iter().map(|&p| table[p as usize / 32] * 32 + p % 32).collect();
            t.insert(format!("slots.{g}"), Tensor::i32([n], slots));
            t.insert(format!("table.{g}"), Tensor::i32([1, self.blocks], table));
        }
        if let Some(dynamic) = &self.model.dynamic_rope {
            let first = positions.first().map_or(0, |&p| p as u32);
            let (cos, sin) = dynamic.frequencies(self.context).tables(first..first + n as u32);
            t.insert("rope.cos".into(), Tensor::f32([n, cos.len() / n], cos));
            t.insert("rope.sin".into(), Tensor::f32([n, sin.len() / n], sin));
        }
        t.insert("positions".into(), Tensor::i32([n], positions));
        self.length += n;
        yirage_ir::interp::evaluate(&self.model.graph, &mut self.tensors).expect("all inputs are given")
    }
}

/// Compares a model with a golden file of the format `tinyrandom-golden-v1`; gives what disagrees.
pub(crate) fn check_golden(folder: &Path) -> Result<(), String> {
    let golden = json::read(&folder.join("golden.json"));
    let mut runner = ArchRunner::new(folder, 64).map_err(|e| e.to_string())?;
    for (c, case) in golden["cases"].as_array().expect("cases").iter().enumerate() {
        let ids = json::ids(&case["ids"]);
        let want = json::floats(&case["last_logits"]);
        let std = case["std"].as_f64().expect("a number");
        // Models whose rotation depends on the sequence's length state it in each case.
        if let Some(context) = case["context"].as_u64() {
            runner = ArchRunner::new(folder, context as u32).map_err(|e| e.to_string())?;
        }
        runner.reset();
        let all: Vec<usize> = (0..ids.len()).collect();
        let logits = runner.step(&ids, &all);
        let last = logits.last().expect("a row");
        let worst = last.iter().zip(&want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        if worst > 1e-4 * std || last.iter().any(|v| !v.is_finite()) {
            return Err(format!("case {c}: max |d| {worst:e} of std {std}"));
        }
        let argmaxes: Vec<u32> = logits.iter().map(|r| argmax(r)).collect();
        if argmaxes != json::ids(&case["argmax_each_pos"]) {
            return Err(format!("case {c}: argmax {argmaxes:?}"));
        }
        let mut next = argmax(last);
        for (step, &want) in json::ids(&case["greedy16"]).iter().take(3).enumerate() {
            if next != want {
                return Err(format!("case {c}: greedy token {step} is {next}, not {want}"));
            }
            next = argmax(&runner.step(&[next], &[0])[0]);
        }
    }
    Ok(())
}
