//! Pictures: decoded within limits, and prepared as a model's processor does.
//!
//! A picture comes in as the bytes of a PNG, JPEG or WebP file and goes out as numbers of f32, the same bits that the
//! processor of the model gives in the `transformers` library. This crate knows no model and opens no file.
#![forbid(unsafe_code)]

mod decode;
mod error;
pub mod limits;
mod normalize;
mod orientation;
mod processor;
mod resize;
mod rgb;
mod tiling;

pub use decode::decode;
pub use error::ImageError;
pub use processor::ImageProcessor;
pub use rgb::{PixelValues, RgbImage};
pub use tiling::PictureTiles;
