//! Devices, graphs with arrays, and an instrument that makes chosen plans fail.
#![allow(dead_code)] // each file of tests uses some of it

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use yirage_hal::reference::Reference;
use yirage_hal::{
    Backend, Bindings, Device, DeviceInfo, Fence, HalError, KvCacheHandle, MemoryReport, OpenOptions, OutputHandle,
    Program, Record, StepRequest, WeightHandle, WeightSink,
};
use yirage_ir::op::Sample;
use yirage_ir::{DType, Dim, Dims, Graph, GraphBuilder, NodeKind, Type, ValueSource, rng, text};
use yirage_plan::{Plan, Target, VerifiedPlan, WeightEntry};
use yirage_plancache::{BoundGraph, HostArray};
use yirage_sim::Sim;

pub(crate) fn open(backend: &dyn Backend) -> Arc<dyn Device> {
    backend.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0
}

pub(crate) fn cpu() -> Arc<dyn Device> {
    open(&yirage_cpu::Cpu)
}

pub(crate) fn devices() -> Vec<Arc<dyn Device>> {
    vec![open(&Reference::default()), open(&Sim::default()), cpu()]
}

/// A Llama block over its own tokens.
pub(crate) fn block() -> Graph {
    text::parse(
        "graph block { input %x: f32[Tokens, 64] input %positions: i32[Tokens] input %seqs: i32[Tokens]
         weight %cos: f32[128, 8] weight %sin: f32[128, 8] weight %norm: f32[64] weight %wq: f32[64, 64]
         weight %wk: f32[32, 64] weight %wv: f32[32, 64] weight %wo: f32[64, 64] weight %norm2: f32[64]
         weight %gate: f32[96, 64] weight %up: f32[96, 64] weight %down: f32[64, 96]
         %n = rms_norm{eps=1e-5, width=64, unit_offset=false}(%x, %norm): f32[Tokens, 64]
         %q = linear{groups=1}(%n, %wq): f32[Tokens, 64] %k = linear{groups=1}(%n, %wk): f32[Tokens, 32]
         %v = linear{groups=1}(%n, %wv): f32[Tokens, 32]
         %qr = rope{width=16, rotary=16, interleaved=false, per_row=false}(%q, %cos, %sin, %positions): f32[Tokens, 64]
         %kr = rope{width=16, rotary=16, interleaved=false, per_row=false}(%k, %cos, %sin, %positions): f32[Tokens, 32]
         %a = attention{heads=4, kv_heads=2, k_width=16, v_width=16, scale=0.25, softcap=0.0, window=0, causal=true, cached=false, v_in_k=false}(%qr, %kr, %v, %positions, %seqs): f32[Tokens, 64]
         %o = linear{groups=1}(%a, %wo): f32[Tokens, 64] %r = map{expr=\"add(x0, x1)\"}(%x, %o): f32[Tokens, 64]
         %m = rms_norm{eps=1e-5, width=64, unit_offset=false}(%r, %norm2): f32[Tokens, 64]
         %g = linear{groups=1}(%m, %gate): f32[Tokens, 96] %u = linear{groups=1}(%m, %up): f32[Tokens, 96]
         %h = map{expr=\"mul(silu(x0), x1)\"}(%g, %u): f32[Tokens, 96]
         %d = linear{groups=1}(%h, %down): f32[Tokens, 64] %y = map{expr=\"add(x0, x1)\"}(%r, %d): f32[Tokens, 64]
         output %y }",
    )
    .unwrap()
}

/// Rows of a pool by a table, of which those before a length count: a paged cache in plain operations.
pub(crate) fn paged() -> Graph {
    text::parse(
        "graph paged { input %pool: f32[8, 256] input %table: i32[4] input %length: f32[4, 1] input %scale: f32[1, 1]
         %rows = gather{axis=0}(%pool, %table): f32[4, 256]
         %kept = map{expr=\"mul(x0, x1)\"}(%rows, %length): f32[4, 256]
         %y = map{expr=\"mul(x0, x1)\"}(%kept, %scale): f32[4, 256] output %y }",
    )
    .unwrap()
}

/// Tokens of logits, by slots for every parameter.
pub(crate) fn sampling() -> Graph {
    let op = Sample { draw: true, mask: true, bias: false, penalties: false, logprobs: true, top: 2 };
    let mut b = GraphBuilder::new("sample");
    let ins: Vec<_> = op.inputs().into_iter().map(|s| b.step_input(s.name(), s.ty(40)).unwrap()).collect();
    let outs = b.op_multi(&["token", "fault", "logprob", "top", "top_logprob"], op, &ins).unwrap();
    outs.into_iter().for_each(|o| b.output(o));
    b.finish()
}

/// A small graph: twice a sum.
pub(crate) fn small(name: &str, factor: f32) -> Graph {
    text::parse(&format!(
        "graph {name} {{ input %a: f32[Tokens, 512] weight %w: f32[512]
         %s = map{{expr=\"add(x0, x1)\"}}(%a, %w): f32[Tokens, 512]
         %y = map{{expr=\"mul(x0, {factor:?})\"}}(%s): f32[Tokens, 512] output %y }}"
    ))
    .unwrap()
}

fn sized(ty: &Type, dims: &Dims) -> Type {
    Type { shape: ty.shape.iter().map(|d| Dim::Const(d.get(dims) as u32)).collect(), ..ty.clone() }
}

/// An array whose elements a seed decides; integers are from 0 to 3.
pub(crate) fn array(ty: &Type, dims: &Dims, seed: u64) -> HostArray {
    let ty = sized(ty, dims);
    let n = ty.elems(dims);
    let record = match ty.dtype {
        DType::I32 | DType::U32 => {
            Record::of(&(0..n).map(|i| (rng::at(seed, i as u64) >> 62) as u32).collect::<Vec<_>>())
        }
        DType::F32 => {
            let value = |i: usize| (rng::at(seed, i as u64) >> 48) as f32 / 65536.0 - 0.5;
            Record::of(&(0..n).map(value).collect::<Vec<_>>())
        }
        other => panic!("{other}"),
    };
    HostArray::new(ty, record).unwrap()
}

pub(crate) fn tokens(tokens: u32) -> Dims {
    Dims { tokens, seqs: 1, blocks: 1, rows: tokens }
}

/// The inputs of a call.
pub(crate) fn inputs(graph: &Graph, dims: &Dims, seed: u64) -> Vec<HostArray> {
    let slots = graph.inputs_of(ValueSource::StepInput).enumerate();
    let words = |words: Vec<u32>| Record::of(&words);
    slots
        .map(|(i, id)| {
            let (ty, n) = (sized(graph.ty(id), dims), dims.tokens);
            // Tokens of one sequence, or of two.
            let first = if seed == 1 { n } else { n / 2 };
            match graph.value(id).name.as_str() {
                "positions" => {
                    HostArray::new(ty, words((0..n).map(|t| if t < first { t } else { t - first }).collect()))
                }
                "seqs" => HostArray::new(ty, words((0..n).map(|t| u32::from(t >= first)).collect())),
                _ => Ok(array(graph.ty(id), dims, seed * 1000 + i as u64)),
            }
            .unwrap()
        })
        .collect()
}

pub(crate) fn weights(graph: &Graph, seed: u64) -> Vec<(String, HostArray)> {
    let weights = graph.inputs_of(ValueSource::Weight).enumerate();
    weights.map(|(i, id)| (graph.value(id).name.clone(), array(graph.ty(id), &tokens(1), seed + i as u64))).collect()
}

pub(crate) fn bound(graph: Graph) -> BoundGraph {
    let weights = weights(&graph, 77);
    BoundGraph::new(graph, weights).unwrap().with_sizes(Dims { tokens: 0, seqs: 2, blocks: 4, rows: 0 })
}

/// The bits of all outputs.
pub(crate) fn bits(outputs: &[HostArray]) -> Vec<Vec<u8>> {
    outputs.iter().map(|array| array.bytes().to_vec()).collect()
}

/// Whether a plan has fused nodes.
pub(crate) fn is_fused(plan: &Plan) -> bool {
    plan.graph.nodes.iter().any(|node| matches!(node.kind, NodeKind::Region(_)))
}

/// A device whose kernels of chosen plans fail, in ways that are ordered.
pub(crate) struct Faulty {
    inner: Arc<dyn Device>,
    /// Which plans are concerned.
    pub(crate) concerns: fn(&Plan) -> bool,
    /// Loads of them that go well.
    pub(crate) loads: AtomicUsize,
    /// Steps of them that go well, of all together.
    pub(crate) steps: Arc<AtomicUsize>,
    /// What a step meets that does not.
    pub(crate) error: HalError,
    /// Plans that were loaded.
    pub(crate) loaded: AtomicUsize,
}

pub(crate) const ALWAYS: usize = usize::MAX / 2;

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Device>, concerns: fn(&Plan) -> bool, loads: usize, steps: usize) -> Arc<Faulty> {
        let error = HalError::Device("kernel fused@1 failed: injected".into());
        let (loads, steps) = (AtomicUsize::new(loads), Arc::new(AtomicUsize::new(steps)));
        Arc::new(Faulty { inner, concerns, loads, steps, error, loaded: AtomicUsize::new(0) })
    }
}

fn spent(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err()
}

impl Device for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }
    fn target(&self) -> Target {
        self.inner.target()
    }
    fn memory(&self) -> MemoryReport {
        self.inner.memory()
    }
    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        self.inner.weight_bytes(entry)
    }
    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        self.inner.kv_block_bytes(block, k_width)
    }
    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        self.inner.weight(entry)
    }
    fn kv_cache(&self, block: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        self.inner.kv_cache(block, k_width, blocks)
    }
    fn image<'a>(&self, weight: &'a WeightHandle) -> Result<std::borrow::Cow<'a, [u8]>, HalError> {
        self.inner.image(weight)
    }
    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        self.loaded.fetch_add(1, Ordering::SeqCst);
        let program = self.inner.load(plan, bindings)?;
        if !(self.concerns)(plan) {
            return Ok(program);
        }
        if spent(&self.loads) {
            return Err(self.error.clone());
        }
        Ok(Box::new(FaultyProgram { program, steps: self.steps.clone(), error: self.error.clone() }))
    }
}

struct FaultyProgram {
    program: Box<dyn Program>,
    steps: Arc<AtomicUsize>,
    error: HalError,
}

impl Program for FaultyProgram {
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        if spent(&self.steps) { Err(self.error.clone()) } else { self.program.submit(step) }
    }
    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        self.program.output_handle(index)
    }
}
