//! Pictures of 8 bits for each of red, green and blue, and the numbers that a model reads.

use crate::error::ImageError;
use crate::limits::MAX_PIXELS;

/// A picture. Rows lie one after the other from the top, each pixel as red, green, blue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RgbImage {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Numbers made of a picture: all of red, then green, then blue, each row by row from the top.
#[derive(Clone, PartialEq, Debug)]
pub struct PixelValues {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// `3 * height * width` of them.
    pub values: Vec<f32>,
}

/// Red, green and blue.
pub(crate) const CHANNELS: usize = 3;

impl RgbImage {
    /// Pixels of a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Red, green and blue of each pixel.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A picture of samples that are no file: rows one after the other, with `channels` for each pixel as
    /// grey, grey and opacity, colours, colours and opacity. What is not opaque is laid over white.
    ///
    /// # Errors
    /// [`ImageError::Pixels`], [`ImageError::Samples`].
    pub fn from_samples(width: u32, height: u32, samples: &[u8], channels: usize) -> Result<RgbImage, ImageError> {
        check_size(width.into(), height.into())?;
        let pixels = width as usize * height as usize;
        if !(1..=4).contains(&channels) || samples.len() != pixels * channels {
            return Err(ImageError::Samples { width, height, channels, bytes: samples.len() });
        }
        Ok(RgbImage::of_samples(width, height, samples, channels))
    }

    /// A picture of samples with `channels` for each pixel: grey, grey and opacity, colours, colours and opacity. What is
    /// not opaque is laid over white.
    pub(crate) fn of_samples(width: u32, height: u32, samples: &[u8], channels: usize) -> RgbImage {
        let mut bytes = Vec::with_capacity(samples.len() / channels * CHANNELS);
        for pixel in samples.chunks_exact(channels) {
            match *pixel {
                [grey] => bytes.extend([grey; CHANNELS]),
                [grey, opacity] => bytes.extend([over_white(grey, opacity); CHANNELS]),
                [r, g, b] => bytes.extend([r, g, b]),
                [r, g, b, opacity] => bytes.extend([r, g, b].map(|c| over_white(c, opacity))),
                _ => {}
            }
        }
        RgbImage { width, height, bytes }
    }

    /// The pixel at a place, which lies within the picture.
    pub(crate) fn pixel(&self, x: usize, y: usize) -> [u8; CHANNELS] {
        let at = (y * self.width as usize + x) * CHANNELS;
        [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2]]
    }

    /// A picture of this size whose pixels `of` gives by place.
    pub(crate) fn drawn(width: u32, height: u32, of: impl Fn(usize, usize) -> [u8; CHANNELS]) -> RgbImage {
        let places = (0..height as usize).flat_map(|y| (0..width as usize).map(move |x| (x, y)));
        RgbImage { width, height, bytes: places.flat_map(|(x, y)| of(x, y)).collect() }
    }
}

/// A sample over white, rounded as Pillow's `alpha_composite` does.
fn over_white(sample: u8, opacity: u8) -> u8 {
    let (sample, opacity) = (u32::from(sample), u32::from(opacity));
    let sum = (sample * opacity + 255 * (255 - opacity)) * 128 + (128 << 7);
    ((((sum >> 8) + sum) >> 8) >> 7).min(255) as u8
}

/// Whether a picture may have this size.
///
/// # Errors
/// [`ImageError::Pixels`].
pub(crate) fn check_size(width: u64, height: u64) -> Result<(), ImageError> {
    match width.checked_mul(height) {
        Some(1..=MAX_PIXELS) => Ok(()),
        _ => Err(ImageError::Pixels { width, height }),
    }
}
