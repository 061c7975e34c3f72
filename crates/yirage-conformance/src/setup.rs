//! A graph with everything it reads: what the reference and any device can run.

use std::collections::HashMap;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_hal::{Bindings, Device, Executor, HalError, HostMemory, KvCacheHandle, Record, WeightHandle, write_view};
use yirage_ir::op::{CausalConv1d, Embed, KvAppend};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Dims, F32, Graph, GraphBuilder, Sym, Tensor, Type, ValueSource};
use yirage_plan::{Precision, WeightEntry};

/// A graph and everything it reads.
#[derive(Clone, Debug)]
pub struct GraphSetup {
    /// The graph.
    pub graph: Graph,
    /// Its weights by name.
    pub weights: HashMap<String, Tensor>,
    /// The elements of its step inputs by name.
    pub step_inputs: HashMap<String, Record>,
    /// Its cache states.
    pub kv_caches: Vec<KvCacheSetup>,
    /// The sizes of the step.
    pub dims: Dims,
    /// How products are computed.
    pub precision: Precision,
}

/// A cache state and what it holds before the step.
#[derive(Clone, Debug)]
pub struct KvCacheSetup {
    /// Its name in the graph.
    pub name: String,
    /// `[blocks, 32, heads, width]`, or `[blocks, rows, width]` of a recurrent state.
    pub values: Tensor,
    /// Elements of a head that are its key.
    pub k_width: u32,
}

/// Why a device gave nothing.
#[derive(Clone, PartialEq, Debug)]
pub enum Trouble {
    /// The compiler has no plan for it, or the device does not take the plan: a typed refusal.
    Refused(String),
    /// Anything else.
    Failed(String),
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> String {
        match trouble {
            Trouble::Refused(why) | Trouble::Failed(why) => why,
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Trouble {
        Trouble::Failed(why)
    }
}

impl KvCacheSetup {
    fn is_recurrent(&self) -> bool {
        self.values.shape.len() == 3
    }

    /// The type of one block.
    fn block(&self) -> Type {
        Type::new(self.values.dtype, self.values.shape[1..].iter().map(|&n| n as u32))
    }
}

impl GraphSetup {
    /// What the reference gives for the graph's outputs.
    ///
    /// # Errors
    /// An input that is not given.
    pub fn reference(&self) -> Result<Vec<Tensor>, String> {
        let mut tensors = self.weights.clone();
        for id in self.graph.inputs_of(ValueSource::StepInput) {
            let v = self.graph.value(id);
            let given = self.step_inputs.get(&v.name).ok_or_else(|| format!("no step input `{}` is given", v.name))?;
            tensors.insert(v.name.clone(), Tensor::from_memory(&v.ty, &self.dims, given.bytes()));
        }
        tensors.extend(self.kv_caches.iter().map(|s| (s.name.clone(), s.values.clone())));
        yirage_ir::interp::evaluate(&self.graph, &mut tensors).map_err(|e| e.to_string())
    }

    /// What `device` gives for the graph's outputs, compiled as any graph is, and run by each of its executors.
    ///
    /// # Errors
    /// Whatever the compiler or the device says, and executors that do not give the same bytes.
    pub fn run(&self, device: &dyn Device) -> Result<Vec<Data>, Trouble> {
        self.run_in(device, self.dims, &CompileOptions::new(self.precision))
    }

    /// [`GraphSetup::run`] by one of the device's ways, or with none by its own.
    ///
    /// # Errors
    /// As those of [`GraphSetup::run`].
    pub fn run_with_variant(&self, device: &dyn Device, variant: Option<&str>) -> Result<Vec<Data>, Trouble> {
        let bindings = Bindings { kernel_variant: variant.map(str::to_owned), ..Bindings::default() };
        self.run_bound(device, bindings, self.dims, &CompileOptions::new(self.precision))
    }

    /// [`GraphSetup::run`], compiled for the sizes of `bucket` as `options` say.
    ///
    /// # Errors
    /// As those of [`GraphSetup::run`].
    pub fn run_in(&self, device: &dyn Device, bucket: Dims, options: &CompileOptions) -> Result<Vec<Data>, Trouble> {
        self.run_bound(device, Bindings::default(), bucket, options)
    }

    fn run_bound(
        &self,
        device: &dyn Device,
        mut bindings: Bindings,
        bucket: Dims,
        options: &CompileOptions,
    ) -> Result<Vec<Data>, Trouble> {
        for state in &self.kv_caches {
            let handle = device.kv_cache(&state.block(), state.k_width, state.values.shape[0]);
            let handle = handle.map_err(|e| e.to_string())?;
            fill(device, state, &handle)?;
            bindings.kv_caches.insert(state.name.clone(), handle);
        }
        let executor = &mut self.load(device, &mut bindings, bucket, options)?;
        let mut first: Option<Vec<Data>> = None;
        for (turn, kind) in executor.executors().to_vec().into_iter().enumerate() {
            executor.force(kind).map_err(|e| e.to_string())?;
            // A step that has run has carried recurrent states on.
            for state in self.kv_caches.iter().filter(|state| turn > 0 && state.is_recurrent()) {
                fill(device, state, &bindings.kv_caches[&state.name])?;
            }
            let got = self.step(executor)?;
            if first.as_ref().is_some_and(|first| !first.iter().zip(&got).all(|(a, b)| same_bits(a, b))) {
                return Err(format!("the executor `{kind}` gives other bytes than the first").into());
            }
            first.get_or_insert(got);
        }
        first.ok_or_else(|| Trouble::Failed("the device has no executor".into()))
    }

    /// One step.
    fn step(&self, executor: &mut Executor) -> Result<Vec<Data>, String> {
        for (name, given) in &self.step_inputs {
            executor.set_memory(name, Arc::new(given.clone()));
        }
        let outputs = executor.run(&self.dims).map_err(|e| e.to_string())?;
        let output = |index: usize| outputs.tensor(index).map(|t| t.data).map_err(|e| e.to_string());
        (0..self.graph.outputs.len()).map(output).collect()
    }

    fn load(
        &self,
        device: &dyn Device,
        bindings: &mut Bindings,
        bucket: Dims,
        options: &CompileOptions,
    ) -> Result<Executor, Trouble> {
        let target = device.target();
        let weights = plan_weights(&self.graph, &target).map_err(|e| Trouble::Refused(e.to_string()))?;
        for entry in &weights.entries {
            let values = self.weights.get(&entry.name).ok_or_else(|| format!("no weight `{}` is given", entry.name))?;
            bindings.weights.insert(entry.name.clone(), weight(device, entry, values)?);
        }
        // A step may be of no rows at all; a plan is made for some.
        let Dims { tokens, seqs, blocks, rows } = bucket;
        let bucket = Dims { tokens: tokens.max(1), seqs: seqs.max(1), blocks: blocks.max(1), rows: rows.max(1) };
        let plan = compile(&self.graph, bucket, &target, &weights, options);
        let plan = plan.map_err(|e| Trouble::Refused(e.to_string()))?;
        Executor::new(device, &plan, bindings).map_err(|e| match e {
            HalError::Load(_) | HalError::Unsupported { .. } => Trouble::Refused(e.to_string()),
            e => Trouble::Failed(e.to_string()),
        })
    }
}

fn same_bits(a: &Data, b: &Data) -> bool {
    match (a, b) {
        (Data::F32(a), Data::F32(b)) => a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits())),
        (a, b) => a == b,
    }
}

fn weight(device: &dyn Device, entry: &WeightEntry, t: &Tensor) -> Result<WeightHandle, Trouble> {
    let refused = |e: HalError| match e {
        HalError::Weight { .. } | HalError::Unsupported { .. } => Trouble::Refused(e.to_string()),
        e => Trouble::Failed(e.to_string()),
    };
    let mut sink = device.weight(entry).map_err(refused)?;
    let bytes: Vec<u8> = match &t.data {
        Data::Blocks(bytes) => bytes.clone(),
        Data::I32(_) | Data::U32(_) => t.memory(),
        _ => spread(&entry.ty, t.floats()).iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    write_view(&mut *sink, &entry.name, &entry.ty, &bytes).map_err(refused)?;
    sink.finish().map_err(refused)
}

/// A buffer in which the elements lie where the type's strides say, NaN between them.
fn spread(ty: &Type, values: &[f32]) -> Vec<f32> {
    let Some(strides) = &ty.strides else { return values.to_vec() };
    let mut buffer = vec![f32::NAN; ty.span().unwrap_or(0)];
    for (i, &x) in values.iter().enumerate() {
        let (mut rest, mut at) = (i, 0);
        for (n, &stride) in ty.shape.iter().zip(strides).rev() {
            let n = n.as_const().unwrap_or(1);
            at += rest % n * stride as usize;
            rest /= n;
        }
        buffer[at] = x;
    }
    buffer
}

/// Writes a whole state through an op, the only way a device lets anything in.
fn fill(device: &dyn Device, state: &KvCacheSetup, handle: &KvCacheHandle) -> Result<(), Trouble> {
    if state.is_recurrent() { fill_recurrent(device, state, handle) } else { fill_keys(device, state, handle) }
}

/// Through `causal_conv1d`, which leaves the rows that it was given last: those of each block at positions of that block,
/// none of which begins a sequence.
fn fill_recurrent(device: &dyn Device, state: &KvCacheSetup, handle: &KvCacheHandle) -> Result<(), Trouble> {
    let &[blocks, rows, width] = &state.values.shape[..] else { return Err(Trouble::Failed("no state".into())) };
    let tokens = blocks * rows;
    let weights = HashMap::from([
        ("x".to_string(), Tensor::f32([tokens, width], state.values.floats().to_vec())),
        ("weight".to_string(), Tensor::f32([rows + 1, width], vec![0.0; (rows + 1) * width])),
    ]);
    let graph = fill_recurrent_graph(state, &weights).map_err(|e| e.to_string())?;
    let dims = Dims { tokens: tokens as u32, seqs: 1, blocks: blocks as u32, rows: 1 };
    let positions = (0..blocks).flat_map(|block| (1..=rows).map(move |row| (block * (rows + 1) + row) as i32));
    let steps = [
        ("ids", (0..tokens as i32).collect()),
        ("positions", positions.collect()),
        ("seqs", vec![0; tokens]),
        ("table", (0..blocks as i32).collect::<Vec<_>>()),
    ];
    run_fill(device, graph, weights, dims, &steps, handle)
}

fn fill_recurrent_graph(
    state: &KvCacheSetup,
    weights: &HashMap<String, Tensor>,
) -> Result<Graph, yirage_ir::BuildError> {
    let mut b = GraphBuilder::new("fill");
    let per_token = || Type::new(DType::I32, [Sym::Tokens]);
    let ids = b.step_input("ids", per_token())?;
    let before = b.kv_cache("state", state.block())?;
    let [table, weight] = ["x", "weight"].map(|name| b.weight(name, weights[name].ty()));
    let x = b.op("rows", Embed { scale: F32(1.0) }, &[table?, ids])?;
    let (positions, seqs) = (b.step_input("positions", per_token())?, b.step_input("seqs", per_token())?);
    let blocks = b.step_input("table", Type::new(DType::I32, [Sym::Seqs, Sym::Blocks]))?;
    let made = b.op_multi(
        &["y", "filled"],
        CausalConv1d { block_positions: state.values.shape[1] as u32 + 1 },
        &[before, x, weight?, positions, seqs, blocks],
    )?;
    b.output(made[1]);
    Ok(b.finish())
}

/// Through `kv_append`.
fn fill_keys(device: &dyn Device, state: &KvCacheSetup, handle: &KvCacheHandle) -> Result<(), Trouble> {
    let shape = &state.values.shape;
    let (cells, heads, width, k) = (shape[0] * shape[1], shape[2], shape[3], state.k_width as usize);
    let part = |from: usize, to: usize| {
        let rows = state.values.floats().chunks_exact(width).flat_map(|c| c[from..to].to_vec()).collect::<Vec<f32>>();
        Tensor::f32([cells, heads * (to - from)], rows)
    };
    let mut weights = HashMap::from([("k".to_string(), part(0, k))]);
    if k < width {
        weights.insert("v".into(), part(k, width));
    }
    let graph = fill_graph(state, &weights).map_err(|e| e.to_string())?;
    let ids: Vec<i32> = (0..cells as i32).collect();
    let dims = Dims { tokens: cells as u32, seqs: 1, blocks: 1, rows: 1 };
    run_fill(device, graph, weights, dims, &[("ids", ids)], handle)
}

/// Runs a graph that fills the state `state`.
fn run_fill(
    device: &dyn Device,
    graph: Graph,
    weights: HashMap<String, Tensor>,
    dims: Dims,
    steps: &[(&str, Vec<i32>)],
    handle: &KvCacheHandle,
) -> Result<(), Trouble> {
    let setup = GraphSetup {
        graph,
        weights,
        step_inputs: HashMap::new(),
        kv_caches: Vec::new(),
        dims,
        precision: Precision::Exact,
    };
    let mut bindings = Bindings::default();
    bindings.kv_caches.insert("state".into(), handle.clone());
    let mut executor = setup.load(device, &mut bindings, dims, &CompileOptions::new(Precision::Exact))?;
    for (name, values) in steps {
        executor.set(name, values.iter().copied());
    }
    executor.run(&setup.dims).map_err(|e| e.to_string())?;
    Ok(())
}

fn fill_graph(state: &KvCacheSetup, weights: &HashMap<String, Tensor>) -> Result<Graph, yirage_ir::BuildError> {
    let mut b = GraphBuilder::new("fill");
    let ids = b.step_input("ids", Type::new(DType::I32, [Sym::Tokens]))?;
    let mut ins = vec![b.kv_cache("state", state.block())?];
    for (name, rows) in ["k", "v"].iter().filter_map(|n| Some((n, weights.get(*n)?))) {
        let table = b.weight(name, Type::new(DType::F32, rows.shape.iter().map(|&n| n as u32)))?;
        ins.push(b.op(&format!("{name}.rows"), Embed { scale: F32(1.0) }, &[table, ids])?);
    }
    ins.push(ids);
    let filled = b.op("filled", KvAppend { kv_heads: state.values.shape[2] as u32 }, &ins)?;
    b.output(filled);
    Ok(b.finish())
}
