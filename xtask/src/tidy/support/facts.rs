//! What the page reads: records of `yirage verify`, and the list of what has none.

use serde::Deserialize;

/// The form of records that is understood.
const SCHEMA: u32 = 1;

/// A record with its file's name.
#[derive(Debug)]
pub(super) struct VerifiedFile {
    /// The name without folder and ending.
    pub(super) name: String,
    pub(super) record: VerifiedDevice,
}

/// The parts of a record that the page shows.
#[derive(Debug, Deserialize)]
pub(super) struct VerifiedDevice {
    schema: u32,
    pub(super) date: String,
    pub(super) build: VerifiedBuild,
    pub(super) device: VerifiedHardware,
    pub(super) suite: VerifiedSuite,
    pub(super) model: Option<VerifiedModel>,
}

#[derive(Debug, Deserialize)]
pub(super) struct VerifiedBuild {
    pub(super) version: String,
    pub(super) commit: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct VerifiedHardware {
    pub(super) backend: String,
    pub(super) name: String,
    pub(super) arch: String,
    pub(super) driver_version: Option<String>,
    pub(super) software: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct VerifiedSuite {
    pub(super) quick: bool,
    pub(super) only: Option<Vec<String>>,
    pub(super) ops: Vec<VerifiedCases>,
    pub(super) formats: Vec<VerifiedCases>,
}

/// Cases of an op or format.
#[derive(Debug, Deserialize)]
pub(super) struct VerifiedCases {
    pub(super) name: String,
    pub(super) passed: usize,
    pub(super) rounded: usize,
    pub(super) refused: usize,
    pub(super) failed: usize,
    pub(super) error: Option<VerifiedError>,
}

#[derive(Debug, Deserialize)]
pub(super) struct VerifiedError {
    pub(super) of_tolerance: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct VerifiedModel {
    pub(super) name: String,
    pub(super) against: String,
    pub(super) runs: Vec<VerifiedRun>,
}

#[derive(Debug, Deserialize)]
pub(super) struct VerifiedRun {
    pub(super) precision: String,
    pub(super) error: Option<String>,
    pub(super) drift: Vec<Option<f64>>,
    pub(super) kl_mean: Option<f64>,
    pub(super) different: usize,
    pub(super) wrong: Vec<String>,
}

impl VerifiedFile {
    /// Reads a record.
    pub(super) fn parse(path: &str, text: &str) -> Result<VerifiedFile, String> {
        let record: VerifiedDevice =
            serde_json::from_str(text).map_err(|e| format!("{path}: no result of `yirage verify -o FILE`: {e}"))?;
        if record.schema != SCHEMA {
            return Err(format!("{path}: expected schema {SCHEMA}, got {}; verify anew", record.schema));
        }
        let name = path.rsplit('/').next().and_then(|file| file.strip_suffix(".json"));
        let name = name.ok_or_else(|| format!("{path}: records are called NAME.json"))?.to_owned();
        Ok(VerifiedFile { name, record })
    }
}

/// What is known of backends and levels without a record.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnverifiedLevels {
    #[serde(default)]
    pub(super) level: Vec<UnverifiedLevel>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnverifiedLevel {
    pub(super) backend: String,
    #[serde(default)]
    pub(super) level: Vec<String>,
    pub(super) state: SupportState,
    /// On what, when, how.
    pub(super) with: String,
}

/// How far something is known to work.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SupportState {
    Hardware,
    Emulated,
    Fake,
    Compiles,
    None,
}

impl SupportState {
    pub(super) fn words(self) -> &'static str {
        match self {
            SupportState::Hardware => "hardware",
            SupportState::Emulated => "emulated",
            SupportState::Fake => "fake library",
            SupportState::Compiles => "compiles",
            SupportState::None => "no kernels",
        }
    }
}

impl UnverifiedLevels {
    /// Reads the list.
    pub(super) fn parse(text: &str) -> Result<UnverifiedLevels, String> {
        toml::from_str(text).map_err(|e| e.to_string())
    }
}
