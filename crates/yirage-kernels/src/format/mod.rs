//! Stored number formats on a device: weights as they lie in files, decoded a run at a time. One file a format.
//!
//! Rows lie one behind the other, each in whole blocks; blocks may begin at any byte.

mod bf16;
mod bytes;
mod codes;
mod f16;
mod f32;
mod iq4_nl;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

use crate::elements::Elements;
use bytes::{Alignment, Bytes};
use yirage_hal::HalError;
use yirage_ir::{DType, Format};
use yirage_kir::{KernelWriter, Register};

/// Neighbouring weights of a run that share a scale: `scale * code - minimum`, computed so.
#[derive(Clone, Debug)]
pub(crate) struct WeightGroup {
    /// What codes are multiplied by; none where they are the weights.
    pub(crate) scale: Option<Register>,
    /// What is taken away.
    pub(crate) minimum: Option<Register>,
    /// The codes, f32.
    pub(crate) codes: Vec<Register>,
}

/// A part of a block that is decoded at once.
struct BlockRun<'a> {
    rows: &'a StoredRows,
    /// The first byte of the block.
    block: Register,
    /// Which of the block's runs.
    run: Register,
}

/// How a format is decoded.
struct RunDecoder {
    /// Runs of a block; of floats a run is as many blocks as are read at once.
    runs: u32,
    /// How many elements lie between the first of a run and that of each of its groups, which are of one length.
    offsets: &'static [u32],
    /// The first element of a run in its block.
    first: fn(&mut KernelWriter, Register) -> Register,
    /// Its weights.
    decode: fn(&mut KernelWriter, &BlockRun<'_>) -> Vec<WeightGroup>,
}

impl RunDecoder {
    /// Of blocks that are decoded whole.
    const fn whole(decode: fn(&mut KernelWriter, &BlockRun<'_>) -> Vec<WeightGroup>) -> RunDecoder {
        RunDecoder { runs: 1, offsets: &[0], first: |w, _| w.u32(0), decode }
    }
}

fn decoder(format: Format) -> RunDecoder {
    match format {
        Format::F32 => f32::DECODER,
        Format::F16 => f16::DECODER,
        Format::BF16 => bf16::DECODER,
        Format::Q4_0 => q4_0::DECODER,
        Format::Q4_1 => q4_1::DECODER,
        Format::Q5_0 => q5_0::DECODER,
        Format::Q5_1 => q5_1::DECODER,
        Format::Q8_0 => q8_0::DECODER,
        Format::Q2_K => q2_k::DECODER,
        Format::Q3_K => q3_k::DECODER,
        Format::Q4_K => q4_k::DECODER,
        Format::Q5_K => q5_k::DECODER,
        Format::Q6_K => q6_k::DECODER,
        Format::IQ4_NL => iq4_nl::DECODER,
        Format::MXFP4 => mxfp4::DECODER,
    }
}

/// Most floats that are read at once.
const MOST_FLOATS: u32 = 32;

/// Rows of weights in memory.
pub(crate) struct StoredRows {
    elements: Elements,
    format: Format,
    row_bytes: u32,
    /// Elements of what a run is a part of: a block, or so many floats.
    unit: u32,
    unit_bytes: u32,
    alignment: Alignment,
    decoder: RunDecoder,
}

impl StoredRows {
    /// Of a matrix with rows of `width` elements.
    ///
    /// # Errors
    /// Elements of no stored format, and more bytes than a kernel counts.
    pub(crate) fn new(elements: Elements, rows: u64, width: u32) -> Result<StoredRows, HalError> {
        let DType::Stored(format) = elements.dtype else {
            return Err(HalError::Load(format!("a weight of {}: a stored format wanted", elements.dtype.name())));
        };
        let info = format.info();
        let (block, bytes) = (info.block as u32, info.bytes as u32);
        let unit = if block == 1 { greatest_common_divisor(width, MOST_FLOATS) } else { block };
        let (unit_bytes, row_bytes) = (unit / block * bytes, info.row_bytes(width as usize) as u64);
        let all = row_bytes.checked_mul(rows).filter(|&all| all <= u64::from(u32::MAX));
        if all.is_none() || !width.is_multiple_of(block) {
            let name = info.name;
            return Err(HalError::Load(format!("{rows} rows of {width} {name}: whole blocks in at most 4 GiB wanted")));
        }
        let row_bytes = row_bytes as u32;
        let alignment = Alignment::of(unit_bytes | row_bytes);
        Ok(StoredRows { elements, format, row_bytes, unit, unit_bytes, alignment, decoder: decoder(format) })
    }

    /// The first byte of a row.
    pub(crate) fn row(&self, w: &mut KernelWriter, row: Register) -> Register {
        let (bytes, before) = (w.u32(self.row_bytes), w.u32(4 * self.elements.first_word));
        let first = w.mul(row, bytes);
        w.add(first, before)
    }

    /// Whether its elements are floats as they are, and not codes with a scale.
    pub(crate) fn is_plain(&self) -> bool {
        self.format.info().block == 1
    }

    /// Runs of a row.
    pub(crate) fn runs(&self) -> u32 {
        let info = self.format.info();
        self.row_bytes / info.bytes as u32 * info.block as u32 / self.run_elements()
    }

    /// Elements of a run.
    pub(crate) fn run_elements(&self) -> u32 {
        self.unit / self.decoder.runs
    }

    /// The groups of a run: how many elements lie between its first one and theirs, and how many there are of each.
    pub(crate) fn groups_of_run(&self) -> impl Iterator<Item = (u32, u32)> + Clone {
        let offsets = self.decoder.offsets;
        let count = self.run_elements() / offsets.len() as u32;
        offsets.iter().map(move |&offset| (offset, count))
    }

    /// The first element of a run in its row.
    pub(crate) fn first(&self, w: &mut KernelWriter, run: Register) -> Register {
        let (runs, unit) = (w.u32(self.decoder.runs), w.u32(self.unit));
        let (block, part) = (w.div(run, runs), w.rem(run, runs));
        let (before, inside) = (w.mul(block, unit), (self.decoder.first)(w, part));
        w.add(before, inside)
    }

    /// A run of the row that begins at this byte.
    pub(crate) fn decode(&self, w: &mut KernelWriter, row: Register, run: Register) -> Vec<WeightGroup> {
        let (runs, bytes) = (w.u32(self.decoder.runs), w.u32(self.unit_bytes));
        let (block, part) = (w.div(run, runs), w.rem(run, runs));
        let before = w.mul(block, bytes);
        let at = BlockRun { rows: self, block: w.add(row, before), run: part };
        (self.decoder.decode)(w, &at)
    }
}

impl BlockRun<'_> {
    /// The block's bytes from a fixed place on.
    fn bytes(&self, w: &mut KernelWriter, offset: u32, count: u32) -> Bytes {
        let offset = w.u32(offset);
        self.bytes_at(w, offset, count)
    }

    /// The block's bytes from a place on, which for blocks of whole words is a multiple of 4, for others of as much as the block's
    /// own length is.
    fn bytes_at(&self, w: &mut KernelWriter, offset: Register, count: u32) -> Bytes {
        let first = w.add(self.block, offset);
        Bytes::new(w, self.rows.elements.memory, first, self.rows.alignment, count)
    }
}

impl WeightGroup {
    /// The weights, as the format says.
    pub(crate) fn weights(&self, w: &mut KernelWriter) -> Vec<Register> {
        let weight = |&code: &Register| {
            let scaled = self.scale.map_or(code, |scale| w.mul(scale, code));
            self.minimum.map_or(scaled, |minimum| w.sub(scaled, minimum))
        };
        self.codes.iter().map(weight).collect()
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
