//! A model's weights on disk as one value, whatever container they came in.
//!
//! Opening maps files and reads headers; no weight is touched. The checkpoint does not know what a tensor is for, how
//! containers name the same weight differently, or how values are arranged inside a weight: that is the business of
//! the architecture files.

mod decoded;
mod ggml_scales;
mod gguf_files;
mod merged;
mod overrides;
mod quantized_modules;
mod safetensors_files;

use crate::decode::ggml::GgmlDecoder;
use crate::error::ModelError;
use crate::gguf::{GgmlType, Gguf};
use crate::safetensors::SafeDtype;
use decoded::DecodedTensor;
use merged::MergedTensor;
pub use overrides::TensorOverride;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use yirage_ir::Format;
use yirage_mmap::{FileStamp, MappedFile, is_there};

/// The containers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckpointKind {
    /// One GGUF file or its shards.
    Gguf,
    /// One safetensors file or the shards of an index.
    Safetensors,
}

/// How a tensor's elements are stored.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StoredType {
    /// A number format that can be computed with.
    Format(Format),
    /// Plain bytes: packed blocks whose layout only the architecture knows.
    U8,
    /// A GGUF format that cannot be computed with.
    Ggml(GgmlType),
    /// A safetensors type that cannot be computed with.
    Safetensors(SafeDtype),
    /// Codes, scales and what else makes the weight, in several tensors: the packing and all its settings.
    Quantized(String),
}

impl StoredType {
    fn from_ggml(ty: GgmlType) -> StoredType {
        ty.format().map_or(StoredType::Ggml(ty), StoredType::Format)
    }

    fn from_safetensors(dtype: &SafeDtype) -> StoredType {
        match dtype.format() {
            Some(format) => StoredType::Format(format),
            None if dtype.is_bytes() => StoredType::U8,
            None => StoredType::Safetensors(dtype.clone()),
        }
    }
}

impl std::fmt::Display for StoredType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoredType::Format(format) => f.write_str(format.info().name),
            StoredType::U8 => f.write_str("u8"),
            StoredType::Ggml(ty) => ty.fmt(f),
            StoredType::Safetensors(dtype) => dtype.fmt(f),
            StoredType::Quantized(packing) => f.write_str(packing),
        }
    }
}

/// A tensor of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorInfo {
    /// Its name in the container's own dialect.
    pub name: String,
    /// How its elements are stored.
    pub dtype: StoredType,
    /// Dimensions, outermost first. Rows (the last dimension) are contiguous.
    pub shape: Vec<usize>,
    /// Which of [`Checkpoint::files`] holds it.
    pub file: usize,
    /// The bytes of its data in that file.
    pub range: Range<usize>,
}

impl TensorInfo {
    /// Number of elements. It was checked against the file where the element size is known.
    pub fn elements(&self) -> usize {
        self.shape.iter().fold(1, |n, &d| n.saturating_mul(d))
    }
}

/// A file of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointFile {
    /// Its path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// What it was when it was opened.
    pub stamp: FileStamp,
}

/// A model's files, mapped, with their tensors.
#[derive(Debug)]
pub struct Checkpoint {
    files: Vec<CheckpointFile>,
    maps: Vec<MappedFile>,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
    header: ContainerHeader,
    /// What stands for the values of the files, by the tensor's name.
    overrides: HashMap<String, overrides::OverrideBytes>,
    /// The tensors of formats that nothing computes with, by name.
    decoded: HashMap<String, DecodedTensor>,
    /// The tensors that adapters are added to, by name.
    merged: HashMap<String, MergedTensor>,
    merged_adapters: Vec<String>,
}

/// What the container says beside tensors.
#[derive(Debug)]
enum ContainerHeader {
    Gguf(Box<Gguf>),
    Safetensors { folder: PathBuf, metadata: BTreeMap<String, String> },
}

impl Checkpoint {
    /// Opens a `.gguf` file (any shard of a split model opens all), a `.safetensors` file (a shard opens all when the
    /// index lies beside it), or a folder with `model.safetensors.index.json`, `model.safetensors`, one other
    /// `.safetensors` file, or one GGUF model.
    ///
    /// # Errors
    /// [`ModelError`]: the path holds no model, a shard or tensor is missing, or a file is corrupt.
    pub fn open(path: impl AsRef<Path>) -> Result<Checkpoint, ModelError> {
        let path = path.as_ref();
        if path.is_dir() {
            return open_folder(path);
        }
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("gguf") => gguf_files::open(path),
            Some("safetensors") => safetensors_files::open(path),
            _ => open_by_content(path),
        }
    }

    fn new(maps: Vec<MappedFile>, tensors: Vec<TensorInfo>, header: ContainerHeader) -> Result<Checkpoint, ModelError> {
        let file =
            |m: &MappedFile| CheckpointFile { path: m.path().to_path_buf(), bytes: m.len() as u64, stamp: m.stamp() };
        let files = maps.iter().map(file).collect();
        let mut index = HashMap::with_capacity(tensors.len());
        for (i, t) in tensors.iter().enumerate() {
            if let Some(first) = index.insert(t.name.clone(), i) {
                let path_of = |i: usize| maps[tensors[i].file].path().display().to_string();
                return Err(ModelError::Config {
                    file: path_of(i),
                    key: format!("tensor {:?}", t.name),
                    expected: "a name used by one shard only".into(),
                    found: format!("the same name in {}", path_of(first)),
                });
            }
        }
        let decoder = |t: &TensorInfo| match t.dtype {
            StoredType::Ggml(ty) => GgmlDecoder::of(ty).map(|d| (t.name.clone(), DecodedTensor::of_one(d, t))),
            _ => None,
        };
        let decoded = tensors.iter().filter_map(decoder).collect();
        Ok(Checkpoint {
            files,
            maps,
            tensors,
            index,
            header,
            overrides: HashMap::new(),
            decoded,
            merged: HashMap::new(),
            merged_adapters: Vec::new(),
        })
    }

    /// The container.
    pub fn kind(&self) -> CheckpointKind {
        match self.header {
            ContainerHeader::Gguf(_) => CheckpointKind::Gguf,
            ContainerHeader::Safetensors { .. } => CheckpointKind::Safetensors,
        }
    }

    /// The files, in shard order.
    pub fn files(&self) -> &[CheckpointFile] {
        &self.files
    }

    /// Bytes of all files together.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, f| sum.saturating_add(f.bytes))
    }

    /// All tensors, in shard order and each container's own order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.tensors.iter()
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&i| &self.tensors[i])
    }

    /// The tensor called `name`, or an error that says which model lacks it.
    ///
    /// # Errors
    /// [`ModelError::MissingTensor`].
    pub fn require(&self, name: &str) -> Result<&TensorInfo, ModelError> {
        self.tensor(name).ok_or_else(|| ModelError::MissingTensor { file: self.label(), tensor: name.to_owned() })
    }

    /// The format to compute with: the stored one, or the one that the tensor is decoded into.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedFormat`] naming file, tensor and the format as stored.
    pub fn format(&self, tensor: &TensorInfo) -> Result<Format, ModelError> {
        match &tensor.dtype {
            StoredType::Format(format) => Ok(*format),
            _ if self.decoded.contains_key(&tensor.name) => Ok(self.decoded_format(tensor)),
            other => Err(ModelError::UnsupportedFormat {
                file: self.files[tensor.file].path.display().to_string(),
                tensor: tensor.name.clone(),
                dtype: other.to_string(),
            }),
        }
    }

    /// A tensor's bytes, as stored (of one in several parts, those of its codes), with no promise about their alignment. `tensor` must be of this checkpoint.
    pub fn bytes(&self, tensor: &TensorInfo) -> &[u8] {
        match self.overrides.get(&tensor.name) {
            Some(values) => values.bytes(),
            None => &self.maps[tensor.file].bytes()[tensor.range.clone()],
        }
    }

    /// Whether a tensor is another one once more.
    pub(crate) fn is_copy(&self, tensor: &TensorInfo, of: &TensorInfo) -> bool {
        if self.is_merged(tensor) {
            return false;
        }
        let same = tensor.dtype == of.dtype && tensor.shape == of.shape && self.bytes(tensor) == self.bytes(of);
        self.release(tensor, 0..tensor.range.len());
        same
    }

    /// Gives back the memory of the whole pages inside `range` (bytes from the tensor's start, clamped to it); they stay
    /// readable. Returns the bytes given back.
    pub fn release(&self, tensor: &TensorInfo, range: Range<usize>) -> usize {
        if self.overrides.contains_key(&tensor.name) {
            return 0;
        }
        if self.decoded.contains_key(&tensor.name) {
            return self.release_decoded(tensor, range.end);
        }
        let end = tensor.range.start.saturating_add(range.end).min(tensor.range.end);
        let start = tensor.range.start.saturating_add(range.start).min(end);
        self.maps[tensor.file].release(start..end)
    }

    /// Whether everything that was read of the files so far was in them; see [`yirage_mmap::guard_mappings`].
    ///
    /// # Errors
    /// [`ModelError::Map`] with the file that was cut off or cannot be read.
    pub fn intact(&self) -> Result<(), ModelError> {
        Ok(self.maps.iter().try_for_each(MappedFile::intact)?)
    }

    /// The GGUF header (of the first shard, which holds the metadata); `None` for safetensors.
    pub fn gguf(&self) -> Option<&Gguf> {
        match &self.header {
            ContainerHeader::Gguf(gguf) => Some(gguf),
            ContainerHeader::Safetensors { .. } => None,
        }
    }

    /// The `__metadata__` tables of all safetensors files; `None` for GGUF.
    pub fn safetensors_metadata(&self) -> Option<&BTreeMap<String, String>> {
        match &self.header {
            ContainerHeader::Gguf(_) => None,
            ContainerHeader::Safetensors { metadata, .. } => Some(metadata),
        }
    }

    /// The folder with `config.json`, `tokenizer.json` and the like; `None` for GGUF, which carries its own.
    pub fn folder(&self) -> Option<&Path> {
        match &self.header {
            ContainerHeader::Gguf(_) => None,
            ContainerHeader::Safetensors { folder, .. } => Some(folder),
        }
    }

    /// How errors call the model: its first file, or its folder where it has several.
    pub fn label(&self) -> String {
        match (&self.header, self.files.as_slice()) {
            (ContainerHeader::Safetensors { folder, .. }, [_, _, ..]) => folder.display().to_string(),
            (_, [first, ..]) => first.path.display().to_string(),
            (_, []) => String::new(),
        }
    }
}

/// Byte offsets of a mapped file fit `usize`, since the whole file is mapped.
fn to_usize(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Dimensions as `usize`. Those of tensors with a known element size fit, being bounded by the file.
fn shape_of(shape: &[u64]) -> Vec<usize> {
    shape.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect()
}

fn open_by_content(path: &Path) -> Result<Checkpoint, ModelError> {
    let map = MappedFile::open(path)?;
    if map.starts_with(b"GGUF") || map.starts_with(b"FUGG") {
        return gguf_files::open(path);
    }
    // A safetensors header is a small number, then an opening brace.
    if map.get(8) == Some(&b'{') {
        return safetensors_files::open(path);
    }
    let why = "neither a GGUF nor a safetensors file; give a .gguf file, a .safetensors file or a model folder";
    Err(ModelError::NotAModel { path: path.to_path_buf(), why: why.into() })
}

fn open_folder(folder: &Path) -> Result<Checkpoint, ModelError> {
    let index = folder.join(safetensors_files::INDEX_FILE);
    if is_there(&index)? {
        return safetensors_files::open_index(&index);
    }
    let single = folder.join("model.safetensors");
    if is_there(&single)? {
        return safetensors_files::open(&single);
    }
    let (mut safetensors, mut gguf) = (Vec::new(), Vec::new());
    let io = |source| ModelError::Folder { path: folder.to_path_buf(), source };
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        match path.extension().and_then(|e| e.to_str()) {
            Some("safetensors") => safetensors.push(path),
            Some("gguf") if gguf_files::is_first(&path) => gguf.push(path),
            _ => {}
        }
    }
    match (safetensors.as_slice(), gguf.as_slice()) {
        ([one], _) => safetensors_files::open(one),
        ([], [one]) => gguf_files::open(one),
        (several, others) => {
            let why = format!(
                "the folder has {} safetensors files without an index and {} GGUF models; \
                 give the path of one file",
                several.len(),
                others.len()
            );
            Err(ModelError::NotAModel { path: folder.to_path_buf(), why })
        }
    }
}
