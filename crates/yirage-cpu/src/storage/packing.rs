//! What the bytes of packed weights depend on.

use super::weight::MATMUL_LAYOUT;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::pack::{PackError, PackedMatrix};
use yirage_hal::HalError;
use yirage_ir::Format;
use yirage_ir::hash::fnv128;

/// Rows of the made-up matrices: more than a tile has, and no whole number of tiles.
const PROBE_ROWS: usize = 20;

/// The layout's name, the order of bytes in numbers, and what the packing code makes of made-up rows of each format. The
/// last one tells versions of the code apart that nobody named differently.
pub(crate) fn packing(isa: Isa) -> Result<String, HalError> {
    let mut text = String::new();
    for &format in Format::ALL {
        let info = format.info();
        let k = 320usize.next_multiple_of(info.block);
        // Numbers of Lehmer's generator: every byte differs from its neighbours, none has a meaning.
        let mut state = 1u64;
        let mut next = || {
            state = state * 48_271 % 0x7fff_ffff;
            (state >> 8) as u8
        };
        let rows: Vec<u8> = (0..PROBE_ROWS * info.row_bytes(k)).map(|_| next()).collect();
        let error = |e: PackError| HalError::Device(e.to_string());
        let matrix = PackedMatrix::new(format, PROBE_ROWS, k).map_err(error)?;
        // SAFETY: nobody else knows the matrix.
        unsafe { matrix.pack_rows(isa, 0, 0, &rows) }.map_err(error)?;
        text.push_str(&format!(" {}:{:016x}", info.name, fnv128(matrix.packed_bytes()) as u64));
    }
    let order = if cfg!(target_endian = "little") { "little" } else { "big" };
    Ok(format!("cpu {MATMUL_LAYOUT} {order}-endian{text}"))
}
