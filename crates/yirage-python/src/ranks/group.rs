//! Collectives of a program among its processes.

use super::place::{place, seconds};
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::process;
use half::{bf16, f16};
use pyo3::prelude::*;
use std::sync::Arc;
use yirage_comm::{CommElement, CommError, Communicator, ReduceOp};
use yirage_dlpack::{InPlace, Number, PyTensor};
use yirage_ir::{DType, Dim, Format, Type};
use yirage_ranks::{RankGroup, RankGroupError};

/// A process's place among those that were started with it.
///
/// Arrays are float32, float16, bfloat16 or int32; all ranks call the same with the same shapes, and results are new tensors.
#[pyclass(name = "ProcessGroup", frozen, module = "yirage")]
pub(crate) struct ProcessGroup(Arc<RankGroup>);

/// What is done with the elements of a rank, and how many come of them.
enum Exchange {
    AllReduce(ReduceOp),
    AllGather,
    ReduceScatter(ReduceOp),
    Broadcast(usize),
    Send(usize),
    Recv(usize),
}

fn of_group(error: RankGroupError) -> PyFailure {
    match error {
        RankGroupError::Comm(CommError::Argument(why)) => PyFailure::option(why),
        error => PyFailure::Ours(Class::Ranks, error.to_string()),
    }
}

fn operation(name: &str) -> PyOutcome<ReduceOp> {
    let wanted = || ReduceOp::ALL.map(|op| format!("'{}'", op.name())).join(", ");
    let found = ReduceOp::ALL.into_iter().find(|op| op.name() == name);
    found.ok_or_else(|| PyFailure::option(format!("op={name:?}: one of {} is wanted", wanted())))
}

/// The elements that come of an exchange.
fn exchanged<T: CommElement + Default>(
    communicator: &mut Communicator,
    what: &Exchange,
    bytes: &[u8],
) -> Result<Vec<u8>, CommError> {
    let mut given = vec![T::default(); bytes.len() / size_of::<T>()];
    T::as_bytes_mut(&mut given).copy_from_slice(bytes);
    let ranks = communicator.ranks();
    match what {
        Exchange::AllReduce(op) => communicator.all_reduce(&mut given, *op)?,
        Exchange::AllGather => {
            let mut all = vec![T::default(); given.len() * ranks];
            communicator.all_gather(&given, &mut all)?;
            given = all;
        }
        Exchange::ReduceScatter(op) => {
            let mut part = vec![T::default(); given.len() / ranks];
            communicator.reduce_scatter(&given, &mut part, *op)?;
            given = part;
        }
        Exchange::Broadcast(root) => communicator.broadcast(&mut given, *root)?,
        Exchange::Send(to) => communicator.send(&given, *to)?,
        Exchange::Recv(from) => communicator.recv(&mut given, *from)?,
    }
    Ok(T::as_bytes(&given).to_vec())
}

impl ProcessGroup {
    fn exchange(
        &self,
        py: Python<'_>,
        what: &Exchange,
        dtype: DType,
        shape: Vec<u32>,
        bytes: &[u8],
    ) -> PyOutcome<PyTensor> {
        process::check()?;
        let ranks = self.0.ranks();
        let rows = shape.first().copied().unwrap_or(1);
        let mut made = shape.clone();
        match what {
            Exchange::AllGather if made.is_empty() => made.push(ranks),
            Exchange::AllGather => made[0] = rows.saturating_mul(ranks),
            Exchange::ReduceScatter(_) if shape.is_empty() || !rows.is_multiple_of(ranks) => {
                let why =
                    format!("reduce_scatter: rows of a multiple of {ranks} are wanted, and the shape is {shape:?}");
                return Err(PyFailure::Ours(Class::Array, why));
            }
            Exchange::ReduceScatter(_) => made[0] = rows / ranks,
            _ => {}
        }
        let done = py.detach(|| {
            self.0.beside_plans(|communicator| match dtype {
                DType::Stored(Format::F16) => exchanged::<f16>(communicator, what, bytes),
                DType::Stored(Format::BF16) => exchanged::<bf16>(communicator, what, bytes),
                DType::I32 => exchanged::<i32>(communicator, what, bytes),
                _ => exchanged::<f32>(communicator, what, bytes),
            })
        });
        let bytes = done.map_err(of_group)?;
        Ok(PyTensor::of(&Type::new(dtype, made.into_iter().map(Dim::Const)), &bytes)?)
    }

    fn of_array(&self, py: Python<'_>, what: &Exchange, array: &Bound<'_, PyAny>) -> PyOutcome<PyTensor> {
        let array = InPlace::taken(array, "the tensor of a collective")?;
        let dtype = match array.number() {
            Number::F32 => DType::F32,
            Number::F16 => DType::Stored(Format::F16),
            Number::BF16 => DType::Stored(Format::BF16),
            Number::I32 => DType::I32,
            other => {
                let why = format!(
                    "the tensor of a collective has elements of type {}: float32, float16, bfloat16 or int32 are wanted",
                    other.name()
                );
                return Err(PyFailure::Ours(Class::Array, why));
            }
        };
        let shape = array.shape().iter().map(|&n| n as u32).collect();
        self.exchange(py, what, dtype, shape, &array.gathered())
    }
}

#[pymethods]
impl ProcessGroup {
    /// Takes this process's place: that of ``python -m yirage.ranks``, or of mpirun. ``deadline`` is how many seconds each wait
    /// for another rank lasts at most.
    ///
    /// Raises:
    ///     RanksError: a process that was started for no rank, ranks that do not come.
    ///     OptionError: another rank or another number of ranks than it was started for.
    #[staticmethod]
    #[pyo3(signature = (world_size = None, rank = None, deadline = None))]
    fn join(
        py: Python<'_>,
        world_size: Option<u32>,
        rank: Option<u32>,
        deadline: Option<f64>,
    ) -> PyOutcome<ProcessGroup> {
        let deadline = deadline.map(seconds).transpose()?;
        py.detach(|| place(world_size, rank, deadline)).map(ProcessGroup)
    }

    /// This process's rank, from 0.
    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    /// How many ranks there are.
    #[getter]
    fn world_size(&self) -> u32 {
        self.0.ranks()
    }

    /// ``'sum'``, ``'prod'``, ``'max'``, ``'min'`` or ``'avg'`` of all ranks' elements, each at its place: in f64 from rank 0 on,
    /// rounded once.
    #[pyo3(signature = (tensor, op = "sum"))]
    fn all_reduce(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>, op: &str) -> PyOutcome<PyTensor> {
        self.of_array(py, &Exchange::AllReduce(operation(op)?), tensor)
    }

    /// The rows of all ranks, rank 0's first.
    fn all_gather(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>) -> PyOutcome<PyTensor> {
        self.of_array(py, &Exchange::AllGather, tensor)
    }

    /// This rank's part of the rows of what ``all_reduce`` gives.
    #[pyo3(signature = (tensor, op = "sum"))]
    fn reduce_scatter(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>, op: &str) -> PyOutcome<PyTensor> {
        self.of_array(py, &Exchange::ReduceScatter(operation(op)?), tensor)
    }

    /// What rank ``src`` has.
    #[pyo3(signature = (tensor, src = 0))]
    fn broadcast(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>, src: usize) -> PyOutcome<PyTensor> {
        self.of_array(py, &Exchange::Broadcast(src), tensor)
    }

    /// Gives elements to a rank that receives them now, which is waited for.
    fn send(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>, dst: usize) -> PyOutcome<()> {
        self.of_array(py, &Exchange::Send(dst), tensor).map(drop)
    }

    /// Takes what a rank sends now, which is waited for.
    fn recv(&self, py: Python<'_>, shape: Vec<u32>, dtype: &str, src: usize) -> PyOutcome<PyTensor> {
        let found = yirage_dlpack::parse(dtype)
            .filter(|dtype| matches!(dtype, DType::I32 | DType::Stored(Format::F32 | Format::F16 | Format::BF16)));
        let dtype = found.ok_or_else(|| {
            let why = format!("recv: dtype {dtype}: float32, float16, bfloat16 or int32 are wanted");
            PyFailure::Ours(Class::Array, why)
        })?;
        let elements = shape.iter().try_fold(1usize, |all, &n| all.checked_mul(n as usize));
        let width = if dtype == DType::F32 || dtype == DType::I32 { 4 } else { 2 };
        let bytes = elements.and_then(|all| all.checked_mul(width)).filter(|&bytes| bytes <= isize::MAX as usize);
        let bytes =
            bytes.ok_or_else(|| PyFailure::Ours(Class::Array, format!("recv: {shape:?} is more than memory has")))?;
        self.exchange(py, &Exchange::Recv(src), dtype, shape, &vec![0; bytes])
    }

    /// Waits until all ranks are here.
    fn barrier(&self, py: Python<'_>) -> PyOutcome<()> {
        py.detach(|| self.0.beside_plans(Communicator::barrier)).map_err(of_group)
    }
}
