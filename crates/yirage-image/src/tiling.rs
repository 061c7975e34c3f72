//! Pictures cut into tiles of a tower's size, as the processors of Idefics3 and SmolVLM do. This module does not know what
//! becomes of a tile's samples.

use crate::error::ImageError;
use crate::limits::MAX_TILES;
use crate::resize::{Filter, WeightPlaces, resize};
use crate::rgb::{PixelValues, RgbImage, check_size};

/// Longest side of a picture before it is cut, whatever the settings say.
const LONGEST: u64 = 4096;

/// A picture as a model reads it: alone, or in tiles with the whole of it behind them.
#[derive(Clone, PartialEq, Debug)]
pub struct PictureTiles {
    /// Rows of tiles; 0 where the picture is not cut.
    pub rows: u32,
    /// Tiles of a row; 0 where the picture is not cut.
    pub columns: u32,
    /// The tiles row by row, then the whole picture.
    pub tiles: Vec<PixelValues>,
}

/// What a picture is resized to, and how it is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PictureTiling {
    /// The longer side of the picture before it is cut, where it is resized.
    pub(crate) longest: Option<u32>,
    /// Pixels of a tile's side.
    pub(crate) side: u32,
    /// Whether there are tiles beside the whole picture.
    pub(crate) split: bool,
    pub(crate) filter: Filter,
}

impl PictureTiling {
    /// Rows, columns, and the tiles of a picture.
    pub(crate) fn cut(&self, image: RgbImage, library: WeightPlaces) -> Result<(u32, u32, Vec<RgbImage>), ImageError> {
        let to = |image: RgbImage, [width, height]: [u64; 2]| -> Result<RgbImage, ImageError> {
            check_size(width, height)?;
            // Between the two directions the picture has the width of the one and the height of the other.
            check_size(width, image.height.into())?;
            Ok(resize(image, [width as u32, height as u32], self.filter, library))
        };
        let size = |image: &RgbImage| [u64::from(image.width), u64::from(image.height)];
        let image = match self.longest {
            None => image,
            Some(longest) => {
                let wanted = below(even(size(&image), longest.into()));
                to(image, wanted)?
            }
        };
        let side = u64::from(self.side);
        if !self.split {
            return Ok((0, 0, vec![to(image, [side; 2])?]));
        }
        let wanted = multiples(size(&image), side);
        let [columns, rows] = wanted.map(|pixels| pixels / side);
        if rows.saturating_mul(columns) > MAX_TILES {
            return Err(ImageError::Tiles { rows, columns });
        }
        let image = to(image, wanted)?;
        if rows == 1 && columns == 1 {
            return Ok((0, 0, vec![image]));
        }
        let places = (0..rows as usize).flat_map(|row| (0..columns as usize).map(move |column| (row, column)));
        let tile = |(row, column)| {
            let (left, top) = (column * self.side as usize, row * self.side as usize);
            RgbImage::drawn(self.side, self.side, |x, y| image.pixel(left + x, top + y))
        };
        let mut tiles: Vec<RgbImage> = places.map(tile).collect();
        tiles.push(to(image, [side; 2])?);
        Ok((rows as u32, columns as u32, tiles))
    }
}

/// Width and height with this longer side, the other one even.
fn even([width, height]: [u64; 2], longest: u64) -> [u64; 2] {
    let even = |n: f64| (n as u64).next_multiple_of(2).max(1);
    let ratio = width as f64 / height as f64;
    match width >= height {
        true => [longest.max(1), even(longest as f64 / ratio)],
        false => [even(longest as f64 * ratio), longest.max(1)],
    }
}

/// Width and height with a longer side of [`LONGEST`] at most.
fn below([width, height]: [u64; 2]) -> [u64; 2] {
    let ratio = width as f64 / height as f64;
    match width >= height {
        true if width > LONGEST => [LONGEST, ((LONGEST as f64 / ratio) as u64).max(1)],
        false if height > LONGEST => [((LONGEST as f64 * ratio) as u64).max(1), LONGEST],
        _ => [width, height],
    }
}

/// Width and height as multiples of a tile's side: the longer one the next, the other one the next of what keeps the ratio.
fn multiples([width, height]: [u64; 2], side: u64) -> [u64; 2] {
    let ratio = width as f64 / height as f64;
    match width >= height {
        true => {
            let width = width.next_multiple_of(side);
            [width, ((width as f64 / ratio) as u64).max(1).next_multiple_of(side)]
        }
        false => {
            let height = height.next_multiple_of(side);
            [((height as f64 * ratio) as u64).max(1).next_multiple_of(side), height]
        }
    }
}
