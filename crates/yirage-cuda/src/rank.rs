//! The device as a rank of a group: what its maker's library of collectives carries, and what goes through the host's memory.
//!
//! The ranks meet on the host before each collective, whoever carries it: so a rank that is gone, or that does something else, is found
//! there and named, and the maker's library is called only where all ranks call it with the same. It carries what it gives the bytes
//! of every other way for (`yirage_collectives::is_in_order`), and where all ranks have the same one.

use crate::runtime::CudaContext;
use crate::status::refused;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_collectives::{DeviceCollectives, DeviceCommunicator, DeviceElements, DeviceSeat, is_in_order};
use yirage_comm::{CollectiveKind, ElementType, ReduceOp};
use yirage_hal::driver::{CollectiveCall, DriverError};
use yirage_ir::{DType, Format, Op};
use yirage_ranks::{RankGroup, RankGroupError};

/// Where nobody has said how long ranks wait: they have lost each other then.
const NO_DEADLINE: Duration = Duration::from_secs(30);

/// A device's place in a group.
pub(crate) struct CudaRank {
    group: Arc<RankGroup>,
    /// The maker's, where this machine has them.
    library: Option<Arc<DeviceCollectives>>,
    ordinal: u32,
    /// Its place among the devices, from the first collective that wants it: none where a rank has no library.
    place: Mutex<Option<Option<Arc<DeviceCommunicator>>>>,
}

/// What carries a collective.
pub(crate) enum CollectiveWay {
    /// The maker's library, in the stream.
    Maker(Arc<DeviceCommunicator>, CollectiveKind, DeviceElements),
    /// The host's memory.
    Host,
    /// Nothing moves between ranks.
    Copy,
}

impl CudaRank {
    pub(crate) fn new(group: Arc<RankGroup>, library: Option<Arc<DeviceCollectives>>, ordinal: u32) -> CudaRank {
        CudaRank { group, library, ordinal, place: Mutex::default() }
    }

    /// How long a step may wait for other ranks.
    pub(crate) fn deadline(&self) -> Duration {
        self.group.deadline().unwrap_or(NO_DEADLINE)
    }

    fn place(&self) -> MutexGuard<'_, Option<Option<Arc<DeviceCommunicator>>>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What carries a collective between these addresses; where it is the maker's library, all ranks have come to it. Whether it is
    /// follows from what all ranks know, so all of them take the same way.
    pub(crate) fn way(
        &self,
        call: &CollectiveCall,
        [from, to]: [u64; 2],
        context: &Arc<CudaContext>,
    ) -> Result<CollectiveWay, DriverError> {
        let (rows, width) = (call.rows as usize, call.width as usize);
        let (kind, row_by_row) = match &call.op {
            Op::AllReduce(_) => (CollectiveKind::AllReduce(ReduceOp::Sum), false),
            Op::AllGather(_) => (CollectiveKind::AllGather, true),
            Op::ReduceScatter(_) => (CollectiveKind::ReduceScatter(ReduceOp::Sum), true),
            Op::Broadcast(op) => (CollectiveKind::Broadcast { root: op.root }, false),
            Op::SendRecv(op) if op.shift == 0 => return Ok(CollectiveWay::Copy),
            Op::SendRecv(op) => (CollectiveKind::Shift { by: op.shift }, false),
            other => return Err(refused("collective", format!("`{}` is no collective", other.name()))),
        };
        if !is_in_order(kind, self.group.ranks() as usize) {
            return Ok(CollectiveWay::Host);
        }
        let Some(communicator) = self.communicator(context)? else { return Ok(CollectiveWay::Host) };
        let element = element_of(call.dtype)?;
        let (rows, width) = if row_by_row { (rows, width) } else { (1, rows * width) };
        self.group.agree(&call.op, call.dtype, [call.rows as usize, call.width as usize]).map_err(|e| lost(&e))?;
        Ok(CollectiveWay::Maker(communicator, kind, DeviceElements { element, rows, width, from, to }))
    }

    /// This rank's place among the devices. All ranks come to this at the same collective.
    fn communicator(&self, context: &Arc<CudaContext>) -> Result<Option<Arc<DeviceCommunicator>>, DriverError> {
        let mut place = self.place();
        if let Some(known) = &*place {
            return Ok(known.clone());
        }
        let all_have_one = self.group.all_say(self.library.is_some()).map_err(|error| lost(&error))?;
        let made = match (&self.library, all_have_one) {
            (Some(library), true) => Some(Arc::new(self.joined(library, context)?)),
            _ => None,
        };
        *place = Some(made.clone());
        Ok(made)
    }

    fn joined(
        &self,
        library: &Arc<DeviceCollectives>,
        context: &Arc<CudaContext>,
    ) -> Result<DeviceCommunicator, DriverError> {
        let failed = |error: yirage_collectives::CollectiveError| {
            self.group.leave(&error.to_string());
            DriverError::Lost(error.to_string())
        };
        // Rank 0 makes the identity; where it cannot, the others hear that it has left.
        let mut id = match self.group.rank() {
            0 => library.new_id().map_err(failed)?.bytes().to_vec(),
            _ => vec![0; library.id_bytes()],
        };
        self.group.share(&mut id).map_err(|error| lost(&error))?;
        let (id, context) = (library.id_of(&id).map_err(failed)?, context.clone());
        let seat = DeviceSeat { rank: self.group.rank(), ranks: self.group.ranks() as usize, ordinal: self.ordinal };
        let attach = move || context.stay().map_err(|error| error.to_string());
        DeviceCommunicator::join(library, &id, seat, self.deadline(), attach).map_err(failed)
    }

    /// A collective by the host's memory: what this rank gives, and what it gets.
    pub(crate) fn meet(&self, call: &CollectiveCall, bytes: &[u8]) -> Result<Vec<u8>, DriverError> {
        let size = [call.rows as usize, call.width as usize];
        self.group.meet(&call.op, call.dtype, size, bytes).map_err(|error| lost(&error))
    }

    /// Whether what the maker's library was given goes well.
    pub(crate) fn is_well(&self) -> Result<(), DriverError> {
        match &*self.place() {
            Some(Some(communicator)) => communicator.is_well().map_err(|error| self.ended(&error)),
            _ => Ok(()),
        }
    }

    /// A step has not ended in time.
    pub(crate) fn is_late(&self, waited: Duration) -> Option<DriverError> {
        match &*self.place() {
            Some(Some(communicator)) => Some(self.ended(&communicator.is_late(waited))),
            _ => None,
        }
    }

    /// The other ranks are told.
    pub(crate) fn ended(&self, error: &yirage_collectives::CollectiveError) -> DriverError {
        let why = error.to_string();
        self.group.leave(&why);
        DriverError::Lost(why)
    }
}

/// What ends a group ends the device as its rank.
fn lost(error: &RankGroupError) -> DriverError {
    match error {
        RankGroupError::Call { .. } => refused("collective", error.to_string()),
        error => DriverError::Lost(error.to_string()),
    }
}

fn element_of(dtype: DType) -> Result<ElementType, DriverError> {
    match dtype {
        DType::Stored(Format::F32) => Ok(ElementType::F32),
        DType::Stored(Format::F16) => Ok(ElementType::F16),
        DType::Stored(Format::BF16) => Ok(ElementType::BF16),
        other => Err(refused("collective", format!("expected f32, f16 or bf16, got {other}"))),
    }
}
