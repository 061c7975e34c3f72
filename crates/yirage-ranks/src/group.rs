//! The collectives of plans, carried by a communicator.

use half::{bf16, f16};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_comm::{CommElement, CommError, Communicator, ReduceOp};
use yirage_ir::{DType, Format, Op};

/// What the ranks agree on where they tell each other something beside a plan's collectives.
const SHARED: u64 = u64::from_le_bytes(*b"rendezvo");

/// Why a rank has no result of a collective.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RankGroupError {
    /// The call does not fit the group.
    #[error("`{op}`: {why}")]
    Call {
        /// The op.
        op: &'static str,
        /// What does not fit.
        why: String,
    },
    /// This rank has left the group.
    #[error("this rank has left the group: {0}")]
    Left(String),
    /// The ranks run different steps.
    #[error(
        "the ranks run different steps: {0}; give all of them the same requests, options and plans in the same order"
    )]
    Steps(CommError),
    /// The ranks could not give each other what they have.
    #[error(transparent)]
    Comm(CommError),
}

impl From<CommError> for RankGroupError {
    fn from(error: CommError) -> RankGroupError {
        match error {
            CommError::Mismatch { .. } => RankGroupError::Steps(error),
            error => RankGroupError::Comm(error),
        }
    }
}

/// A step that was submitted, and how many of its collectives are still to come.
struct OpenStep {
    digest: u64,
    collectives: usize,
}

/// What a rank gives, and how it lies: so many rows of so many elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RankMatrix<'a> {
    rows: usize,
    width: usize,
    bytes: &'a [u8],
}

/// A rank's place in a group, for one collective at a time.
pub struct RankGroup {
    rank: usize,
    ranks: u32,
    place: Mutex<Result<Communicator, String>>,
    steps: Mutex<VecDeque<OpenStep>>,
}

impl RankGroup {
    /// The place that this communicator is.
    pub fn new(communicator: Communicator) -> RankGroup {
        let (rank, ranks) = (communicator.rank(), communicator.ranks() as u32);
        RankGroup { rank, ranks, place: Mutex::new(Ok(communicator)), steps: Mutex::default() }
    }

    /// This rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Gives a matrix of so many rows and columns, as bytes, and gets what the op says of all ranks' matrices.
    ///
    /// # Errors
    /// [`RankGroupError::Call`] for what is no collective of this group on such bytes; what ends a group else.
    pub fn meet(
        &self,
        op: &Op,
        dtype: DType,
        [rows, width]: [usize; 2],
        bytes: &[u8],
    ) -> Result<Vec<u8>, RankGroupError> {
        let wrong = |why: String| RankGroupError::Call { op: op.name(), why };
        if op.ranks() != Some(self.ranks) {
            return Err(wrong(format!("expected a collective of {} ranks, got {op:?}", self.ranks)));
        }
        let wanted = rows.checked_mul(dtype.row_bytes(width));
        if wanted != Some(bytes.len()) {
            return Err(wrong(format!("expected {rows} rows of {width} {dtype}, got {} bytes", bytes.len())));
        }
        let matrix = RankMatrix { rows, width, bytes };
        let mut place = self.place();
        let communicator = place.as_mut().map_err(|why| RankGroupError::Left(why.clone()))?;
        // As many elements in rows of another width are another matrix.
        communicator.set_label(self.digest_of_next().wrapping_add(width as u64));
        match dtype {
            DType::Stored(Format::F32) => run::<f32>(communicator, op, matrix),
            DType::Stored(Format::F16) => run::<f16>(communicator, op, matrix),
            DType::Stored(Format::BF16) => run::<bf16>(communicator, op, matrix),
            other => Err(wrong(format!("expected f32, f16 or bf16, got {other}"))),
        }
    }

    /// Says that this rank is about to take part in a collective that something else carries, such as a library of the device's
    /// maker, and waits until all ranks have come to the same one: what the others do is found out here, and not by waiting there.
    ///
    /// # Errors
    /// As of [`RankGroup::meet`].
    pub fn agree(&self, op: &Op, dtype: DType, [rows, width]: [usize; 2]) -> Result<(), RankGroupError> {
        let wrong = |why: String| RankGroupError::Call { op: op.name(), why };
        if op.ranks() != Some(self.ranks) {
            return Err(wrong(format!("expected a collective of {} ranks, got {op:?}", self.ranks)));
        }
        let mut what = DefaultHasher::new();
        (op, dtype, rows, width, self.digest_of_next()).hash(&mut what);
        let mut place = self.place();
        let communicator = place.as_mut().map_err(|why| RankGroupError::Left(why.clone()))?;
        communicator.set_label(what.finish());
        Ok(communicator.barrier()?)
    }

    /// What rank 0 has, on every rank. All come to this at the same place.
    ///
    /// # Errors
    /// What ends a group.
    pub fn share(&self, bytes: &mut [u8]) -> Result<(), RankGroupError> {
        self.beside_plans(|communicator| communicator.broadcast(bytes, 0))
    }

    /// Whether it is so on every rank. All come to this at the same place.
    ///
    /// # Errors
    /// What ends a group.
    pub fn all_say(&self, is_so: bool) -> Result<bool, RankGroupError> {
        let mut least = [u8::from(is_so)];
        self.beside_plans(|communicator| communicator.all_reduce(&mut least, ReduceOp::Min))?;
        Ok(least[0] == 1)
    }

    /// What the ranks give each other beside a plan's collectives. All come to this at the same place.
    ///
    /// # Errors
    /// What ends a group, and arguments that do not fit it.
    pub fn beside_plans<T>(
        &self,
        act: impl FnOnce(&mut Communicator) -> Result<T, CommError>,
    ) -> Result<T, RankGroupError> {
        let mut place = self.place();
        let communicator = place.as_mut().map_err(|why| RankGroupError::Left(why.clone()))?;
        communicator.set_label(SHARED);
        Ok(act(communicator)?)
    }

    /// How long a rank waits for the others; none once it has left the group.
    pub fn deadline(&self) -> Option<Duration> {
        self.place().as_ref().ok().map(Communicator::deadline)
    }

    /// How long each later wait for the others lasts at most.
    pub fn set_deadline(&self, deadline: Duration) {
        if let Ok(communicator) = self.place().as_mut() {
            communicator.set_deadline(deadline);
        }
    }

    /// Says what the step is that is submitted now, and how many collectives it has: ranks that meet in others are told so.
    pub(crate) fn submitted(&self, digest: u64, collectives: usize) {
        if collectives > 0 {
            self.steps().push_back(OpenStep { digest, collectives });
        }
    }

    /// The step that was submitted last is none.
    pub(crate) fn refused(&self, collectives: usize) {
        if collectives > 0 {
            self.steps().pop_back();
        }
    }

    /// The digest of the step that the next collective belongs to; 0 where nobody has submitted one.
    fn digest_of_next(&self) -> u64 {
        let mut steps = self.steps();
        let Some(step) = steps.front_mut() else { return 0 };
        step.collectives -= 1;
        let (digest, is_last) = (step.digest, step.collectives == 0);
        if is_last {
            steps.pop_front();
        }
        digest
    }

    /// Leaves the group, so that the other ranks learn it where they wait.
    pub fn leave(&self, why: &str) {
        let mut place = self.place();
        if place.is_ok() {
            *place = Err(why.to_string());
        }
    }

    fn steps(&self) -> MutexGuard<'_, VecDeque<OpenStep>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn place(&self) -> MutexGuard<'_, Result<Communicator, String>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run<T: CommElement + Default>(
    communicator: &mut Communicator,
    op: &Op,
    matrix: RankMatrix<'_>,
) -> Result<Vec<u8>, RankGroupError> {
    let RankMatrix { rows, width, bytes } = matrix;
    let mut given = vec![T::default(); rows * width];
    T::as_bytes_mut(&mut given).copy_from_slice(bytes);
    let ranks = communicator.ranks();
    let values = match op {
        Op::AllReduce(_) => {
            communicator.all_reduce(&mut given, ReduceOp::Sum)?;
            given
        }
        Op::AllGather(_) => {
            let mut parts = vec![T::default(); given.len() * ranks];
            communicator.all_gather(&given, &mut parts)?;
            exchanged(&parts, [ranks, rows, width])
        }
        Op::ReduceScatter(_) => {
            let parts = exchanged(&given, [rows, ranks, width / ranks]);
            let mut part = vec![T::default(); given.len() / ranks];
            communicator.reduce_scatter(&parts, &mut part, ReduceOp::Sum)?;
            part
        }
        Op::Broadcast(op) => {
            communicator.broadcast(&mut given, op.root as usize)?;
            given
        }
        Op::SendRecv(op) => {
            let mut got = vec![T::default(); given.len()];
            communicator.shift(&given, &mut got, op.shift as usize)?;
            got
        }
        other => return Err(RankGroupError::Call { op: other.name(), why: "it is no collective".into() }),
    };
    Ok(T::as_bytes(&values).to_vec())
}

/// `[a, b, c]` as `[b, a, c]`.
fn exchanged<T: Copy>(values: &[T], [a, b, c]: [usize; 3]) -> Vec<T> {
    let mut out = Vec::with_capacity(values.len());
    (0..b).for_each(|j| (0..a).for_each(|i| out.extend_from_slice(&values[(i * b + j) * c..][..c])));
    out
}
