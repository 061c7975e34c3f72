//! How a camera was held: the orientation that EXIF data state, and the picture upright.

use crate::rgb::RgbImage;

/// The tag of the orientation.
const ORIENTATION: u16 = 0x0112;
/// The type of a number of 16 bits.
const SHORT: u16 = 3;
/// Entries of a directory that are looked at.
const MAX_ENTRIES: u16 = 1024;

/// The orientation, 1 to 8, that EXIF data state; 1, upright, where they state none.
pub(crate) fn stated(exif: &[u8]) -> u8 {
    // What stands in front of the data in a JPEG segment stays there in some files of other formats.
    let data = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    read(data).filter(|n| (1..=8).contains(n)).map_or(1, |n| n as u8)
}

fn read(data: &[u8]) -> Option<u16> {
    let little = match data.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes: [u8; 2] = data.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes: [u8; 4] = data.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    let entries = short(directory)?.min(MAX_ENTRIES);
    let mut places = (0..usize::from(entries)).map(|entry| directory + 2 + 12 * entry);
    let at = places.find(|&at| short(at) == Some(ORIENTATION) && short(at + 2) == Some(SHORT))?;
    short(at + 8)
}

/// The picture as it is to be looked at.
pub(crate) fn upright(image: RgbImage, orientation: u8) -> RgbImage {
    let (width, height) = (image.width, image.height);
    let (right, bottom) = (width as usize - 1, height as usize - 1);
    match orientation {
        2 => RgbImage::drawn(width, height, |x, y| image.pixel(right - x, y)),
        3 => RgbImage::drawn(width, height, |x, y| image.pixel(right - x, bottom - y)),
        4 => RgbImage::drawn(width, height, |x, y| image.pixel(x, bottom - y)),
        5 => RgbImage::drawn(height, width, |x, y| image.pixel(y, x)),
        6 => RgbImage::drawn(height, width, |x, y| image.pixel(y, bottom - x)),
        7 => RgbImage::drawn(height, width, |x, y| image.pixel(right - y, bottom - x)),
        8 => RgbImage::drawn(height, width, |x, y| image.pixel(right - y, x)),
        _ => image,
    }
}
