//! Beginnings of sequences out of the cache and into it: what a file of one holds, whoever writes and reads it.
//!
//! Only whole blocks that are published are read, and only such as no sequence has are written: what runs beside sees
//! nothing of it. This module knows no file.

use super::adapters::adapted;
use super::bound_kv_cache::BoundKvCache;
use super::cache_salt::cache_salt;
use super::core::Engine;
use crate::error::EngineError;
use crate::kv::SeqCache;
use crate::load::stage_devices;
use crate::prefix_error::PrefixError;
use std::borrow::Cow;
use std::collections::BTreeSet;
use yirage_hal::Device;

/// A beginning of a sequence that the cache has. Its blocks stay for as long as this does.
pub struct CachedPrefix<'e> {
    engine: &'e mut Engine,
    seq: SeqCache,
}

/// A beginning that is put into the cache. Without [`RestoredPrefix::finish`] nothing of it stays.
pub struct RestoredPrefix<'e> {
    engine: &'e mut Engine,
    seq: SeqCache,
    tokens: Vec<u32>,
    written: BTreeSet<String>,
}

impl Engine {
    /// What the contents of caches depend on beside the model, in words: backend and architecture, how positions are
    /// stored, and how exactly they are computed.
    pub fn cache_identity(&self) -> String {
        let (kv, precision) = (self.facts.kv.info().name, self.options.precision);
        let used = self.options.adapters.iter().filter(|adapter| adapter.scale != 0.0);
        let adapters = used.map(|of| format!(", adapter {:032x} times {}", of.adapter.digest(), of.scale));
        let adapters: String = adapters.collect();
        let mut devices: Vec<String> = stage_devices(&*self.device)
            .iter()
            .map(|device| format!("{} {}", device.info().backend, device.info().arch))
            .collect();
        // Stages of one kind compute what one device of it does.
        devices.dedup();
        format!("{}, cache of {kv}, precision {precision}{adapters}", devices.join(" and "))
    }

    /// The cache's salt of beginnings that requests of this `salt` have computed which name no adapters.
    fn prefix_salt(&self, salt: &[u8]) -> Result<Vec<u8>, EngineError> {
        let adapters = self.request_adapters(None)?;
        Ok(cache_salt(salt, None, &adapted(&adapters.used), 0)?)
    }

    /// Bytes of the contents of all layers' caches of so many positions, at most.
    pub fn cache_bytes(&self, positions: usize) -> u64 {
        let blocks = positions.div_ceil(self.scheduler.kv().block_positions()) as u64;
        let layer = |cache: &BoundKvCache| cache.block_bytes.saturating_mul(blocks);
        self.kv_caches.iter().map(layer).fold(0, u64::saturating_add)
    }

    /// The longest beginning of `tokens` that the cache has, in whole blocks; of length 0 where it has none. It is one of
    /// requests of this `salt` that name no adapters.
    ///
    /// # Errors
    /// [`EngineError::Admission`] for a salt that no request has.
    pub fn cached_prefix(&mut self, tokens: &[u32], salt: &[u8]) -> Result<CachedPrefix<'_>, EngineError> {
        let salt = self.prefix_salt(salt)?;
        // A sequence computes its last token anew, so one more than these is asked for.
        let asked: Vec<u32> = tokens.iter().copied().chain([0]).collect();
        let seq = self.scheduler.kv_mut().open(&asked, &salt, usize::MAX);
        Ok(CachedPrefix { engine: self, seq })
    }

    /// Takes blocks for the beginning `tokens`, of a whole number of blocks, that was computed before with this model and the
    /// same type of cache. Another device may have computed it: its numbers are then those of that device.
    ///
    /// # Errors
    /// [`EngineError::Prefix`], [`EngineError::UnknownToken`], [`EngineError::Admission`].
    pub fn restore_prefix(&mut self, tokens: Vec<u32>, salt: &[u8]) -> Result<RestoredPrefix<'_>, EngineError> {
        if !self.options.prefix_cache {
            return Err(PrefixError::NoCache.into());
        }
        let block = self.scheduler.kv().block_positions();
        if tokens.is_empty() || !tokens.len().is_multiple_of(block) {
            return Err(PrefixError::Length { tokens: tokens.len(), block }.into());
        }
        let vocabulary = self.facts.vocabulary;
        if let Some(at) = tokens.iter().position(|&id| id >= vocabulary) {
            return Err(EngineError::UnknownToken { id: tokens[at], at, vocabulary });
        }
        let context = self.facts.context as usize;
        if tokens.len() > context {
            return Err(PrefixError::TooLong { tokens: tokens.len(), most: context }.into());
        }
        let salt = self.prefix_salt(salt)?;
        let seq = self.scheduler.kv_mut().adopt(&tokens, &salt).map_err(PrefixError::from)?;
        Ok(RestoredPrefix { engine: self, seq, tokens, written: BTreeSet::new() })
    }

    /// The device of a stage of the model.
    fn stage_device(&self, stage: usize) -> &dyn Device {
        self.device.stages().map_or(&*self.device, |stages| &*stages[stage])
    }

    fn kv_cache(&self, name: &str) -> Result<&BoundKvCache, EngineError> {
        let missing = || PrefixError::NoLayer { name: name.to_owned() };
        self.kv_caches.iter().find(|cache| cache.name == name).ok_or_else(|| missing().into())
    }
}

/// The blocks that a sequence has in a group, in order.
fn blocks_of(seq: &SeqCache, group: usize) -> Vec<u32> {
    seq.table(group).iter().filter_map(|&block| u32::try_from(block).ok()).collect()
}

/// Of what a window has kept, the latest positions: blocks of another length begin before or behind where it begins, and what
/// lies before it nobody sees.
fn latest(contents: &[u8], wanted: usize) -> Cow<'_, [u8]> {
    match contents.len().checked_sub(wanted) {
        Some(before) => Cow::Borrowed(&contents[before..]),
        None => {
            let mut all = vec![0; wanted - contents.len()];
            all.extend_from_slice(contents);
            Cow::Owned(all)
        }
    }
}

impl CachedPrefix<'_> {
    /// Positions of it.
    pub fn positions(&self) -> usize {
        self.seq.len()
    }

    /// Names of the layers' caches, with the bytes of the contents of each.
    pub fn caches(&self) -> Vec<(String, u64)> {
        let bytes = |layer: &BoundKvCache| layer.block_bytes * blocks_of(&self.seq, layer.group).len() as u64;
        self.engine.kv_caches.iter().map(|layer| (layer.name.clone(), bytes(layer))).collect()
    }

    /// What lies in the blocks of a layer's cache, one after the other: position after position, of each its heads, as elements
    /// of the cache's type, whatever the device's layout.
    ///
    /// # Errors
    /// [`PrefixError::NoLayer`], [`EngineError::Device`].
    pub fn contents(&self, name: &str) -> Result<Vec<u8>, EngineError> {
        let layer = self.engine.kv_cache(name)?;
        Ok(self.engine.stage_device(layer.stage).read_kv_blocks(&layer.cache, &blocks_of(&self.seq, layer.group))?)
    }
}

impl Drop for CachedPrefix<'_> {
    fn drop(&mut self) {
        self.engine.scheduler.kv_mut().close(&mut self.seq);
    }
}

impl RestoredPrefix<'_> {
    /// Writes what [`CachedPrefix::contents`] gave of this layer.
    ///
    /// # Errors
    /// [`PrefixError::NoLayer`], [`EngineError::Device`], which has the bytes that are wanted.
    pub fn write(&mut self, name: &str, contents: &[u8]) -> Result<(), EngineError> {
        let layer = self.engine.kv_cache(name)?;
        let blocks = blocks_of(&self.seq, layer.group);
        let wanted = layer.block_bytes as usize * blocks.len();
        let (kv, position) = (self.engine.scheduler.kv(), layer.block_bytes as usize);
        let (group, position) = (&kv.groups()[layer.group], position / kv.block_positions());
        let slides = group.window().is_some() && !group.is_recurrent();
        let whole = !contents.is_empty() && contents.len().is_multiple_of(position.max(1));
        let contents = if slides && whole { latest(contents, wanted) } else { Cow::Borrowed(contents) };
        self.engine.stage_device(layer.stage).write_kv_blocks(&layer.cache, &blocks, &contents)?;
        self.written.insert(name.to_owned());
        Ok(())
    }

    /// Publishes the beginning: sequences that begin so find it. Gives its positions.
    ///
    /// # Errors
    /// [`PrefixError::LayerMissing`] with the first layer that nothing was written of.
    pub fn finish(mut self) -> Result<usize, EngineError> {
        let missing = self.engine.kv_caches.iter().find(|cache| !self.written.contains(&cache.name));
        if let Some(layer) = missing {
            return Err(PrefixError::LayerMissing { name: layer.name.clone() }.into());
        }
        let (positions, tokens) = (self.seq.len(), std::mem::take(&mut self.tokens));
        self.engine.scheduler.kv_mut().advance(&mut self.seq, &tokens, positions);
        Ok(positions)
    }
}

impl Drop for RestoredPrefix<'_> {
    fn drop(&mut self) {
        self.engine.scheduler.kv_mut().close(&mut self.seq);
    }
}
