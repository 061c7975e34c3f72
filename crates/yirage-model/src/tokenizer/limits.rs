//! Every budget a tokenizer file or a text is held to. The numbers are several times what any known model needs; a
//! file beyond them is refused with a typed error instead of being allowed to eat the machine.

use std::time::Duration;

/// Longest `tokenizer.json`, in bytes (the largest known one has 33 MB).
pub const MAX_FILE_BYTES: usize = 512 << 20;
/// Largest token id plus one (the largest known vocabulary has 262,208 entries).
pub const MAX_VOCAB: usize = 1 << 22;
/// Most merge rules (the largest known list has 514,906).
pub const MAX_MERGES: usize = 1 << 23;
/// Longest token, in bytes of its text form.
pub const MAX_TOKEN_BYTES: usize = 1 << 14;
/// Most bytes of token text in total.
pub const MAX_VOCAB_BYTES: usize = 1 << 28;
/// Most added or special tokens that are searched for in text.
pub const MAX_ADDED: usize = 1 << 16;
/// Most different lengths among the special tokens of a GGUF file: each length is one pass over the text.
pub const MAX_SPECIAL_LENGTHS: usize = 1 << 9;
/// Most characters of a word that WordPiece looks for tokens in (published files say 100).
pub const MAX_WORD_CHARS: usize = 1_000;
/// Longest pattern of a splitting or replacing component, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1 << 14;
/// Most groups and classes in each other in a pattern.
pub const MAX_PATTERN_DEPTH: usize = 64;
/// Most repeats that a counted repeat of a pattern asks for.
pub const MAX_PATTERN_REPEAT: u32 = 100_000;
/// Most memory of one compiled pattern, in bytes.
pub const MAX_PATTERN_PROGRAM: usize = 10 << 20;
/// Longest text that a backtracking pattern is searched in, and most backtracking steps of one search there: a step may
/// look at all of the text, so longer texts have fewer. A usual match takes less than ten. Longer texts than the last
/// are refused; published patterns do not backtrack at all here.
pub const MAX_BACKTRACK: [(usize, usize); 3] = [(1 << 12, 1 << 18), (1 << 17, 1 << 13), (1 << 22, 1 << 8)];
/// Time that all searches of one encode call may take, and what is added per byte of text. Published patterns take a
/// fiftieth of the latter.
pub const SEARCH_TIME: Duration = Duration::from_secs(1);
/// See [`SEARCH_TIME`].
pub const SEARCH_TIME_PER_BYTE: Duration = Duration::from_micros(1);
/// How many times its length a text may have once it is normalised, and what may be added to that.
pub const MAX_GROWTH: (usize, usize) = (32, 1 << 20);
/// Longest trie of a normalisation table, in bytes (published ones have some 300,000).
pub const MAX_CHARSMAP_BYTES: usize = 16 << 20;
/// Longest text that a decoder makes of one token, in bytes: rewrites that make each other's matches grow no further.
pub const MAX_TOKEN_TEXT: usize = 1 << 18;
/// Most components (normalisers, splitters, decoders) in one chain, and how deep chains may nest.
pub const MAX_COMPONENTS: usize = 64;
/// Deepest nesting of `Sequence` components.
pub const MAX_NESTING: usize = 8;
/// Longest text of one encode call, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 28;
