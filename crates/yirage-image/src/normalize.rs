//! From samples of 8 bits to the numbers that a model reads, in f32 and in the order of operations of each library.

use crate::resize::WeightPlaces;
use crate::rgb::{CHANNELS, PixelValues, RgbImage};

/// What is done to each sample.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Normalization {
    /// The factor of all samples, if they get one.
    pub(crate) rescale: Option<f64>,
    /// Mean and deviation of each channel, if they are taken out.
    pub(crate) statistics: Option<([f64; CHANNELS], [f64; CHANNELS])>,
}

impl Normalization {
    /// The value of a sample of a channel.
    fn of(&self, channel: usize, sample: u8, library: WeightPlaces) -> f32 {
        let statistics = self.statistics.map(|(mean, deviation)| (mean[channel] as f32, deviation[channel] as f32));
        let raw = f32::from(sample);
        match (library, self.rescale, statistics) {
            (_, None, None) => raw,
            (_, None, Some((mean, deviation))) => (raw - mean) / deviation,
            (WeightPlaces::Torchvision, Some(factor), None) => raw * factor as f32,
            // Both at once: the statistics get the scale of the samples.
            (WeightPlaces::Torchvision, Some(factor), Some((mean, deviation))) => {
                let inverse = (1.0 / factor) as f32;
                (raw - mean * inverse) / (deviation * inverse)
            }
            (WeightPlaces::Pillow, Some(factor), statistics) => {
                let scaled = (f64::from(sample) * factor) as f32;
                statistics.map_or(scaled, |(mean, deviation)| (scaled - mean) / deviation)
            }
        }
    }

    /// The numbers of a picture.
    pub(crate) fn values(&self, image: &RgbImage, library: WeightPlaces) -> PixelValues {
        // There are 256 samples of a channel, and millions of pixels.
        let tables: Vec<Vec<f32>> =
            (0..CHANNELS).map(|c| (0..=255).map(|sample| self.of(c, sample, library)).collect()).collect();
        let of_channel = |(channel, table): (usize, &Vec<f32>)| {
            let samples = image.bytes.iter().skip(channel).step_by(CHANNELS);
            samples.map(|&sample| table[usize::from(sample)]).collect::<Vec<f32>>()
        };
        let values = tables.iter().enumerate().flat_map(of_channel).collect();
        PixelValues { width: image.width, height: image.height, values }
    }
}
