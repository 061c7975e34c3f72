//! Files of pictures, decoded. A size is checked before anything of it is made.

use crate::error::ImageError;
use crate::limits::{MAX_FILE_BYTES, MAX_PIXELS};
use crate::orientation::{stated, upright};
use crate::rgb::{CHANNELS, RgbImage, check_size};
use std::io::Cursor;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Bytes that a decoder may take beside the picture: tables, and what is interlaced.
const WORK_BYTES: usize = 4 * MAX_PIXELS as usize + (64 << 20);

/// The picture of a PNG, JPEG or WebP file: upright as its EXIF data say, in 8 bits, over white where it is not opaque,
/// the first one where it has several.
///
/// # Errors
/// [`ImageError::FileBytes`], [`ImageError::Format`], [`ImageError::Pixels`], [`ImageError::Decode`].
pub fn decode(file: &[u8]) -> Result<RgbImage, ImageError> {
    if file.len() > MAX_FILE_BYTES {
        return Err(ImageError::FileBytes { bytes: file.len() });
    }
    let (image, orientation) = match file {
        [0x89, b'P', b'N', b'G', ..] => of_png(file)?,
        [0xff, 0xd8, 0xff, ..] => of_jpeg(file)?,
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => of_webp(file)?,
        _ => return Err(ImageError::Format),
    };
    Ok(upright(image, orientation))
}

fn wrong(format: &'static str) -> impl Fn(&dyn std::fmt::Display) -> ImageError {
    move |why| ImageError::Decode { format, why: why.to_string() }
}

fn of_png(file: &[u8]) -> Result<(RgbImage, u8), ImageError> {
    let wrong = wrong("PNG");
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), png::Limits { bytes: WORK_BYTES });
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let (width, height) = decoder.read_header_info().map_err(|e| wrong(&e))?.size();
    check_size(width.into(), height.into())?;
    let mut reader = decoder.read_info().map_err(|e| wrong(&e))?;
    let bytes = reader.output_buffer_size().ok_or(ImageError::Pixels { width: width.into(), height: height.into() })?;
    let mut samples = vec![0; bytes];
    let info = reader.next_frame(&mut samples).map_err(|e| wrong(&e))?;
    let whole = (info.width, info.height) == (width, height);
    if !whole || info.bit_depth != png::BitDepth::Eight {
        return Err(wrong(&format!("its first frame is {} x {} in {:?}", info.width, info.height, info.bit_depth)));
    }
    let image = RgbImage::of_samples(width, height, &samples[..info.buffer_size()], info.color_type.samples());
    let orientation = reader.info().exif_metadata.as_deref().map_or(1, stated);
    Ok((image, orientation))
}

fn of_jpeg(file: &[u8]) -> Result<(RgbImage, u8), ImageError> {
    let wrong = wrong("JPEG");
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(|e| wrong(&e))?;
    let info = decoder.info().ok_or_else(|| wrong(&"it states no size"))?;
    let (width, height) = (u32::from(info.width), u32::from(info.height));
    check_size(width.into(), height.into())?;
    let bytes = decoder.decode().map_err(|e| wrong(&e))?;
    let colours = decoder.output_colorspace().map_or(0, |space| space.num_components());
    if colours == 0 || colours > CHANNELS || bytes.len() != width as usize * height as usize * colours {
        return Err(wrong(&format!("{} bytes come of {width} x {height} pixels", bytes.len())));
    }
    let orientation = decoder.exif().map_or(1, |exif| stated(exif));
    Ok((RgbImage::of_samples(width, height, &bytes, colours), orientation))
}

fn of_webp(file: &[u8]) -> Result<(RgbImage, u8), ImageError> {
    let wrong = wrong("WebP");
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(file)).map_err(|e| wrong(&e))?;
    let (width, height) = decoder.dimensions();
    check_size(width.into(), height.into())?;
    decoder.set_memory_limit(WORK_BYTES);
    let bytes =
        decoder.output_buffer_size().ok_or(ImageError::Pixels { width: width.into(), height: height.into() })?;
    let mut samples = vec![0; bytes];
    if decoder.is_animated() {
        decoder.read_frame(&mut samples).map_err(|e| wrong(&e))?;
    } else {
        decoder.read_image(&mut samples).map_err(|e| wrong(&e))?;
    }
    let channels = if decoder.has_alpha() { 4 } else { CHANNELS };
    let exif = decoder.exif_metadata().map_err(|e| wrong(&e))?;
    let orientation = exif.as_deref().map_or(1, stated);
    Ok((RgbImage::of_samples(width, height, &samples, channels), orientation))
}
