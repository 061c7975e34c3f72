//! Products of weights with activations by tensor cores, with weights read straight from memory to registers.

use super::{DEVICE, capability};
use std::sync::Arc;
use yirage_ir::Format;
use yirage_kernels::{NativeProducts, ProductKernel, ProductShape, RowCount};
use yirage_plan::{NumberTest, Predicate, Quantity};

/// The first architecture that has the instructions: `mma` of bf16.
const FIRST: u32 = 80;
/// Elements along k that are multiplied at once.
const STEP: u32 = 32;
/// Rows of activations that a block has at most.
const MOST_TILE: u32 = 8;
/// Columns of a block.
const COLUMNS_OF_BLOCK: u32 = 16;
const THREADS: u32 = 256;
/// Blocks that a multiprocessor has room for at least: 128 registers a thread, with which none spills.
const BLOCKS: u32 = 2;
/// Blocks along the grid's second axis, of every device.
const MOST_BLOCKS: u32 = 65_535;

const FORMATS: [Format; 8] =
    [Format::F32, Format::BF16, Format::F16, Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::Q5_K, Format::Q6_K];

/// The products of a device of this architecture; none where it is too old for them.
pub fn decode_matmul(arch: &str) -> Option<Arc<dyn NativeProducts>> {
    let is_new = capability(arch).is_some_and(|number| number >= FIRST);
    is_new.then(|| Arc::new(DecodeMatmul) as Arc<dyn NativeProducts>)
}

#[derive(Debug)]
struct DecodeMatmul;

impl NativeProducts for DecodeMatmul {
    fn name(&self) -> &'static str {
        "cuda/decode_matmul@1"
    }

    fn name_of_regions(&self) -> &'static str {
        "cuda/decode_matmuls@1"
    }

    fn variant(&self) -> &'static str {
        "sm_80"
    }

    fn formats(&self) -> &'static [Format] {
        &FORMATS
    }

    fn wants(&self) -> Vec<Predicate> {
        let [k, columns] = [0, 1].map(|from_last| Quantity::Size { input: 1, from_last });
        vec![
            Predicate::Number(k, NumberTest::MultipleOf(STEP)),
            Predicate::Number(columns, NumberTest::AtMost(MOST_BLOCKS * COLUMNS_OF_BLOCK)),
        ]
    }

    fn kernel(&self, shape: &ProductShape) -> ProductKernel {
        let ProductShape { format, columns, k, rows, most_rows, first_word } = *shape;
        let tile = most_rows.clamp(1, MOST_TILE).next_power_of_two();
        let weight = format.info().name.to_ascii_uppercase();
        // The block of step sizes is given where the number of rows is read there.
        let (sizes, count, rows) = match rows {
            RowCount::Fixed(rows) => ("", format!("{rows}u"), format!("r{rows}")),
            RowCount::Size(word) => ("const unsigned int* sizes, ", format!("sizes[{word}]"), format!("s{word}")),
        };
        let name = format!("decode_matmul_{}_{columns}x{k}_{rows}_t{tile}_y{first_word}", weight.to_ascii_lowercase());
        let source = format!(
            "#define WEIGHT Weight{weight}\n#define K {k}u\n#define COLUMNS {columns}u\n#define TILE {tile}u\n{DEVICE}\n{TEXT}\n\
             extern \"C\" __global__ void __launch_bounds__({THREADS}, {BLOCKS}) {name}({sizes}const float* x, const unsigned char* w, \
             float* y) {{\n  __shared__ MatmulMemory memory;\n  decode_matmul(memory, {count}, x, w, y + {first_word}u);\n}}\n"
        );
        ProductKernel {
            name,
            source,
            threads: THREADS,
            rows_of_group: tile,
            columns_of_group: COLUMNS_OF_BLOCK,
            waits: true,
        }
    }
}

const TEXT: &str = include_str!("decode_matmul.cu");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_too_old_have_none() {
        for (arch, has) in [("sm_75", false), ("sm_80", true), ("sm_90a", true), ("sm_120", true), ("gfx942", false)] {
            assert_eq!(decode_matmul(arch).is_some(), has, "{arch}");
        }
    }

    #[test]
    fn kernels_of_other_shapes_have_other_names() {
        let shape = ProductShape {
            format: Format::Q8_0,
            columns: 48,
            k: 64,
            rows: RowCount::Size(0),
            most_rows: 3,
            first_word: 0,
        };
        let made = DecodeMatmul.kernel(&shape);
        assert_eq!((made.name.as_str(), made.rows_of_group), ("decode_matmul_q8_0_48x64_s0_t4_y0", 4));
        for other in [
            ProductShape { format: Format::BF16, ..shape.clone() },
            ProductShape { columns: 49, ..shape.clone() },
            ProductShape { k: 128, ..shape.clone() },
            ProductShape { rows: RowCount::Fixed(3), ..shape.clone() },
            ProductShape { most_rows: 5, ..shape.clone() },
            ProductShape { first_word: 64, ..shape.clone() },
        ] {
            assert_ne!(DecodeMatmul.kernel(&other).name, made.name);
        }
    }
}
