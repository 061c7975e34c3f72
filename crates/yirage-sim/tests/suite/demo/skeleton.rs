//! The backend before its first line of work: everything is there, and everything is `Unsupported`. A new backend begins as a
//! copy of this, with a list of expected failures that shrinks from kernel to kernel.

use std::sync::Arc;
use std::time::Duration;
use yirage_conformance::{CaseOutcome, ExpectedFailure, Suite};
use yirage_hal::driver::{
    BufferId, BufferSlice, Download, Driver, DriverDevice, DriverError, KernelCall, Library, ModuleId, StepCommand,
    ValueSlices,
};
use yirage_hal::{Device, DeviceInfo, HalError, HostMemory};
use yirage_ir::{DType, Type};
use yirage_plan::{
    DeviceLimits, ExecutorKind, ExpertDivision, KernelCapabilities, KvCacheLayoutFacts, Plan, Target,
    WeightLayoutFacts, WeightRole,
};

struct SkeletonDriver;

fn unsupported<T>(what: &str) -> Result<T, DriverError> {
    Err(DriverError::Unsupported { what: what.into(), why: "the backend is a skeleton".into() })
}

impl Driver for SkeletonDriver {
    fn alloc(&self, _: u64) -> Result<BufferId, DriverError> {
        unsupported("memory")
    }
    fn free(&self, _: BufferId) {}
    fn submit(&self, _: StepCommand) -> Result<(), DriverError> {
        unsupported("a command")
    }
    fn upload(&self, _: Arc<dyn HostMemory>, _: BufferSlice) -> Result<(), DriverError> {
        unsupported("an upload")
    }
    fn download(&self, _: BufferSlice) -> Result<Box<dyn Download>, DriverError> {
        unsupported("a download")
    }
    fn module(&self, _: &[u8]) -> Result<ModuleId, DriverError> {
        unsupported("code")
    }
    fn unload(&self, _: ModuleId) {}
    fn signal(&self) -> Result<u64, DriverError> {
        unsupported("a signal")
    }
    fn reached(&self) -> Result<u64, DriverError> {
        unsupported("a signal")
    }
    fn wait(&self, _: u64, _: Duration) -> Result<(), DriverError> {
        unsupported("a wait")
    }
    fn in_flight(&self) -> usize {
        1
    }
}

struct NoKernels;

impl Library for NoKernels {
    fn target(&self) -> Target {
        Target {
            family: "skeleton".into(),
            arch: "none".into(),
            capabilities: KernelCapabilities::LEAST,
            workers: 1,
            ranks: 1,
            experts: ExpertDivision::default(),
            weight_layouts: vec![WeightLayoutFacts::rows(&[WeightRole::Matmul, WeightRole::Factor, WeightRole::Plain])],
            kv_cache_layouts: vec![KvCacheLayoutFacts::rows(&[32])],
            activation_formats: Vec::new(),
            activation_dtype: DType::F32,
            limits: DeviceLimits::aligned(256),
            executors: vec![ExecutorKind::Steps],
            kernels: Vec::new(),
        }
    }
    fn code(&self, _: &Plan) -> Result<Vec<u8>, HalError> {
        Ok(Vec::new())
    }
    fn calls(&self, plan: &Plan, step: usize, _: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        Err(HalError::Load(format!("there is no kernel for {}", plan.step_name(step))))
    }
}

/// Every case of every op.
const EXPECTED: &[ExpectedFailure] = &[ExpectedFailure { prefix: "", reason: "there is no kernel yet" }];

#[test]
fn a_skeleton_fails_every_case_as_expected() {
    let device = DriverDevice::new(DeviceInfo::new("skeleton", 0, "a skeleton", "none"), SkeletonDriver, NoKernels);
    let suite = Suite::quick();
    let reports = suite.run(&device, EXPECTED);
    let other = reports.iter().find(|report| !matches!(report.outcome, CaseOutcome::ExpectedFailure(_)));
    assert!(other.is_none() && reports.len() > 200, "{other:?}");
    // Without the list each says what is missing.
    for report in suite.run(&device, &[]) {
        let (CaseOutcome::Failed(why) | CaseOutcome::Refused(why)) = report.outcome else { panic!("{}", report.name) };
        assert!(why.contains("no kernel") || why.contains("not supported"), "{}: {why}", report.name);
    }
    let cache = device.kv_cache(&Type::new(DType::F32, [32, 1, 8]), 8, 1);
    assert!(matches!(cache, Err(HalError::Unsupported { .. })));
}
