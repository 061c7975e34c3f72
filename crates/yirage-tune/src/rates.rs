//! How fast a device is, as the search's estimates want to know it.

use crate::device::LoadedGraph;
use crate::error::TuneError;
use crate::limits::{LAUNCHES, READINGS};
use crate::random::prepared;
use crate::timing::Timing;
use yirage_compile::CompileOptions;
use yirage_hal::{Device, HalError, Limit, Readings};
use yirage_ir::op::Map;
use yirage_ir::{BuildError, DType, Dims, Expr, Graph, GraphBuilder, Type, expr::Func};
use yirage_search::DeviceRates;

/// The sizes of a step without symbols. A plan is made for some of each.
const ONE: Dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };

/// What the device says of itself, and what a step of one element takes. What it does not measure is
/// [`DeviceRates::UNMEASURED`]'s, with a note that says so.
///
/// # Errors
/// What the device met.
pub fn measure_rates(device: &dyn Device) -> Result<(DeviceRates, Vec<String>), TuneError> {
    let (mut rates, mut notes) = (DeviceRates::UNMEASURED, Vec::new());
    let mut read = |limit: Limit, into: &mut u64| match device.probe(limit) {
        Ok(mut probe) => {
            *into = Readings::take(&mut *probe, READINGS)?.median().max(1.0) as u64;
            Ok(())
        }
        Err(HalError::Unsupported { why, .. }) => {
            notes.push(format!(
                "{limit} is not measured ({why}): {} {} are assumed",
                *into / 1_000_000_000,
                limit.unit()
            ));
            Ok(())
        }
        Err(error) => Err(TuneError::from(error)),
    };
    read(Limit::MemoryRead, &mut rates.bytes_per_second)?;
    read(Limit::F32, &mut rates.f32_ops_per_second)?;
    let graph = smallest().map_err(|e| TuneError::Compile(e.into()))?;
    let mut step = LoadedGraph::new(device, prepared(&graph, ONE, &CompileOptions::default())?)?;
    // A lone kernel also pays for the step around it: what a further one takes is less, and this the most it is.
    rates.launch_ns = (Timing::of_steps(LAUNCHES, &mut step)?.lowest() * 1e9) as u64;
    Ok((rates, notes))
}

/// The smallest step there is.
fn smallest() -> Result<Graph, BuildError> {
    let mut b = GraphBuilder::new("smallest");
    let x = b.step_input("x", Type::new(DType::F32, [1u32]))?;
    let y = b.op("y", Map { expr: Expr::unary(Func::Neg) }, &[x])?;
    b.output(y);
    Ok(b.finish())
}
