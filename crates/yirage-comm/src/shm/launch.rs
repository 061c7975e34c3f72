//! Groups of processes of one box: their memory is made by one of them, which starts the others.

use super::region::{MAX_LOCAL_RANKS, SharedRegion};
use super::{ShmTransport, show_process};
use crate::communicator::Communicator;
use crate::error::CommError;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

/// The variable by which a process learns its rank.
const SEAT: &str = "YIRAGE_RANK_SEAT";

/// The shared memory of a group, as who starts its ranks has it.
pub struct LocalGroup {
    file: OwnedFd,
    region: Arc<SharedRegion>,
    deadline: Duration,
}

impl LocalGroup {
    /// The memory of a group of so many ranks, each of which waits for others within the deadline.
    ///
    /// # Errors
    /// [`CommError::Setup`] for no rank and for more than [`MAX_LOCAL_RANKS`], and where the system gives no memory.
    pub fn new(ranks: usize, deadline: Duration) -> Result<LocalGroup, CommError> {
        if ranks == 0 || ranks > MAX_LOCAL_RANKS {
            let why = format!("expected 1 to {MAX_LOCAL_RANKS} ranks in one box, got {ranks}");
            return Err(CommError::Setup { what: "made", why });
        }
        let (file, region) = SharedRegion::create(ranks)?;
        Ok(LocalGroup { file, region: Arc::new(region), deadline })
    }

    /// Takes a rank's place in this process.
    ///
    /// # Errors
    /// [`CommError::Setup`] for a rank that there is not, and one that was taken before.
    pub fn join(&self, rank: usize) -> Result<Communicator, CommError> {
        let transport = ShmTransport::join(self.region.clone(), rank)?;
        Ok(Communicator::new(Box::new(transport), self.deadline))
    }

    /// Starts a process that is to be a rank: it takes its place by [`RankSeat::from_environment`]. Where it ends before, the
    /// others learn that it is dead. It is killed with the thread that has started it, however that ends.
    ///
    /// # Errors
    /// [`CommError::Setup`] for a rank that there is not, and where the program cannot be started.
    pub fn spawn(&self, rank: usize, command: &mut Command) -> Result<Child, CommError> {
        let failed = |why: String| CommError::Setup { what: "joined", why };
        let ranks = self.region.ranks();
        if rank >= ranks {
            return Err(failed(format!("expected a rank below {ranks}, got {rank}")));
        }
        let file = self.file.as_raw_fd();
        command.env(SEAT, format!("{file},{rank},{}", self.deadline.as_millis()));
        let parent = std::process::id();
        // SAFETY: between the processes' parting and the program's start, calls of the system that touch no memory. The
        // descriptor is open: `self` outlives `spawn`.
        unsafe {
            command.pre_exec(move || {
                let inherited = libc::fcntl(file, libc::F_SETFD, 0);
                if inherited != 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                // Whoever was to be followed may be gone already.
                match libc::getppid() as u32 == parent {
                    true => Ok(()),
                    false => Err(std::io::Error::from_raw_os_error(libc::ESRCH)),
                }
            });
        }
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| failed(format!("rank {rank}, `{program}`: {error}")))?;
        show_process(&self.region, rank, child.id());
        Ok(child)
    }
}

/// A rank's place, as the process that was started for it finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankSeat {
    file: RawFd,
    rank: usize,
    deadline: Duration,
}

impl RankSeat {
    /// The place that this process was started for; none in one that [`LocalGroup::spawn`] has not started.
    ///
    /// # Errors
    /// [`CommError::Setup`] where the variable holds something else.
    pub fn from_environment() -> Result<Option<RankSeat>, CommError> {
        let Some(text) = std::env::var_os(SEAT) else { return Ok(None) };
        let text = text.to_string_lossy();
        let seat = RankSeat::parse(&text).ok_or_else(|| CommError::Setup {
            what: "joined",
            why: format!("expected {SEAT} of a descriptor, a rank and milliseconds, got `{text}`; unset it"),
        })?;
        Ok(Some(seat))
    }

    fn parse(text: &str) -> Option<RankSeat> {
        let mut fields = text.split(',');
        let seat = RankSeat {
            file: fields.next()?.parse().ok().filter(|fd| *fd > 2)?,
            rank: fields.next()?.parse().ok()?,
            deadline: Duration::from_millis(fields.next()?.parse().ok()?),
        };
        fields.next().is_none().then_some(seat)
    }

    /// Which rank it is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Takes the place.
    ///
    /// # Errors
    /// [`CommError::Setup`] where the memory of the group was not inherited, and where the place is taken.
    pub fn join(self) -> Result<Communicator, CommError> {
        let region = Arc::new(SharedRegion::inherited(self.file)?);
        Ok(Communicator::new(Box::new(ShmTransport::join(region, self.rank)?), self.deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::RankSeat;

    #[test]
    fn a_seat_is_three_numbers() {
        assert_eq!(RankSeat::parse("3,1,250").unwrap().rank(), 1);
        for wrong in ["", "3,1", "3,1,250,4", "1,1,250", "x,1,250", "3,-1,250"] {
            assert_eq!(RankSeat::parse(wrong), None, "{wrong}");
        }
    }
}
