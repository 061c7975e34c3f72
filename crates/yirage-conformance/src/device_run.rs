//! Runs a wrapped case on a device.

use crate::wrap::Wrapped;
use yirage_compile::{compile, plan_weights};
use yirage_hal::{Bindings, Device, Executor, StateHandle, Values, WeightHandle};
use yirage_ir::op::{BLOCK, Embed, KvAppend};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Dims, F32, Graph, GraphBuilder, Source, Sym, Tensor, Type};
use yirage_plan::WeightEntry;

/// The outputs of the graph.
pub(crate) fn run(device: &dyn Device, w: &Wrapped) -> Result<Vec<Data>, String> {
    let mut bindings = Bindings::default();
    if let Some((state, k_width)) = &w.state {
        let block = Type::new(state.dtype, state.shape[1..].iter().map(|&n| n as u32));
        let handle = device.state(&block, *k_width, state.shape[0]).map_err(|e| e.to_string())?;
        fill(device, state, *k_width, &handle)?;
        bindings.states.insert("state".into(), handle);
    }
    let executor = &mut load(device, &w.graph, w, &mut bindings)?;
    for (name, values) in &w.slots {
        executor.set(name, values.iter().copied());
    }
    executor.run(&w.dims).map_err(|e| e.to_string())?;
    let output = |index: usize| match executor.values(index).map_err(|e| e.to_string())? {
        Values::F32(v) => Ok(Data::F32(v.to_vec())),
        Values::I32(v) => Ok(Data::I32(v.to_vec())),
    };
    (0..w.graph.outputs.len()).map(output).collect()
}

fn load(device: &dyn Device, graph: &Graph, w: &Wrapped, bindings: &mut Bindings) -> Result<Executor, String> {
    let target = device.target(w.precision);
    let weights = plan_weights(graph, &target).map_err(|e| e.to_string())?;
    for entry in &weights.entries {
        let handle = weight(device, entry, &w.weights[&entry.name])?;
        bindings.weights.insert(entry.name.clone(), handle);
    }
    let plan = compile(graph, w.dims, &target, &weights).map_err(|e| e.to_string())?;
    Executor::new(device, &plan, bindings).map_err(|e| e.to_string())
}

fn weight(device: &dyn Device, entry: &WeightEntry, t: &Tensor) -> Result<WeightHandle, String> {
    let bytes: Vec<u8> = match &t.data {
        Data::Blocks(bytes) => bytes.clone(),
        _ => t.floats().iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    let mut sink = device.weight(entry).map_err(|e| e.to_string())?;
    sink.write_rows(0, &bytes).map_err(|e| e.to_string())?;
    sink.finish().map_err(|e| e.to_string())
}

/// Writes a whole state through `kv_append`, the only way a device lets anything in.
fn fill(device: &dyn Device, state: &Tensor, k_width: u32, handle: &StateHandle) -> Result<(), String> {
    let (cells, heads, width) = (state.shape[0] * BLOCK, state.shape[2], state.shape[3]);
    let k = k_width as usize;
    let part = |from: usize, to: usize| {
        let rows = state.floats().chunks_exact(width).flat_map(|c| c[from..to].to_vec()).collect::<Vec<f32>>();
        Tensor::f32([cells, heads * (to - from)], rows)
    };
    let mut b = GraphBuilder::new("fill");
    let mut w = Wrapped {
        graph: Graph::default(),
        weights: [("k".to_string(), part(0, k))].into(),
        slots: [("ids".to_string(), (0..cells as i32).collect()), ("rows".to_string(), vec![0])].into(),
        state: None,
        dims: Dims { tokens: cells as u32, seqs: 1, blocks: 1, rows: 1 },
        precision: yirage_plan::Precision::Exact,
    };
    if k < width {
        w.weights.insert("v".into(), part(k, width));
    }
    w.graph = (|| {
        let ids = b.slot("ids", Type::new(DType::I32, [Sym::Tokens]))?;
        let block = Type::new(state.dtype, state.shape[1..].iter().map(|&n| n as u32));
        let mut ins = vec![b.state("state", block)?];
        for name in ["k", "v"].into_iter().filter(|n| w.weights.contains_key(*n)) {
            let table = b.weight(name, Type::new(DType::F32, w.weights[name].shape.iter().map(|&n| n as u32)))?;
            ins.push(b.op(&format!("{name}.rows"), Embed { scale: F32(1.0) }, &[table, ids])?);
        }
        ins.push(ids);
        let filled = b.op("filled", KvAppend { kv_heads: heads as u32 }, &ins)?;
        b.output(filled);
        Ok::<Graph, yirage_ir::BuildError>(b.finish())
    })()
    .map_err(|e| e.to_string())?;
    let mut bindings = Bindings::default();
    bindings.states.insert("state".into(), handle.clone());
    debug_assert_eq!(w.graph.inputs_of(Source::State).count(), 1);
    let mut executor = load(device, &w.graph, &w, &mut bindings)?;
    executor.set("ids", w.slots["ids"].iter().copied());
    executor.run(&w.dims).map_err(|e| e.to_string())
}
