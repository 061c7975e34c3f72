//! Where the devices of a group meet: each gives a matrix and gets what the op says of all of them. They meet in this process,
//! or each is in its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::{CollectiveCall, DriverError};
use yirage_ir::{Dims, Tensor, Type};
use yirage_ranks::RankGroup;

/// How long a rank waits for the others.
const DEADLINE: Duration = Duration::from_secs(10);

/// What a rank comes with: its matrix, or why it has none.
type Given = Result<(CollectiveCall, Tensor), String>;

/// A group of devices.
#[derive(Debug)]
pub(crate) struct SimGroup {
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Meeting {
    given: Vec<Option<Given>>,
    /// What all are given back, once the last has come; gone when all have taken it.
    results: Option<Result<Vec<Tensor>, String>>,
    taken: Vec<bool>,
    /// Why nobody meets here any more.
    over: Option<String>,
}

/// A device of a group in this process.
#[derive(Clone, Debug)]
pub(crate) struct SimGroupPlace {
    group: Arc<SimGroup>,
    rank: usize,
}

/// A device of a group.
#[derive(Clone)]
pub(crate) enum SimRank {
    /// The others are in this process.
    Here(SimGroupPlace),
    /// Each of the others is in a process of its own.
    Elsewhere(Arc<RankGroup>),
}

impl SimGroup {
    /// The ranks of a group of so many.
    pub(crate) fn ranks(count: usize) -> Vec<SimRank> {
        let (given, taken) = ((0..count).map(|_| None).collect(), vec![false; count]);
        let meeting = Mutex::new(Meeting { given, results: None, taken, over: None });
        let group = Arc::new(SimGroup { meeting, changed: Condvar::new() });
        (0..count).map(|rank| SimRank::Here(SimGroupPlace { group: group.clone(), rank })).collect()
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimRank {
    /// Gives a matrix, as bytes, or why there is none, which the others are told then; waits for what the op says.
    pub(crate) fn meet(&self, call: &CollectiveCall, bytes: Result<&[u8], String>) -> Result<Vec<u8>, DriverError> {
        match (self, bytes) {
            (SimRank::Here(place), bytes) => place.meet(call, bytes),
            (SimRank::Elsewhere(group), Ok(bytes)) => {
                let size = [call.rows as usize, call.width as usize];
                group.meet(&call.op, call.dtype, size, bytes).map_err(|error| failed(&error.to_string()))
            }
            (SimRank::Elsewhere(group), Err(why)) => {
                group.leave(&why);
                Err(failed(&why))
            }
        }
    }

    /// The rank comes no more.
    pub(crate) fn leave(&self, why: &str) {
        match self {
            SimRank::Here(place) => place.leave(why),
            SimRank::Elsewhere(group) => group.leave(why),
        }
    }
}

impl SimGroupPlace {
    /// Gives a matrix, as bytes, or why there is none, which the others are told then; waits for what the op says.
    fn meet(&self, call: &CollectiveCall, bytes: Result<&[u8], String>) -> Result<Vec<u8>, DriverError> {
        let ty = Type::new(call.dtype, [call.rows, call.width]);
        let given = bytes.map(|bytes| (call.clone(), Tensor::from_memory(&ty, &Dims::default(), bytes)));
        let mut meeting = self.group.meeting();
        // The one before may not have been left by all.
        meeting = self.wait(meeting, |meeting| meeting.results.is_none())?;
        meeting.given[self.rank] = Some(given);
        if meeting.given.iter().all(Option::is_some) {
            meeting.close();
            self.group.changed.notify_all();
        }
        meeting = self.wait(meeting, |meeting| meeting.results.is_some())?;
        let result = match &meeting.results {
            Some(Ok(results)) => Ok(results[self.rank].memory()),
            Some(Err(why)) => Err(failed(why)),
            None => Err(failed("nobody has come")),
        };
        meeting.taken[self.rank] = true;
        if meeting.taken.iter().all(|taken| *taken) {
            meeting.results = None;
            meeting.taken.fill(false);
            self.group.changed.notify_all();
        }
        result
    }

    /// The rank comes no more.
    fn leave(&self, why: &str) {
        let rank = self.rank;
        self.group.meeting().over.get_or_insert_with(|| format!("rank {rank} is gone: {why}"));
        self.group.changed.notify_all();
    }

    fn wait<'a>(
        &'a self,
        mut meeting: MutexGuard<'a, Meeting>,
        ready: impl Fn(&Meeting) -> bool,
    ) -> Result<MutexGuard<'a, Meeting>, DriverError> {
        let end = Instant::now() + DEADLINE;
        while !ready(&meeting) {
            if let Some(why) = &meeting.over {
                return Err(failed(why));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let missing = meeting.given.iter().position(Option::is_none);
                meeting.over = Some(format!("rank {missing:?} has not come in {DEADLINE:?}"));
                self.group.changed.notify_all();
                continue;
            }
            meeting = self.group.changed.wait_timeout(meeting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(meeting)
    }
}

impl Meeting {
    /// All have come.
    fn close(&mut self) {
        // All of it, so that nothing is left for the next meeting, whoever has come without a matrix.
        let given: Vec<Given> = self.given.iter_mut().filter_map(Option::take).collect();
        self.results = Some(given.into_iter().collect::<Result<Vec<_>, String>>().and_then(|given| {
            let (first, _) = given.first().ok_or("nobody takes part")?;
            let alike = |call: &CollectiveCall| {
                (&call.op, call.dtype, call.rows, call.width) == (&first.op, first.dtype, first.rows, first.width)
            };
            if let Some((other, _)) = given.iter().find(|(call, _)| !alike(call)) {
                return Err(format!("one rank is at {first:?}, another at {other:?}"));
            }
            if first.op.ranks() != Some(given.len() as u32) {
                return Err(format!(
                    "`{}` of {:?} ranks in a group of {}",
                    first.op.name(),
                    first.op.ranks(),
                    given.len()
                ));
            }
            let matrices: Vec<&Tensor> = given.iter().map(|(_, matrix)| matrix).collect();
            first.op.eval_ranks(&matrices).ok_or_else(|| format!("`{}` is no collective", first.op.name()))
        }));
    }
}

fn failed(why: &str) -> DriverError {
    DriverError::Failed { call: "collective", why: why.into() }
}
