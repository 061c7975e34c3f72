//! Token ids and positions of a call: tensors of anybody's, or nested lists.

use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::kind;
use pyo3::prelude::*;
use pyo3::types::PyList;

fn wrong(what: String) -> PyFailure {
    PyFailure::Ours(Class::Request, what)
}

/// Rows of numbers; one row where there is one dimension.
///
/// # Errors
/// A `RequestError` for what is none, and for rows of several lengths.
pub(super) fn rows(given: &Bound<'_, PyAny>, what: &str) -> PyOutcome<Vec<Vec<u32>>> {
    let list = if given.hasattr("tolist")? { given.call_method0("tolist")? } else { given.clone() };
    let one = list.extract::<Vec<u32>>().map(|row| vec![row]);
    let rows = one.or_else(|_| list.extract::<Vec<Vec<u32>>>()).map_err(|_| {
        let item = unfit(&list, 1).map_or(String::new(), |item| format!(", and {item} is given"));
        let kind = kind(given);
        let wanted = "whole numbers from 0 on of shape [rows, tokens] or [tokens] are wanted";
        wrong(format!("{what} is a `{kind}`: {wanted}{item}"))
    })?;
    match rows.iter().find(|row| row.len() != rows[0].len()) {
        Some(other) => {
            let (first, other) = (rows[0].len(), other.len());
            Err(wrong(format!("{what} has rows of {first} and of {other}: all rows of a call have one length")))
        }
        None => Ok(rows),
    }
}

/// The first thing of nested lists that is no number of a row.
fn unfit<'py>(given: &Bound<'py, PyAny>, depth: usize) -> Option<Bound<'py, PyAny>> {
    let list = given.cast::<PyList>().ok()?;
    list.iter().find_map(|item| match item.is_instance_of::<PyList>() {
        true => depth.checked_sub(1).map_or(Some(item.clone()), |depth| unfit(&item, depth)),
        false => item.extract::<u32>().is_err().then_some(item),
    })
}

/// The first position of each row, from all of them: one row of positions is for all rows.
///
/// # Errors
/// A `RequestError` for positions of another shape, and for those that leave some out.
pub(super) fn starts(positions: &[Vec<u32>], ids: &[Vec<u32>]) -> PyOutcome<Vec<u32>> {
    let (rows, tokens) = (ids.len(), ids.first().map_or(0, Vec::len));
    let shape = [positions.len(), positions.first().map_or(0, Vec::len)];
    if shape != [rows, tokens] && shape != [1, tokens] {
        return Err(wrong(format!("pos has the shape {shape:?}, and input_ids {:?}", [rows, tokens])));
    }
    let start = |(row, positions): (usize, &Vec<u32>)| {
        let first = positions.first().copied().unwrap_or(0);
        let expected = |at: usize| u32::try_from(at).ok().and_then(|at| first.checked_add(at));
        match positions.iter().enumerate().find(|&(at, &position)| expected(at) != Some(position)) {
            Some((at, position)) => Err(wrong(format!(
                "pos of row {row} is {position} at place {at} behind a first of {first}: the positions of a row count on"
            ))),
            None => Ok(first),
        }
    };
    let mut starts = positions.iter().enumerate().map(start).collect::<PyOutcome<Vec<u32>>>()?;
    let last = starts.last().copied().unwrap_or(0);
    starts.resize(rows, last);
    Ok(starts)
}
