//! Opening a safetensors model: one file, or all shards that an index names.

use super::{Checkpoint, ContainerHeader, StoredType, TensorInfo, shape_of, to_usize};
use crate::error::ModelError;
use crate::limits::SAFETENSORS_INDEX_BYTES;
use crate::safetensors::{SafeTensors, ShardIndex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use yirage_mmap::{MappedFile, is_there, read_bytes};

/// The index of a sharded model.
pub(super) const INDEX_FILE: &str = "model.safetensors.index.json";

/// Opens the model that the file at `path` is, or is a shard of.
pub(super) fn open(path: &Path) -> Result<Checkpoint, ModelError> {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let index_path = folder.join(INDEX_FILE);
    if is_there(&index_path)? {
        let index = read_index(&index_path)?;
        let name = path.file_name().and_then(|n| n.to_str());
        if name.is_some_and(|n| index.shards.iter().any(|s| s == n)) {
            return open_shards(&index_path, folder, &index);
        }
    }
    let (map, parsed) = load(path)?;
    let tensors = parsed.tensors().iter().map(|t| info(t, 0)).collect();
    let metadata = parsed.metadata().clone();
    Checkpoint::new(vec![map], tensors, ContainerHeader::Safetensors { folder, metadata })?.join_quantized()
}

/// Opens the model of an index.
pub(super) fn open_index(path: &Path) -> Result<Checkpoint, ModelError> {
    let index = read_index(path)?;
    open_shards(path, path.parent().unwrap_or(Path::new("")).to_path_buf(), &index)
}

fn read_index(path: &Path) -> Result<ShardIndex, ModelError> {
    ShardIndex::parse(&read_bytes(path, SAFETENSORS_INDEX_BYTES)?, &path.display().to_string())
}

fn load(path: &Path) -> Result<(MappedFile, SafeTensors), ModelError> {
    let map = MappedFile::open(path)?;
    let parsed = SafeTensors::parse(&map, &path.display().to_string());
    map.intact()?;
    Ok((map, parsed?))
}

fn open_shards(index_path: &Path, folder: PathBuf, index: &ShardIndex) -> Result<Checkpoint, ModelError> {
    let (mut maps, mut tensors, mut metadata) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (no, shard) in index.shards.iter().enumerate() {
        let path = folder.join(shard);
        if !is_there(&path)? {
            return Err(ModelError::MissingShard { path, named_by: index_path.display().to_string() });
        }
        let (map, parsed) = load(&path)?;
        // Tensors that the index places elsewhere, or not at all, are not part of the model.
        let mapped = parsed.tensors().iter().filter(|t| index.weight_map.get(&t.name) == Some(&no));
        tensors.extend(mapped.map(|t| info(t, no)));
        metadata.extend(parsed.metadata().clone());
        maps.push(map);
    }
    let checkpoint = Checkpoint::new(maps, tensors, ContainerHeader::Safetensors { folder, metadata })?;
    match index.weight_map.iter().find(|(tensor, _)| checkpoint.tensor(tensor).is_none()) {
        Some((tensor, &shard)) => Err(ModelError::MissingTensor {
            file: checkpoint.files()[shard].path.display().to_string(),
            tensor: tensor.clone(),
        }),
        None => checkpoint.join_quantized(),
    }
}

fn info(t: &crate::safetensors::SafeTensor, file: usize) -> TensorInfo {
    TensorInfo {
        name: t.name.clone(),
        dtype: StoredType::from_safetensors(&t.dtype),
        shape: shape_of(&t.shape),
        file,
        range: to_usize(&t.range),
    }
}
