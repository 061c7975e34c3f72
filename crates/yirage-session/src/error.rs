//! What can go wrong between a caller and a model.

use crate::prefix_file_error::PrefixFileError;
use std::path::PathBuf;
use thiserror::Error;
use yirage_engine::EngineError;
use yirage_engine::text::StopError;
use yirage_hub::HubError;
use yirage_image::ImageError;
use yirage_mmap::FileError;
use yirage_model::ModelError;
use yirage_model::chat::ChatError;
use yirage_model::tokenizer::TokenizerError;

/// An error of a session.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The way to a model.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The model's files.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A file beside the model's, which is there and cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder of the model that cannot be listed.
    #[error("{}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// More templates than any model has.
    #[error("{}: {count} templates are more than the {most} of any model", folder.display())]
    Templates {
        /// The folder.
        folder: PathBuf,
        /// Templates there.
        count: usize,
        /// How many may be.
        most: usize,
    },
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The chat template.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The engine; of a job, that it is refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The file of a beginning.
    #[error(transparent)]
    PrefixFile(#[from] PrefixFileError),
    /// Stop strings.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// A picture, or the settings of what prepares pictures.
    #[error(transparent)]
    Picture(#[from] ImageError),
    /// Pictures for a model that reads none.
    #[error(
        "the model {model} reads no pictures: send text alone, or use a model with a vision tower (llava, idefics3, smolvlm)"
    )]
    NoPictures {
        /// Its architecture.
        model: String,
    },
    /// A model with a vision tower whose files do not say how pictures are prepared.
    #[error("{}: a model with a vision tower, and no preprocessor_config.json beside it; add that of the model", folder.display())]
    NoProcessor {
        /// The model's folder.
        folder: PathBuf,
    },
    /// A prompt with another number of places for pictures than there are pictures.
    #[error(
        "the prompt has {places} places for {pictures} pictures: each picture needs one, which the chat template writes; text must not have the picture token's name"
    )]
    PicturePlaces {
        /// Places.
        places: usize,
        /// Pictures.
        pictures: usize,
    },
    /// A tokenizer that does not know the tokens of a picture.
    #[error(
        "the tokenizer makes {found} picture tokens of the text of {wanted}: the picture token is none of its special tokens; add the tokenizer of the model"
    )]
    PictureMarkup {
        /// How many it makes.
        found: usize,
        /// How many the picture has rows.
        wanted: usize,
    },
    /// A prompt for vectors that there is not.
    #[error("the model has no prompt {name:?}; it has: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })]
    Prompt {
        /// What was asked for.
        name: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// An instruction for a model that reads none.
    #[error("the model reads a query and a text alone; leave the instruction out, or use a reranker that is a decoder")]
    Instruction,
    /// An encoder's files without a tokenizer.
    #[error("{model}: the model has no tokenizer; give a folder or GGUF that holds one, or send token ids")]
    NoTokenizer {
        /// The model.
        model: String,
    },
    /// Stop strings for a model that has no texts.
    #[error("the model has no tokenizer, so no text that could end at one of {count} stop strings; give stop ids")]
    NoText {
        /// Stop strings of the job.
        count: usize,
    },
    /// More jobs than may be open at once.
    #[error("{most} requests are open, as many as the model takes; send it again when some have ended")]
    Busy {
        /// How many may be open.
        most: usize,
    },
    /// An answer that nobody reads.
    #[error("{bytes} bytes of the answer were not read, {most} may wait: it was ended; read the answer as it comes")]
    Unread {
        /// Bytes that waited.
        bytes: usize,
        /// Bytes that may wait.
        most: usize,
    },
    /// The system gives no thread.
    #[error("no thread for the engine: {0}")]
    Thread(std::io::Error),
    /// A step that failed.
    #[error("a step failed: {why}")]
    Step {
        /// What the device said.
        why: String,
    },
    /// The engine's thread has ended: every job of it ends so.
    #[error("the engine has stopped, load the model again: {why}")]
    Gone {
        /// What it died of.
        why: String,
    },
}
