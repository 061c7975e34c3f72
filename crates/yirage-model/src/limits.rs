//! Budgets of everything read from model files. A file over a budget is refused with the number and the limit, before
//! memory is taken for it. The numbers leave an order of magnitude above the largest published models.

/// Bytes of a GGUF header (metadata and tensor table). Large vocabularies take about 12 MB.
pub const GGUF_HEADER_BYTES: usize = 256 << 20;
/// Metadata entries of a GGUF file. Usual are 20 to 60.
pub const GGUF_METADATA_ENTRIES: u64 = 65_536;
/// Bytes of a metadata key. The format itself allows 65,535.
pub const GGUF_KEY_BYTES: u64 = 65_535;
/// Bytes of one metadata string. Chat templates reach some 20 KB, embedded `tokenizer.json` texts 30 MB.
pub const GGUF_STRING_BYTES: u64 = 64 << 20;
/// Elements of one metadata array. Vocabularies and merge lists reach 500,000.
pub const GGUF_ARRAY_ELEMENTS: u64 = 16 << 20;
/// Arrays inside arrays, deep.
pub const GGUF_ARRAY_DEPTH: u32 = 4;
/// Arrays inside arrays, in total: each costs more memory than its bytes in the file.
pub const GGUF_NESTED_ARRAYS: u64 = 65_536;
/// Shard files of one GGUF model.
pub const GGUF_SHARDS: u64 = 1_000;
/// Dimensions of a GGUF tensor.
pub const GGUF_DIMS: u32 = 4;
/// Bytes of a tensor name, in every container.
pub const TENSOR_NAME_BYTES: u64 = 1_024;
/// Tensors of one checkpoint, over all its shards.
pub const TENSORS: u64 = 1 << 20;

/// Bytes of a safetensors header: the format's own cap.
pub const SAFETENSORS_HEADER_BYTES: u64 = 100_000_000;
/// Dimensions of a safetensors tensor.
pub const SAFETENSORS_DIMS: usize = 8;
/// Entries of a safetensors `__metadata__` table.
pub const SAFETENSORS_METADATA_ENTRIES: usize = 65_536;
/// Bytes of a `model.safetensors.index.json`. The longest published ones have 10 MB; parsed, it takes up to ten times
/// its length.
pub const SAFETENSORS_INDEX_BYTES: u64 = 64 << 20;
/// Shard files of one safetensors model.
pub const SAFETENSORS_SHARDS: usize = 10_000;

/// Bytes of a `config.json` or `generation_config.json`. Parsed, JSON takes up to ten times its length.
pub const CONFIG_BYTES: u64 = 4 << 20;
/// Layers of a model: bounds every per-layer list. The deepest published ones have some 150.
pub const LAYERS: u32 = 4_096;
/// Ids in a list of end-of-sequence tokens.
pub const EOS_IDS: usize = 1_024;
