//! Pictures of another size, in whole numbers as Pillow and torchvision compute them: first along rows, then along
//! columns, each rounded to 8 bits; weights are integers of so many binary places as the library's registers hold.

use crate::rgb::{CHANNELS, RgbImage};
use std::f64::consts::PI;

/// Which neighbours count for a pixel, and how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filter {
    Lanczos,
    Bilinear,
    Bicubic,
}

/// Whose integers the weights are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WeightPlaces {
    /// 22 binary places.
    Pillow,
    /// As many as let the largest weight fit 16 bits.
    Torchvision,
}

/// Most binary places of a weight.
const MOST_PLACES: u32 = 22;

impl Filter {
    /// Pixels on each side that count, where the picture does not shrink.
    fn reach(self) -> f64 {
        match self {
            Filter::Lanczos => 3.0,
            Filter::Bilinear => 1.0,
            Filter::Bicubic => 2.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        let distance = x.abs();
        match self {
            Filter::Bilinear => (1.0 - distance).max(0.0),
            Filter::Bicubic if distance < 1.0 => ((SHARP + 2.0) * distance - (SHARP + 3.0)) * distance * distance + 1.0,
            Filter::Bicubic if distance < 2.0 => (((distance - 5.0) * distance + 8.0) * distance - 4.0) * SHARP,
            Filter::Bicubic => 0.0,
            Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

/// The slope of the bicubic filter at a distance of 1.
const SHARP: f64 = -0.5;

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) }
}

/// Weights of the pixels from `first` on that make one.
struct Window {
    first: usize,
    weights: Vec<i64>,
}

/// For each of `to` pixels the weights of those of `from`, and their binary places.
fn windows(from: u32, to: u32, filter: Filter, places: WeightPlaces) -> (u32, Vec<Window>) {
    let scale = f64::from(from) / f64::from(to);
    let (reach, inverse) = (filter.reach() * scale.max(1.0), if scale >= 1.0 { 1.0 / scale } else { 1.0 });
    let exact: Vec<(usize, Vec<f64>)> = (0..to)
        .map(|at| {
            let centre = scale * (f64::from(at) + 0.5);
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(from as usize);
            let raw: Vec<f64> = (first..end).map(|i| filter.at((i as f64 - centre + 0.5) * inverse)).collect();
            let total: f64 = raw.iter().sum();
            (first, if total == 0.0 { raw } else { raw.iter().map(|w| w / total).collect() })
        })
        .collect();
    let largest = exact.iter().flat_map(|(_, weights)| weights).copied().fold(0.0, f64::max);
    let places = match places {
        WeightPlaces::Pillow => MOST_PLACES,
        WeightPlaces::Torchvision => {
            let fits = |places: &u32| ((0.5 + largest * f64::from(1u32 << (places + 1))) as i64) < 1 << 15;
            (0..MOST_PLACES).take_while(fits).count() as u32
        }
    };
    let whole = |w: &f64| {
        let w = w * f64::from(1u32 << places);
        if w < 0.0 { (w - 0.5) as i64 } else { (w + 0.5) as i64 }
    };
    let window = |(first, weights): (usize, Vec<f64>)| Window { first, weights: weights.iter().map(whole).collect() };
    (places, exact.into_iter().map(window).collect())
}

/// The picture with rows of `width` pixels.
fn along_rows(image: &RgbImage, width: u32, filter: Filter, places: WeightPlaces) -> RgbImage {
    let (places, windows) = windows(image.width, width, filter, places);
    let mut bytes = Vec::with_capacity(width as usize * image.height as usize * CHANNELS);
    for row in image.bytes.chunks_exact(image.width as usize * CHANNELS) {
        for window in &windows {
            let pixels = row[window.first * CHANNELS..].chunks_exact(CHANNELS);
            let mut sums = [1i64 << places >> 1; CHANNELS];
            for (pixel, weight) in pixels.zip(&window.weights) {
                sums.iter_mut().zip(pixel).for_each(|(sum, &sample)| *sum += i64::from(sample) * weight);
            }
            bytes.extend(sums.map(|sum| (sum >> places).clamp(0, 255) as u8));
        }
    }
    RgbImage { width, height: image.height, bytes }
}

/// The picture with `height` rows.
fn along_columns(image: &RgbImage, height: u32, filter: Filter, places: WeightPlaces) -> RgbImage {
    let (places, windows) = windows(image.height, height, filter, places);
    let row = image.width as usize * CHANNELS;
    let mut bytes = Vec::with_capacity(row * height as usize);
    let mut sums = vec![0i64; row];
    for window in &windows {
        sums.fill(1i64 << places >> 1);
        for (samples, weight) in image.bytes[window.first * row..].chunks_exact(row).zip(&window.weights) {
            sums.iter_mut().zip(samples).for_each(|(sum, &sample)| *sum += i64::from(sample) * weight);
        }
        bytes.extend(sums.iter().map(|sum| (sum >> places).clamp(0, 255) as u8));
    }
    RgbImage { width: image.width, height, bytes }
}

/// The picture in another size, which [`check_size`](crate::rgb::check_size) has passed.
pub(crate) fn resize(image: RgbImage, [width, height]: [u32; 2], filter: Filter, places: WeightPlaces) -> RgbImage {
    let wide = if image.width == width { image } else { along_rows(&image, width, filter, places) };
    if wide.height == height { wide } else { along_columns(&wide, height, filter, places) }
}
