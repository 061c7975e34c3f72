//! Whole numbers and lists of arguments, and what is said of others. Python adds the argument's name to it as a note.

use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use yirage_graph::axis;

/// A type of whole numbers from 0 on.
pub(crate) trait UnsignedNumber: TryFrom<i128> {
    const MOST: u64;
}

impl UnsignedNumber for u32 {
    const MOST: u64 = u32::MAX as u64;
}

impl UnsignedNumber for u64 {
    const MOST: u64 = u64::MAX;
}

impl UnsignedNumber for usize {
    const MOST: u64 = usize::MAX as u64;
}

/// A whole number, or none where it is out of the type's range.
fn number<T: TryFrom<i128>>(given: &Bound<'_, PyAny>) -> PyResult<Option<T>> {
    match given.extract::<i128>() {
        Ok(number) => Ok(T::try_from(number).ok()),
        Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A whole number; one out of range is an error of this class.
pub(crate) fn within<T: UnsignedNumber>(given: &Bound<'_, PyAny>, class: Class) -> PyResult<T> {
    let wrong = || PyFailure::Ours(class, format!("{given} is given: a whole number from 0 to {} is wanted", T::MOST));
    number(given)?.ok_or_else(|| wrong().into())
}

/// Whole numbers of a list, of which each is as [`within`] has it.
pub(crate) fn all_within<T: UnsignedNumber>(given: &Bound<'_, PyAny>, class: Class) -> PyResult<Vec<T>> {
    items(given, "whole numbers")?.iter().map(|item| within(item, class)).collect()
}

/// [`within`] for an argument that is an option.
pub(crate) fn whole<T: UnsignedNumber>(given: &Bound<'_, PyAny>) -> PyResult<T> {
    within(given, Class::Option)
}

/// What `read` makes of an argument, or none.
pub(crate) fn maybe<'py, T>(
    given: &Bound<'py, PyAny>,
    read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    (!given.is_none()).then(|| read(given)).transpose()
}

/// [`within`] for the number of a device.
pub(crate) fn device_number(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    within(given, Class::Device)
}

/// [`device_number`], or none.
pub(crate) fn maybe_device_number(given: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    maybe(given, device_number)
}

/// [`whole`], or none.
pub(crate) fn maybe_whole<T: UnsignedNumber>(given: &Bound<'_, PyAny>) -> PyResult<Option<T>> {
    maybe(given, whole)
}

/// Sizes or other whole numbers of a list.
pub(crate) fn wholes<T: UnsignedNumber>(given: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    all_within(given, Class::Option)
}

/// [`wholes`], or none.
pub(crate) fn maybe_wholes<T: UnsignedNumber>(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<T>>> {
    maybe(given, wholes)
}

/// Sizes along the axes of a grid or a block.
pub(crate) fn three(given: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let sizes: Vec<u32> = wholes(given)?;
    let wrong = |sizes: Vec<u32>| PyFailure::option(format!("{sizes:?} is given: sizes of 3 axes are wanted"));
    Ok(sizes.try_into().map_err(wrong)?)
}

/// A list of [`three`], or none.
pub(crate) fn maybe_threes(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<[u32; 3]>>> {
    maybe(given, |given| items(given, "sizes of 3 axes")?.iter().map(three).collect())
}

/// A number of a dimension, which may be below 0.
fn dimension(given: &Bound<'_, PyAny>) -> PyResult<i32> {
    let wrong = || PyFailure::option(format!("{given} is given: the number of a dimension is wanted, or -1 for none"));
    number(given)?.ok_or_else(|| wrong().into())
}

/// Numbers of dimensions, or none.
pub(crate) fn maybe_dimensions(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i32>>> {
    maybe(given, |given| items(given, "numbers of dimensions")?.iter().map(dimension).collect())
}

/// For each axis of a grid the number of a dimension, in a list, or none.
pub(crate) fn maybe_maps(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<[i32; 3]>>> {
    let map = |given: &Bound<'_, PyAny>| -> PyResult<[i32; 3]> {
        let numbers: Vec<i32> =
            items(given, "3 numbers of dimensions")?.iter().map(dimension).collect::<PyResult<_>>()?;
        let wrong = |numbers: Vec<i32>| {
            PyFailure::option(format!("{numbers:?} is given: a number for each of 3 axes is wanted"))
        };
        Ok(numbers.try_into().map_err(wrong)?)
    };
    maybe(given, |given| items(given, "maps")?.iter().map(map).collect())
}

/// Strides in elements, or none. Their errors say that it is strides that are wrong.
pub(crate) fn maybe_strides(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    maybe(given, |given| {
        let items = items(given, "whole numbers")?;
        let shown = || given.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        let strides = items.iter().map(|item| match within(item, Class::Option) {
            Err(error) if !error.is_instance_of::<PyTypeError>(given.py()) => {
                Err(PyFailure::option(format!("strides {}: {}", shown(), error.value(given.py()))).into())
            }
            read => read,
        });
        strides.collect()
    })
}

/// What a list or tuple holds.
pub(crate) fn items<'py>(given: &Bound<'py, PyAny>, of: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let wrong = |_| PyTypeError::new_err(format!("a `{}` is given: a list of {of} is wanted", kind(given)));
    given.extract().map_err(wrong)
}

/// The name of an object's type.
pub(crate) fn kind(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
}

/// The size along one of a tensor's dimensions.
pub(crate) fn size_along(dims: &[u32], dim: i64, class: Class) -> PyOutcome<u32> {
    let rank = dims.len();
    let wrong = || PyFailure::Ours(class, format!("dim({dim}): the tensor has {rank} dimensions"));
    axis(rank, dim).map(|dim| dims[dim]).ok_or_else(wrong)
}
