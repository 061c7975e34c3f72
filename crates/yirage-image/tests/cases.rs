//! Pictures and processors beside Pillow, torchvision and transformers, bit for bit; and files that are not what they say.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use yirage_image::limits::MAX_FILE_BYTES;
use yirage_image::{ImageError, ImageProcessor, RgbImage, decode};

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/cases.json")).unwrap()
}

fn picture(golden: &Value, name: &str) -> Vec<u8> {
    let text = golden["pictures"][name].as_str().unwrap();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn sha(bytes: impl IntoIterator<Item = u8>) -> String {
    let bytes: Vec<u8> = bytes.into_iter().collect();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn pictures_decode_to_the_bytes_of_pillow() {
    let golden = golden();
    let decoded = golden["decoded"].as_object().unwrap();
    assert!(decoded.len() >= 21);
    for (name, wanted) in decoded {
        let image = decode(&picture(&golden, name)).unwrap();
        let found = json!([image.width(), image.height(), sha(image.bytes().iter().copied())]);
        assert_eq!(found, *wanted, "{name}");
    }
}

#[test]
fn pixels_have_the_bits_of_each_processor() {
    let golden = golden();
    let mut count = 0;
    for case in golden["cases"].as_array().unwrap() {
        let settings = &case["processor"];
        let processor = ImageProcessor::from_json(settings.to_string().as_bytes(), "preprocessor_config.json").unwrap();
        let whole = json!({"image_processor": settings, "processor_class": "LlavaProcessor"});
        assert_eq!(
            ImageProcessor::from_json(whole.to_string().as_bytes(), "processor_config.json").unwrap(),
            processor
        );
        for (name, wanted) in case["pixels"].as_object().unwrap() {
            let made = processor.tiles(decode(&picture(&golden, name)).unwrap()).unwrap();
            let (width, height) = (made.tiles[0].width, made.tiles[0].height);
            let hash = sha(made.tiles.iter().flat_map(|tile| &tile.values).flat_map(|x| x.to_le_bytes()));
            let grid = wanted.get(3).map(|_| json!([made.rows, made.columns]));
            let found = [json!(width), json!(height), json!(hash)].into_iter().chain(grid).collect::<Vec<_>>();
            assert_eq!(json!(found), *wanted, "{name} by {settings}");
            count += 1;
        }
    }
    assert!(count >= 90, "{count}");
}

#[test]
fn a_damaged_file_is_refused_and_never_a_panic() {
    let golden = golden();
    for name in ["rgb", "palette-transparent", "webp-alpha", "turned-6", "turned-webp"] {
        let file = picture(&golden, name);
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0xa5;
            // Some bytes are of no account; whatever comes of it has the size that it says.
            if let Ok(image) = decode(&bad) {
                assert_eq!(image.bytes().len(), 3 * image.width() as usize * image.height() as usize);
            }
            let cut = decode(&file[..at]);
            assert!(cut.is_err() || at > file.len() / 2, "{name}: {at} of {} bytes", file.len());
        }
    }
}

#[test]
fn what_would_take_too_much_is_refused_before_it_does() {
    let golden = golden();
    let mut bomb = picture(&golden, "rgb");
    bomb[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    // The header's checksum, so that it is the size that is refused.
    let error = decode(&bomb).unwrap_err();
    assert!(matches!(error, ImageError::Decode { .. } | ImageError::Pixels { .. }), "{error}");
    let crc = [0x2bu8, 0x98, 0xbd, 0x56];
    bomb[29..33].copy_from_slice(&crc);
    let jpeg =
        [&[0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0xff, 0xff, 0xff, 0xff, 3][..], &[1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]]
            .concat();
    let error = decode(&jpeg).unwrap_err();
    assert!(matches!(error, ImageError::Decode { .. } | ImageError::Pixels { .. }), "{error}");
    assert_eq!(decode(&vec![0; MAX_FILE_BYTES + 1]), Err(ImageError::FileBytes { bytes: MAX_FILE_BYTES + 1 }));
    assert_eq!(decode(b"GIF89a"), Err(ImageError::Format));
    assert_eq!(decode(&[]), Err(ImageError::Format));
    let tall = ImageProcessor::from_json(br#"{"size": {"shortest_edge": 32000}}"#, "f").unwrap();
    let error = tall.tiles(decode(&picture(&golden, "tall")).unwrap()).unwrap_err();
    assert_eq!(error, ImageError::Pixels { width: 32000, height: 205_714 });
    let of_tiles = br#"{"image_processor_type": "Idefics3ImageProcessor", "max_image_size": {"longest_edge": 2}}"#;
    let of_tiles = ImageProcessor::from_json(of_tiles, "f").unwrap();
    let error = of_tiles.tiles(decode(&picture(&golden, "tall")).unwrap()).unwrap_err();
    assert_eq!(error, ImageError::Tiles { rows: 728, columns: 113 });
}

#[test]
fn samples_are_the_picture_of_their_file_and_have_its_size() {
    let golden = golden();
    let file = decode(&picture(&golden, "rgb")).unwrap();
    let (width, height, bytes) = (file.width(), file.height(), file.bytes());
    assert_eq!(RgbImage::from_samples(width, height, bytes, 3).unwrap(), file);
    let opaque: Vec<u8> = bytes.chunks(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect();
    assert_eq!(RgbImage::from_samples(width, height, &opaque, 4).unwrap(), file);
    assert_eq!(RgbImage::from_samples(1, 2, &[3, 0, 4, 255], 2).unwrap().bytes(), [255, 255, 255, 4, 4, 4]);
    assert_eq!(RgbImage::from_samples(1, 1, &[7], 1).unwrap().bytes(), [7; 3]);
    for (width, height, channels, count) in [(2, 2, 3, 11), (2, 2, 5, 20), (2, 2, 0, 0)] {
        let error = RgbImage::from_samples(width, height, &vec![0; count], channels).unwrap_err();
        assert_eq!(error, ImageError::Samples { width, height, channels, bytes: count });
    }
    for (width, height) in [(0, 4), (u32::MAX, u32::MAX), (1 << 14, 1 << 14)] {
        let error = RgbImage::from_samples(width, height, &[], 3).unwrap_err();
        assert_eq!(error, ImageError::Pixels { width: width.into(), height: height.into() });
    }
}

#[test]
fn settings_that_mean_something_else_are_named() {
    let refused = |text: &str| ImageProcessor::from_json(text.as_bytes(), "p.json").unwrap_err().to_string();
    let cases = [
        ("[]", "`the file`: expected a JSON object"),
        ("{", "`the file`"),
        (r#"{"image_processor_type": "Gemma3ImageProcessor"}"#, "the processor Gemma3ImageProcessor is not supported"),
        (
            r#"{"image_processor_type": "Idefics3ImageProcessorPil"}"#,
            "the processor Idefics3ImageProcessorPil is not supported",
        ),
        (
            r#"{"image_processor_type": "Idefics3ImageProcessor", "size": {"height": 9, "width": 9}}"#,
            "`size`: expected {\"longest_edge\": n}",
        ),
        (
            r#"{"image_processor_type": "SmolVLMImageProcessor", "max_image_size": {"longest_edge": 0}}"#,
            "`max_image_size`: expected {\"longest_edge\": n}",
        ),
        (r#"{"do_pad": true}"#, "`do_pad` is not supported"),
        (r#"{"do_resize": 1}"#, "`do_resize`: expected true or false, got 1"),
        (r#"{"size": {"shortest_edge": 0}}"#, "`size`: expected"),
        (r#"{"size": {"longest_edge": 30}}"#, "`size.longest_edge` is not supported"),
        (r#"{"size": 40000}"#, "`size`: expected"),
        (r#"{"crop_size": {"height": 3}}"#, "`crop_size`: expected"),
        (r#"{"resample": 0}"#, "`resample`: expected 1 (Lanczos)"),
        (r#"{"image_mean": [1, 2]}"#, "`image_mean`: expected three numbers"),
        (r#"{"image_std": [1, 2, 0]}"#, "`image_std`: expected three numbers"),
        (r#"{"rescale_factor": 0}"#, "`rescale_factor`: expected a number above 0"),
    ];
    for (text, words) in cases {
        let found = refused(text);
        assert!(found.starts_with("p.json: ") && found.contains(words), "{text}: {found}");
    }
    let old = ImageProcessor::from_json(
        br#"{"size": 32, "crop_size": 32, "feature_extractor_type": "CLIPFeatureExtractor"}"#,
        "f",
    );
    let new =
        ImageProcessor::from_json(br#"{"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}"#, "f");
    assert_eq!(old.unwrap(), new.unwrap());
}
