//! Products of weights with activations by tensor cores, with weights read straight from memory to registers.

use super::form::{KernelHead, as_kernel};
use super::{DEVICE, TERMS, count_of, has_instructions, named, sizes_parameter};
use std::sync::Arc;
use yirage_ir::Format;
use yirage_kernels::{NativeProducts, ProductKernel, ProductShape};
use yirage_plan::{NumberTest, Predicate, Quantity};

/// Elements along k that are multiplied at once.
const STEP: u32 = 32;
/// Rows of activations of a block of the kernel for few rows, at most.
const FEW_ROWS: u32 = 8;
/// Rows of activations of a block of the other one, at most.
const MANY_ROWS: u32 = 32;
/// Columns that a warp makes at once.
const PANEL: u32 = 16;
const THREADS: u32 = 256;
/// Blocks along the grid's second axis, of every device.
const MOST_BLOCKS: u32 = 65_535;

/// What a block makes, and how many of them a multiprocessor has room for at least: 128 registers a thread for two, 255 for one,
/// with which none spills.
#[derive(Clone, Copy)]
struct MatmulTile {
    rows: u32,
    panels: u32,
    blocks: u32,
}

impl MatmulTile {
    /// The tile for a plan of so many rows. It changes no byte.
    fn of(format: Format, most_rows: u32) -> MatmulTile {
        let rows = most_rows.clamp(1, MANY_ROWS).next_power_of_two();
        let panels = match (rows, format) {
            (..=FEW_ROWS, _) => 1,
            (MANY_ROWS, Format::BF16) => 4,
            // What is decoded with more of it takes more registers.
            _ => 2,
        };
        MatmulTile { rows, panels, blocks: if rows <= FEW_ROWS { 2 } else { 1 } }
    }
}

const FORMATS: [Format; 8] =
    [Format::F32, Format::BF16, Format::F16, Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::Q5_K, Format::Q6_K];

/// The products of a device of this architecture; none where it is too old for them.
pub fn matmul(arch: &str) -> Option<Arc<dyn NativeProducts>> {
    has_instructions(arch).then(|| Arc::new(Matmul) as Arc<dyn NativeProducts>)
}

#[derive(Debug)]
struct Matmul;

impl NativeProducts for Matmul {
    fn name(&self) -> &'static str {
        "cuda/matmul@1"
    }

    fn name_of_regions(&self) -> &'static str {
        "cuda/matmuls@1"
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
            Predicate::Number(columns, NumberTest::AtMost(MOST_BLOCKS * PANEL)),
        ]
    }

    fn kernel(&self, shape: &ProductShape) -> ProductKernel {
        let ProductShape { format, columns, k, rows, most_rows, first_word } = *shape;
        let MatmulTile { rows: tile, panels, blocks } = MatmulTile::of(format, most_rows);
        let (kernel, text) = if tile <= FEW_ROWS { ("decode_matmul", DECODE) } else { ("tiled_matmul", TILED) };
        let weight = format.info().name.to_ascii_uppercase();
        let (sizes, count, rows) = (sizes_parameter(&[rows]), count_of(rows), named(rows));
        let name = format!("{kernel}_{}_{columns}x{k}_{rows}_t{tile}_y{first_word}", weight.to_ascii_lowercase());
        let source = format!(
            "#define WEIGHT Weight{weight}\n#define K {k}u\n#define COLUMNS {columns}u\n#define TILE {tile}u\n\
             #define PANELS {panels}u\n{DEVICE}\n{TERMS}\n{WEIGHTS}\n{text}\n{}",
            as_kernel(
                &KernelHead {
                    threads: THREADS,
                    blocks,
                    name: &name,
                    parameters: &format!("{sizes}const float* x, const unsigned char* w, float* y"),
                    memory: "MatmulMemory",
                },
                &format!("  {kernel}(memory, {count}, x, w, y + {first_word}u);\n")
            )
        );
        ProductKernel {
            name,
            source,
            threads: THREADS,
            rows_of_group: tile,
            columns_of_group: PANEL * panels,
            waits: true,
        }
    }
}

/// Formats of weights, decoded.
const WEIGHTS: &str = include_str!("weights.cu");
/// Few rows of activations.
const DECODE: &str = include_str!("decode_matmul.cu");
/// Many.
const TILED: &str = include_str!("tiled_matmul.cu");

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_kernels::RowCount;

    #[test]
    fn devices_that_are_too_old_have_none() {
        for (arch, has) in [("sm_75", false), ("sm_80", true), ("sm_90a", true), ("sm_120", true), ("gfx942", false)] {
            assert_eq!(matmul(arch).is_some(), has, "{arch}");
        }
    }

    #[test]
    fn the_number_of_rows_chooses_the_kernel_and_its_tile() {
        let of = |format, most_rows| {
            let shape =
                ProductShape { format, columns: 4096, k: 64, rows: RowCount::Size(0), most_rows, first_word: 0 };
            let made = Matmul.kernel(&shape);
            (made.name.starts_with("tiled_matmul"), made.rows_of_group, made.columns_of_group)
        };
        for (rows, wanted) in
            [(0, (false, 1, 16)), (1, (false, 1, 16)), (8, (false, 8, 16)), (9, (true, 16, 32)), (16, (true, 16, 32))]
        {
            assert_eq!(of(Format::Q4_K, rows), wanted, "{rows}");
        }
        assert_eq!(of(Format::Q4_K, 17), (true, 32, 32));
        assert_eq!(of(Format::BF16, 512), (true, 32, 64));
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
        let made = Matmul.kernel(&shape);
        assert_eq!((made.name.as_str(), made.rows_of_group), ("decode_matmul_q8_0_48x64_s0_t4_y0", 4));
        for other in [
            ProductShape { format: Format::BF16, ..shape.clone() },
            ProductShape { columns: 49, ..shape.clone() },
            ProductShape { k: 128, ..shape.clone() },
            ProductShape { rows: RowCount::Fixed(3), ..shape.clone() },
            ProductShape { most_rows: 5, ..shape.clone() },
            ProductShape { first_word: 64, ..shape.clone() },
        ] {
            assert_ne!(Matmul.kernel(&other).name, made.name);
        }
    }
}
