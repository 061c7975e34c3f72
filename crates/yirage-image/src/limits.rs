//! What a picture may take. A file of a few bytes can state millions of pixels.

/// Bytes of a picture's file.
pub const MAX_FILE_BYTES: usize = 32 << 20;

/// Pixels of a picture, and of what a processor makes of it.
pub const MAX_PIXELS: u64 = 64 << 20;

/// Tiles of a picture beside the whole of it.
pub const MAX_TILES: u64 = 256;

/// Bytes of a processor's settings.
pub const MAX_SETTINGS_BYTES: u64 = 1 << 20;
