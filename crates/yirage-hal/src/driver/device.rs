//! The device over any driver.

use super::buffer::{Buffer, DriverAccount, MemoryPool};
use super::command::{MemoryCommand, StepCommand};
use super::contract::Driver;
use super::kv_cache::{DeviceKvCache, KvBlockForm};
use super::library::Library;
use super::program::DriverProgram;
use super::weight::{DeviceWeight, DriverWeightSink};
use crate::device::{Bindings, Device, MemoryReport, Program, WeightSink};
use crate::error::HalError;
use crate::handle::{KvCacheHandle, WeightHandle};
use crate::info::DeviceInfo;
use std::borrow::Cow;
use std::sync::Arc;
use yirage_ir::Type;
use yirage_mmap::WeightImage;
use yirage_plan::{ExecutorKind, Partitioning, Stage, Target, VerifiedPlan, WeightEntry};

/// A device made of a driver and a library of kernels.
pub struct DriverDevice<D: Driver, L: Library> {
    info: DeviceInfo,
    account: Arc<DriverAccount<D>>,
    library: Arc<L>,
}

impl<D: Driver, L: Library> DriverDevice<D, L> {
    /// The device.
    pub fn new(info: DeviceInfo, driver: D, library: L) -> DriverDevice<D, L> {
        DriverDevice { info, account: Arc::new(DriverAccount::new(driver)), library: Arc::new(library) }
    }

    /// A cache of this device.
    fn own_cache<'a>(&self, cache: &'a KvCacheHandle) -> Result<&'a DeviceKvCache<D>, HalError> {
        let own = cache.0.downcast_ref::<DeviceKvCache<D>>().filter(|cache| cache.buffer.is_of(&self.account));
        own.ok_or_else(|| HalError::Load("the cache is of another device".into()))
    }
}

impl<D: Driver, L: Library> Device for DriverDevice<D, L> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn target(&self) -> Target {
        let mut target = self.library.target();
        if self.account.driver.graph_capture().is_some() {
            target.executors.insert(0, ExecutorKind::Replay);
        }
        if self.account.driver.persistent_kernels().is_some() {
            target.executors.push(ExecutorKind::Persistent);
            // The device divides the groups of a launch by itself: to a plan it is one worker, which has a task for each step.
            target.kernels.iter_mut().for_each(|facts| facts.kernel.stages = vec![Stage::always(Partitioning::Static)]);
        }
        target
    }

    fn in_flight(&self) -> usize {
        self.account.driver.in_flight()
    }

    fn memory(&self) -> MemoryReport {
        self.account.report()
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        Ok(self.library.weight_packing(entry)?.bytes)
    }

    fn kv_block_bytes(&self, block: &Type, _: u32) -> Result<u64, HalError> {
        KvBlockForm::new(&self.library.target(), block)?.bytes()
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        Ok(Box::new(DriverWeightSink::new(&self.account, &self.library, entry)?))
    }

    fn packing(&self) -> Option<String> {
        self.library.packing()
    }

    fn image<'a>(&self, weight: &'a WeightHandle) -> Result<Cow<'a, [u8]>, HalError> {
        let own = weight.0.downcast_ref::<DeviceWeight<D>>().filter(|weight| weight.buffer.is_of(&self.account));
        own.ok_or_else(|| HalError::Load("the weight is of another device".into()))?.read(&self.account).map(Cow::Owned)
    }

    fn adopt(&self, entry: &WeightEntry, image: WeightImage) -> Result<WeightHandle, HalError> {
        let packing = self.library.weight_packing(entry)?;
        let weight = DeviceWeight::of_image(&self.account, entry, &packing, image.bytes())?;
        Ok(WeightHandle(Arc::new(weight)))
    }

    fn kv_cache(&self, block: &Type, _: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        let too_many = || HalError::Load(format!("a cache of {blocks} blocks, {} at most", u32::MAX));
        let blocks = u32::try_from(blocks).map_err(|_| too_many())?;
        let form = KvBlockForm::new(&self.library.target(), block)?;
        let bytes = form.bytes()?.saturating_mul(u64::from(blocks));
        let buffer = Buffer::new(&self.account, MemoryPool::Cache, bytes)?;
        buffer.driver().submit(StepCommand::Memory(MemoryCommand::Fill { slice: buffer.slice(), byte: 0 }))?;
        Ok(KvCacheHandle(Arc::new(DeviceKvCache { form, blocks, buffer })))
    }

    fn read_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        self.own_cache(cache)?.read(blocks)
    }

    fn write_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32], contents: &[u8]) -> Result<(), HalError> {
        self.own_cache(cache)?.write(blocks, contents)
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        if !self.target().runs_plans_of(plan.target()) {
            let (made, own) = (plan.target().describe(), self.target().describe());
            return Err(HalError::Load(format!("it was proved for the target {made}; this device is {own}")));
        }
        Ok(Box::new(DriverProgram::new(&self.account, &self.library, plan, bindings)?))
    }
}
