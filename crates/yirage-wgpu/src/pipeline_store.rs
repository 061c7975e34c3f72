//! What a driver has compiled, kept on disk between processes: wgpu's pipeline cache as an entry of the folder of compiled kernels.
//!
//! One entry for each device, driver and program: its bytes are those that the driver gave, behind their checksum. What differs is
//! told and made again. Unknown here: what a kernel is.

use crate::adapter::FoundAdapter;
use crate::errors::{scoped, whole};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use yirage_ir::hash::fnv128;
use yirage_packed::TextStore;

/// What an entry begins with: another number is another form.
const FORM: &str = "yirage pipelines 1";
/// Bytes of an entry at most: two for each of the driver's.
const LONGEST: u64 = 64 << 20;
/// Bytes of all entries of a folder.
const FOLDER_BYTES: u64 = 256 << 20;

/// A device's pipeline cache, and what became of its entry.
pub(crate) struct PipelineStore {
    texts: TextStore,
    id: u128,
    cache: wgpu::PipelineCache,
    state: Mutex<StoredPipelines>,
}

#[derive(Default)]
struct StoredPipelines {
    /// Of the bytes that lie on disk.
    checksum: u128,
    /// Bytes that the device began with.
    began_with: u64,
    /// Why the entry was not taken or not written.
    notices: Vec<String>,
}

impl PipelineStore {
    /// The cache of a device that has such, from its entry in a folder where that is there.
    ///
    /// # Errors
    /// Why nothing can be kept: what the device or the folder says.
    pub(crate) fn new(folder: PathBuf, found: &FoundAdapter, device: &wgpu::Device) -> Result<PipelineStore, String> {
        let texts = TextStore::new(folder, ".pipelines", LONGEST, FOLDER_BYTES);
        let wgpu::AdapterInfo { name, vendor, device: chip, driver, driver_info, .. } = found.adapter.get_info();
        let maker =
            format!("{FORM}\n{name} {vendor:#x} {chip:#x}\n{driver} {driver_info}\n{}", env!("CARGO_PKG_VERSION"));
        let id = fnv128(maker.as_bytes());
        let (mut kept, mut notices) = (None, Vec::new());
        match texts.read(id) {
            Ok(None) => {}
            Ok(Some(text)) => match entry_bytes(&text) {
                Some(bytes) => kept = Some(bytes),
                None => {
                    notices.push(format!("{}: it is not what was written, and is made again", texts.file(id).display()))
                }
            },
            Err(why) => notices.push(why.to_string()),
        }
        let cache = scoped(device, || create(device, kept.as_deref())).map_err(|error| whole(&error))?;
        let (began_with, checksum) = kept.as_ref().map_or((0, 0), |bytes| (bytes.len() as u64, fnv128(bytes)));
        let store =
            PipelineStore { texts, id, cache, state: Mutex::new(StoredPipelines { checksum, began_with, notices }) };
        if kept.is_none() {
            // Whether it can be written is known before anything is compiled.
            store.write(&store.cache.get_data().unwrap_or_default())?;
        }
        Ok(store)
    }

    /// What pipelines are made with.
    pub(crate) fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    fn state(&self) -> MutexGuard<'_, StoredPipelines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that the device began with.
    pub(crate) fn began_with(&self) -> u64 {
        self.state().began_with
    }

    /// Why the entry was not taken or not written.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.state().notices.clone()
    }

    /// Keeps what the driver has now, where it is other than what lies on disk.
    pub(crate) fn keep(&self) {
        let Some(bytes) = self.cache.get_data() else { return };
        if fnv128(&bytes) != self.state().checksum
            && let Err(why) = self.write(&bytes)
        {
            self.state().notices.push(why);
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<(), String> {
        let checksum = fnv128(bytes);
        let mut text = format!("{FORM}\n{checksum:032x}\n");
        // Texts of the store are UTF-8.
        for byte in bytes {
            text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
        }
        self.texts.write(self.id, &text).map_err(|why| why.to_string())?;
        self.state().checksum = checksum;
        Ok(())
    }
}

/// The bytes of an entry, where they are as they were written.
fn entry_bytes(text: &str) -> Option<Vec<u8>> {
    let (check, digits) = text.strip_prefix(FORM)?.strip_prefix('\n')?.split_once('\n')?;
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let byte = |pair: &[u8]| if let &[a, b] = pair { Some(value(a)? << 4 | value(b)?) } else { None };
    let bytes = digits.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    (u128::from_str_radix(check, 16).ok()? == fnv128(&bytes)).then_some(bytes)
}

#[allow(unsafe_code)] // wgpu's own door for bytes that a driver gave
fn create(device: &wgpu::Device, data: Option<&[u8]>) -> wgpu::PipelineCache {
    // An empty entry is of a driver that gave none.
    let data = data.filter(|data| !data.is_empty());
    let descriptor = wgpu::PipelineCacheDescriptor { label: None, data, fallback: true };
    // SAFETY: `entry_bytes` has compared the bytes with the checksum of what `PipelineStore::write` was given by the same driver;
    // wgpu compares its own header, and the driver the one of its own.
    unsafe { device.create_pipeline_cache(&descriptor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_not_what_was_written_is_none() {
        let whole = format!("{FORM}\n{:032x}\n0aff", fnv128(&[10, 255]));
        assert_eq!(entry_bytes(&whole), Some(vec![10, 255]));
        for wrong in
            [whole.replace("0aff", "0afe"), whole.replace("0aff", "0af"), whole.replace('1', "2"), String::new()]
        {
            assert_eq!(entry_bytes(&wrong), None, "{wrong}");
        }
    }
}
