//! Writes GGUF bytes field by field, true or not.

/// A file under construction.
#[derive(Clone, Default)]
pub struct Writer {
    pub version: u32,
    pub entries: Vec<Vec<u8>>,
    pub tensors: Vec<Vec<u8>>,
    /// What the counts say, where that is not the truth.
    pub lie_entries: Option<u64>,
    pub lie_tensors: Option<u64>,
    pub alignment: usize,
    pub data: Vec<u8>,
}

pub fn string(s: &[u8]) -> Vec<u8> {
    [&(s.len() as u64).to_le_bytes()[..], s].concat()
}

impl Writer {
    pub fn new() -> Writer {
        Writer { version: 3, alignment: 32, ..Writer::default() }
    }

    /// An entry with raw type and content.
    pub fn raw(mut self, key: &str, ty: u32, content: &[u8]) -> Writer {
        self.entries.push([&string(key.as_bytes())[..], &ty.to_le_bytes(), content].concat());
        self
    }

    pub fn u32(self, key: &str, v: u32) -> Writer {
        self.raw(key, 4, &v.to_le_bytes())
    }

    pub fn u16(self, key: &str, v: u16) -> Writer {
        self.raw(key, 2, &v.to_le_bytes())
    }

    pub fn f32(self, key: &str, v: f32) -> Writer {
        self.raw(key, 6, &v.to_le_bytes())
    }

    pub fn str(self, key: &str, v: &str) -> Writer {
        self.raw(key, 8, &string(v.as_bytes()))
    }

    /// An array with raw element type, stated length and content.
    pub fn array(self, key: &str, ty: u32, len: u64, content: &[u8]) -> Writer {
        self.raw(key, 9, &[&ty.to_le_bytes()[..], &len.to_le_bytes(), content].concat())
    }

    /// A tensor; `dims` innermost first, as stored.
    pub fn tensor(mut self, name: &str, dims: &[u64], ty: u32, offset: u64) -> Writer {
        let mut row = string(name.as_bytes());
        row.extend((dims.len() as u32).to_le_bytes());
        row.extend(dims.iter().flat_map(|d| d.to_le_bytes()));
        row.extend(ty.to_le_bytes());
        row.extend(offset.to_le_bytes());
        self.tensors.push(row);
        self
    }

    pub fn data(mut self, bytes: usize) -> Writer {
        self.data = vec![0; bytes];
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.lie_tensors.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        out.extend(self.lie_entries.unwrap_or(self.entries.len() as u64).to_le_bytes());
        out.extend(self.entries.concat());
        out.extend(self.tensors.concat());
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        out.extend(&self.data);
        out
    }
}
