//! Which entry of the kept weights is this model's, weights from it, and one made for the next start.

use super::background::Background;
use super::entry_writer::PackedEntryWriter;
use super::notice::Notice;
use crate::load::{LoadProgressFn, StageLoadPlan};
use crate::options::PackedOptions;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use yirage_hal::{Bindings, Device, WeightHandle, WeightImage};
use yirage_model::Checkpoint;
use yirage_model::weights::{WeightBinding, WeightSource};
use yirage_packed::{NewEntry, PackedEntry, PackedError, PackedKey, PackedStore, SourceFile};
use yirage_plan::{WeightEntry, WeightPlan};

/// This model's place among the entries.
pub(crate) struct PackedModelEntry<'a> {
    device: &'a Arc<dyn Device>,
    prepared: &'a StageLoadPlan,
    store: PackedStore,
    key: PackedKey,
    packing: String,
    source: Vec<SourceFile>,
    /// Names of the weights that are kept: those read from files.
    stored_names: HashSet<&'a str>,
    notices: Vec<Notice>,
}

impl<'a> PackedModelEntry<'a> {
    /// `None` for a device without images, and for files whose paths are no text, which an entry could not name.
    pub(crate) fn find(
        options: &PackedOptions,
        checkpoint: &Checkpoint,
        device: &'a Arc<dyn Device>,
        prepared: &'a StageLoadPlan,
    ) -> Option<PackedModelEntry<'a>> {
        let packing = device.packing()?;
        let stored = |w: &&WeightBinding| !matches!(w.source, WeightSource::Computed(_) | WeightSource::Given(_));
        let bindings: Vec<&WeightBinding> = prepared.model.weights.iter().filter(stored).collect();
        let kept: HashSet<&str> = bindings.iter().map(|w| w.name.as_str()).collect();
        let source = checkpoint.files().iter().map(|file| SourceFile::new(&file.path, file.stamp));
        let source = source.collect::<Option<Vec<_>>>()?;
        let key = key(checkpoint, &packing, &prepared.weights, &kept, &bindings, &source);
        let store = PackedStore::new(options.folder.clone(), options.limit);
        Some(PackedModelEntry {
            device,
            prepared,
            store,
            key,
            packing,
            source,
            stored_names: kept,
            notices: Vec::new(),
        })
    }

    /// The weights of the entry, by name, and the entry; none where there is none that can be used. `progress` gets the
    /// bytes that are checked for that, and of all.
    pub(crate) fn adopt(&mut self, progress: LoadProgressFn) -> Option<(HashMap<String, WeightHandle>, PackedEntry)> {
        let why = match self.store.open(self.key, progress) {
            Ok(None) => return None,
            Ok(Some(entry)) => match self.adopt_all(&entry) {
                Ok(weights) => {
                    self.notices.extend(entry.unmarked().map(|why| Notice::NotNoted(why.to_string())));
                    return Some((weights, entry));
                }
                Err(why) => format!("{}: {why}", entry.path().display()),
            },
            // The entry may be whole: a system that maps no more files now may do so at the next start.
            Err(error @ (PackedError::Map(_) | PackedError::Io { .. })) => {
                self.notices.push(Notice::Refused(error.to_string()));
                return None;
            }
            Err(error) => error.to_string(),
        };
        // An entry that stays would be refused again each time; one that cannot be removed is.
        let left = self.store.remove(self.key).err().map_or_else(String::new, |e| format!(" ({e})"));
        self.notices.push(Notice::Refused(format!("{why}{left}")));
        None
    }

    fn adopt_all(&self, entry: &PackedEntry) -> Result<HashMap<String, WeightHandle>, String> {
        let adopt = |of: &WeightEntry| {
            let image = entry.image(&of.name).and_then(|(file, range)| WeightImage::new(file, range));
            let image = image.ok_or_else(|| format!("it has no image of weight `{}`", of.name))?;
            let weight = self.device.adopt(of, image).map_err(|e| e.to_string())?;
            Ok((of.name.clone(), weight))
        };
        self.entries().map(adopt).collect()
    }

    fn entries(&self) -> impl Iterator<Item = &'a WeightEntry> {
        self.prepared.weights.entries.iter().filter(|e| self.stored_names.contains(e.name.as_str()))
    }

    /// What is left to do once the first tokens are out: to write an entry of the weights that were made now, where none
    /// is `used`.
    pub(crate) fn background(mut self, used: bool, bindings: &Bindings) -> Background {
        let kept = if used { Ok(None) } else { self.entry_writer(bindings).map(Some) };
        let task = kept.unwrap_or_else(|why| {
            self.notices.push(Notice::NotKept(why));
            None
        });
        Background::new(task, self.notices)
    }

    fn entry_writer(&self, bindings: &Bindings) -> Result<PackedEntryWriter, String> {
        let (mut images, mut weights) = (Vec::new(), Vec::new());
        for entry in self.entries() {
            let Some(weight) = bindings.weights.get(&entry.name) else { continue };
            // What a device reserves for a weight may be more than what it keeps.
            let bytes = self.device.image(weight).map_err(|e| e.to_string())?.len() as u64;
            images.push((entry.name.clone(), bytes));
            weights.push(weight.clone());
        }
        let (device, source) = (self.packing.clone(), self.source.clone());
        let new = NewEntry { key: self.key, device, source, images };
        Ok(PackedEntryWriter::new(self.store.clone(), new, Arc::clone(self.device), weights))
    }
}

/// The name of everything that the images depend on: this program's version, how the device packs, the layout of each
/// weight, which parts of which tensors it is made of, where those lie in the files, and which state of the files it is.
///
/// The table of tensors as it was read stands for the headers of the files: it is what a header says of weights, and a
/// vocabulary of hundreds of thousands of words need not be hashed. Weights that are computed, such as tables of
/// rotations, are made at each start; they depend on options like the length of the context.
fn key(
    checkpoint: &Checkpoint,
    packing: &str,
    plan: &WeightPlan,
    kept: &HashSet<&str>,
    bindings: &[&WeightBinding],
    source: &Vec<SourceFile>,
) -> PackedKey {
    let entries = plan.entries.iter().filter(|e| kept.contains(e.name.as_str())).cloned().collect();
    let tensors: Vec<_> = checkpoint.tensors().collect();
    let texts = [
        env!("CARGO_PKG_VERSION").to_owned(),
        packing.to_owned(),
        WeightPlan { entries }.print(),
        format!("{bindings:?}"),
        format!("{tensors:?}"),
        format!("{source:?}"),
        checkpoint.merged_adapters().join(", "),
    ];
    PackedKey::of(&texts.each_ref().map(|text| text.as_bytes()))
}
