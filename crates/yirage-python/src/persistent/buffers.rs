//! The metadata in arrays of the program: read before a call, and written where they lie while it runs.

use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use yirage_dlpack::{InPlace, Number};
use yirage_persistent::{MetaData, MetaTensor, MetaTensors};

/// Arrays by the names of metadata tensors.
pub(super) struct MetaBuffers {
    /// As Python has them: a ``dict``.
    dict: Py<PyDict>,
    step: InPlace,
    tokens: InPlace,
    prompt_lengths: Option<InPlace>,
    num_new_tokens: Option<InPlace>,
    /// Buffers of Mirage's kernel, of which nothing is read.
    others: Vec<String>,
}

/// The names of a list's members, in order.
const LISTED: [&str; 4] = ["step", "tokens", "prompt_lengths", "num_new_tokens"];

/// Mirage's name of the table of pages.
const PAGES: &str = "paged_kv_indices_buffer";

impl MetaBuffers {
    /// The arrays of a list or a ``dict``.
    ///
    /// # Errors
    /// An `ArrayError` for what is no such array, what must not be written, and too many members of a list.
    pub(super) fn of(given: &Bound<'_, PyAny>) -> PyOutcome<MetaBuffers> {
        let named = match given.cast::<PyDict>() {
            Ok(dict) => dict.copy()?,
            Err(_) => listed(given)?,
        };
        MetaBuffers::named(named)
    }

    /// One request whose only token is 0, in memory of Python's own.
    pub(super) fn fresh(py: Python<'_>, positions: u32) -> PyOutcome<MetaBuffers> {
        let builtins = py.import("builtins")?;
        let zeros = |bytes: u64| builtins.call_method1("memoryview", (builtins.call_method1("bytearray", (bytes,))?,));
        let named = PyDict::new(py);
        named.set_item("step", zeros(4)?.call_method1("cast", ("i",))?)?;
        let tokens = zeros(u64::from(positions) * 8)?;
        named.set_item("tokens", tokens.call_method1("cast", ("q", (1, positions)))?)?;
        MetaBuffers::named(named)
    }

    fn named(named: Bound<'_, PyDict>) -> PyOutcome<MetaBuffers> {
        let mut buffers = [const { None }; LISTED.len()];
        let mut others = Vec::new();
        for (key, value) in named.iter() {
            let name: String = key.extract()?;
            match LISTED.iter().position(|known| *known == name) {
                Some(_) if value.is_none() => {}
                Some(at) => buffers[at] = Some(array(&value, &name, at < 2)?),
                None => others.push(name),
            }
        }
        let [step, tokens, prompt_lengths, num_new_tokens] = buffers;
        let missing = |name: &str| PyFailure::Ours(Class::Array, format!("metadata tensor `{name}`: it is missing"));
        let step = step.ok_or_else(|| missing("step"))?;
        let tokens = tokens.ok_or_else(|| missing("tokens"))?;
        Ok(MetaBuffers { dict: named.unbind(), step, tokens, prompt_lengths, num_new_tokens, others })
    }

    /// As Python has them.
    pub(super) fn as_dict<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.dict.bind(py).clone()
    }

    /// Whether Mirage's table of pages is among them, of which nothing is read.
    pub(super) fn has_pages(&self, py: Python<'_>) -> PyResult<bool> {
        let given = self.dict.bind(py);
        Ok(given.get_item(PAGES)?.is_some_and(|pages| !pages.is_none()))
    }

    /// Requests and positions of each, as the sizes of `tokens` say; what is no matrix has none.
    pub(super) fn sizes(&self) -> Option<(usize, usize)> {
        match *self.tokens.shape() {
            [requests, positions] => Some((requests, positions)),
            _ => None,
        }
    }

    /// What they hold now, checked.
    ///
    /// # Errors
    /// As `MetaTensors::from_named`.
    pub(super) fn read(&self) -> PyOutcome<MetaTensors> {
        let arrays = [Some(&self.step), Some(&self.tokens), self.prompt_lengths.as_ref(), self.num_new_tokens.as_ref()];
        let known = LISTED.iter().zip(arrays).filter_map(|(name, array)| array.map(|array| (*name, array)));
        let mut named = known
            .map(|(name, array)| Ok((name.to_owned(), meta_tensor(array, name)?)))
            .collect::<PyOutcome<Vec<_>>>()?;
        // Their names are the crate's to know; what they hold is not read.
        let unread = || MetaTensor { shape: vec![0], data: MetaData::Int32(Vec::new()) };
        named.extend(self.others.iter().map(|name| (name.clone(), unread())));
        Ok(MetaTensors::from_named(named)?)
    }

    /// Writes what a row has between two positions, and its step.
    fn write_row(&self, meta: &MetaTensors, row: usize, from: usize) -> bool {
        let (Some(&step), width) = (meta.step().get(row), meta.max_seq_length()) else { return true };
        let last = usize::try_from(step).unwrap_or(0);
        let first = row * width;
        let tokens =
            (from..=last).all(|at| meta.tokens().get(first + at).is_none_or(|&id| self.tokens.set_int(first + at, id)));
        tokens && self.step.set_int(row, i64::from(step))
    }

    /// Writes a request that was loaded.
    pub(super) fn write_request(&self, meta: &MetaTensors, row: usize) -> PyOutcome<()> {
        let length = meta.step().get(row).map_or(0, |&step| i64::from(step) + 1);
        let lengths = self.prompt_lengths.as_ref().is_none_or(|lengths| lengths.set_int(row, length));
        if self.write_row(meta, row, 0) && lengths {
            return Ok(());
        }
        Err(unwritten())
    }
}

/// What of the metadata is in the buffers already.
pub(super) struct Written {
    steps: Vec<i32>,
}

impl Written {
    /// All that `meta` has.
    pub(super) fn all(meta: &MetaTensors) -> Written {
        Written { steps: meta.step().to_vec() }
    }

    /// Writes what is new. Rows whose step has not moved have nothing new.
    pub(super) fn write(&mut self, meta: &MetaTensors, buffers: &MetaBuffers) -> bool {
        let moved = self.steps.iter_mut().zip(meta.step()).enumerate().filter(|(_, (old, new))| *old != *new);
        moved.fold(true, |all, (row, (old, &new))| {
            let from = usize::try_from(*old).unwrap_or(0);
            *old = new;
            buffers.write_row(meta, row, from) && all
        })
    }
}

/// Says that an array did not take what was written.
pub(super) fn unwritten() -> PyFailure {
    let text = "metadata tensors did not take what was written: their sizes or their owner's mind have changed";
    PyFailure::Ours(Class::Array, text.into())
}

fn meta_tensor(array: &InPlace, name: &str) -> PyOutcome<MetaTensor> {
    let shape = array.shape().to_vec();
    let wrong = || {
        let text = format!(
            "metadata tensor `{name}`: it is {} of shape {shape:?}, int32 or int64 is wanted",
            array.number().name()
        );
        PyFailure::Ours(Class::Array, text)
    };
    let ints = array.ints().ok_or_else(wrong)?;
    let data = match array.number() {
        Number::I32 => MetaData::Int32(ints.into_iter().map(|x| x as i32).collect()),
        Number::I64 => MetaData::Int64(ints),
        _ => return Err(wrong()),
    };
    Ok(MetaTensor { shape, data })
}

fn array(value: &Bound<'_, PyAny>, name: &str, written: bool) -> PyOutcome<InPlace> {
    let array = InPlace::taken(value, &format!("metadata tensor `{name}`"))?;
    if written && !array.writable() {
        let text = format!("metadata tensor `{name}`: it must not be written, and the kernel writes into it: copy it");
        return Err(PyFailure::Ours(Class::Array, text));
    }
    Ok(array)
}

fn listed<'py>(given: &Bound<'py, PyAny>) -> PyOutcome<Bound<'py, PyDict>> {
    let py = given.py();
    let members = if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        given.try_iter()?.collect::<PyResult<Vec<_>>>()?
    } else {
        let kind = given.get_type().name()?;
        let text = format!("meta_tensors is a `{kind}`: a list [step, tokens, ..] or a dict of names is wanted");
        return Err(PyFailure::Ours(Class::Array, text));
    };
    if members.len() > LISTED.len() {
        let text = format!(
            "metadata tensor `meta_tensors`: {} tensors are given, {} have a meaning: {}",
            members.len(),
            LISTED.len(),
            LISTED.join(", ")
        );
        return Err(PyFailure::Ours(Class::Array, text));
    }
    let named = PyDict::new(py);
    LISTED.iter().zip(members).try_for_each(|(name, member)| named.set_item(*name, member))?;
    Ok(named)
}
