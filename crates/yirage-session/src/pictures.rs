//! Pictures of a conversation: from files to numbers, and to their places in a prompt.
//!
//! A prompt has one token for each picture when a template has made it. Here that token becomes as many as the picture
//! has rows, with what the model's family puts around and between its tiles; the engine's thread makes the rows. This module
//! does not know how a tower computes.

use crate::error::SessionError;
use crate::named_tiles;
use crate::texts::TextProcessor;
use std::path::Path;
use std::sync::Arc;
use yirage_engine::{Picture, VisionTower};
use yirage_image::limits::{MAX_FILE_BYTES, MAX_SETTINGS_BYTES};
use yirage_image::{ImageProcessor, PixelValues, RgbImage, decode};
use yirage_mmap::{read_bytes, read_bytes_if_there};
use yirage_model::arch::{PictureMarkup, build_tower, picture_token};
use yirage_model::tokenizer::EncodeOptions;
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

/// What a tower reads at once, a picture or a tile of one, with its place in a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedPicture {
    /// The token in whose place its first row stands.
    pub at: usize,
    /// What the tower reads.
    pub picture: Arc<Picture>,
}

/// A picture as a model reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedPicture {
    /// What its place in a prompt becomes.
    ids: Vec<u32>,
    /// What the tower reads, in the order of the picture tokens of `ids`.
    tiles: Vec<Arc<Picture>>,
}

/// How a model's pictures are read.
#[derive(Clone)]
pub struct PictureReader {
    processor: ImageProcessor,
    token: u32,
    /// Rows of what the tower reads at once.
    rows: u32,
    /// What makes ids of the text around tiles, where there is one.
    names: Option<Arc<TextProcessor>>,
}

impl PictureReader {
    /// That of a checkpoint with this tower and these texts.
    ///
    /// # Errors
    /// [`SessionError::NoProcessor`], [`SessionError::Picture`] for settings that are not understood,
    /// [`SessionError::NoTokenizer`] where tiles have names and there is none.
    pub(crate) fn load(
        checkpoint: &Checkpoint,
        tower: &VisionTower,
        texts: Option<&Arc<TextProcessor>>,
    ) -> Result<PictureReader, SessionError> {
        let none = || SessionError::NoTokenizer { model: checkpoint.label() };
        let names = match tower.markup() {
            PictureMarkup::Rows => None,
            PictureMarkup::NamedTiles => Some(texts.ok_or_else(none)?.clone()),
        };
        Ok(PictureReader { processor: processor(checkpoint)?, token: tower.token(), rows: tower.rows(), names })
    }

    /// The picture in a file.
    ///
    /// # Errors
    /// As [`PictureReader::read`]; [`SessionError::File`].
    pub fn open(&self, path: &Path) -> Result<Arc<PreparedPicture>, SessionError> {
        self.read(&read_bytes(path, MAX_FILE_BYTES as u64)?)
    }

    /// The picture of a file's bytes, as the model reads it.
    ///
    /// # Errors
    /// [`SessionError::Picture`].
    pub fn read(&self, file: &[u8]) -> Result<Arc<PreparedPicture>, SessionError> {
        self.prepare(decode(file)?)
    }

    /// A picture as the model reads it.
    ///
    /// # Errors
    /// [`SessionError::Picture`].
    pub fn prepare(&self, image: RgbImage) -> Result<Arc<PreparedPicture>, SessionError> {
        let cut = self.processor.tiles(image)?;
        let picture =
            |pixels: PixelValues| Picture { width: pixels.width, height: pixels.height, values: pixels.values };
        let ids = self.ids(cut.rows, cut.columns, cut.tiles.len())?;
        Ok(Arc::new(PreparedPicture {
            ids,
            tiles: cut.tiles.into_iter().map(|tile| Arc::new(picture(tile))).collect(),
        }))
    }

    /// What the place of a picture of so many tiles becomes.
    fn ids(&self, rows: u32, columns: u32, tiles: usize) -> Result<Vec<u32>, SessionError> {
        let wanted = tiles * self.rows as usize;
        let Some(texts) = &self.names else { return Ok(vec![self.token; wanted]) };
        let piece = texts.tokenizer.piece(self.token).unwrap_or_default();
        let text = named_tiles::text(rows, columns, piece, self.rows as usize);
        let ids = texts.tokenizer.encode(&text, EncodeOptions { add_special: false, parse_special: true })?;
        let found = ids.iter().filter(|&&id| id == self.token).count();
        if found == wanted { Ok(ids) } else { Err(SessionError::PictureMarkup { found, wanted }) }
    }

    /// A prompt with what each of `pictures` becomes, whose places are the picture tokens of `ids` in order.
    ///
    /// # Errors
    /// [`SessionError::PicturePlaces`] for another number of places than pictures.
    pub fn place(
        &self,
        ids: &[u32],
        pictures: Vec<Arc<PreparedPicture>>,
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
                    let begin = prompt.len();
                    let rows = (0..picture.ids.len()).filter(|&at| picture.ids[at] == self.token);
                    let firsts = rows.step_by(self.rows as usize).map(|at| begin + at);
                    let tiles = firsts.zip(&picture.tiles);
                    placed.extend(tiles.map(|(at, tile)| PlacedPicture { at, picture: tile.clone() }));
                    prompt.extend(&picture.ids);
                }
            }
        }
        Ok((prompt, placed))
    }
}
