//! The reference backend: plans run by the ops' scalar reference evaluations.
//!
//! Slow by design, on one thread, and independent of every kernel: the second opinion on any device. It claims no
//! speed and no memory bound beyond the weights themselves.

use crate::backend::{Backend, OpenOptions, Unavailable};
use crate::device::{Bindings, Device, MemoryReport, PoolBytes, Program, WeightSink};
use crate::error::HalError;
use crate::handle::{KvCacheHandle, WeightHandle};
use crate::info::DeviceInfo;
use crate::record::Record;
use crate::step::{Fence, OutputHandle, StepInputValue, StepOutputs, StepRequest};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use yirage_ir::interp::Eval;
use yirage_ir::tensor::Data;
use yirage_ir::{ActivationFormat, DType, Dim, Dims, Graph, Op, RegionKind, Tensor, Type, ValueSource};
use yirage_plan::rules::{OpRule, OperandConstraint};
use yirage_plan::{
    ActivationFormatFacts, DeviceLimits, ExecutorKind, ExpertDivision, KernelCapabilities, KernelFacts, KernelOrigin,
    KernelRef, KvCacheLayout, KvCacheLayoutFacts, Target, VerifiedPlan, WeightEntry, WeightLayout, WeightLayoutFacts,
    WeightRole,
};

/// The reference backend.
pub struct Reference {
    eval: Eval,
}

impl Reference {
    /// The backend.
    pub const fn new() -> Reference {
        Reference { eval: Op::eval }
    }

    /// The backend with another evaluation of the ops: an instrument that traces values, or plants a fault for a test
    /// to find.
    pub const fn with(eval: Eval) -> Reference {
        Reference { eval }
    }
}

impl Default for Reference {
    fn default() -> Reference {
        Reference::new()
    }
}

impl Backend for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        Ok(vec![info()])
    }

    fn open(&self, _: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let mut notes = Vec::new();
        if options.threads.is_some_and(|t| t != 1) || options.isa.is_some() {
            notes.push("the reference backend is scalar and runs on one thread: threads and isa are ignored".into());
        }
        Ok((Arc::new(ReferenceDevice { info: info(), eval: self.eval, memory: Mutex::default() }), notes))
    }
}

/// It evaluates ops in every type that they have.
const CAPABILITIES: KernelCapabilities = KernelCapabilities {
    fp16: true,
    bf16: true,
    int8: true,
    int4: true,
    paged_attention: true,
    fused_moe: true,
    ..KernelCapabilities::LEAST
};

fn info() -> DeviceInfo {
    DeviceInfo {
        capabilities: CAPABILITIES,
        software: true,
        facts: vec![("purpose", "the oracle of every backend; slow by design".into())],
        ..DeviceInfo::new("reference", 0, "scalar reference", "scalar f64")
    }
}

/// A layout as the evaluation writes it.
fn as_evaluated(layout: ActivationFormat) -> ActivationFormatFacts {
    let info = layout.info();
    ActivationFormatFacts { format: layout, block_bytes: info.bytes as u32, row_multiple: info.block as u32 }
}

/// An op is evaluated whatever it is given; what several devices do together it is not, but for a group of one.
fn rule(op: &str, layouts: &[WeightLayout], caches: &[KvCacheLayout]) -> OpRule {
    let rule = OpRule::new(op, vec![OperandConstraint::any(layouts, caches)]);
    if Op::COLLECTIVES.contains(&op) { rule.when("ranks", 1) } else { rule }
}

/// The lengths that blocks of caches in rows have here.
const BLOCK_POSITIONS: [u32; 3] = [32, 16, 64];

/// The target of a device of family `family` whose only kernel, called `kernel`, evaluates nodes by their reference: of
/// weights and caches in rows, and in layouts of the device's own, which it wants more.
pub fn target(family: &str, kernel: &str, own: Vec<WeightLayoutFacts>, own_caches: Vec<KvCacheLayoutFacts>) -> Target {
    let mut weight_layouts = own;
    weight_layouts.push(WeightLayoutFacts::rows(&[WeightRole::Matmul, WeightRole::Factor, WeightRole::Plain]));
    let layouts: Vec<WeightLayout> = weight_layouts.iter().map(|facts| facts.layout).collect();
    let mut kv_cache_layouts = own_caches;
    kv_cache_layouts.push(KvCacheLayoutFacts::rows(&BLOCK_POSITIONS));
    let caches: Vec<KvCacheLayout> = kv_cache_layouts.iter().map(|facts| facts.layout).collect();
    let kernel = KernelFacts {
        // It evaluates the graph, node by node.
        kernel: KernelRef::new(kernel, "scalar", Vec::new()),
        origin: KernelOrigin::Reference,
        regions: RegionKind::ALL.to_vec(),
        rules: Op::NAMES.iter().map(|op| rule(op, &layouts, &caches)).collect(),
    };
    Target {
        family: family.into(),
        arch: "scalar".into(),
        capabilities: CAPABILITIES,
        workers: 1,
        ranks: 1,
        experts: ExpertDivision::default(),
        weight_layouts,
        kv_cache_layouts,
        activation_formats: ActivationFormat::ALL.iter().map(|&layout| as_evaluated(layout)).collect(),
        activation_dtype: DType::F32,
        limits: DeviceLimits::aligned(64),
        executors: vec![ExecutorKind::Steps],
        kernels: vec![kernel],
    }
}

struct ReferenceDevice {
    info: DeviceInfo,
    eval: Eval,
    memory: Mutex<MemoryReport>,
}

fn take(pool: &mut PoolBytes, bytes: u64) {
    pool.used += bytes;
    pool.peak = pool.peak.max(pool.used);
}

impl Device for ReferenceDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn target(&self) -> Target {
        target("reference", "reference/eval@1", Vec::new(), Vec::new())
    }

    fn memory(&self) -> MemoryReport {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        Ok(entry.ty.bytes(&Dims::default()) as u64)
    }

    fn kv_block_bytes(&self, block: &Type, _: u32) -> Result<u64, HalError> {
        Ok(block.elems(&Dims::default()) as u64 * 4)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        take(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner).weights, self.weight_bytes(entry)?);
        let bytes = vec![0; entry.ty.bytes(&Dims::default())];
        Ok(Box::new(ReferenceWeightSink { name: entry.name.clone(), ty: entry.ty.clone(), bytes }))
    }

    fn kv_cache(&self, block: &Type, _: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        let bytes = self.kv_block_bytes(block, 0)? * blocks as u64;
        take(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner).cache, bytes);
        let mut shape = vec![blocks];
        shape.extend(block.shape.iter().map(|d| d.get(&Dims::default())));
        let data = Data::F32(vec![0.0; shape.iter().product()]);
        Ok(KvCacheHandle(Arc::new(Mutex::new(Tensor { dtype: block.dtype, shape, data }))))
    }

    fn read_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        let cache = kv_cache_of(cache)?.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for &block in blocks {
            rows.extend(cache_block(&cache, block)?.memory());
        }
        Ok(rows)
    }

    fn write_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32], contents: &[u8]) -> Result<(), HalError> {
        let mut cache = kv_cache_of(cache)?.lock().unwrap_or_else(PoisonError::into_inner);
        let ty = Type::new(cache.dtype, cache.shape.iter().skip(1).map(|&size| Dim::Const(size as u32)));
        let (each, elems) = (ty.bytes(&Dims::default()), ty.elems(&Dims::default()));
        if each * blocks.len() != contents.len() {
            let wanted = each * blocks.len();
            return Err(HalError::Step(format!("{} bytes for blocks of {wanted} bytes", contents.len())));
        }
        for (&block, rows) in blocks.iter().zip(contents.chunks(each.max(1))) {
            cache_block(&cache, block)?;
            let given = Tensor::from_memory(&ty, &Dims::default(), rows);
            let Data::F32(cells) = &mut cache.data else { return Err(not_bound("KV cache", "cache")) };
            cells[block as usize * elems..][..elems].copy_from_slice(given.floats());
        }
        Ok(())
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        if *plan.target() != self.target() {
            return Err(HalError::Load(format!("it was proved for {}", plan.target().describe())));
        }
        let mut weights = HashMap::new();
        for id in plan.graph.inputs_of(ValueSource::Weight) {
            let name = &plan.graph.value(id).name;
            let handle = bindings.weights.get(name).and_then(|w| w.0.downcast_ref::<Tensor>());
            let tensor = handle.filter(|t| is_of(t.dtype, &t.shape, plan.graph.ty(id)));
            weights.insert(name.clone(), tensor.ok_or_else(|| not_bound("weight", name))?.clone());
        }
        let mut states = Vec::new();
        for id in plan.graph.inputs_of(ValueSource::KvCache) {
            let name = &plan.graph.value(id).name;
            let handle = bindings.kv_caches.get(name).ok_or_else(|| not_bound("KV cache", name))?;
            let state = handle.0.downcast_ref::<Mutex<Tensor>>().ok_or_else(|| not_bound("KV cache", name))?;
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_of(state.dtype, state.shape.get(1..).unwrap_or(&[]), plan.graph.ty(id)) {
                return Err(not_bound("KV cache", name));
            }
            drop(state);
            states.push((name.clone(), handle.clone()));
        }
        let graph = plan.graph.clone();
        Ok(Box::new(ReferenceProgram {
            eval: self.eval,
            graph,
            tensors: weights,
            kv_caches: states,
            outputs: Vec::new(),
        }))
    }
}

fn kv_cache_of(cache: &KvCacheHandle) -> Result<&Mutex<Tensor>, HalError> {
    cache.0.downcast_ref().ok_or_else(|| not_bound("KV cache", "cache"))
}

/// One block of a cache.
fn cache_block(cache: &Tensor, block: u32) -> Result<Tensor, HalError> {
    let (blocks, shape) = (cache.shape[0], cache.shape[1..].to_vec());
    let size: usize = shape.iter().product();
    let outside = || HalError::Step(format!("block {block} of a cache of {blocks} blocks"));
    let cells = cache.floats().get(block as usize * size..).and_then(|cells| cells.get(..size)).ok_or_else(outside)?;
    Ok(Tensor { dtype: cache.dtype, shape, data: Data::F32(cells.to_vec()) })
}

/// Whether elements of this type and these sizes are of the type `ty`, which has fixed dimensions.
fn is_of(dtype: DType, shape: &[usize], ty: &Type) -> bool {
    dtype == ty.dtype && shape.iter().copied().eq(ty.shape.iter().map(|d| d.get(&Dims::default())))
}

fn not_bound(kind: &str, name: &str) -> HalError {
    HalError::Load(format!("{kind} `{name}` is not bound to memory of the reference device of the plan's type"))
}

struct ReferenceWeightSink {
    name: String,
    ty: Type,
    bytes: Vec<u8>,
}

impl WeightSink for ReferenceWeightSink {
    fn row_step(&self) -> usize {
        1
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let row = self.ty.dtype.row_bytes(self.ty.width().unwrap_or(1));
        let room = self.bytes.get_mut(first_row * row..first_row * row + bytes.len());
        let why = || format!("{} bytes from row {first_row} do not fit {}", bytes.len(), self.ty);
        room.ok_or_else(|| HalError::Weight { name: self.name.clone(), why: why() })?.copy_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
        let DType::Stored(format) = self.ty.dtype else {
            return Err(HalError::Weight { name: self.name, why: format!("{} is no stored format", self.ty) });
        };
        let shape: Vec<usize> = self.ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
        Ok(WeightHandle(Arc::new(Tensor::stored(format, shape, self.bytes))))
    }
}

struct ReferenceProgram {
    eval: Eval,
    graph: Graph,
    tensors: HashMap<String, Tensor>,
    kv_caches: Vec<(String, KvCacheHandle)>,
    outputs: Vec<Arc<Tensor>>,
}

impl ReferenceProgram {
    /// The memory behind state `i`.
    fn kv_cache(&self, i: usize) -> Result<&Mutex<Tensor>, HalError> {
        let (name, handle) = &self.kv_caches[i];
        handle.0.downcast_ref::<Mutex<Tensor>>().ok_or_else(|| not_bound("KV cache", name))
    }
}

impl Program for ReferenceProgram {
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        let ids: Vec<_> = self.graph.inputs_of(ValueSource::StepInput).collect();
        for (id, slot) in ids.into_iter().zip(&step.inputs) {
            let v = self.graph.value(id);
            let tensor = match slot {
                StepInputValue::Host(memory) => Tensor::from_memory(&v.ty, &step.dims, memory.bytes()),
                StepInputValue::Resident(resident) => {
                    let tensor = resident.0.downcast_ref::<Tensor>();
                    tensor
                        .cloned()
                        .ok_or_else(|| HalError::Step(format!("step input `{}` is of another device", v.name)))?
                }
            };
            self.tensors.insert(v.name.clone(), tensor);
        }
        self.outputs = self.evaluate()?.into_iter().map(Arc::new).collect();
        let read = |&index: &usize| self.output(index).map(|tensor| Record::of(&tensor.memory()));
        let outputs = step.reads.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Fence::Signalled(StepOutputs { outputs, device_time: None }))
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        self.output(index).map(|tensor| OutputHandle(tensor.clone()))
    }
}

impl ReferenceProgram {
    fn evaluate(&mut self) -> Result<Vec<Tensor>, HalError> {
        for i in 0..self.kv_caches.len() {
            let mut guard = self.kv_cache(i)?.lock().unwrap_or_else(PoisonError::into_inner);
            let tensor = std::mem::replace(&mut *guard, Tensor::i32([0], Vec::new()));
            drop(guard);
            self.tensors.insert(self.kv_caches[i].0.clone(), tensor);
        }
        let outputs = yirage_ir::interp::evaluate_with(self.eval, &self.graph, &mut self.tensors);
        for i in 0..self.kv_caches.len() {
            if let Some(t) = self.tensors.remove(&self.kv_caches[i].0) {
                *self.kv_cache(i)?.lock().unwrap_or_else(PoisonError::into_inner) = t;
            }
        }
        outputs.map_err(|e| HalError::Device(e.to_string()))
    }

    fn output(&self, index: usize) -> Result<&Arc<Tensor>, HalError> {
        let missing = || HalError::Step(format!("output {index} is not there: nothing has run"));
        self.outputs.get(index).ok_or_else(missing)
    }
}
