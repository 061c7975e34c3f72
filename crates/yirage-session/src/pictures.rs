//! Pictures of a conversation: from files to numbers, and to their places in a prompt.
//!
//! A prompt has one token for each picture when a template has made it. Here that token becomes as many as the picture
//! has rows; the engine's thread makes the rows.

use crate::error::SessionError;
use std::path::Path;
use std::sync::Arc;
use yirage_engine::{Picture, VisionTower};
use yirage_image::limits::{MAX_FILE_BYTES, MAX_SETTINGS_BYTES};
use yirage_image::{ImageProcessor, RgbImage, decode};
use yirage_mmap::{read_bytes, read_bytes_if_there};
use yirage_model::arch::{build_tower, picture_token};
use yirage_model::{Checkpoint, RawConfig};

/// The files that may have a processor's settings, the first that is there.
const SETTINGS: [&str; 2] = ["preprocessor_config.json", "processor_config.json"];

/// Why pictures for the model of `checkpoint` would be refused although it is made for them. Its language model runs all the
/// same. None where they are read, and for models that are not made for pictures.
///
/// # Errors
/// A configuration that cannot be read.
pub fn why_no_pictures(checkpoint: &Checkpoint) -> Result<Option<SessionError>, SessionError> {
    let config = RawConfig::load(checkpoint)?;
    if picture_token(&config)?.is_none() {
        return Ok(None);
    }
    let tower = build_tower(checkpoint, &config).map_err(SessionError::from);
    Ok(tower.map(|_| ()).and_then(|()| processor(checkpoint).map(|_| ())).err())
}

/// The processor of a checkpoint's model.
fn processor(checkpoint: &Checkpoint) -> Result<ImageProcessor, SessionError> {
    let folder = checkpoint.folder().unwrap_or(Path::new(""));
    for name in SETTINGS {
        let path = folder.join(name);
        if let Some(bytes) = read_bytes_if_there(&path, MAX_SETTINGS_BYTES)? {
            return Ok(ImageProcessor::from_json(&bytes, &path.display().to_string())?);
        }
    }
    Err(SessionError::NoProcessor { folder: folder.to_path_buf() })
}

/// A picture with its place in a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedPicture {
    /// The token in whose place its first row stands.
    pub at: usize,
    /// The picture.
    pub picture: Arc<Picture>,
}

/// How a model's pictures are read.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureReader {
    processor: ImageProcessor,
    token: u32,
    rows: u32,
}

impl PictureReader {
    /// That of a checkpoint with this tower.
    ///
    /// # Errors
    /// [`SessionError::NoProcessor`], [`SessionError::Picture`] for settings that are not understood.
    pub(crate) fn load(checkpoint: &Checkpoint, tower: &VisionTower) -> Result<PictureReader, SessionError> {
        Ok(PictureReader { processor: processor(checkpoint)?, token: tower.token(), rows: tower.rows() })
    }

    /// The picture in a file.
    ///
    /// # Errors
    /// As [`PictureReader::read`]; [`SessionError::File`].
    pub fn open(&self, path: &Path) -> Result<Arc<Picture>, SessionError> {
        self.read(&read_bytes(path, MAX_FILE_BYTES as u64)?)
    }

    /// The picture of a file's bytes, as the model reads it.
    ///
    /// # Errors
    /// [`SessionError::Picture`].
    pub fn read(&self, file: &[u8]) -> Result<Arc<Picture>, SessionError> {
        self.prepare(decode(file)?)
    }

    /// A picture as the model reads it.
    ///
    /// # Errors
    /// [`SessionError::Picture`].
    pub fn prepare(&self, image: RgbImage) -> Result<Arc<Picture>, SessionError> {
        let pixels = self.processor.values(image)?;
        Ok(Arc::new(Picture { width: pixels.width, height: pixels.height, values: pixels.values }))
    }

    /// A prompt with a token for each row of `pictures`, whose places are the picture tokens of `ids` in order.
    ///
    /// # Errors
    /// [`SessionError::PicturePlaces`] for another number of places than pictures.
    pub fn place(
        &self,
        ids: &[u32],
        pictures: Vec<Arc<Picture>>,
    ) -> Result<(Vec<u32>, Vec<PlacedPicture>), SessionError> {
        let places = ids.iter().filter(|&&id| id == self.token).count();
        if places != pictures.len() {
            return Err(SessionError::PicturePlaces { places, pictures: pictures.len() });
        }
        let (mut prompt, mut placed, mut pictures) = (Vec::with_capacity(ids.len()), Vec::new(), pictures.into_iter());
        for &id in ids {
            match (id == self.token).then(|| pictures.next()).flatten() {
                None => prompt.push(id),
                Some(picture) => {
                    placed.push(PlacedPicture { at: prompt.len(), picture });
                    prompt.extend(std::iter::repeat_n(id, self.rows as usize));
                }
            }
        }
        Ok((prompt, placed))
    }
}
