//! The ways in which a container file can contradict its format or itself, with the numbers and what to do.

use thiserror::Error;

/// What is wrong with a field of a container file.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Flaw {
    /// The file ends inside the field.
    #[error("{needed} bytes are needed, {left} are left")]
    Truncated {
        /// Bytes the field takes.
        needed: u64,
        /// Bytes up to the end of the file.
        left: u64,
    },
    /// The first bytes are not the format's.
    #[error("the first bytes are {found:02x?}, not {expected:?}")]
    Magic {
        /// What was read.
        found: [u8; 4],
        /// The format's first bytes.
        expected: &'static str,
    },
    /// The file is in big-endian byte order.
    #[error("the file is in big-endian byte order")]
    BigEndian,
    /// The container version is unknown.
    #[error("version {found} is not one of 2, 3")]
    Version {
        /// The version read.
        found: u32,
    },
    /// A count or size exceeds its budget.
    #[error("{found} exceeds the limit of {limit}")]
    OverBudget {
        /// The number read.
        found: u64,
        /// The budget.
        limit: u64,
    },
    /// A number that must not be zero is.
    #[error("is zero")]
    Zero,
    /// Text is not UTF-8.
    #[error("the text is not UTF-8")]
    Utf8,
    /// A boolean is neither 0 nor 1.
    #[error("{found} is neither 0 nor 1")]
    Bool {
        /// The byte read.
        found: u8,
    },
    /// The number of a metadata value type is unknown.
    #[error("{found} is not a value type (0 to 12)")]
    ValueType {
        /// The number read.
        found: u32,
    },
    /// A name occurs twice.
    #[error("occurs a second time")]
    Duplicate,
    /// The alignment is not a power of two.
    #[error("{found} is not a power of two between 1 and 65536")]
    Alignment {
        /// The number read.
        found: u64,
    },
    /// A value has another type or value than the format asks for.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What the format asks for.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Element count or byte size exceed 64 bits.
    #[error("the size of {shape:?} exceeds 64 bits")]
    SizeOverflow {
        /// Dimensions as stored.
        shape: Vec<u64>,
    },
    /// A row does not consist of whole quantisation blocks.
    #[error("rows of {row} are not a multiple of the {format} block of {block}")]
    PartialBlock {
        /// Elements of a row.
        row: u64,
        /// Name of the number format.
        format: String,
        /// Elements of a block.
        block: u64,
    },
    /// A tensor does not start at a multiple of the alignment.
    #[error("data offset {found} is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// The offset read.
        found: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// A tensor's data lies outside the file.
    #[error("data takes bytes {start} to {end}, the file has {len}")]
    PastEnd {
        /// First byte of the data in the file.
        start: u64,
        /// Byte after the data.
        end: u64,
        /// Length of the file.
        len: u64,
    },
    /// Two tensors share bytes.
    #[error("data starts at {start}, inside {other:?}, which ends at {other_end}")]
    Overlap {
        /// First byte of the data in the file.
        start: u64,
        /// The tensor that lies there already.
        other: String,
        /// Byte after its data.
        other_end: u64,
    },
    /// Bytes between tensors belong to none.
    #[error("data starts at {start}, but the tensor before ends at {expected}")]
    Hole {
        /// First byte of the data in the file.
        start: u64,
        /// Where it should start.
        expected: u64,
    },
    /// More bytes lie behind the last tensor than fill it up to the alignment: the data begins elsewhere, or is more than
    /// the table says.
    #[error("data ends at {end}, but the file has {len} bytes, and alignment explains less than {alignment} more")]
    Behind {
        /// Byte after the last tensor's data.
        end: u64,
        /// Length of the file.
        len: u64,
        /// The alignment.
        alignment: u64,
    },
    /// A size follows from two fields, which disagree.
    #[error("{found} bytes, though shape and type need {expected}")]
    SizeMismatch {
        /// Bytes by the offsets.
        found: u64,
        /// Bytes by shape and type.
        expected: u64,
    },
    /// The header is not the JSON that the format asks for.
    #[error("{why}")]
    Header {
        /// What the parser said.
        why: String,
    },
}

impl Flaw {
    /// What the reader of the message can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Flaw::Truncated { .. } | Flaw::PastEnd { .. } => "the file is incomplete: download or copy it again",
            Flaw::Magic { .. } => "give a file of the format that its name promises",
            Flaw::BigEndian => "convert the file to little-endian",
            Flaw::Version { .. } => "convert the model again with a current converter",
            Flaw::OverBudget { .. } => "the file is damaged, or hostile: get it from its original source",
            _ => "the file is damaged or badly converted: get it again from its original source",
        }
    }
}
