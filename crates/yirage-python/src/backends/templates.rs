//! Templates of settings, by name.

use super::advice::{devices, meant};
use super::facts::name_in;
use crate::failure::{PyFailure, PyOutcome};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use yirage_advisor::Hardware;
use yirage_advisor::templates::{TEMPLATES, Template, TemplateScope, TemplateSettings};

/// The device that a template of work takes its numbers from.
fn hardware(py: Python<'_>, backend: Option<&Bound<'_, PyAny>>) -> PyOutcome<Hardware> {
    let chosen = meant(py, backend)?;
    let devices = devices(py, &chosen)?;
    let none = || PyFailure::unsupported(format!("templates for {}", chosen.name()), "it names no device");
    Ok(Hardware::from(devices.first().ok_or_else(none)?))
}

fn dict<'py>(py: Python<'py>, settings: &TemplateSettings) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("backend", &settings.backend)?;
    settings.numbers.iter().try_for_each(|&(name, value)| found.set_item(name, value))?;
    Ok(found)
}

/// The templates: what each is for, by name.
#[pyfunction]
pub(crate) fn list_templates(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    TEMPLATES.iter().try_for_each(|template| found.set_item(template.name, template.about))?;
    Ok(found)
}

/// The settings of a template: a ``dict`` that ``PersistentKernel(**settings)`` takes, with changes of some of them. A
/// template for a kind of work takes backend and workers from a device of ``backend``, or of the current backend. The number
/// of pages follows from the others unless it is among the changes.
///
/// Raises:
///     OptionError: no such template or setting, a number out of its range, two that contradict each other.
#[pyfunction]
#[pyo3(signature = (name, *, backend = None, **changes))]
pub(crate) fn get_template<'py>(
    py: Python<'py>,
    name: &str,
    backend: Option<Bound<'py, PyAny>>,
    changes: Option<Bound<'py, PyDict>>,
) -> PyOutcome<Bound<'py, PyDict>> {
    let template = Template::named(name)?;
    let hardware = match template.of {
        // It names its backend, which need not be here.
        TemplateScope::Machine(named, ..) => {
            let other = backend.as_ref().and_then(name_in).filter(|other| other != named);
            if let Some(other) = other {
                let text =
                    format!("template {name:?} is of {named}, and backend={other:?} is asked for: choose another");
                return Err(PyFailure::option(text));
            }
            hardware_of(named)
        }
        TemplateScope::Work => hardware(py, backend.as_ref())?,
    };
    let mut settings = template.settings(&hardware);
    let mut pages = None;
    for (key, value) in changes.iter().flat_map(|changes| changes.iter()) {
        let key: String = key.extract()?;
        let number = value.extract::<i64>().ok().filter(|_| !value.is_instance_of::<PyBool>());
        let wrong = || PyFailure::option(format!("{key}={}: a whole number is wanted", value));
        let number = number.ok_or_else(wrong)?;
        settings.set(&key, number)?;
        if key == "max_num_pages" {
            pages = Some(number);
        }
    }
    match pages {
        Some(pages) => settings.set("max_num_pages", pages)?,
        None => settings.fit_pages()?,
    }
    settings.check()?;
    Ok(dict(py, &settings)?)
}

/// What a template of a machine is asked with: nothing of it is read.
fn hardware_of(backend: &str) -> Hardware {
    Hardware {
        backend: backend.to_owned(),
        device: 0,
        name: String::new(),
        processors: None,
        memory_bytes: None,
        capabilities: yirage_plan::KernelCapabilities::LEAST,
    }
}

/// The name of the template for a device of ``backend``, or of the current one; with ``work`` the one for that.
#[pyfunction]
#[pyo3(signature = (work = None, *, backend = None))]
pub(crate) fn recommended_template(
    py: Python<'_>,
    work: Option<&str>,
    backend: Option<Bound<'_, PyAny>>,
) -> PyOutcome<&'static str> {
    Ok(Template::recommended(&hardware(py, backend.as_ref())?, work)?.name)
}
