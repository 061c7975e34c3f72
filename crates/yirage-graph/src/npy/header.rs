//! What stands before the elements.

use super::NpyError;
use super::literal::{PyLiteral, PyLiteralReader};

/// Most bytes of a header: a shape and a type of elements need few.
pub const MAX_HEADER: usize = 64 << 10;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Type, order and sizes of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NpyHeader {
    /// The type of elements as NumPy writes it: `<f4`.
    pub descr: String,
    /// Whether the first dimension is the one whose neighbours lie together.
    pub fortran_order: bool,
    /// The sizes.
    pub shape: Vec<usize>,
}

impl NpyHeader {
    /// The header at the beginning of a file, and the bytes behind it.
    ///
    /// # Errors
    /// [`NpyError::Format`], [`NpyError::Header`].
    pub fn parse(bytes: &[u8]) -> Result<(NpyHeader, &[u8]), NpyError> {
        let short = || NpyError::Format("it ends within its header".into());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| NpyError::Format("its first bytes are others".into()))?;
        let ([major, minor], rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (length, rest) = match (major, minor) {
            (1, 0) => rest.split_first_chunk().map(|(n, rest)| (usize::from(u16::from_le_bytes(*n)), rest)),
            (2 | 3, 0) => rest.split_first_chunk().map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest)),
            _ => return Err(NpyError::Format(format!("version {major}.{minor}, 1.0, 2.0 and 3.0 are read"))),
        }
        .ok_or_else(short)?;
        if length > MAX_HEADER {
            return Err(NpyError::Header(format!("{length} bytes, {MAX_HEADER} are the most")));
        }
        let (header, elements) = rest.split_at_checked(length).ok_or_else(short)?;
        let text = std::str::from_utf8(header).map_err(|e| NpyError::Header(format!("no text: {e}")))?;
        Ok((dict(text)?, elements))
    }

    /// The first bytes of a file whose elements follow, whose number is a multiple of 64.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let order = if self.fortran_order { "True" } else { "False" };
        let sizes: String = self.shape.iter().map(|n| format!("{n}, ")).collect();
        // One size has its comma, several need no last one.
        let sizes = if self.shape.len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
        let dict = format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({sizes}), }}", self.descr);
        let fixed = MAGIC.len() + 2 + 2;
        let length = (fixed + dict.len() + 1).next_multiple_of(64) - fixed;
        let mut out = [MAGIC, &[1, 0], &(length as u16).to_le_bytes(), dict.as_bytes()].concat();
        out.resize(fixed + length - 1, b' ');
        out.push(b'\n');
        out
    }
}

fn dict(text: &str) -> Result<NpyHeader, NpyError> {
    let (mut descr, mut order, mut shape) = (None, None, None);
    let mut literal = PyLiteralReader { rest: text };
    literal.expect('{')?;
    while !literal.accept('}') {
        let key = literal.text()?;
        literal.expect(':')?;
        let twice = match (key, literal.value()?) {
            ("descr", PyLiteral::Text(text)) => descr.replace(text.to_owned()).is_some(),
            ("descr", PyLiteral::List) => {
                return Err(NpyError::Header("elements with fields; an array of one plain type is wanted".into()));
            }
            ("fortran_order", PyLiteral::Truth(truth)) => order.replace(truth).is_some(),
            ("shape", PyLiteral::Sizes(sizes)) => shape.replace(sizes).is_some(),
            (key, _) => return Err(NpyError::Header(format!("`{key}` is unknown, or of another type"))),
        };
        if twice {
            return Err(NpyError::Header(format!("`{key}` stands twice")));
        }
        if !literal.accept(',') {
            literal.expect('}')?;
            break;
        }
    }
    if !literal.rest.trim().is_empty() {
        return Err(NpyError::Header("something follows its dict".into()));
    }
    let missing = |key: &str| NpyError::Header(format!("`{key}` is missing"));
    Ok(NpyHeader {
        descr: descr.ok_or_else(|| missing("descr"))?,
        fortran_order: order.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}
