//! Writes GGUF bytes field by field, true or not.

/// A file under construction.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    /// Of the format.
    pub version: u32,
    /// Metadata entries as stored.
    pub entries: Vec<Vec<u8>>,
    /// Rows of the table of tensors as stored.
    pub tensors: Vec<Vec<u8>>,
    /// What the count of entries says, where that is not the truth.
    pub lie_entries: Option<u64>,
    /// What the count of tensors says, where that is not the truth.
    pub lie_tensors: Option<u64>,
    /// Of the data behind the header.
    pub alignment: usize,
    /// The tensors' bytes.
    pub data: Vec<u8>,
}

/// A string as stored: its length, then its bytes.
#[must_use]
pub fn string(s: &[u8]) -> Vec<u8> {
    [&(s.len() as u64).to_le_bytes()[..], s].concat()
}

impl GgufWriter {
    /// A file of version 3 with nothing in it.
    #[must_use]
    pub fn new() -> GgufWriter {
        GgufWriter { version: 3, alignment: 32, ..GgufWriter::default() }
    }

    /// An entry with raw type and content.
    #[must_use]
    pub fn raw(mut self, key: &str, ty: u32, content: &[u8]) -> GgufWriter {
        self.entries.push([&string(key.as_bytes())[..], &ty.to_le_bytes(), content].concat());
        self
    }

    /// An entry of that type.
    #[must_use]
    pub fn u32(self, key: &str, v: u32) -> GgufWriter {
        self.raw(key, 4, &v.to_le_bytes())
    }

    /// An entry of that type.
    #[must_use]
    pub fn u16(self, key: &str, v: u16) -> GgufWriter {
        self.raw(key, 2, &v.to_le_bytes())
    }

    /// An entry of that type.
    #[must_use]
    pub fn f32(self, key: &str, v: f32) -> GgufWriter {
        self.raw(key, 6, &v.to_le_bytes())
    }

    /// An entry of that type.
    #[must_use]
    pub fn str(self, key: &str, v: &str) -> GgufWriter {
        self.raw(key, 8, &string(v.as_bytes()))
    }

    /// An array with raw element type, stated length and content.
    #[must_use]
    pub fn array(self, key: &str, ty: u32, len: u64, content: &[u8]) -> GgufWriter {
        self.raw(key, 9, &[&ty.to_le_bytes()[..], &len.to_le_bytes(), content].concat())
    }

    /// A tensor; `dims` innermost first, as stored.
    #[must_use]
    pub fn tensor(mut self, name: &str, dims: &[u64], ty: u32, offset: u64) -> GgufWriter {
        let mut row = string(name.as_bytes());
        row.extend((dims.len() as u32).to_le_bytes());
        row.extend(dims.iter().flat_map(|d| d.to_le_bytes()));
        row.extend(ty.to_le_bytes());
        row.extend(offset.to_le_bytes());
        self.tensors.push(row);
        self
    }

    /// That many zeros as the tensors' bytes.
    #[must_use]
    pub fn data(mut self, bytes: usize) -> GgufWriter {
        self.data = vec![0; bytes];
        self
    }

    /// A tensor of f32 behind those before it; `shape` outermost first.
    #[must_use]
    pub fn f32s(mut self, name: &str, shape: &[usize], values: &[f32]) -> GgufWriter {
        const F32: u32 = 0;
        self.data.resize(self.data.len().next_multiple_of(self.alignment), 0);
        let dims: Vec<u64> = shape.iter().rev().map(|&n| n as u64).collect();
        let offset = self.data.len() as u64;
        let mut file = self.tensor(name, &dims, F32, offset);
        file.data.extend(values.iter().flat_map(|x| x.to_le_bytes()));
        file
    }

    /// An array of strings.
    #[must_use]
    pub fn strings(self, key: &str, list: &[&str]) -> GgufWriter {
        const STRING: u32 = 8;
        let content: Vec<u8> = list.iter().flat_map(|s| string(s.as_bytes())).collect();
        self.array(key, STRING, list.len() as u64, &content)
    }

    /// An array of f32.
    #[must_use]
    pub fn f32_list(self, key: &str, list: &[f32]) -> GgufWriter {
        const F32: u32 = 6;
        let content: Vec<u8> = list.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.array(key, F32, list.len() as u64, &content)
    }

    /// An array of i32.
    #[must_use]
    pub fn i32_list(self, key: &str, list: &[i32]) -> GgufWriter {
        const I32: u32 = 5;
        let content: Vec<u8> = list.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.array(key, I32, list.len() as u64, &content)
    }

    /// The file as bytes.
    #[must_use]
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
