//! Compiled kernels kept on disk: the code of a source from its file, or made and put there.
//!
//! An entry is found by all that its code follows from: the source with its name, the options, the architecture, the compiler with its
//! version, and the driver's. Its bytes are compared with their checksum when it is read; one that differs is made again. Unknown
//! here: what a kernel is, and who compiles it.

use crate::limits::{CODE_BYTES, CODE_FOLDER_BYTES};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use yirage_ir::hash::fnv128;
use yirage_packed::{TextStore, TextStoreError};

/// What an entry begins with: another number is another form.
const FORM: &str = "yirage code 1";

/// Why code is not kept, or an entry is not what was written.
#[derive(Debug, thiserror::Error)]
pub enum CodeStoreError {
    /// The file could not be read or written.
    #[error(transparent)]
    Text(#[from] TextStoreError),
    /// An entry whose bytes are not those that were written.
    #[error("{}: expected {FORM}, a checksum and the code that has it; it is made again", path.display())]
    Damaged {
        /// The entry's file.
        path: PathBuf,
    },
}

/// What became of kernels that were asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodeStoreReport {
    /// Kernels whose code lay there.
    pub read: u64,
    /// Kernels that were compiled.
    pub made: u64,
    /// Entries that were refused, and code that could not be written: why, the last ones first.
    pub notices: Vec<String>,
}

/// Notices that are kept.
const MOST_NOTICES: usize = 16;

/// The folder.
pub(crate) struct CodeStore {
    texts: TextStore,
    /// What makes the code, and for what.
    maker: String,
    report: Mutex<CodeStoreReport>,
}

impl CodeStore {
    /// The store in a folder, of what `maker` makes.
    pub(crate) fn new(folder: PathBuf, maker: String) -> CodeStore {
        CodeStore::within(folder, maker, CODE_FOLDER_BYTES)
    }

    fn within(folder: PathBuf, maker: String, limit: u64) -> CodeStore {
        CodeStore { texts: TextStore::new(folder, ".code", CODE_BYTES, limit), maker, report: Mutex::default() }
    }

    /// Whether entries can be written: the least of them is.
    ///
    /// # Errors
    /// [`CodeStoreError::Text`].
    pub(crate) fn check(&self) -> Result<(), CodeStoreError> {
        let id = fnv128(self.maker.as_bytes());
        if self.read(id).is_ok_and(|code| code.is_some()) {
            return Ok(());
        }
        self.write(id, self.maker.as_bytes())
    }

    pub(crate) fn report(&self) -> CodeStoreReport {
        self.lock().clone()
    }

    /// The code of a source: from its file where that is there and `accepts` what it has, else what `make` gives, which is then
    /// written.
    ///
    /// # Errors
    /// Those of `make`, and of `accepts` for what `make` gives.
    pub(crate) fn code<T, E>(
        &self,
        name: &str,
        source: &str,
        options: &[&str],
        make: impl FnOnce() -> Result<Vec<u8>, E>,
        accepts: impl Fn(&[u8]) -> Result<T, E>,
    ) -> Result<T, E> {
        let id = fnv128(format!("{FORM}\n{}\n{options:?}\n{name}\n{source}", self.maker).as_bytes());
        match self.read(id) {
            Ok(None) => {}
            Ok(Some(code)) => {
                if let Ok(accepted) = accepts(&code) {
                    self.lock().read += 1;
                    return Ok(accepted);
                }
                self.tell(format!("{}: the driver does not take it; it is made again", self.texts.file(id).display()));
            }
            Err(why) => self.tell(why.to_string()),
        }
        let code = make()?;
        let accepted = accepts(&code)?;
        self.lock().made += 1;
        if let Err(why) = self.write(id, &code) {
            self.tell(why.to_string());
        }
        Ok(accepted)
    }

    fn read(&self, id: u128) -> Result<Option<Vec<u8>>, CodeStoreError> {
        let Some(text) = self.texts.read(id)? else { return Ok(None) };
        entry_code(&text).map(Some).ok_or_else(|| CodeStoreError::Damaged { path: self.texts.file(id) })
    }

    fn write(&self, id: u128, code: &[u8]) -> Result<(), CodeStoreError> {
        let mut text = format!("{FORM}\n{:032x}\n", fnv128(code));
        // Texts of the store are UTF-8.
        for byte in code {
            text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
        }
        self.texts.write(id, &text)?;
        Ok(())
    }

    fn tell(&self, notice: String) {
        let mut report = self.lock();
        report.notices.insert(0, notice);
        report.notices.truncate(MOST_NOTICES);
    }

    fn lock(&self) -> MutexGuard<'_, CodeStoreReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The code of an entry, where it is as it was written.
fn entry_code(text: &str) -> Option<Vec<u8>> {
    let (check, digits) = text.strip_prefix(FORM)?.strip_prefix('\n')?.split_once('\n')?;
    let digits = digits.as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let byte = |pair: &[u8]| if let &[a, b] = pair { Some(value(a)? << 4 | value(b)?) } else { None };
    let code = digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    (u128::from_str_radix(check, 16).ok()? == fnv128(&code)).then_some(code)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may stop at anything
mod tests {
    use super::*;
    use std::fs;

    fn code(store: &CodeStore, source: &str, makes: &[u8]) -> Vec<u8> {
        store.code::<_, ()>("k", source, &["-O"], || Ok(makes.to_vec()), |code| Ok(code.to_vec())).unwrap()
    }

    #[test]
    fn code_is_made_once_and_again_where_an_entry_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let of = |maker: &str| CodeStore::new(folder.path().join("new"), maker.into());
        let first = of("compiler 1");
        assert_eq!(
            (code(&first, "a", b"one"), code(&first, "a", b"never"), first.report().made),
            (b"one".to_vec(), b"one".to_vec(), 1)
        );
        assert_eq!(code(&of("compiler 2"), "a", b"two"), b"two", "another maker's code is not taken");
        assert_eq!(code(&of("compiler 1"), "b", b"three"), b"three");
        for file in fs::read_dir(folder.path().join("new")).unwrap() {
            let path = file.unwrap().path();
            let mut text = fs::read(&path).unwrap();
            let last = text.len() - 1;
            text[last] ^= 1;
            fs::write(&path, text).unwrap();
        }
        let again = of("compiler 1");
        assert_eq!(code(&again, "a", b"anew"), b"anew");
        let report = again.report();
        assert!(report.made == 1 && report.notices[0].contains("it is made again"), "{report:?}");
        assert_eq!(code(&of("compiler 1"), "a", b"never"), b"anew");
    }

    #[test]
    fn what_the_driver_does_not_take_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = CodeStore::new(folder.path().into(), String::new());
        code(&store, "a", b"old");
        let accepts = |code: &[u8]| if code == b"old" { Err("no") } else { Ok(code.to_vec()) };
        assert_eq!(store.code("k", "a", &["-O"], || Ok(b"new".to_vec()), accepts), Ok(b"new".to_vec()));
        assert!(store.report().notices[0].contains("the driver does not take it"));
        assert_eq!(store.code("k", "a", &["-O"], || Err("never"), accepts), Ok(b"new".to_vec()));
        assert_eq!(store.code("k", "c", &["-O"], || Ok(b"old".to_vec()), accepts), Err("no"), "not kept either");
    }

    #[test]
    fn the_folder_keeps_to_its_limit_and_what_cannot_be_written_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = CodeStore::within(folder.path().join("new"), String::new(), 200);
        (0..9).for_each(|at| drop(code(&store, &at.to_string(), &[at; 20])));
        let bytes = |file: fs::DirEntry| file.metadata().unwrap().len();
        let files: Vec<u64> =
            fs::read_dir(folder.path().join("new")).unwrap().map(|file| bytes(file.unwrap())).collect();
        assert!(!files.is_empty() && files.iter().sum::<u64>() <= 200, "{files:?}");
        assert_eq!(code(&store, "long", &[1; 200]).len(), 200);
        assert!(store.report().notices[0].contains("does not fit"), "{:?}", store.report());
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let none = CodeStore::new(file, String::new());
        assert!(none.check().unwrap_err().to_string().contains("cannot"));
        assert_eq!(code(&none, "a", b"one"), b"one");
        assert!(!none.report().notices.is_empty());
    }
}
