//! The device: its facts, what it holds, and how it loads plans.

use super::probe;
use super::program::CpuProgram;
use super::trial;
use crate::kernels::{Kernel, collective_rules};
use crate::machine;
use crate::shared::{CpuContext, MemoryPurpose};
use crate::storage::{self, CpuKvCache, CpuWeight, CpuWeightSink, kv_cache_layouts, packed_bytes, weight_layouts};
use std::borrow::Cow;
use std::sync::Arc;
use yirage_cpu_kernels::activation::{self, ActivationEncoding};
use yirage_cpu_kernels::linear;
use yirage_hal::{
    Bindings, Device, DeviceInfo, HalError, KernelVariants, KvCacheHandle, Length, Limit, LimitProbe, MemoryReport,
    Profiler, Program, Question, VariantTimer, WeightHandle, WeightImage, WeightSink,
};
use yirage_ir::{DType, Format, Type};
use yirage_plan::{
    DeviceLimits, ExecutorKind, ExpertDivision, KernelFacts, KernelOrigin, KernelRef, Precision, Target, VerifiedPlan,
    WeightEntry,
};

pub(super) struct CpuDevice {
    info: DeviceInfo,
    shared: Arc<CpuContext>,
    /// A worker's part of the second-level cache, in which the tiles of a block live.
    block_bytes: u64,
}

impl CpuDevice {
    pub(super) fn new(info: DeviceInfo, shared: CpuContext) -> CpuDevice {
        CpuDevice { info, shared: Arc::new(shared), block_bytes: machine::second_level() }
    }
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn target(&self) -> Target {
        let facts = |kernel: &Kernel| KernelFacts {
            kernel: KernelRef {
                name: kernel.name.into(),
                variant: self.shared.isa.to_string(),
                stages: kernel.stages.to_vec(),
                scratch: kernel.scratch,
            },
            origin: KernelOrigin::Library,
            regions: kernel.regions.to_vec(),
            rules: (kernel.rules)(),
        };
        let ranks = self.shared.peers.as_ref().map_or(1, |peers| peers.ranks());
        let together =
            (ranks > 1).then(|| KernelFacts { rules: collective_rules(ranks), ..facts(&Kernel::COLLECTIVE) });
        Target {
            family: "cpu".into(),
            arch: self.info.arch.clone(),
            capabilities: self.info.capabilities,
            workers: self.shared.pool.count() as u32,
            ranks,
            experts: ExpertDivision::default(),
            weight_layouts: weight_layouts(),
            kv_cache_layouts: kv_cache_layouts(),
            activation_formats: vec![activation::Q8A],
            activation_dtype: DType::F32,
            limits: DeviceLimits {
                block_bytes: Some(self.block_bytes),
                // What a contraction packs of its right side at once.
                right_side_piece: Some(64 * 64),
                ..DeviceLimits::aligned(64)
            },
            executors: vec![ExecutorKind::Steps, ExecutorKind::Persistent],
            kernels: Kernel::ALL.iter().map(facts).chain(together).collect(),
        }
    }

    fn memory(&self) -> MemoryReport {
        self.shared.memory()
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        packed_bytes(entry)
    }

    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        CpuKvCache::block_bytes(block, k_width)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        Ok(Box::new(CpuWeightSink::new(&self.shared, entry)?))
    }

    fn packing(&self) -> Option<String> {
        storage::packing(self.shared.isa).ok()
    }

    fn image<'a>(&self, handle: &'a WeightHandle) -> Result<Cow<'a, [u8]>, HalError> {
        let weight = handle.0.downcast_ref::<CpuWeight>();
        let weight = weight.ok_or_else(|| HalError::Load("the weight is of another device".into()))?;
        Ok(Cow::Borrowed(weight.image()))
    }

    fn adopt(&self, entry: &WeightEntry, image: WeightImage) -> Result<WeightHandle, HalError> {
        storage::adopt(&self.shared, entry, image)
    }

    fn kv_cache(&self, block: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        Ok(KvCacheHandle(Arc::new(CpuKvCache::new(&self.shared, block, k_width, blocks, MemoryPurpose::Cache)?)))
    }

    fn read_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        own_cache(cache)?.read(blocks, &self.shared.turn())
    }

    fn write_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32], contents: &[u8]) -> Result<(), HalError> {
        own_cache(cache)?.write(blocks, contents, &self.shared.turn())
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        if !self.target().runs_plans_of(plan.target()) {
            let (made, own) = (plan.target().describe(), self.target().describe());
            return Err(HalError::Load(format!("it was proved for the target {made}; this device is {own}")));
        }
        Ok(Box::new(CpuProgram::new(&self.shared, plan, bindings)?))
    }

    fn probe(&self, limit: Limit) -> Result<Box<dyn LimitProbe>, HalError> {
        probe::probe(&self.shared, limit)
    }

    fn profile(&self, spans: usize) -> Result<Arc<Profiler>, HalError> {
        let made = match self.shared.profiler.get() {
            Some(there) => return Ok(there.clone()),
            None => Arc::new(Profiler::new(self.shared.pool.count(), spans)?),
        };
        Ok(self.shared.profiler.get_or_init(|| made).clone())
    }

    fn kernel_variants(&self) -> Option<&dyn KernelVariants> {
        Some(self)
    }

    fn matmul_limit(&self, precision: Precision, format: Format) -> Limit {
        // A device's instruction set is available: there are kernels for it.
        linear::Dispatch::new(self.shared.isa, self.shared.variant, precision, format).map_or(Limit::F32, |kernel| {
            match kernel.form() {
                // A format without codes never has 8-bit activations.
                ActivationEncoding::Q8 => kernel.code_bits().map_or(Limit::F32, Limit::int8),
                ActivationEncoding::Bf16 => Limit::Bf16,
                ActivationEncoding::F32 | ActivationEncoding::RoundedF32 => Limit::F32,
            }
        })
    }
}

/// A cache of this backend.
fn own_cache(cache: &KvCacheHandle) -> Result<&CpuKvCache, HalError> {
    cache.0.downcast_ref().ok_or_else(|| HalError::Load("the cache is of another device".into()))
}

impl KernelVariants for CpuDevice {
    fn facts(&self) -> String {
        trial::facts(&self.shared, &self.info.name)
    }

    fn resolve(&self, text: &str) -> Result<String, HalError> {
        Ok(self.shared.parse_variant(Some(text))?.to_string())
    }

    fn questions(&self) -> Vec<Question> {
        trial::questions(self.shared.isa)
    }

    fn timer(
        &self,
        weights: &[WeightHandle],
        precision: Precision,
        tokens: usize,
        length: Length,
    ) -> Result<Box<dyn VariantTimer + '_>, HalError> {
        Ok(Box::new(trial::MatmulTrial::new(&self.shared, weights, precision, (tokens, length))?))
    }
}
