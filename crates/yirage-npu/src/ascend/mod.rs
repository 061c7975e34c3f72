//! Huawei's Ascend: ACL and the operators of aclnn.

#[allow(unsafe_code)]
mod context;
#[allow(unsafe_code)]
mod libraries;
#[allow(unsafe_code)]
mod operators;
mod status;
#[allow(unsafe_code)]
mod symbols;

use crate::lowering::OperatorSupport;
use crate::maker::{NpuMaker, OpenedRuntime, cannot};
use context::AscendContext;
use libraries::AscendRuntime;
use std::sync::Arc;
use yirage_collectives::CollectiveVendor;
use yirage_hal::{DeviceInfo, HalError};
use yirage_ir::{DType, Format};
use yirage_probe::{CompanionLibrary, ProbeEnvironment, families};

/// Ascend.
pub(crate) const ASCEND: NpuMaker = NpuMaker {
    family: &families::ASCEND,
    operators: "ascend/aclnn@1",
    host: "ascend/host@1",
    variant: "aclnn",
    support: OperatorSupport::Whole,
    collectives: CollectiveVendor::Ascend,
    open,
};

fn open(surroundings: &ProbeEnvironment, info: &DeviceInfo) -> Result<OpenedRuntime, HalError> {
    let runtime = families::ASCEND.library(surroundings);
    let runtime = runtime.map_err(|e| cannot(info, &e, families::ASCEND.remedy(&e)))?;
    let beside = |library: &'static CompanionLibrary| {
        library.library(surroundings).map_err(|e| cannot(info, &e, library.remedy(&e)))
    };
    let (descriptions, operators) = (beside(&families::NNOPBASE)?, beside(&families::OPAPI)?);
    let runtime = AscendRuntime::new(&runtime, &descriptions, &operators);
    let runtime = runtime.map_err(|e| cannot(info, &e, families::OPAPI.remedy(&e)))?;
    let floats = vec![DType::F32, DType::Stored(Format::F16), DType::Stored(Format::BF16)];
    Ok(OpenedRuntime { runtime: Arc::new(AscendContext::new(runtime, info.ordinal)?), floats })
}
