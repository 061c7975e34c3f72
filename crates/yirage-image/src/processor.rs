//! A model's processor: the settings of `preprocessor_config.json` or `processor_config.json`, and what they make of a
//! picture. Resized, cut from the middle, scaled, normalised: what the processors of CLIP, SigLIP and LLaVA share; cut into
//! tiles by those of Idefics3 and SmolVLM. This module does not know which model reads the numbers.

use crate::error::ImageError;
use crate::normalize::Normalization;
use crate::resize::{Filter, WeightPlaces, resize};
use crate::rgb::{CHANNELS, RgbImage, check_size};
use crate::tiling::{PictureTiles, PictureTiling};
use serde_json::{Map, Value};

/// Largest side that a setting may state.
const LARGEST_SIDE: u32 = 1 << 15;

/// The processors that are known, without what says whose arithmetic they use.
const KNOWN: [&str; 5] = [
    "CLIPImageProcessor",
    "SiglipImageProcessor",
    "LlavaImageProcessor",
    "Idefics3ImageProcessor",
    "SmolVLMImageProcessor",
];

/// Those that cut pictures into tiles.
const TILING: [&str; 2] = ["Idefics3ImageProcessor", "SmolVLMImageProcessor"];

/// CLIP's mean and deviation of red, green and blue.
const CLIP_STATISTICS: ([f64; CHANNELS], [f64; CHANNELS]) =
    ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]);

/// What a picture is resized to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TargetSize {
    /// Whose shorter side is this long; the other keeps the ratio.
    ShortestEdge(u32),
    /// Width and height.
    Exact([u32; 2]),
}

/// A processor of pictures.
#[derive(Clone, PartialEq, Debug)]
pub struct ImageProcessor {
    library: WeightPlaces,
    resize: Option<(TargetSize, Filter)>,
    /// Width and height of the middle part.
    crop: Option<[u32; 2]>,
    /// How it is cut into tiles, in the place of both.
    tiling: Option<PictureTiling>,
    normalization: Normalization,
}

/// ProcessorSettings with the file that has them.
struct ProcessorSettings<'a> {
    file: &'a str,
    values: &'a Map<String, Value>,
}

impl ImageProcessor {
    /// The processor of a settings file, which errors call `file`. What a file may leave out is what its processor's
    /// class says.
    ///
    /// # Errors
    /// [`ImageError::Setting`], [`ImageError::Unsupported`].
    pub fn from_json(bytes: &[u8], file: &str) -> Result<ImageProcessor, ImageError> {
        let wrong = |found: String| ImageError::Setting {
            file: file.into(),
            key: "the file".into(),
            expected: "a JSON object of settings".into(),
            found,
        };
        let whole: Value = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        // A file for the whole of a model keeps those of pictures as a part.
        let values = whole.get("image_processor").unwrap_or(&whole).as_object();
        ProcessorSettings { file, values: values.ok_or_else(|| wrong("something else".into()))? }.processor()
    }

    /// The numbers that the model reads of a picture.
    ///
    /// # Errors
    /// [`ImageError::Pixels`] for one that would become too large, [`ImageError::Tiles`] for one of too many tiles.
    pub fn tiles(&self, image: RgbImage) -> Result<PictureTiles, ImageError> {
        let (rows, columns, images) = match &self.tiling {
            None => (0, 0, vec![self.whole(image)?]),
            Some(tiling) => tiling.cut(image, self.library)?,
        };
        let tiles = images.iter().map(|image| self.normalization.values(image, self.library)).collect();
        Ok(PictureTiles { rows, columns, tiles })
    }

    /// The part of a resized picture that is read, where it is not cut into tiles.
    fn whole(&self, image: RgbImage) -> Result<RgbImage, ImageError> {
        let resized = match self.resize {
            None => image,
            Some((target, filter)) => {
                let [width, height] = target.of(&image);
                check_size(width, height)?;
                // Between the two directions the picture has the width of the one and the height of the other.
                check_size(width, image.height.into())?;
                resize(image, [width as u32, height as u32], filter, self.library)
            }
        };
        Ok(match self.crop {
            None => resized,
            Some(size) => middle(&resized, size),
        })
    }
}

impl TargetSize {
    /// Width and height of a picture in this size.
    fn of(self, image: &RgbImage) -> [u64; 2] {
        match self {
            TargetSize::Exact(size) => size.map(u64::from),
            TargetSize::ShortestEdge(short) => {
                let (width, height) = (image.width, image.height);
                let long = u64::from(short) * u64::from(width.max(height)) / u64::from(width.min(height));
                if width <= height { [short.into(), long] } else { [long, short.into()] }
            }
        }
    }
}

/// The middle of a picture, with black around it where it is too small.
fn middle(image: &RgbImage, [width, height]: [u32; 2]) -> RgbImage {
    // Where in the picture the part begins: before it, where the picture is the smaller one.
    let begin = |whole: u32, part: u32| {
        if part > whole { -(i64::from(part - whole) / 2) } else { i64::from(whole - part) / 2 }
    };
    let (left, top) = (begin(image.width, width), begin(image.height, height));
    RgbImage::drawn(width, height, |x, y| {
        let inside = |at: usize, begin: i64, whole: u32| {
            usize::try_from(at as i64 + begin).ok().filter(|&at| at < whole as usize)
        };
        match (inside(x, left, image.width), inside(y, top, image.height)) {
            (Some(x), Some(y)) => image.pixel(x, y),
            _ => [0; CHANNELS],
        }
    })
}

impl ProcessorSettings<'_> {
    fn processor(&self) -> Result<ImageProcessor, ImageError> {
        let stated = ["image_processor_type", "feature_extractor_type"].iter().find_map(|key| self.get(key));
        let class = match stated {
            None => "CLIPImageProcessor",
            Some(name) => name.as_str().ok_or_else(|| self.wrong("image_processor_type", "a name"))?,
        };
        let base = ["Fast", "Pil"].iter().find_map(|end| class.strip_suffix(end)).unwrap_or(class);
        let base = base.replace("FeatureExtractor", "ImageProcessor");
        if !KNOWN.contains(&base.as_str()) {
            return Err(
                self.unsupported(format!("the processor {class}"), format!("these are known: {}", KNOWN.join(", ")))
            );
        }
        if TILING.contains(&base.as_str()) {
            return self.tiling_processor(class);
        }
        if self.is("do_pad", false)? {
            return Err(self.unsupported("`do_pad`".into(), "pictures are cut from the middle, not padded".into()));
        }
        let siglip = base == "SiglipImageProcessor";
        let size = || if siglip { TargetSize::Exact([224; 2]) } else { TargetSize::ShortestEdge(224) };
        let resize = match self.is("do_resize", true)? {
            true => Some((self.target(size)?, self.filter_or(Filter::Bicubic)?)),
            false => None,
        };
        let crop = match self.is("do_center_crop", !siglip)? {
            true => Some(self.crop()?),
            false => None,
        };
        let usual = if siglip { ([0.5; CHANNELS], [0.5; CHANNELS]) } else { CLIP_STATISTICS };
        let library = if class.ends_with("Pil") { WeightPlaces::Pillow } else { WeightPlaces::Torchvision };
        Ok(ImageProcessor { library, resize, crop, tiling: None, normalization: self.normalization(usual)? })
    }

    /// A processor that cuts pictures into tiles. All of them are as large as the tower reads, so `do_pad` changes nothing.
    fn tiling_processor(&self, class: &str) -> Result<ImageProcessor, ImageError> {
        if class.ends_with("Pil") {
            return Err(self.unsupported(format!("the processor {class}"), "tiles are cut as torchvision does".into()));
        }
        let side = |key: &str, usual: u32| {
            let Some(value) = self.get(key) else { return Ok(usual) };
            let stated = value.get("longest_edge").and_then(side);
            stated.ok_or_else(|| self.wrong(key, "{\"longest_edge\": n}, n from 1 to 32768"))
        };
        let longest = match self.is("do_resize", true)? {
            true => Some(side("size", 4 * 364)?),
            false => None,
        };
        let (side, split) = (side("max_image_size", 364)?, self.is("do_image_splitting", true)?);
        let tiling = PictureTiling { longest, side, split, filter: self.filter_or(Filter::Lanczos)? };
        let normalization = self.normalization(([0.5; CHANNELS], [0.5; CHANNELS]))?;
        let library = WeightPlaces::Torchvision;
        Ok(ImageProcessor { library, resize: None, crop: None, tiling: Some(tiling), normalization })
    }

    /// What is done to samples; `usual` are mean and deviation of a file that states none.
    fn normalization(&self, usual: ([f64; CHANNELS], [f64; CHANNELS])) -> Result<Normalization, ImageError> {
        let statistics = match self.is("do_normalize", true)? {
            true => Some((self.colours("image_mean", usual.0)?, self.colours("image_std", usual.1)?)),
            false => None,
        };
        let rescale = match self.is("do_rescale", true)? {
            true => Some(self.factor()?),
            false => None,
        };
        Ok(Normalization { rescale, statistics })
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str) -> ImageError {
        let found =
            self.get(key).map_or_else(|| "nothing".to_owned(), |value| value.to_string().chars().take(80).collect());
        ImageError::Setting { file: self.file.into(), key: key.into(), expected: expected.into(), found }
    }

    fn unsupported(&self, what: String, why: String) -> ImageError {
        ImageError::Unsupported { file: self.file.into(), what, why }
    }

    fn is(&self, key: &str, usual: bool) -> Result<bool, ImageError> {
        self.get(key).map_or(Ok(usual), |value| value.as_bool().ok_or_else(|| self.wrong(key, "true or false")))
    }

    fn target(&self, usual: impl Fn() -> TargetSize) -> Result<TargetSize, ImageError> {
        const EXPECTED: &str = "{\"shortest_edge\": n} or {\"height\": n, \"width\": n}, n from 1 to 32768";
        let Some(value) = self.get("size") else { return Ok(usual()) };
        let side = |key: &str| value.get(key).and_then(side);
        let given = match (side("width"), side("height")) {
            (Some(width), Some(height)) => Some(TargetSize::Exact([width, height])),
            // What files of the first generation say as one number.
            _ => self::side(value).or(side("shortest_edge")).map(TargetSize::ShortestEdge),
        };
        if value.get("longest_edge").is_some_and(|v| !v.is_null()) {
            return Err(
                self.unsupported("`size.longest_edge`".into(), "pictures get a size by their shorter side".into())
            );
        }
        given.ok_or_else(|| self.wrong("size", EXPECTED))
    }

    fn crop(&self) -> Result<[u32; 2], ImageError> {
        let Some(value) = self.get("crop_size") else { return Ok([224; 2]) };
        let sides = value.get("width").and_then(side).zip(value.get("height").and_then(side));
        let sides = sides.map(|(width, height)| [width, height]).or_else(|| side(value).map(|n| [n; 2]));
        let sides = sides.ok_or_else(|| self.wrong("crop_size", "{\"height\": n, \"width\": n}, n from 1 to 32768"))?;
        check_size(sides[0].into(), sides[1].into())?;
        Ok(sides)
    }

    fn filter_or(&self, usual: Filter) -> Result<Filter, ImageError> {
        let Some(stated) = self.get("resample") else { return Ok(usual) };
        match stated.as_u64() {
            Some(1) => Ok(Filter::Lanczos),
            Some(2) => Ok(Filter::Bilinear),
            Some(3) => Ok(Filter::Bicubic),
            _ => Err(self.wrong("resample", "1 (Lanczos), 2 (bilinear) or 3 (bicubic)")),
        }
    }

    fn colours(&self, key: &str, usual: [f64; CHANNELS]) -> Result<[f64; CHANNELS], ImageError> {
        let Some(value) = self.get(key) else { return Ok(usual) };
        let list = value.as_array().and_then(|list| list.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>());
        let list = list.and_then(|list| <[f64; CHANNELS]>::try_from(list).ok());
        let fits = |list: &[f64; CHANNELS]| list.iter().all(|x| x.is_finite() && (key == "image_mean" || *x > 0.0));
        list.filter(fits).ok_or_else(|| self.wrong(key, "three numbers, above 0 if they are deviations"))
    }

    fn factor(&self) -> Result<f64, ImageError> {
        let Some(value) = self.get("rescale_factor") else { return Ok(1.0 / 255.0) };
        value
            .as_f64()
            .filter(|x| x.is_finite() && *x > 0.0)
            .ok_or_else(|| self.wrong("rescale_factor", "a number above 0"))
    }
}

fn side(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=LARGEST_SIDE).contains(n))
}
