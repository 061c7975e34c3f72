//! From errors of the crates below to exceptions of Python: the one place that decides which class says what.
//!
//! The classes are Python's (`yirage.exceptions`), so that one may be a `YirageError` and a `ValueError` as well.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use yirage_advisor::AdvisorError;
use yirage_advisor::templates::TemplateError;
use yirage_compile::CompileError;
use yirage_dlpack::ArrayError;
use yirage_engine::{EngineError, ForwardError};
use yirage_explain::ExplainError;
use yirage_graph::{GraphError, JsonError};
use yirage_hal::HalError;
use yirage_hub::HubError;
use yirage_model::ModelError;
use yirage_persistent::PersistentError;
use yirage_plancache::{CacheError, CallError};
use yirage_registry::RegistryError;
use yirage_session::SessionError;
use yirage_tune::TuneError;

/// A class of `yirage.exceptions`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Unsupported,
    BackendUnavailable,
    UnknownBackend,
    Graph,
    Kernel,
    Array,
    Inputs,
    Device,
    Model,
    ModelNotFound,
    Request,
    Engine,
    Option,
    Fork,
    Ranks,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Unsupported => "Unsupported",
            Class::BackendUnavailable => "BackendUnavailableError",
            Class::UnknownBackend => "UnknownBackendError",
            Class::Graph => "GraphError",
            Class::Kernel => "KernelError",
            Class::Array => "ArrayError",
            Class::Inputs => "InputNotFoundError",
            Class::Device => "DeviceError",
            Class::Model => "ModelError",
            Class::ModelNotFound => "ModelNotFoundError",
            Class::Request => "RequestError",
            Class::Engine => "EngineError",
            Class::Option => "OptionError",
            Class::Fork => "ForkError",
            Class::Ranks => "RanksError",
        }
    }
}

/// What ends a call.
#[derive(Debug)]
pub(crate) enum PyFailure {
    /// An exception of ours.
    Ours(Class, String),
    /// What Python raised.
    Raised(PyErr),
}

/// The result of what Python calls.
pub(crate) type PyOutcome<T> = Result<T, PyFailure>;

impl PyFailure {
    pub(crate) fn unsupported(what: impl std::fmt::Display, why: impl std::fmt::Display) -> PyFailure {
        PyFailure::Ours(Class::Unsupported, format!("{what} is not supported: {why}"))
    }

    pub(crate) fn option(what: impl Into<String>) -> PyFailure {
        PyFailure::Ours(Class::Option, what.into())
    }

    pub(crate) fn io(doing: &str, path: &std::path::Path, error: &std::io::Error) -> PyFailure {
        let text = format!("{}: cannot {doing}: {error}", path.display());
        PyFailure::Raised(pyo3::exceptions::PyOSError::new_err(text))
    }
}

impl From<PyErr> for PyFailure {
    fn from(error: PyErr) -> PyFailure {
        PyFailure::Raised(error)
    }
}

impl From<std::convert::Infallible> for PyFailure {
    fn from(never: std::convert::Infallible) -> PyFailure {
        match never {}
    }
}

impl From<PyFailure> for PyErr {
    fn from(failure: PyFailure) -> PyErr {
        match failure {
            PyFailure::Raised(error) => error,
            PyFailure::Ours(class, message) => Python::attach(|py| match class_of(py, class) {
                Ok(class) => PyErr::from_type(class, (message,)),
                Err(error) => error,
            }),
        }
    }
}

fn class_of(py: Python<'_>, class: Class) -> PyResult<Bound<'_, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("yirage.exceptions").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(class.name())?.cast_into::<PyType>()?)
}

macro_rules! ours {
    ($($error:ty => $class:expr;)*) => {
        $(impl From<$error> for PyFailure {
            fn from(error: $error) -> PyFailure {
                let class: fn(&$error) -> Class = $class;
                PyFailure::Ours(class(&error), error.to_string())
            }
        })*
    };
}

fn of_hal(error: &HalError) -> Class {
    match error {
        HalError::Unsupported { .. } => Class::Unsupported,
        HalError::Option { .. } => Class::Option,
        _ => Class::Device,
    }
}

fn of_compile(_: &CompileError) -> Class {
    Class::Unsupported
}

fn of_model(error: &ModelError) -> Class {
    match error {
        ModelError::Unsupported { .. } => Class::Unsupported,
        _ => Class::Model,
    }
}

fn of_call(error: &CallError) -> Class {
    match error {
        CallError::Unsupported { .. } => Class::Unsupported,
        CallError::Compile(error) => of_compile(error),
        CallError::Device(error) => of_hal(error),
        CallError::Count { .. } => Class::Inputs,
        _ => Class::Array,
    }
}

fn of_cache(error: &CacheError) -> Class {
    match error {
        CacheError::Call(error) => of_call(error),
        CacheError::Both { .. } => Class::Device,
    }
}

fn of_engine(error: &EngineError) -> Class {
    match error {
        EngineError::Device(error) => of_hal(error),
        EngineError::Model(error) => of_model(error),
        EngineError::Compile(error) => of_compile(error),
        EngineError::Forward(error) => match error {
            ForwardError::NoWeights => Class::Engine,
            ForwardError::Names { .. } | ForwardError::OtherModel { .. } => Class::Model,
            _ => Class::Request,
        },
        EngineError::Plans(error) => of_cache(error),
        EngineError::WouldNotFit { .. } => Class::Device,
        _ => Class::Request,
    }
}

ours! {
    GraphError => |error| match error {
        GraphError::Unsupported { .. } => Class::Unsupported,
        _ => Class::Graph,
    };
    JsonError => |_| Class::Graph;
    CallError => of_call;
    CacheError => of_cache;
    CompileError => of_compile;
    HalError => of_hal;
    RegistryError => |error| match error {
        RegistryError::Unknown { .. } => Class::UnknownBackend,
        _ => Class::BackendUnavailable,
    };
    ExplainError => |error| match error {
        ExplainError::Device(error) => of_hal(error),
        ExplainError::NotMadeUp { .. } => Class::Unsupported,
    };
    TuneError => |error| match error {
        TuneError::Device(error) => of_hal(error),
        TuneError::Compile(error) => of_compile(error),
        TuneError::Option { .. } => Class::Option,
        _ => Class::Graph,
    };
    AdvisorError => |error| match error {
        AdvisorError::Device(error) => of_hal(error),
        AdvisorError::Compile(error) => of_compile(error),
        _ => Class::BackendUnavailable,
    };
    PersistentError => |error| match error {
        PersistentError::Unsupported { .. } | PersistentError::Sample(_) => Class::Unsupported,
        PersistentError::Option { .. } => Class::Option,
        PersistentError::OtherRank(_) | PersistentError::Ranks(_) => Class::Ranks,
        PersistentError::Meta { .. } | PersistentError::Tensor { .. } => Class::Array,
        PersistentError::Request { .. } | PersistentError::Sampling(_) => Class::Request,
        PersistentError::Compile(error) => of_compile(error),
        PersistentError::Engine(error) => of_engine(error),
        PersistentError::Model(error) => of_model(error),
        PersistentError::Device(error) => of_hal(error),
        _ => Class::Kernel,
    };
    TemplateError => |_| Class::Option;
    HubError => |_| Class::ModelNotFound;
    ModelError => of_model;
    EngineError => of_engine;
    SessionError => |error| match error {
        SessionError::Hub(_) => Class::ModelNotFound,
        SessionError::Model(error) => of_model(error),
        SessionError::Engine(error) => of_engine(error),
        SessionError::Gone { .. } | SessionError::Step { .. } | SessionError::Thread(_) => Class::Engine,
        SessionError::NoText { .. } | SessionError::Stop(_) | SessionError::Busy { .. } => Class::Request,
        SessionError::Chat(_) | SessionError::Tokenizer(_) => Class::Request,
        SessionError::Prompt { .. } | SessionError::Instruction => Class::Request,
        SessionError::NoPictures { .. } | SessionError::Picture(_) | SessionError::PicturePlaces { .. } => Class::Request,
        _ => Class::Model,
    };
}

impl From<ArrayError> for PyFailure {
    fn from(error: ArrayError) -> PyFailure {
        match error {
            ArrayError::Raised { what, source } => {
                PyFailure::Ours(Class::Array, format!("{what} cannot be shared: {source}"))
            }
            memory @ ArrayError::Memory { .. } => PyFailure::Ours(Class::Device, memory.to_string()),
            error => PyFailure::Ours(Class::Array, error.to_string()),
        }
    }
}
