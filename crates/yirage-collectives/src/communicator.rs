//! A rank's place in a group of devices.

use crate::error::CollectiveError;
use crate::library::{DeviceCollectives, GroupId};
use crate::symbols::{BroadcastCall, CollectiveHandle, FailedCall, IdentityCalls, UniqueId};
use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use yirage_comm::{CollectiveKind, CommCall, ElementType};

/// Which rank a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceSeat {
    /// From 0.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
    /// The device's number in this process.
    pub ordinal: u32,
}

/// What a rank gives and gets in a collective: addresses of its device. Each of `rows` rows of `width` elements is a collective of
/// its own, and all of them are one where the library has groups of calls; what does not divide or collect rows wants one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceElements {
    /// Their type.
    pub element: ElementType,
    /// Rows.
    pub rows: usize,
    /// Elements that this rank gives of a row; of a broadcast and a message, that there are.
    pub width: usize,
    /// Where they lie, one row behind the other; of a broadcast and of a message to this rank nothing is read here.
    pub from: u64,
    /// Where the result goes, one row behind the other; not where any of `from` lies. A broadcast has it here on all ranks: on its
    /// root before. Of a message to another rank nothing is written here.
    pub to: u64,
}

/// A rank's place in a group of devices.
///
/// All ranks submit the same collectives in the same order, with as many elements of the same type. The library does not find out
/// where they do not: then they wait for each other until the deadline of whoever waits for the stream.
pub struct DeviceCommunicator {
    library: Arc<DeviceCollectives>,
    seat: DeviceSeat,
    state: Mutex<CommunicatorState>,
}

/// A communicator of the library's.
struct RawCommunicator(CollectiveHandle);

// SAFETY: the makers' communicators are used by any thread, one at a time: `CommunicatorState` is behind a lock.
unsafe impl Send for RawCommunicator {}

struct CommunicatorState {
    communicator: RawCommunicator,
    /// Collectives so far; messages are counted with them.
    submitted: u64,
    last: CommCall,
    /// Why it takes part in nothing any more.
    given_up: Option<String>,
}

/// Before the first.
const NOTHING: CommCall =
    CommCall { sequence: 0, kind: CollectiveKind::Barrier, element: ElementType::U8, count: 0, label: 0 };

impl DeviceCommunicator {
    /// Takes a rank's place. All ranks come to this with the same identity, each within the deadline of the others. `attach` makes
    /// the device the current one of the thread that it runs on.
    ///
    /// # Errors
    /// [`CollectiveError::Join`]: what the library says, and ranks that do not come.
    pub fn join(
        library: &Arc<DeviceCollectives>,
        id: &GroupId,
        seat: DeviceSeat,
        deadline: Duration,
        attach: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<DeviceCommunicator, CollectiveError> {
        let refused =
            |why: String| CollectiveError::Join { title: library.row.title, rank: seat.rank, ranks: seat.ranks, why };
        if seat.rank >= seat.ranks {
            return Err(refused(format!("expected a rank below {}", seat.ranks)));
        }
        library.id_of(id.bytes())?;
        // Nothing can end a call into a library: one that is late is left behind, and what it makes then is given back there.
        let (send, receive) = sync_channel::<Result<DeviceCommunicator, String>>(1);
        let (of, id) = (library.clone(), id.clone());
        let join = move || {
            let made = attach().and_then(|()| DeviceCommunicator::made(of, &id, seat));
            let _ = send.send(made);
        };
        let thread = thread::Builder::new().name("yirage-collectives".into()).spawn(join);
        thread.map_err(|error| refused(format!("no thread for it: {error}")))?;
        match receive.recv_timeout(deadline) {
            Ok(made) => made.map_err(refused),
            Err(RecvTimeoutError::Timeout) => Err(refused(format!(
                "not all ranks have come within {deadline:.1?}; see what the others say, or raise the deadline"
            ))),
            Err(RecvTimeoutError::Disconnected) => Err(refused("the thread that joins has ended".into())),
        }
    }

    fn made(library: Arc<DeviceCollectives>, id: &GroupId, seat: DeviceSeat) -> Result<DeviceCommunicator, String> {
        let DeviceSeat { rank, ranks, ordinal } = seat;
        let mut made = null_mut();
        // SAFETY: the identity has as many bytes as the library's has, and a communicator is written to `made`.
        let code = unsafe {
            match library.functions.identity {
                IdentityCalls::Unique { join, .. } => {
                    let mut unique = UniqueId([0; 128]);
                    unique.0.copy_from_slice(id.bytes());
                    join(&mut made, ranks as i32, unique, rank as i32)
                }
                IdentityCalls::Clique { join, .. } => {
                    // Its last number asks for an address that 8 divides.
                    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
                    let words: Vec<u64> = id.bytes().chunks_exact(8).map(word).collect();
                    let (device, own) = (ordinal as i32, rank as i32);
                    join(&mut made, 1, &device, &own, ranks as i32, words.as_ptr().cast())
                }
                IdentityCalls::RootInfo { join, .. } => join(ranks as u32, id.bytes().as_ptr(), rank as u32, &mut made),
            }
        };
        if code != 0 || made.is_null() {
            return Err(format!("{} ({code}); see what the other ranks say", library.said(code)));
        }
        let state =
            CommunicatorState { communicator: RawCommunicator(made), submitted: 0, last: NOTHING, given_up: None };
        Ok(DeviceCommunicator { library, seat, state: Mutex::new(state) })
    }

    /// Which rank this is.
    pub fn seat(&self) -> DeviceSeat {
        self.seat
    }

    /// Whose collectives these are.
    pub fn library(&self) -> &Arc<DeviceCollectives> {
        &self.library
    }

    fn state(&self) -> MutexGuard<'_, CommunicatorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a collective into a stream, behind what stands there.
    ///
    /// # Safety
    /// `stream` is one of this device's driver, which has the elements until it has come behind this; nothing else writes to
    /// them until then. `from` and `to` hold as many as the collective gives and gets.
    ///
    /// # Errors
    /// [`CollectiveError::Argument`], of which nothing was submitted; else what ends the communicator.
    pub unsafe fn submit(
        &self,
        kind: CollectiveKind,
        elements: DeviceElements,
        stream: *mut c_void,
    ) -> Result<CommCall, CollectiveError> {
        let mut state = self.state();
        self.is_usable(&state)?;
        self.check(kind, &elements)?;
        let DeviceElements { element, rows, width, .. } = elements;
        let count = (rows * width) as u64;
        let at = CommCall { sequence: state.submitted, kind, element, count, label: 0 };
        if count == 0 {
            return Ok(at);
        }
        let submission =
            Submission { library: &self.library, communicator: state.communicator.0, stream, seat: self.seat };
        // SAFETY: that of `DeviceCommunicator::submit`, which the caller keeps, is all that `Submission::submit` asks for.
        let done = unsafe { submission.submit(kind, &elements) };
        state.submitted += 1;
        state.last = at;
        match done {
            Ok(()) => Ok(at),
            Err(DoneWrong::Argument(why)) => Err(CollectiveError::Argument(why)),
            Err(DoneWrong::Code { call, code }) => {
                let DeviceSeat { rank, ranks, .. } = self.seat;
                let (title, said) = (self.library.row.title, self.library.said(code));
                Err(self.give_up(&mut state, CollectiveError::Call { title, rank, ranks, at, call, code, said }))
            }
        }
    }

    /// What fits the group and the library.
    fn check(&self, kind: CollectiveKind, elements: &DeviceElements) -> Result<(), CollectiveError> {
        let DeviceSeat { rank, ranks, .. } = self.seat;
        let wrong = |why: String| Err(CollectiveError::Argument(format!("{}: {kind}: {why}", self.library.row.title)));
        let row_by_row = matches!(kind, CollectiveKind::AllGather | CollectiveKind::ReduceScatter(_));
        if !row_by_row && elements.rows != 1 {
            return wrong(format!("expected one row, got {}: its rows are one", elements.rows));
        }
        match kind {
            CollectiveKind::AllReduce(op) => self.library.row.operation(op).map(drop),
            CollectiveKind::ReduceScatter(op) if elements.width.is_multiple_of(ranks) => {
                self.library.row.operation(op).map(drop)
            }
            CollectiveKind::ReduceScatter(_) => {
                wrong(format!("expected rows of a multiple of {ranks} elements, got {}", elements.width))
            }
            CollectiveKind::Broadcast { root: peer } | CollectiveKind::Shift { by: peer } => match peer as usize {
                peer if peer < ranks => Ok(()),
                peer => wrong(format!("expected a rank below {ranks}, got {peer}")),
            },
            CollectiveKind::Send { to: peer } | CollectiveKind::Recv { from: peer } => match peer as usize {
                peer if peer == rank => wrong(format!("rank {rank} has no message for itself")),
                peer if peer < ranks => Ok(()),
                peer => wrong(format!("expected a rank below {ranks}, got {peer}")),
            },
            CollectiveKind::AllGather => Ok(()),
            CollectiveKind::Barrier => wrong("it has no elements: let the ranks meet on the host".into()),
        }
    }

    fn is_usable(&self, state: &CommunicatorState) -> Result<(), CollectiveError> {
        let (title, rank) = (self.library.row.title, self.seat.rank);
        match &state.given_up {
            Some(why) => Err(CollectiveError::GivenUp { title, rank, why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Asks whether what was submitted goes well so far: to be asked by whoever waits for the stream.
    ///
    /// # Errors
    /// [`CollectiveError::Failed`], by which the communicator is ended: then the stream comes to its end.
    pub fn is_well(&self) -> Result<(), CollectiveError> {
        let mut state = self.state();
        self.is_usable(&state)?;
        let of = state.communicator.0;
        let mut said = 0;
        // SAFETY: the communicator is one of this library's that is not ended, and a number is written to `said`.
        let answer = unsafe {
            match self.library.functions.failed {
                FailedCall::Written(ask) => match ask(of, &mut said) {
                    0 => said,
                    code => code,
                },
                FailedCall::Returned(ask) => ask(of),
            }
        };
        if answer == 0 || self.is_in_progress(answer) {
            return Ok(());
        }
        let (DeviceSeat { rank, ranks, .. }, at) = (self.seat, state.last);
        let (title, said) = (self.library.row.title, self.library.said(answer));
        Err(self.give_up(&mut state, CollectiveError::Failed { title, rank, ranks, at, code: answer, said }))
    }

    /// `ncclInProgress`, `CNCL_RET_ASYNC_IN_PROGRESS`.
    fn is_in_progress(&self, answer: i32) -> bool {
        match self.library.functions.identity {
            IdentityCalls::Unique { .. } => answer == 7,
            IdentityCalls::Clique { .. } => answer == 6,
            IdentityCalls::RootInfo { .. } => false,
        }
    }

    /// Ends the communicator because the stream has not come to its end in time; what still stands in the stream ends where the
    /// library can do so.
    pub fn is_late(&self, waited: Duration) -> CollectiveError {
        let mut state = self.state();
        if let Err(error) = self.is_usable(&state) {
            return error;
        }
        let (DeviceSeat { rank, ranks, .. }, at) = (self.seat, state.last);
        let error = CollectiveError::Deadline { title: self.library.row.title, rank, ranks, at, waited };
        self.give_up(&mut state, error)
    }

    /// Takes part in nothing any more, and lets go of what waits for others.
    pub fn abort(&self, why: &str) {
        let mut state = self.state();
        if self.is_usable(&state).is_ok() {
            let (title, rank) = (self.library.row.title, self.seat.rank);
            self.give_up(&mut state, CollectiveError::GivenUp { title, rank, why: why.to_owned() });
        }
    }

    fn give_up(&self, state: &mut CommunicatorState, error: CollectiveError) -> CollectiveError {
        state.given_up = Some(error.to_string());
        if let Some(abort) = self.library.functions.abort {
            // SAFETY: the communicator is not ended, and `given_up` says from now on that it is.
            unsafe { abort(state.communicator.0) };
            state.communicator.0 = null_mut();
        }
        error
    }
}

impl Drop for DeviceCommunicator {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Of a library that can end nothing, what waits for others is left where it is: whoever ends it would wait as well.
        if state.given_up.is_none() {
            // SAFETY: the communicator is not ended. What was submitted with it is behind, or is waited for here.
            unsafe { (self.library.functions.leave)(state.communicator.0) };
        }
    }
}

impl fmt::Debug for DeviceCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} by {}", self.seat.rank, self.seat.ranks, self.library.title())
    }
}

/// Why a collective was not submitted.
enum DoneWrong {
    Argument(String),
    Code { call: &'static str, code: i32 },
}

fn checked(call: &'static str, code: i32) -> Result<(), DoneWrong> {
    if code == 0 { Ok(()) } else { Err(DoneWrong::Code { call, code }) }
}

/// A communicator and the stream that it is to put something into.
struct Submission<'a> {
    library: &'a DeviceCollectives,
    communicator: CollectiveHandle,
    stream: CollectiveHandle,
    seat: DeviceSeat,
}

impl Submission<'_> {
    /// # Safety
    /// As of [`DeviceCommunicator::submit`].
    unsafe fn submit(&self, kind: CollectiveKind, elements: &DeviceElements) -> Result<(), DoneWrong> {
        let DeviceElements { element, width, from, to, .. } = *elements;
        let (row, functions) = (self.library.row, &self.library.functions);
        let (names, ranks) = (&row.names, self.seat.ranks);
        let (of, stream, number) = (self.communicator, self.stream, row.element(element));
        let (give, get) = (from as *const c_void, to as *mut c_void);
        let operation = |op| row.operation(op).map_err(|error| DoneWrong::Argument(error.to_string()));
        // SAFETY: `DeviceCommunicator::submit` asks its caller for the elements and the stream; `check` has seen the ranks.
        unsafe {
            match kind {
                CollectiveKind::AllReduce(op) => {
                    let code = (functions.all_reduce)(give, get, width, number, operation(op)?, of, stream);
                    checked(names.all_reduce, code)
                }
                CollectiveKind::AllGather => self.row_by_row(elements, [width, width * ranks], |give, get| {
                    checked(names.all_gather, (functions.all_gather)(give, get, width, number, of, stream))
                }),
                CollectiveKind::ReduceScatter(op) => {
                    let (part, op) = (width / ranks, operation(op)?);
                    self.row_by_row(elements, [width, part], |give, get| {
                        let code = (functions.reduce_scatter)(give, get, part, number, op, of, stream);
                        checked(names.reduce_scatter, code)
                    })
                }
                CollectiveKind::Broadcast { root } => {
                    let code = match functions.broadcast {
                        BroadcastCall::FromTo(call) => call(get, get, width, number, root as i32, of, stream),
                        BroadcastCall::InPlace(call) => call(get, width, number, root as i32, of, stream),
                    };
                    checked(names.broadcast, code)
                }
                CollectiveKind::Shift { by } => self.shift(by as usize, elements),
                CollectiveKind::Send { to: peer } => self.send(peer as usize, elements),
                CollectiveKind::Recv { from: peer } => self.recv(peer as usize, elements),
                CollectiveKind::Barrier => Err(DoneWrong::Argument("a barrier has no elements".into())),
            }
        }
    }

    /// Each row by itself: of so many elements one is given, of so many the other is got.
    fn row_by_row(
        &self,
        elements: &DeviceElements,
        [give, get]: [usize; 2],
        call: impl Fn(*const c_void, *mut c_void) -> Result<(), DoneWrong>,
    ) -> Result<(), DoneWrong> {
        let bytes = elements.element.bytes();
        let at = |row: usize| (elements.from + (row * give * bytes) as u64, elements.to + (row * get * bytes) as u64);
        let submit = |row: usize| {
            let (from, to) = at(row);
            call(from as *const c_void, to as *mut c_void)
        };
        if elements.rows == 1 {
            return submit(0);
        }
        self.as_one(|| (0..elements.rows).try_for_each(submit))
    }

    /// Calls that are one where the library has such.
    fn as_one(&self, calls: impl FnOnce() -> Result<(), DoneWrong>) -> Result<(), DoneWrong> {
        let (Some([begin, end]), Some(names)) = (self.library.functions.group, self.library.row.names.group) else {
            return calls();
        };
        // SAFETY: a group that is begun is ended on this thread, whatever happens between.
        unsafe {
            checked(names[0], begin())?;
            let done = calls();
            let ended = checked(names[1], end());
            done.and(ended)
        }
    }

    /// What every rank has goes to the rank so far behind it. Without groups of calls a rank that sends first waits until it is
    /// received from, so along each ring every other rank receives first.
    ///
    /// # Safety
    /// As of [`DeviceCommunicator::submit`].
    unsafe fn shift(&self, by: usize, elements: &DeviceElements) -> Result<(), DoneWrong> {
        let DeviceSeat { rank, ranks, .. } = self.seat;
        let (next, before) = ((rank + by) % ranks, (rank + ranks - by) % ranks);
        if by == 0 {
            return Err(DoneWrong::Argument("a shift by 0 moves nothing: copy it".into()));
        }
        // SAFETY: `Submission::send` and `Submission::recv` ask for what `DeviceCommunicator::submit` asks for.
        let (send, recv) = (|| unsafe { self.send(next, elements) }, || unsafe { self.recv(before, elements) });
        if self.library.functions.group.is_some() {
            return self.as_one(|| send().and_then(|()| recv()));
        }
        // The place of this rank along its ring, which begins at the smallest rank of it.
        let first = rank % greatest_common_divisor(by, ranks);
        let place = (0..ranks).position(|steps| (first + steps * by) % ranks == rank).unwrap_or(0);
        if place.is_multiple_of(2) { send().and_then(|()| recv()) } else { recv().and_then(|()| send()) }
    }

    /// # Safety
    /// As of [`DeviceCommunicator::submit`].
    unsafe fn send(&self, peer: usize, elements: &DeviceElements) -> Result<(), DoneWrong> {
        let DeviceElements { element, width, from, .. } = *elements;
        let number = self.library.row.element(element);
        let (call, at) = (self.library.functions.send, from as *mut c_void);
        // SAFETY: `DeviceCommunicator::submit` asks for the elements and the stream; the library reads there alone.
        let code = unsafe { call(at, width, number, peer as i32, self.communicator, self.stream) };
        checked(self.library.row.names.send, code)
    }

    /// # Safety
    /// As of [`DeviceCommunicator::submit`].
    unsafe fn recv(&self, peer: usize, elements: &DeviceElements) -> Result<(), DoneWrong> {
        let DeviceElements { element, width, to, .. } = *elements;
        let number = self.library.row.element(element);
        let (call, at) = (self.library.functions.recv, to as *mut c_void);
        // SAFETY: `DeviceCommunicator::submit` asks for the elements, which nobody else reads or writes, and the stream.
        let code = unsafe { call(at, width, number, peer as i32, self.communicator, self.stream) };
        checked(self.library.row.names.recv, code)
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
