//! The transport of MPI: the library that a process was started under, found at run time.
//!
//! Only messages are used, none of the library's own collectives: each rank gets what all give and adds it in the same order
//! as with any other transport. Of a round, each rank first sends what it does to all others, and what it gives only once all
//! do the same, so the library never meets messages of different lengths. Whoever started the processes ends them when one
//! is dead.

mod abi;
mod requests;

use crate::call::{CALL_WORDS, CommCall};
use crate::communicator::Communicator;
use crate::dump::{CommDump, RankCondition, RankState};
use crate::error::CommError;
use crate::transport::{Peers, Transport, WaitLimit, agree};
use abi::{Functions, HandleAddress, HandleNumber, Handles, KnownHandles};
use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW};
use requests::{Requests, failed};
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

pub use abi::MpiAbi;

/// `MPI_THREAD_SERIALIZED`: any thread calls, one at a time.
const SERIALIZED: c_int = 2;

/// What messages are: of all ranks, and of one to another. The second of two is what is given.
const TO_ALL: [c_int; 2] = [1, 2];
/// From the sender: what it does, and what it gives.
const TO_RECEIVER: [c_int; 2] = [3, 4];
/// From the receiver: what it does.
const TO_SENDER: c_int = 5;

/// What a launcher may take to start all processes, beside the deadline of each wait.
const STARTS: Duration = Duration::from_secs(10);

/// Bytes that a rank gives in a round.
const ROUND_BYTES: usize = 1 << 20;

/// Whether this process has begun MPI: it can do so once.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// A process that `mpirun` or its like has started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MpiRanks {
    abi: Option<MpiAbi>,
    names: Vec<PathBuf>,
}

impl MpiRanks {
    /// What this process was started under, by the variables that those who start processes set; none where nobody did.
    pub fn from_environment() -> Option<MpiRanks> {
        let is_set = |name: &str| std::env::var_os(name).is_some();
        let abi = if is_set("OMPI_COMM_WORLD_SIZE") {
            MpiAbi::OpenMpi
        } else if is_set("PMI_SIZE") || is_set("PMI_RANK") {
            MpiAbi::Mpich
        } else {
            return None;
        };
        Some(MpiRanks { abi: Some(abi), names: abi.libraries().iter().map(PathBuf::from).collect() })
    }

    /// This library, of whichever family it is.
    pub fn of_library(path: &Path) -> MpiRanks {
        MpiRanks { abi: None, names: vec![path.to_path_buf()] }
    }

    /// Takes this process's place among all that were started together. A process can do so once.
    ///
    /// # Errors
    /// [`CommError::Setup`] where there is no such library, where it is of another family, lacks a function or allows no
    /// threads, where the process has done so before, and where not all ranks come within the deadline and ten seconds more.
    pub fn join(&self, deadline: Duration) -> Result<Communicator, CommError> {
        let library = self.load()?;
        let version = abi::version(&library).unwrap_or_default();
        let abi = family(&library, &version);
        match (abi, self.abi) {
            (Some(found), Some(wanted)) if found != wanted => Err(setup(format!(
                "this process was started by {wanted}, and the library is `{version}`: install {wanted}'s library, or \
                 start it by {found}'s mpirun"
            ))),
            (Some(MpiAbi::OpenMpi), _) => in_time(deadline, move || begin::<HandleAddress>(library, deadline)),
            (Some(MpiAbi::Mpich), _) => in_time(deadline, move || begin::<HandleNumber>(library, deadline)),
            (None, _) => Err(setup(format!("expected a library of Open MPI or MPICH, got `{version}`"))),
        }
    }

    fn load(&self) -> Result<Library, CommError> {
        let mut told = Vec::new();
        for name in &self.names {
            // SAFETY: an MPI library is loaded because its user asked for it, or started this process by it; what it does when
            // it is loaded is its own business. Its plug-ins look for its symbols among those of all libraries.
            match unsafe { UnixLibrary::open(Some(name), RTLD_NOW | RTLD_GLOBAL) } {
                Ok(library) => return Ok(library.into()),
                Err(error) => told.push(error.to_string()),
            }
        }
        Err(setup(format!(
            "no MPI library can be loaded: {}; install it, or put it into LD_LIBRARY_PATH",
            told.join("; ")
        )))
    }
}

/// Which family a library is of, by what it exports and says.
fn family(library: &Library, version: &str) -> Option<MpiAbi> {
    let relatives = ["MPICH", "MVAPICH", "Intel(R) MPI", "CRAY MPICH"];
    if HandleAddress::known(library).is_some() {
        return Some(MpiAbi::OpenMpi);
    }
    relatives.iter().any(|name| version.contains(name)).then_some(MpiAbi::Mpich)
}

fn setup(why: String) -> CommError {
    CommError::Setup { what: "joined", why }
}

/// Joins on a thread of its own, as MPI itself waits for all ranks without an end. One that waits on ends with the process.
fn in_time(
    deadline: Duration,
    begin: impl FnOnce() -> Result<Communicator, CommError> + Send + 'static,
) -> Result<Communicator, CommError> {
    let (joined, whether) = sync_channel(1);
    let thread = thread::Builder::new().name("yirage-joins-mpi".into());
    let start = move || {
        // Where nobody waits any more, the process is about to end.
        let _ = joined.send(begin());
    };
    thread.spawn(start).map_err(|error| setup(format!("no thread can be made that joins: {error}")))?;
    let within = deadline.saturating_add(STARTS);
    whether.recv_timeout(within).unwrap_or_else(|_| {
        let seconds = within.as_secs_f64();
        Err(setup(format!("not all ranks have come within {seconds:.0} s; is one of them stopped, or cut off?")))
    })
}

fn begin<H: Handles>(library: Library, deadline: Duration) -> Result<Communicator, CommError> {
    let lacks = |name: &str| setup(format!("the MPI library has no `{name}`: a library of MPI 3 is wanted"));
    let functions = Functions::<H>::of(&library).map_err(lacks)?;
    let known = H::known(&library).ok_or_else(|| lacks("ompi_mpi_comm_world"))?;
    // It is never unloaded: it has threads, and is called when the process ends.
    std::mem::forget(library);
    let failed = |call, code| setup(failed(&functions, call, code).to_string());
    let (mut before, mut provided, mut comm) = (0, 0, H::NONE);
    // SAFETY: calls in the order that the standard asks for, with places for what they write; arguments of a program may be
    // null.
    unsafe {
        (functions.initialized)(&raw mut before);
        if before != 0 || BEGUN.swap(true, Ordering::AcqRel) {
            return Err(setup("MPI has begun in this process already; a process is one rank".into()));
        }
        let none = std::ptr::null_mut();
        match (functions.init_thread)(none, none.cast(), SERIALIZED, &raw mut provided) {
            0 => {}
            code => return Err(failed("MPI_Init_thread", code)),
        }
        if provided < SERIALIZED {
            let why = format!("the MPI library allows threads of level {provided}, and {SERIALIZED} is wanted");
            return Err(setup(format!("{why}: one that is built with threads")));
        }
        (functions.set_errhandler)(known.world, known.errors_return);
        match (functions.dup)(known.world, &raw mut comm) {
            0 => {}
            code => return Err(failed("MPI_Comm_dup", code)),
        }
        (functions.set_errhandler)(comm, known.errors_return);
    }
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: numbers are written, of a communicator that `dup` has just made.
    unsafe {
        (functions.rank)(comm, &raw mut rank);
        (functions.size)(comm, &raw mut ranks);
    }
    let known_calls = vec![None; ranks.max(1) as usize];
    let transport = MpiTransport { functions, known, comm, rank: rank as usize, known_calls, ends_with_all: true };
    Ok(Communicator::new(Box::new(transport), deadline))
}

/// A rank's place among processes that were started together.
struct MpiTransport<H: Handles> {
    functions: Functions<H>,
    known: KnownHandles<H>,
    comm: H,
    rank: usize,
    /// What each rank did when it was last heard of.
    known_calls: Vec<Option<CommCall>>,
    /// Whether all others come to the end too, as far as this rank knows.
    ends_with_all: bool,
}

/// What a rank that is met shows, and the tags of what is sent to it and comes from it.
struct Peer {
    rank: usize,
    gives: [c_int; 2],
    shows: [c_int; 2],
}

impl<H: Handles> MpiTransport<H> {
    fn peers(&self, peers: Peers) -> Vec<Peer> {
        match peers {
            Peers::All => {
                let others = (0..self.known_calls.len()).filter(|rank| *rank != self.rank);
                others.map(|rank| Peer { rank, gives: TO_ALL, shows: TO_ALL }).collect()
            }
            Peers::To(rank) => vec![Peer { rank, gives: TO_RECEIVER, shows: [TO_SENDER; 2] }],
            Peers::From(rank) => vec![Peer { rank, gives: [TO_SENDER; 2], shows: TO_RECEIVER }],
        }
    }

    fn requests(&self) -> Requests<'_, H> {
        Requests::new(&self.functions, self.comm, self.known.bytes)
    }

    /// What the others do, each of whom is told what this rank does.
    fn calls(
        &mut self,
        peers: &[Peer],
        call: &CommCall,
        gives: usize,
        wait: WaitLimit,
    ) -> Result<Vec<usize>, CommError> {
        let words = call.words(gives);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut requests = self.requests();
        for peer in peers {
            requests.recv(peer.rank, peer.shows[0], CALL_WORDS * 8)?;
        }
        for peer in peers {
            requests.send(peer.rank, peer.gives[0], &bytes)?;
        }
        let waited = requests.finish(wait);
        let (got, missing) = waited?;
        let mut calls = vec![(self.rank, *call)];
        let mut lengths = vec![0; self.known_calls.len()];
        for (rank, bytes) in got {
            let mut words = [0; CALL_WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
            }
            let why = || format!("rank {rank} shows what no rank shows; start all ranks with one program");
            let shown = CommCall::of_words(words);
            let (call, length) = shown.ok_or_else(|| CommError::Transport { call: "a round", why: why() })?;
            if length > ROUND_BYTES {
                return Err(CommError::Transport { call: "a round", why: why() });
            }
            self.known_calls[rank] = Some(call);
            lengths[rank] = length;
            calls.push((rank, call));
        }
        if !missing.is_empty() {
            return Err(self.deadline(missing, call, wait));
        }
        calls.sort_by_key(|(rank, _)| *rank);
        agree(&calls)?;
        Ok(lengths)
    }

    /// What the others give, in the order of ranks.
    fn given(
        &mut self,
        peers: &[Peer],
        lengths: &[usize],
        call: &CommCall,
        give: &[u8],
        wait: WaitLimit,
    ) -> Result<Vec<(usize, Vec<u8>)>, CommError> {
        let mut requests = self.requests();
        for peer in peers.iter().filter(|peer| lengths[peer.rank] > 0) {
            requests.recv(peer.rank, peer.shows[1], lengths[peer.rank])?;
        }
        if !give.is_empty() {
            for peer in peers {
                requests.send(peer.rank, peer.gives[1], give)?;
            }
        }
        let (got, missing) = requests.finish(wait)?;
        match missing.is_empty() {
            true => Ok(got),
            false => Err(self.deadline(missing, call, wait)),
        }
    }

    fn deadline(&self, missing: Vec<usize>, call: &CommCall, wait: WaitLimit) -> CommError {
        let state = |(rank, known): (usize, &Option<CommCall>)| RankState {
            rank,
            process: None,
            condition: RankCondition::Running,
            call: if rank == self.rank { Some(*call) } else { *known },
            waits: !missing.contains(&rank),
            silent: None,
        };
        let states = self.known_calls.iter().enumerate().map(state).collect();
        let dump = CommDump { rank: self.rank, call: *call, states };
        CommError::Deadline { missing, waited: wait.within, dump: Box::new(dump) }
    }
}

impl<H: Handles> Transport for MpiTransport<H> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.known_calls.len()
    }

    /// Some launchers end all where one is dead, and nobody tells of one that is stopped or cut off.
    fn sees_the_dead(&self) -> bool {
        false
    }

    fn round_bytes(&self) -> usize {
        ROUND_BYTES
    }

    fn round(
        &mut self,
        peers: Peers,
        call: &CommCall,
        give: &[u8],
        wait: WaitLimit,
        take: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), CommError> {
        let met = self.peers(peers);
        let done = self.calls(&met, call, give.len(), wait);
        // All ranks know of a mismatch among all, and end together.
        self.ends_with_all &= match &done {
            Ok(_) => true,
            Err(error) => peers == Peers::All && matches!(error, CommError::Mismatch { .. }),
        };
        let given = self.given(&met, &done?, call, give, wait);
        self.ends_with_all &= given.is_ok();
        let mut given: Vec<(usize, Vec<u8>)> = given?;
        given.push((self.rank, give.to_vec()));
        given.sort_by_key(|(rank, _)| *rank);
        given.iter().for_each(|(rank, bytes)| take(*rank, bytes));
        Ok(())
    }
}

impl<H: Handles> Drop for MpiTransport<H> {
    fn drop(&mut self) {
        // A rank that waits for others at the end waits without a deadline. One that does not is ended with the others, by
        // whoever has started them.
        if self.ends_with_all {
            // SAFETY: MPI has begun, and no request is open: each was finished, or `ends_with_all` is not so.
            unsafe { (self.functions.finalize)() };
        }
    }
}
