//! Opening a GGUF model: one file, or all shards of a split one.

use super::{Checkpoint, ContainerHeader, StoredType, TensorInfo, shape_of, to_usize};
use crate::error::ModelError;
use crate::gguf::Gguf;
use crate::limits::{GGUF_SHARDS, TENSORS};
use std::path::{Path, PathBuf};
use yirage_mmap::{MappedFile, is_there};

/// Opens the model that the file at `path` is, or is a shard of.
pub(super) fn open(path: &Path) -> Result<Checkpoint, ModelError> {
    let (map, gguf) = load(path)?;
    let count = split_key(&gguf, "split.count")?.unwrap_or(1);
    if count <= 1 {
        let tensors = infos(&gguf, 0);
        return Checkpoint::new(vec![map], tensors, ContainerHeader::Gguf(Box::new(gguf)))?.join_ggml_scales();
    }
    if count > GGUF_SHARDS {
        return Err(mismatch(&gguf, "split.count", format!("at most {GGUF_SHARDS}"), count.to_string()));
    }
    match ShardName::of(path) {
        Some(name) if name.count == count => open_shards(&name, &gguf, count),
        _ => {
            let expected = format!("a file name ending in -NNNNN-of-{count:05}.gguf, as shards have");
            Err(mismatch(&gguf, "split.count", expected, format!("{count}, in {}", path.display())))
        }
    }
}

fn load(path: &Path) -> Result<(MappedFile, Gguf), ModelError> {
    let map = MappedFile::open(path)?;
    let gguf = Gguf::parse(&map, &path.display().to_string());
    map.intact()?;
    Ok((map, gguf?))
}

fn open_shards(name: &ShardName, opened: &Gguf, count: u64) -> Result<Checkpoint, ModelError> {
    let (mut maps, mut tensors, mut first) = (Vec::new(), Vec::new(), None);
    for no in 0..count {
        let path = name.shard(no);
        if !is_there(&path)? {
            return Err(ModelError::MissingShard {
                path,
                named_by: format!("{} (split.count = {count})", opened.name()),
            });
        }
        let (map, gguf) = load(&path)?;
        for (key, expected) in [("split.no", no), ("split.count", count)] {
            let found = split_key(&gguf, key)?;
            if found != Some(expected) {
                let found = found.map_or("nothing".to_owned(), |n| n.to_string());
                return Err(mismatch(&gguf, key, expected.to_string(), found));
            }
        }
        tensors.extend(infos(&gguf, maps.len()));
        if tensors.len() as u64 > TENSORS {
            return Err(mismatch(&gguf, "tensor count", format!("at most {TENSORS}"), tensors.len().to_string()));
        }
        maps.push(map);
        first.get_or_insert(gguf);
    }
    let first = first.expect("a split model has at least two shards");
    if let Some(total) = split_key(&first, "split.tensors.count")?
        && total != tensors.len() as u64
    {
        let found = format!("{} in all {count} shards", tensors.len());
        return Err(mismatch(&first, "split.tensors.count", format!("{total} tensors"), found));
    }
    Checkpoint::new(maps, tensors, ContainerHeader::Gguf(Box::new(first)))?.join_ggml_scales()
}

fn infos(gguf: &Gguf, file: usize) -> Vec<TensorInfo> {
    let info = |t: &crate::gguf::GgufTensor| TensorInfo {
        name: t.name.clone(),
        dtype: StoredType::from_ggml(t.ty),
        shape: shape_of(&t.shape),
        file,
        range: to_usize(&t.range),
    };
    gguf.tensors().iter().map(info).collect()
}

fn split_key(gguf: &Gguf, key: &str) -> Result<Option<u64>, ModelError> {
    let Some(value) = gguf.get(key) else { return Ok(None) };
    match value.as_int().and_then(|v| u64::try_from(v).ok()) {
        Some(n) => Ok(Some(n)),
        None => Err(mismatch(gguf, key, "an unsigned integer".into(), value.type_name().into())),
    }
}

fn mismatch(gguf: &Gguf, key: &str, expected: String, found: String) -> ModelError {
    ModelError::Config { file: gguf.name().to_owned(), key: key.to_owned(), expected, found }
}

/// Whether a folder's GGUF file stands for a model of its own: not a later shard, not a vision projector.
pub(super) fn is_first(path: &Path) -> bool {
    let projector = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("mmproj"));
    !projector && ShardName::of(path).is_none_or(|name| name.no == 0)
}

/// `<stem>-00001-of-00003.gguf`, taken apart. Names count from one, `split.no` from zero.
struct ShardName {
    folder: PathBuf,
    stem: String,
    no: u64,
    count: u64,
}

impl ShardName {
    fn of(path: &Path) -> Option<ShardName> {
        let name = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
        let (rest, count) = name.rsplit_once("-of-")?;
        let (stem, no) = rest.rsplit_once('-')?;
        let number = |s: &str| (s.len() == 5).then(|| s.parse::<u64>().ok()).flatten();
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Some(ShardName { folder, stem: stem.to_owned(), no: number(no)?.checked_sub(1)?, count: number(count)? })
    }

    fn shard(&self, no: u64) -> PathBuf {
        self.folder.join(format!("{}-{:05}-of-{:05}.gguf", self.stem, no + 1, self.count))
    }
}
