//! Kernels of all ranks, joined into one that runs in this process.

use super::shared::{KernelState, SharedKernel, finalized, tell, wrong};
use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, say};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use yirage_dlpack::InPlace;
use yirage_persistent::{KernelBuilder, name_of_rank};

/// The kernel of all ranks. Theirs are gone from then on, but where they are refused before they are taken.
///
/// # Errors
/// Kernels that are compiled or gone, one that is given twice, other devices, and what `KernelBuilder::of_ranks` says.
pub(super) fn joined(py: Python<'_>, ranks: &[Arc<SharedKernel>]) -> PyOutcome<Arc<SharedKernel>> {
    let Some(first) = ranks.first() else {
        return Err(PyFailure::option("ranks([]): a kernel of each rank is wanted"));
    };
    check(first, ranks)?;
    // Their owners may have written into the arrays since they were made.
    for rank in ranks {
        rank.building(py, "ranks", |builder| Ok(builder.set_meta(rank.buffers.read()?)?))?;
    }
    let builders = taken(py, ranks)?;
    let mut arrays = Vec::new();
    for (at, (shared, builder)) in ranks.iter().zip(&builders).enumerate() {
        arrays.extend(attached(at, shared, builder));
    }
    let mut builder = KernelBuilder::of_ranks(builders)?;
    tell(py, builder.notices())?;
    if ranks.iter().skip(1).any(|rank| rank.profiled.is_some()) {
        say(py, Level::Info, "PersistentKernel.ranks: what rank 0 was given has the times of all ranks")?;
    }
    let known: HashMap<_, _> =
        arrays.into_iter().filter_map(|(name, array)| Some((builder.find(&name)?, array))).collect();
    let (device, buffers, profiled) = (first.device.clone(), first.buffers.clone(), first.profiled.clone());
    let all = SharedKernel::new(builder, device, buffers, profiled, first.test_mode);
    *all.attached.lock().unwrap_or_else(PoisonError::into_inner) = known;
    Ok(Arc::new(all))
}

/// Whether these are different kernels that run in the same way on the same device.
fn check(first: &Arc<SharedKernel>, ranks: &[Arc<SharedKernel>]) -> PyOutcome<()> {
    for (at, rank) in ranks.iter().enumerate() {
        if rank.membership.is_some() {
            return Err(wrong(format!(
                "ranks: the kernel of rank {at} is that of a process, and the others have theirs"
            )));
        }
        if let Some(other) = ranks[..at].iter().position(|other| Arc::ptr_eq(other, rank)) {
            return Err(wrong(format!("ranks: the kernel of rank {at} is that of rank {other}: each has its own")));
        }
        let place = |of: &SharedKernel| format!("{}:{}", of.device.info().backend, of.device.info().ordinal);
        let (own, wanted) = (place(rank), place(first));
        if own != wanted {
            return Err(PyFailure::option(format!(
                "ranks: the kernel of rank {at} is on {own} and that of rank 0 on {wanted}: all run on one device"
            )));
        }
        if rank.test_mode != first.test_mode {
            return Err(PyFailure::option(format!(
                "ranks: test_mode of rank {at} is {}, and of rank 0 {}: all have the same",
                rank.test_mode, first.test_mode
            )));
        }
    }
    Ok(())
}

/// The layers of all ranks, which their kernels no longer have; where one has none to give, all keep theirs.
fn taken(py: Python<'_>, ranks: &[Arc<SharedKernel>]) -> PyOutcome<Vec<KernelBuilder>> {
    let mut builders = Vec::with_capacity(ranks.len());
    for rank in ranks {
        let refused = {
            let mut state = rank.state(py);
            match std::mem::replace(&mut *state, KernelState::Gone) {
                KernelState::Building(builder) => {
                    builders.push(*builder);
                    continue;
                }
                KernelState::Gone => finalized("ranks"),
                ready @ KernelState::Ready(_) => {
                    *state = ready;
                    wrong("ranks: a kernel is compiled: ranks are joined before".into())
                }
            }
        };
        for (rank, builder) in ranks.iter().zip(builders) {
            *rank.state(py) = KernelState::Building(Box::new(builder));
        }
        return Err(refused);
    }
    Ok(builders)
}

/// The arrays that were attached to a rank, by the names that they have in the kernel of all.
fn attached(at: usize, shared: &SharedKernel, builder: &KernelBuilder) -> Vec<(String, Arc<InPlace>)> {
    let arrays = std::mem::take(&mut *shared.attached.lock().unwrap_or_else(PoisonError::into_inner));
    let found = builder.attached_tensors().filter_map(|(name, _)| {
        let array = arrays.get(&builder.find(name)?)?;
        Some((name_of_rank(at, name), array.clone()))
    });
    found.collect()
}
