//! Pictures as Python has them: names of files, files' bytes, Pillow's images, and NumPy's arrays.
//!
//! This module knows neither prompts nor conversations.

use crate::failure::{Class, PyFailure, PyOutcome};
use crate::kind::ArrayKind;
use crate::numbers::kind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use yirage_image::RgbImage;
use yirage_session::PreparedPicture;
use yirage_session::{ModelHandle, SessionError};

/// The pictures of an argument that is one or a list of them.
///
/// # Errors
/// A `RequestError` for what is no picture, and for models that read none.
pub(super) fn pictures(given: &Bound<'_, PyAny>, model: &ModelHandle) -> PyOutcome<Vec<Arc<PreparedPicture>>> {
    if let Ok(list) = given.cast::<PyList>() {
        return list.iter().map(|one| picture(&one, model)).collect();
    }
    if let Ok(tuple) = given.cast::<PyTuple>() {
        return tuple.iter().map(|one| picture(&one, model)).collect();
    }
    Ok(vec![picture(given, model)?])
}

/// A picture: the name of a file, a file's bytes, an image of Pillow or an array of NumPy.
///
/// # Errors
/// As [`pictures`].
pub(super) fn picture(given: &Bound<'_, PyAny>, model: &ModelHandle) -> PyOutcome<Arc<PreparedPicture>> {
    let (py, reader) = (given.py(), model.pictures()?);
    if let Ok(bytes) = given.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return Ok(py.detach(|| reader.read(bytes))?);
    }
    if let Ok(bytes) = given.cast::<PyByteArray>() {
        let bytes = bytes.to_vec();
        return Ok(py.detach(|| reader.read(&bytes))?);
    }
    if is_of_pillow(given)? {
        return prepared(of_pillow(given)?, model, py);
    }
    if ArrayKind::of(given)? == ArrayKind::Numpy {
        return prepared(of_numpy(given)?, model, py);
    }
    match given.extract::<PathBuf>() {
        Ok(path) => py.detach(|| reader.open(&path)).map_err(|error| match error {
            SessionError::File(why) => PyFailure::Ours(Class::Request, why.to_string()),
            error => error.into(),
        }),
        Err(_) => {
            let wanted = "the name of a file, a file's bytes, an image of Pillow or an array of NumPy is wanted";
            Err(PyFailure::Ours(Class::Request, format!("the picture is a `{}`: {wanted}", kind(given))))
        }
    }
}

/// The picture at a `data:` URL.
///
/// # Errors
/// As [`pictures`]; any other URL.
pub(super) fn of_url(url: &str, model: &ModelHandle, py: Python<'_>) -> PyOutcome<Arc<PreparedPicture>> {
    let refused = |why: String| PyFailure::Ours(Class::Request, why);
    let Some((_, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) else {
        let shown: String = url.chars().take(60).collect();
        let instead = "give data:image/png;base64,..., or {'type': 'image_pil', 'image_pil': the picture}";
        return Err(refused(format!("the picture's URL {shown:?}: nothing is fetched; {instead}")));
    };
    let file = STANDARD.decode(data).map_err(|e| refused(format!("the picture's URL is no base64: {e}")))?;
    let reader = model.pictures()?;
    Ok(py.detach(|| reader.read(&file))?)
}

fn prepared(image: RgbImage, model: &ModelHandle, py: Python<'_>) -> PyOutcome<Arc<PreparedPicture>> {
    let reader = model.pictures()?;
    Ok(py.detach(|| reader.prepare(image))?)
}

/// Whether an object is an image of Pillow, without importing it.
fn is_of_pillow(given: &Bound<'_, PyAny>) -> PyOutcome<bool> {
    let modules = given.py().import("sys")?.getattr("modules")?;
    let pillow = modules.call_method1("get", ("PIL.Image",))?;
    match pillow.getattr_opt("Image")? {
        Some(class) => Ok(given.is_instance(&class)?),
        None => Ok(false),
    }
}

/// What is not opaque lies over white, as in files.
fn of_pillow(image: &Bound<'_, PyAny>) -> PyOutcome<RgbImage> {
    let mode: String = image.getattr("mode")?.extract()?;
    let (image, channels) =
        if mode == "RGB" { (image.clone(), 3) } else { (image.call_method1("convert", ("RGBA",))?, 4) };
    let (width, height): (u32, u32) = image.getattr("size")?.extract()?;
    let samples = image.call_method0("tobytes")?;
    let samples = samples.cast::<PyBytes>().map_err(PyErr::from)?;
    of_samples([width, height], samples.as_bytes(), channels)
}

fn of_numpy(array: &Bound<'_, PyAny>) -> PyOutcome<RgbImage> {
    let shape: Vec<u32> = array.getattr("shape")?.extract()?;
    let dtype = array.getattr("dtype")?.str()?.to_string();
    let (sides, channels) = match (shape.as_slice(), dtype.as_str()) {
        (&[height, width], "uint8") => ([width, height], 1),
        (&[height, width, channels @ (1 | 3 | 4)], "uint8") => ([width, height], channels as usize),
        _ => {
            let wanted = "uint8 of rows, columns, and 1, 3 or 4 channels is wanted";
            let text = format!("the picture is an array of {dtype} with the shape {shape:?}: {wanted}");
            return Err(PyFailure::Ours(Class::Request, text));
        }
    };
    let samples = array.call_method0("tobytes")?;
    let samples = samples.cast::<PyBytes>().map_err(PyErr::from)?;
    of_samples(sides, samples.as_bytes(), channels)
}

fn of_samples([width, height]: [u32; 2], samples: &[u8], channels: usize) -> PyOutcome<RgbImage> {
    Ok(RgbImage::from_samples(width, height, samples, channels).map_err(SessionError::from)?)
}
