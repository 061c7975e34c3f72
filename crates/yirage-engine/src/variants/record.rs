//! What was measured, kept as a sealed text: one for each processor, number of workers, build, and set of weights.

use super::ChosenVariant;
use crate::limits::{TUNING_FOLDER_BYTES, TUNING_RECORD_BYTES};
use std::fmt::Write;
use std::path::Path;
use yirage_hal::KernelVariants;
use yirage_ir::hash::fnv128;
use yirage_packed::sealed::{open, seal};
use yirage_packed::{TextStore, TextStoreError};
use yirage_plan::{Precision, WeightEntry, WeightLayout, WeightPlan};

/// The first line of a record.
const HEAD: &str = "yirage-variant 1";

/// What a record belongs to, in words.
pub(super) struct VariantRecordKey(String);

impl VariantRecordKey {
    /// Of a device's facts and the formats and shapes of a model's matrices; rows and tables, of which some depend on the
    /// context, are no part of products.
    pub(super) fn of(facts: &str, plan: &WeightPlan, precision: Precision) -> VariantRecordKey {
        let matrix =
            |entry: &&WeightEntry| ![WeightLayout::ROWS, WeightLayout::ELEMENTS].iter().any(|&l| entry.lies_in(l));
        let matrices = WeightPlan { entries: plan.entries.iter().filter(matrix).cloned().collect() };
        VariantRecordKey(format!(
            "device {facts}\nweights {:032x}\nprecision {precision:?}",
            fnv128(matrices.print().as_bytes())
        ))
    }
}

/// The kept records.
pub(super) struct Records(TextStore);

impl Records {
    /// In the folder of texts beside repacked weights.
    pub(super) fn new(folder: &Path) -> Records {
        Records(TextStore::new(folder.to_path_buf(), ".variant", TUNING_RECORD_BYTES, TUNING_FOLDER_BYTES))
    }

    /// The way that is kept for `key`; none where nothing is.
    pub(super) fn read(&self, key: &VariantRecordKey, variants: &dyn KernelVariants) -> Result<Option<String>, String> {
        let id = fnv128(key.0.as_bytes());
        let Some(text) = self.0.read(id).map_err(|e| e.to_string())? else { return Ok(None) };
        let [found, variant, _] = open(HEAD, ["key", "variant", "answers"], &text).map_err(|e| e.to_string())?;
        if found != key.0 {
            return Err("it is of another processor, build or model".into());
        }
        variants.resolve(variant).map(Some).map_err(|e| e.to_string())
    }

    /// Keeps a way and what was measured for it.
    pub(super) fn write(&self, key: &VariantRecordKey, chosen: &ChosenVariant) -> Result<(), TextStoreError> {
        let mut lines = String::new();
        for answer in chosen.answers.iter().chain(&chosen.full) {
            let (mark, us) =
                (if answer.selected { '*' } else { ' ' }, [answer.seconds, answer.longest].map(|s| s * 1e6));
            // Writing to a string does not fail.
            let _ =
                writeln!(lines, "{mark} {} tokens {:.0} to {:.0} us {}", answer.tokens, us[0], us[1], answer.choices);
        }
        let text = seal(HEAD, &[("key", &key.0), ("variant", &chosen.text), ("answers", &lines)]);
        self.0.write(fnv128(key.0.as_bytes()), &text).map(drop)
    }
}
