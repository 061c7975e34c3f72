//! Ranks that this process starts on its own box: copies of one program, which live no longer than it.

use crate::group::RankGroup;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use yirage_comm::{CommError, LocalGroup};

/// How long the processes have to end by themselves.
const END: Duration = Duration::from_secs(2);

/// The processes of all ranks but the first. Dropped, they are waited for, and killed where they do not end.
pub struct LocalRanks {
    children: Vec<Child>,
}

impl LocalRanks {
    /// Starts a process for each rank but this one, which is the first, and takes its place. Each wait for others ends within
    /// the deadline. A process finds its rank by [`yirage_comm::RankSeat`]; it has no standard input or output of this one, and
    /// is in a group of processes of its own, so that what a terminal says reaches this process alone. The thread that calls
    /// this has to live as long as the ranks.
    ///
    /// # Errors
    /// [`CommError::Setup`] where a process cannot be started.
    pub fn start(
        ranks: u32,
        deadline: Duration,
        mut command: impl FnMut() -> Command,
    ) -> Result<(LocalRanks, Arc<RankGroup>), CommError> {
        let group = LocalGroup::new(ranks as usize, deadline)?;
        let mut started = LocalRanks { children: Vec::new() };
        for rank in 1..ranks as usize {
            let mut command = command();
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            started.children.push(group.spawn(rank, &mut command)?);
        }
        Ok((started, Arc::new(RankGroup::new(group.join(0)?))))
    }
}

impl Drop for LocalRanks {
    fn drop(&mut self) {
        let until = Instant::now() + END;
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(2));
            }
            // One that has ended cannot be killed, and one that is killed is waited for, so that nothing of it stays.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
