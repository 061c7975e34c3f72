//! A model with its texts on a thread of its own, for many callers at once: what command, Python and server share.
//!
//! [`LocalModel`] turns a name into files, [`LoadedEngine::load`] files into a model with tokenizer and templates, [`LoadedEngine::start`]
//! gives it to a thread. [`ModelHandle::submit`] takes a [`Job`] from any thread and gives an [`AnswerEventStream`], whose events come as the
//! engine makes them known; it is an iterator and a stream. Output does not depend on what else runs. [`TextEncoder`] is the
//! same for models that give vectors or scores of whole texts.
//!
//! ```
//! use yirage_engine::{EngineOptions, Request};
//! use yirage_hal::{Backend, OpenOptions};
//! use yirage_model::Checkpoint;
//! use yirage_session::{Job, LoadedEngine, SessionEvent};
//!
//! let checkpoint = Checkpoint::open(&yirage_testkit::bedtime::f32())?;
//! let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default())?;
//! let options = EngineOptions { max_seqs: 4, ..EngineOptions::default() };
//! let model = LoadedEngine::load(&checkpoint, device, &options, &mut |_, _| {})?.start()?;
//!
//! let texts = model.texts().expect("it has a tokenizer");
//! let prompt = texts.encode_raw("Once upon a time", None)?;
//! let mut text = String::new();
//! for event in model.submit(Job::new(Request::greedy(prompt, 20)))? {
//!     match event? {
//!         SessionEvent::Text(piece) => text.push_str(&piece),
//!         SessionEvent::Finished(end) => println!("{} tokens: {:?}", end.usage.new_tokens, end.reason),
//!         _ => {}
//!     }
//! }
//! assert!(!text.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Unknown here: options of a command, protocols of a server, and how a device is chosen.
#![forbid(unsafe_code)]

mod answer;
mod breakers;
mod encoder;
mod error;
mod event;
mod find;
mod job;
mod loaded;
mod model;
mod named_tiles;
mod open;
mod pictures;
mod prefix_file;
mod prefix_file_error;
mod texts;
mod worker;

pub use answer::AnswerEventStream;
pub use encoder::TextEncoder;
pub use error::SessionError;
pub use event::{FinishedAnswer, SessionEvent};
pub use find::LocalModel;
pub use job::Job;
pub use loaded::{LoadedEngine, LoadedVision};
pub use model::ModelHandle;
pub use pictures::{PictureReader, PlacedPicture, PreparedPicture, why_no_pictures};
pub use prefix_file::{ModelFingerprint, PrefixSize};
pub use prefix_file_error::{PrefixFileError, PrefixFileFault};
pub use texts::{TextProcessor, message};
