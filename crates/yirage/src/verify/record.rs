//! What a verification found, as it is written to files and read from them.

use crate::bench::now;
use crate::failure::CliFailure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use yirage_conformance::CaseError;
use yirage_hal::DeviceInfo;
use yirage_mmap::read_bytes;

/// The form of the files; a change that old readers do not understand makes it larger.
const SCHEMA: u32 = 1;
/// Largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// A verification of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VerifyRecord {
    schema: u32,
    /// When it was finished, UTC.
    pub(super) date: String,
    pub(super) build: BuildRecord,
    pub(crate) device: DeviceRecord,
    pub(crate) suite: SuiteRecord,
    /// Null where no model was run.
    pub(crate) model: Option<ModelRecord>,
    /// What became better or worse, where it was compared; in no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compare: Option<VerifyComparison>,
}

/// The program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BuildRecord {
    pub(super) version: String,
    /// The commit it was built from, with `-dirty` where files were changed; null outside a checkout.
    pub(super) commit: Option<String>,
    pub(super) features: Vec<String>,
    pub(super) system: String,
    pub(super) machine: String,
}

/// The device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceRecord {
    pub(crate) backend: String,
    pub(super) ordinal: u32,
    pub(super) name: String,
    pub(super) arch: String,
    pub(super) driver_version: Option<String>,
    pub(super) sdk_version: Option<String>,
    /// Whether a processor plays it.
    pub(super) software: bool,
    facts: BTreeMap<String, String>,
}

/// The conformance suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Default)]
pub(crate) struct SuiteRecord {
    /// Whether each case ran in one way of several.
    pub(crate) quick: bool,
    /// The ops that were asked for; null for all.
    pub(crate) only: Option<Vec<String>>,
    /// Those that ran.
    pub(crate) cases: usize,
    /// Those of caches in blocks of lengths that the device has not, which did not run. Older records do not say.
    #[serde(default)]
    pub(crate) left_out: usize,
    pub(crate) ops: Vec<CaseGroup>,
    /// A case stands under each format that it reads.
    pub(super) formats: Vec<CaseGroup>,
    /// Ops of which cases are refused, with the reason of the first.
    pub(super) refused: Vec<RefusalRecord>,
    /// Cases whose log-probabilities were rounded otherwise.
    pub(super) rounded: Vec<CaseRecord>,
    pub(crate) failed: Vec<CaseRecord>,
}

/// Cases of an op or of a format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Default)]
pub(crate) struct CaseGroup {
    pub(crate) name: String,
    pub(crate) passed: usize,
    /// Off by the rounding of log-probabilities that are wanted to the bit.
    pub(crate) rounded: usize,
    /// Not taken by any kernel, which compiling says.
    pub(crate) refused: usize,
    pub(crate) failed: usize,
    /// Null where none ran.
    pub(super) error: Option<ErrorRecord>,
}

/// The largest errors of several cases; null where one is no number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorRecord {
    pub(super) absolute: Option<f64>,
    /// Over the largest magnitude of the output.
    pub(super) relative: Option<f64>,
    /// Over what the value's tolerance allows.
    pub(super) of_tolerance: Option<f64>,
}

/// Cases of an op that a device refuses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RefusalRecord {
    pub(super) op: String,
    pub(super) cases: usize,
    pub(super) why: String,
}

/// A case with what is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CaseRecord {
    pub(crate) case: String,
    pub(crate) why: String,
}

/// A whole model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelRecord {
    pub(super) name: String,
    pub(super) architecture: String,
    /// The backend that it was compared with, in the exact precision.
    pub(super) against: String,
    pub(super) tokens: usize,
    /// The first of them, computed in one step; each other one had a step of its own.
    pub(super) at_once: usize,
    pub(super) runs: Vec<ModelRun>,
}

/// A model in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelRun {
    pub(super) precision: String,
    /// Why it could not be computed. All figures are then null or empty.
    pub(super) error: Option<String>,
    /// Format of cached keys and values.
    pub(super) kv: Option<String>,
    /// Behind each layer: the largest difference of a token's hidden state, over the root of its mean square.
    pub(super) drift: Vec<Option<f64>>,
    /// Whether the logits had the same bytes when the hidden states left the device.
    pub(super) same_when_cut: Option<bool>,
    /// Kullback-Leibler divergence of the next token from the reference's, in nats: over the tokens, and the largest.
    pub(super) kl_mean: Option<f64>,
    pub(super) kl_most: Option<f64>,
    /// Tokens behind which the likeliest next one is another.
    pub(super) different: usize,
    /// The first of them.
    pub(super) first_different: Option<TokenDifference>,
    /// What is further away than may be; empty where nothing is.
    pub(super) wrong: Vec<String>,
}

/// A next token that is not the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TokenDifference {
    pub(super) position: usize,
    pub(super) expected: usize,
    pub(super) got: usize,
    /// By how much the reference's logit of the expected one exceeds that of the other.
    pub(super) margin: f64,
}

/// What changed since an earlier verification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct VerifyComparison {
    /// Why the two are not about the same.
    pub(crate) notes: Vec<String>,
    pub(crate) worse: Vec<String>,
    pub(crate) better: Vec<String>,
}

impl VerifyRecord {
    /// The record of a verification that ended just now.
    pub(crate) fn new(info: &DeviceInfo, suite: SuiteRecord, model: Option<ModelRecord>) -> VerifyRecord {
        let (build, device) = (BuildRecord::of_this_program(), DeviceRecord::new(info));
        VerifyRecord { schema: SCHEMA, date: now(), build, device, suite, model, compare: None }
    }

    /// Reads a file that `yirage verify -o` has written.
    ///
    /// # Errors
    /// [`CliFailure::File`], or [`CliFailure::Other`] naming the file and what is wrong with it.
    pub(crate) fn read(path: &Path) -> Result<VerifyRecord, CliFailure> {
        let wrong = |why: String| CliFailure::Other(format!("{}: {why}", path.display()));
        let bytes = read_bytes(path, MAX_BYTES)?;
        let is_none = |why| wrong(format!("no result of `yirage verify -o FILE`: {why}"));
        let record: VerifyRecord = serde_json::from_slice(&bytes).map_err(is_none)?;
        match record.schema {
            SCHEMA => Ok(record),
            other => {
                Err(wrong(format!("expected results of schema {SCHEMA}, got {other}; verify anew with this program")))
            }
        }
    }

    /// The record as its file has it.
    ///
    /// # Errors
    /// [`CliFailure::Other`] for what is no JSON.
    pub(crate) fn text(&self) -> Result<String, CliFailure> {
        let alone = VerifyRecord { compare: None, ..self.clone() };
        let text = serde_json::to_string_pretty(&alone);
        Ok(text.map_err(|e| CliFailure::Other(format!("the result is no JSON: {e}")))? + "\n")
    }

    /// Everything that is wrong, in one line each.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let cases = self.suite.failed.iter().map(|failed| failed.case.clone());
        let runs = self.model.iter().flat_map(|model| &model.runs);
        let of_run = |run: &ModelRun| {
            run.wrong.iter().map(|what| format!("the model in {}: {what}", run.precision)).collect::<Vec<_>>()
        };
        cases.chain(runs.flat_map(of_run)).collect()
    }
}

impl DeviceRecord {
    /// What is known of a device.
    pub(crate) fn new(info: &DeviceInfo) -> DeviceRecord {
        DeviceRecord {
            backend: info.backend.into(),
            ordinal: info.ordinal,
            name: info.name.clone(),
            arch: info.arch.clone(),
            driver_version: info.driver_version.clone(),
            sdk_version: info.sdk_version.clone(),
            software: info.software,
            facts: info.facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect(),
        }
    }
}

impl SuiteRecord {
    /// Cases of which this holds, over all ops.
    pub(crate) fn count(&self, of: impl Fn(&CaseGroup) -> usize) -> usize {
        self.ops.iter().map(of).sum()
    }
}

impl ErrorRecord {
    /// The largest errors of cases.
    pub(super) fn new(error: CaseError) -> ErrorRecord {
        let CaseError { absolute, relative, of_tolerance } = error;
        let [absolute, relative, of_tolerance] = [absolute, relative, of_tolerance].map(finite);
        ErrorRecord { absolute, relative, of_tolerance }
    }
}

/// A number as JSON has it: infinities and NaN are null.
pub(super) fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}
