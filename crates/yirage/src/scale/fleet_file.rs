//! The figures of machines that are not here, from a file.

use crate::failure::CliFailure;
use std::path::Path;
use yirage_advisor::scale::Fleet;
use yirage_mmap::read_text;

/// Most bytes of such a file.
const MOST: u64 = 1 << 20;

/// Reads a fleet.
///
/// # Errors
/// What is wrong with the file: the field, and what it may be.
pub(crate) fn read_fleet(file: &Path) -> Result<Fleet, CliFailure> {
    let wrong = |what: String| CliFailure::Other(format!("{}: {what}", file.display()));
    let text = read_text(file, MOST)?;
    let mut source = serde_json::Deserializer::from_str(&text);
    let fleet: Fleet = serde_path_to_error::deserialize(&mut source).map_err(|error| {
        let field = error.path().to_string();
        wrong(format!("`{field}`: {}", error.into_inner()))
    })?;
    source.end().map_err(|error| wrong(error.to_string()))?;
    fleet.check().map_err(|error| wrong(error.to_string()))?;
    Ok(fleet)
}
