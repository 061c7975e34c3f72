//! Devices of which each computes some of a model's layers: a pipeline.
//!
//! Whoever cuts a model into stages asks for the devices ([`Device::stages`]) and loads a plan on each. What has nothing to do
//! with layers, such as choosing tokens, is done where the logits are: as a device, a pipeline is its last stage.

use crate::device::{Bindings, Device, MemoryReport, Program, WeightSink};
use crate::error::HalError;
use crate::handle::KvCacheHandle;
use crate::info::DeviceInfo;
use crate::limit::{Limit, LimitProbe};
use std::sync::Arc;
use yirage_ir::{Format, Type};
use yirage_plan::{Precision, Target, VerifiedPlan, WeightEntry};

/// The devices, first stage first.
pub struct DevicePipeline {
    stages: Vec<Arc<dyn Device>>,
    last: Arc<dyn Device>,
}

impl DevicePipeline {
    /// The pipeline of these devices.
    ///
    /// # Errors
    /// [`HalError::Load`] for no device, and for one that is itself a pipeline or one of several ranks that share layers.
    pub fn new(stages: Vec<Arc<dyn Device>>) -> Result<DevicePipeline, HalError> {
        let last = stages.last().cloned().ok_or_else(|| HalError::Load("a pipeline of no device".into()))?;
        for (stage, device) in stages.iter().enumerate() {
            if device.stages().is_some() || device.target().ranks > 1 {
                let what = device.target().describe();
                return Err(HalError::Load(format!(
                    "stage {stage} is {what}, expected one device that computes alone"
                )));
            }
        }
        Ok(DevicePipeline { stages, last })
    }
}

impl Device for DevicePipeline {
    fn info(&self) -> &DeviceInfo {
        self.last.info()
    }

    fn target(&self) -> Target {
        self.last.target()
    }

    fn stages(&self) -> Option<&[Arc<dyn Device>]> {
        Some(&self.stages)
    }

    /// What all stages hold.
    fn memory(&self) -> MemoryReport {
        self.stages.iter().map(|stage| stage.memory()).fold(MemoryReport::default(), MemoryReport::and)
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        self.last.weight_bytes(entry)
    }

    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        self.last.kv_block_bytes(block, k_width)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        self.last.weight(entry)
    }

    fn kv_cache(&self, block: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        self.last.kv_cache(block, k_width, blocks)
    }

    fn read_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        self.last.read_kv_blocks(cache, blocks)
    }

    fn write_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32], contents: &[u8]) -> Result<(), HalError> {
        self.last.write_kv_blocks(cache, blocks, contents)
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        self.last.load(plan, bindings)
    }

    fn probe(&self, limit: Limit) -> Result<Box<dyn LimitProbe>, HalError> {
        self.last.probe(limit)
    }

    fn matmul_limit(&self, precision: Precision, format: Format) -> Limit {
        self.last.matmul_limit(precision, format)
    }
}
