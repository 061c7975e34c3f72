//! A device as a rank of a group: what its maker's library of collectives carries, and what goes through the host's memory.
//!
//! The ranks meet on the host before each collective, whoever carries it: so a rank that is gone, or that does something else, is found
//! there and named, and the maker's library is called only where all ranks call it with the same. It carries what it gives the bytes
//! of every other way for ([`is_in_order`]), and where all ranks have the same one.

use crate::communicator::{DeviceCommunicator, DeviceElements, DeviceSeat};
use crate::error::CollectiveError;
use crate::library::DeviceCollectives;
use crate::order::is_in_order;
use crate::vendor::CollectiveVendor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_comm::{CollectiveKind, ElementType, ReduceOp};
use yirage_hal::HalError;
use yirage_hal::driver::{BufferSlice, CollectiveCall, DriverError};
use yirage_ir::{DType, Format, Op};
use yirage_probe::ProbeEnvironment;
use yirage_ranks::{RankGroup, RankGroupError};

/// Where nobody has said how long ranks wait: they have lost each other then.
const NO_DEADLINE: Duration = Duration::from_secs(30);
/// How often a rank that waits for its device asks whether the others still take part.
const HEARING: Duration = Duration::from_millis(50);

/// A driver's device in a group whose other ranks are in other processes.
pub struct RankCollectives {
    group: Arc<RankGroup>,
    /// The maker's, where this machine has them.
    library: Option<Arc<DeviceCollectives>>,
    ordinal: u32,
    /// Its place among the devices, from the first collective that wants it: none where a rank has no library.
    place: Mutex<Option<Option<Arc<DeviceCommunicator>>>>,
}

/// What carries a collective.
pub enum CollectiveWay {
    /// The maker's library, in the stream.
    Maker(Arc<DeviceCommunicator>, CollectiveKind, DeviceElements),
    /// The host's memory.
    Host,
    /// Nothing moves between ranks.
    Copy,
}

impl RankCollectives {
    /// The place of the device with this number in this process, and what is to be told of what carries its collectives.
    pub fn new(
        group: Arc<RankGroup>,
        vendor: CollectiveVendor,
        surroundings: &ProbeEnvironment,
        ordinal: u32,
    ) -> (RankCollectives, String) {
        let (library, note) = match vendor.load(surroundings) {
            Ok(library) => {
                let sums = if group.ranks() > 2 { ", but for sums, whose order it does not promise" } else { "" };
                let note = format!("collectives by {}{sums}", library.title());
                (Some(library), note)
            }
            Err(error) => (None, format!("collectives go through the host's memory: {error}")),
        };
        (RankCollectives { group, library, ordinal, place: Mutex::default() }, note)
    }

    /// The number of this rank's device where that of rank 0 has the number `first`, of so many that are there: each rank has one of
    /// its own.
    ///
    /// # Errors
    /// [`HalError::Option`] where there are fewer devices.
    pub fn own_ordinal(group: &RankGroup, first: u32, there: usize) -> Result<u32, HalError> {
        let (rank, ranks) = (group.rank(), group.ranks());
        let own = first as usize + rank;
        match own < there {
            true => Ok(own as u32),
            false => Err(HalError::Option {
                option: "device",
                why: format!(
                    "rank {rank} of {ranks} wants device {own}, and there are {there}; take as many ranks as there are devices"
                ),
            }),
        }
    }

    /// How long a step may wait for other ranks.
    pub fn deadline(&self) -> Duration {
        self.group.deadline().unwrap_or(NO_DEADLINE)
    }

    fn place(&self) -> MutexGuard<'_, Option<Option<Arc<DeviceCommunicator>>>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What carries a collective between these addresses; where it is the maker's library, all ranks have come to it. Whether it is
    /// follows from what all ranks know, so all of them take the same way. `attach` makes the device the current one of the thread
    /// that it runs on, for as long as the thread lives.
    ///
    /// # Errors
    /// What is no collective of this group, and [`DriverError::Lost`] for what ends it.
    pub fn way(
        &self,
        call: &CollectiveCall,
        [from, to]: [u64; 2],
        attach: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<CollectiveWay, DriverError> {
        let (rows, width) = (call.rows as usize, call.width as usize);
        let (kind, row_by_row) = match &call.op {
            Op::AllReduce(_) => (CollectiveKind::AllReduce(ReduceOp::Sum), false),
            Op::AllGather(_) => (CollectiveKind::AllGather, true),
            Op::ReduceScatter(_) => (CollectiveKind::ReduceScatter(ReduceOp::Sum), true),
            Op::Broadcast(op) => (CollectiveKind::Broadcast { root: op.root }, false),
            Op::SendRecv(op) if op.shift == 0 => return Ok(CollectiveWay::Copy),
            Op::SendRecv(op) => (CollectiveKind::Shift { by: op.shift }, false),
            other => return Err(refused(format!("`{}` is no collective", other.name()))),
        };
        if !is_in_order(kind, self.group.ranks() as usize) {
            return Ok(CollectiveWay::Host);
        }
        let Some(communicator) = self.communicator(attach)? else { return Ok(CollectiveWay::Host) };
        let element = element_of(call.dtype)?;
        let (rows, width) = if row_by_row { (rows, width) } else { (1, rows * width) };
        self.group.agree(&call.op, call.dtype, [call.rows as usize, call.width as usize]).map_err(|e| lost(&e))?;
        Ok(CollectiveWay::Maker(communicator, kind, DeviceElements { element, rows, width, from, to }))
    }

    /// This rank's place among the devices. All ranks come to this at the same collective.
    fn communicator(
        &self,
        attach: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<Option<Arc<DeviceCommunicator>>, DriverError> {
        let mut place = self.place();
        if let Some(known) = &*place {
            return Ok(known.clone());
        }
        let all_have_one = self.group.all_say(self.library.is_some()).map_err(|error| lost(&error))?;
        let made = match (&self.library, all_have_one) {
            (Some(library), true) => Some(Arc::new(self.joined(library, attach)?)),
            _ => None,
        };
        *place = Some(made.clone());
        Ok(made)
    }

    fn joined(
        &self,
        library: &Arc<DeviceCollectives>,
        attach: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<DeviceCommunicator, DriverError> {
        let failed = |error: CollectiveError| self.ended(&error);
        // Rank 0 makes the identity; where it cannot, the others hear that it has left.
        let mut id = match self.group.rank() {
            0 => library.new_id().map_err(failed)?.bytes().to_vec(),
            _ => vec![0; library.id_bytes()],
        };
        self.group.share(&mut id).map_err(|error| lost(&error))?;
        let id = library.id_of(&id).map_err(failed)?;
        let seat = DeviceSeat { rank: self.group.rank(), ranks: self.group.ranks() as usize, ordinal: self.ordinal };
        DeviceCommunicator::join(library, &id, seat, self.deadline(), attach).map_err(failed)
    }

    /// A collective by the host's memory: what this rank gives, and what it gets.
    ///
    /// # Errors
    /// As of [`RankCollectives::way`].
    pub fn meet(&self, call: &CollectiveCall, bytes: &[u8]) -> Result<Vec<u8>, DriverError> {
        let size = [call.rows as usize, call.width as usize];
        self.group.meet(&call.op, call.dtype, size, bytes).map_err(|error| lost(&error))
    }

    /// Waits until a deadline at most by `wait`, which waits so long at most, and hears meanwhile of what goes wrong among the ranks.
    ///
    /// # Errors
    /// What `wait` says but that it is late, and [`DriverError::Lost`] where a rank is gone or does not come to it in time.
    pub fn wait(
        &self,
        deadline: Duration,
        wait: impl Fn(Duration) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let (began, deadline) = (Instant::now(), deadline.min(self.deadline()));
        loop {
            let left = deadline.saturating_sub(began.elapsed());
            match wait(left.min(HEARING)) {
                Err(DriverError::Deadline { .. }) if left > HEARING => self.is_well()?,
                Err(late @ DriverError::Deadline { .. }) => return Err(self.is_late(deadline).unwrap_or(late)),
                done => return done,
            }
        }
    }

    /// Whether what the maker's library was given goes well.
    fn is_well(&self) -> Result<(), DriverError> {
        match &*self.place() {
            Some(Some(communicator)) => communicator.is_well().map_err(|error| self.ended(&error)),
            _ => Ok(()),
        }
    }

    /// A step has not ended in time.
    fn is_late(&self, waited: Duration) -> Option<DriverError> {
        match &*self.place() {
            Some(Some(communicator)) => Some(self.ended(&communicator.is_late(waited))),
            _ => None,
        }
    }

    /// What a library has said ends the rank: the others are told.
    pub fn ended(&self, error: &CollectiveError) -> DriverError {
        let why = error.to_string();
        self.group.leave(&why);
        DriverError::Lost(why)
    }
}

/// Where what a rank gives lies, and what it gets goes: as much of the call's memory as its matrix has.
///
/// # Errors
/// A matrix that is not all there.
pub fn collective_operands(call: &CollectiveCall) -> Result<[BufferSlice; 2], DriverError> {
    let CollectiveCall { op, dtype, rows, width, from, to } = call;
    let row = |width: u32| u64::from(*rows) * dtype.row_bytes(width as usize) as u64;
    let got = match op {
        Op::AllGather(op) => width.checked_mul(op.ranks),
        Op::ReduceScatter(op) => Some(width / op.ranks.max(1)),
        _ => Some(*width),
    };
    let outside = || refused(format!("{rows} rows of {width} {dtype} are not at {from:?} or {to:?}"));
    let from = from.part(0, row(*width)).ok_or_else(outside)?;
    let to = got.and_then(|width| to.part(0, row(width))).ok_or_else(outside)?;
    Ok([from, to])
}

fn refused(why: String) -> DriverError {
    DriverError::Failed { call: "collective", why }
}

/// What ends a group ends the device as its rank.
fn lost(error: &RankGroupError) -> DriverError {
    match error {
        RankGroupError::Call { .. } => refused(error.to_string()),
        error => DriverError::Lost(error.to_string()),
    }
}

fn element_of(dtype: DType) -> Result<ElementType, DriverError> {
    match dtype {
        DType::Stored(Format::F32) => Ok(ElementType::F32),
        DType::Stored(Format::F16) => Ok(ElementType::F16),
        DType::Stored(Format::BF16) => Ok(ElementType::BF16),
        other => Err(refused(format!("expected f32, f16 or bf16, got {other}"))),
    }
}
