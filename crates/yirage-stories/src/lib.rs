//! A small model that writes stories, as bytes of the program: it answers where nothing can be downloaded and nothing is
//! cached, and is the text of tests where text matters.
//!
//! 13.6 million weights of the Llama architecture as Q8_0, trained by `tools/train/story_model.py` on 277 English books for
//! children that are in the public domain; 3.10 nats a token on books it never read. The file suggests temperature 0.7 and
//! repetition penalty 1.15. `model/README.md` has more. Nothing here knows how to run it.
#![forbid(unsafe_code)]

/// What users call it.
pub const NAME: &str = "yirage-stories";
/// What it is and what not.
pub const SUMMARY: &str =
    "it is part of this program, goes on with a story in the style of old children's books, and is no assistant";
/// Under which terms its weights are given.
pub const LICENCE: &str = "Apache-2.0 OR MIT";
/// The file's name.
pub const FILE: &str = "yirage-stories-q8_0.gguf";
/// The file: a GGUF.
pub const GGUF: &[u8] = include_bytes!("../model/yirage-stories-q8_0.gguf");
