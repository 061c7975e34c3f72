//! Lines for people, through Python's `logging`: the logger `yirage`, whose level is `YIRAGE_LOG_LEVEL` where that is set.
//!
//! The variable is read for each line, so that a program may set it after the import.

use pyo3::prelude::*;
use std::sync::Mutex;

/// How much a line matters, as `logging` numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    Debug = 10,
    Info = 20,
    Warning = 30,
}

const VARIABLE: &str = "YIRAGE_LOG_LEVEL";
const LEVELS: [(&str, u8); 6] =
    [("DEBUG", 10), ("INFO", 20), ("WARNING", 30), ("WARN", 30), ("ERROR", 40), ("CRITICAL", 50)];

/// The value that the logger has its level from.
static LEVEL_SOURCE: Mutex<Option<String>> = Mutex::new(None);

/// Says a line.
///
/// # Errors
/// What a handler of the program raises.
pub(crate) fn say(py: Python<'_>, level: Level, text: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("yirage",))?;
    follow(py, &logger)?;
    logger.call_method1("log", (level as u8, "%s", text))?;
    Ok(())
}

/// Says several.
///
/// # Errors
/// As [`say`].
pub(crate) fn all(py: Python<'_>, level: Level, lines: &[String]) -> PyResult<()> {
    lines.iter().try_for_each(|line| say(py, level, line))
}

/// Gives the logger the level that the variable asks for, once for each of its values.
fn follow(py: Python<'_>, logger: &Bound<'_, PyAny>) -> PyResult<()> {
    let value = std::env::var(VARIABLE).ok();
    {
        let mut seen = LEVEL_SOURCE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *seen == value {
            return Ok(());
        }
        seen.clone_from(&value);
    }
    let Some(value) = value else { return Ok(()) };
    let logging = py.import("logging")?;
    let known = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&value));
    let level = known.map_or(Level::Warning as u8, |&(_, level)| level);
    logger.call_method1("setLevel", (level,))?;
    // Who asks for lines sees them: a program that has set up `logging` gets them there.
    if !logger.call_method0("hasHandlers")?.extract::<bool>()? {
        let handler = logging.getattr("StreamHandler")?.call0()?;
        let format = "%(levelname)s %(name)s: %(message)s";
        handler.call_method1("setFormatter", (logging.getattr("Formatter")?.call1((format,))?,))?;
        logger.call_method1("addHandler", (handler,))?;
    }
    if known.is_none() {
        let names = LEVELS.map(|(name, _)| name).join(", ");
        let text = format!("{VARIABLE}={value:?} is no level, and WARNING is taken: use one of {names}");
        logger.call_method1("warning", ("%s", text))?;
    }
    Ok(())
}
