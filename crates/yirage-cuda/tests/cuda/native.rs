//! Kernels that are written by hand: their text against sums of f64, the bytes that it gives in batches, and mistakes made in it.

use crate::fake::FakeCuda;
use crate::support::{backend, buffer_of, device, driver, machine, run, words};
use std::collections::HashSet;
use yirage_compile::{CompileOptions, compile_explained, plan_weights};
use yirage_conformance::Suite;
use yirage_cuda::{CudaBackend, CudaDriver, CudaVendor, matmul};
use yirage_hal::driver::{
    Binding, BindingAccess, BufferSlice, Driver, KernelLaunch, Launch, LaunchConfig, Library, ModuleId, StepCommand,
};
use yirage_hal::{Backend, OpenOptions};
use yirage_ir::rng::Rng;
use yirage_ir::{Dim, Dims, Format, Tensor, Type, text};
use yirage_kernels::{KernelLibrary, ProductKernel, ProductShape, RowCount};
use yirage_plan::{DeviceLimits, Precision};

const FORMATS: [Format; 8] =
    [Format::F32, Format::BF16, Format::F16, Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::Q5_K, Format::Q6_K];

/// A product with its operands and what it has to give.
struct Product {
    shape: ProductShape,
    rows: u32,
    x: Vec<f32>,
    weight: Vec<u32>,
    wanted: Vec<f64>,
    /// The sums of the magnitudes of what is added.
    magnitudes: Vec<f64>,
}

impl Product {
    fn new(format: Format, rows: u32, columns: u32, k: u32) -> Product {
        Product::within(format, rows, rows, columns, k)
    }

    /// A product of a plan of more rows.
    fn within(format: Format, most_rows: u32, rows: u32, columns: u32, k: u32) -> Product {
        let mut rng = Rng::new(u64::from(rows * 7 + columns * 3 + k));
        let x: Vec<f32> = (0..rows * k).map(|_| rng.signed_f32() * 3.0).collect();
        let bytes = weight_bytes(format, (columns * k) as usize, &mut rng);
        let ty = Type::new(format.into(), [Dim::Const(columns), Dim::Const(k)]);
        let tensor = Tensor::from_memory(&ty, &Dims::default(), &bytes);
        let (mut wanted, mut magnitudes) = (Vec::new(), Vec::new());
        let weights: Vec<Vec<f64>> = (0..columns as usize).map(|row| tensor.row_f64(row)).collect();
        for x in x.chunks(k as usize) {
            let products = |row: &Vec<f64>| row.iter().zip(x).map(|(w, x)| w * f64::from(*x)).collect::<Vec<f64>>();
            let of_row: Vec<Vec<f64>> = weights.iter().map(products).collect();
            wanted.extend(of_row.iter().map(|products| products.iter().sum::<f64>()));
            magnitudes.extend(of_row.iter().map(|products| products.iter().map(|p| p.abs()).sum::<f64>()));
        }
        let weight = bytes.chunks(4).map(word).collect();
        let shape = ProductShape { format, columns, k, rows: RowCount::Size(0), most_rows, first_word: 0 };
        Product { shape, rows, x, weight, wanted, magnitudes }
    }

    fn kernel(&self) -> ProductKernel {
        matmul("sm_90").unwrap().kernel(&self.shape)
    }

    /// What a kernel of a module gives, or what is said of it.
    fn run(&self, driver: &CudaDriver, module: ModuleId, kernel: &ProductKernel) -> Result<Vec<f32>, String> {
        let Operands { launch, y } = self.operands(driver, module, kernel);
        run(driver, launch).map_err(|error| error.to_string())?;
        let value = driver.signal().map_err(|error| error.to_string())?;
        driver.wait(value, crate::support::LONG).map_err(|error| error.to_string())?;
        Ok(words(driver, y).iter().map(|&bits| f32::from_bits(bits)).collect())
    }

    fn operands(&self, driver: &CudaDriver, module: ModuleId, kernel: &ProductKernel) -> Operands {
        let floats: Vec<u32> = self.x.iter().map(|x| x.to_bits()).collect();
        let y = buffer_of(driver, &vec![0xffff_ffff; self.wanted.len()]);
        let slices = [buffer_of(driver, &[self.rows]), buffer_of(driver, &floats), buffer_of(driver, &self.weight), y];
        let access = |at| if at == 3 { BindingAccess::Write } else { BindingAccess::Read };
        let bindings =
            slices.into_iter().enumerate().map(|(at, slice)| Binding { slice, access: access(at) }).collect();
        let KernelLaunch { config, bindings, .. } = KernelLaunch::new(kernel.name.clone(), bindings, Vec::new());
        let config = LaunchConfig { block: [kernel.threads, 1, 1], early_start: kernel.waits, ..config };
        let groups = [
            self.shape.most_rows.div_ceil(kernel.rows_of_group),
            self.shape.columns.div_ceil(kernel.columns_of_group),
            1,
        ];
        Operands { launch: Launch { module, config, grid: groups, bindings }, y }
    }

    /// How far results are from the right ones, in roundings of f32 of what is added.
    fn error(&self, got: &[f32]) -> f64 {
        let one = |((got, wanted), magnitude): ((&f32, &f64), &f64)| {
            let error = (f64::from(*got) - wanted).abs() / (magnitude * f64::from(f32::EPSILON)).max(f64::MIN_POSITIVE);
            if error.is_nan() { f64::INFINITY } else { error }
        };
        got.iter().zip(&self.wanted).zip(&self.magnitudes).map(one).fold(0.0, f64::max)
    }
}

struct Operands {
    launch: Launch,
    y: BufferSlice,
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// Stored elements whose scales, or that themselves, are small floats; all else in them is any bits.
fn weight_bytes(format: Format, elements: usize, rng: &mut Rng) -> Vec<u8> {
    let info = format.info();
    let mut bytes: Vec<u8> = (0..elements / info.block * info.bytes).map(|_| rng.below(256) as u8).collect();
    // The high byte of a float: of both signs, and of some powers of two.
    let mut high = |base: u8, steps: u64, sign: u64| base + rng.below(steps) as u8 + 128 * rng.below(sign) as u8;
    for block in bytes.chunks_mut(info.bytes) {
        match format {
            Format::F32 => block[3] = high(0x3c, 4, 2),
            Format::BF16 => block[1] = high(0x3c, 4, 2),
            Format::F16 => block[1] = high(0x28, 20, 2),
            Format::Q8_0 | Format::Q4_0 => block[1] = high(0x28, 8, 2),
            Format::Q6_K => block[209] = high(0x20, 8, 2),
            _ => (block[1], block[3]) = (high(0x28, 8, 2), high(0x28, 8, 2)),
        }
    }
    bytes
}

/// A module of native kernels.
fn module(driver: &CudaDriver, kernels: &[ProductKernel]) -> Result<ModuleId, String> {
    let text = |kernel: &ProductKernel| {
        let ProductKernel { name, source, threads, .. } = kernel;
        format!("native {name} {threads} 4 {}\n{source}\n", source.len())
    };
    driver.module(kernels.iter().map(text).collect::<String>().as_bytes()).map_err(|error| error.to_string())
}

/// Roundings of f32 that a result may be away: what the operator's own cases allow.
const MOST_ROUNDINGS: f64 = 16.0;

#[test]
#[ignore = "needs a compiler of C++"]
fn products_are_those_of_f64() {
    let sizes = [(1, 40, 256), (3, 16, 1280), (8, 48, 512), (11, 17, 2304), (16, 40, 768), (37, 67, 1536)];
    let driver = driver();
    // Three of the sizes for each format.
    let of_format = |(at, &format): (usize, &Format)| {
        [0, 2, 4].map(|from| sizes[from + at % 2]).map(|(rows, columns, k)| Product::new(format, rows, columns, k))
    };
    let products: Vec<Product> = FORMATS.iter().enumerate().flat_map(of_format).collect();
    let kernels: Vec<ProductKernel> = products.iter().map(Product::kernel).collect();
    let module = module(&driver, &kernels).unwrap();
    for (product, kernel) in products.iter().zip(&kernels) {
        let error = product.error(&product.run(&driver, module, kernel).unwrap());
        assert!(error < MOST_ROUNDINGS, "{}: {error} roundings", kernel.name);
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_row_has_the_same_bytes_in_every_batch_and_every_kernel() {
    let driver = driver();
    for format in FORMATS {
        // The last unit of a row is half of one, where a format has blocks that are short enough.
        let (columns, k) = (33, if format.info().block <= 32 { 1312 } else { 1536 });
        let whole = Product::new(format, 43, columns, k);
        let parts = [43, 1, 2, 5, 13].map(|rows| Product {
            shape: ProductShape { most_rows: rows, ..whole.shape.clone() },
            rows,
            x: whole.x[..(rows * k) as usize].to_vec(),
            weight: whole.weight.clone(),
            wanted: whole.wanted[..(rows * columns) as usize].to_vec(),
            magnitudes: whole.magnitudes[..(rows * columns) as usize].to_vec(),
        });
        let kernels: Vec<ProductKernel> = parts.iter().map(Product::kernel).collect();
        let module = module(&driver, &kernels).unwrap();
        let bits = |(part, kernel): (&Product, &ProductKernel)| {
            part.run(&driver, module, kernel).unwrap().iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
        };
        let results: Vec<Vec<u32>> = parts.iter().zip(&kernels).map(bits).collect();
        for (part, got) in parts.iter().zip(&results) {
            assert!(got[..] == results[0][..got.len()], "{format:?} of {} rows", part.rows);
        }
        assert_eq!(kernels.iter().filter(|kernel| kernel.name.starts_with("tiled_matmul")).count(), 2);
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_grid_of_more_rows_than_a_step_has_makes_those_alone() {
    let product = Product::within(Format::BF16, 48, 3, 16, 64);
    let kernel = product.kernel();
    let text = "if (first_row >= all_rows) return;";
    let mutant = ProductKernel { source: kernel.source.replacen(text, "", 1), ..kernel.clone() };
    for (kernel, is_right) in [(kernel, true), (mutant, false)] {
        let machine = FakeCuda::new(&[]);
        let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
        assert_eq!(is_caught(&driver, &product, &kernel) || machine.stats().overruns > 0, !is_right);
    }
}

/// Mistakes in the text, with the format and the sizes that show them.
const MISTAKES: &[(&str, &str, Format, [u32; 3])] = &[
    // Barriers that are dropped: before activations are replaced, behind them, before sums meet.
    ("if (round > 0) __syncthreads();", "", Format::BF16, [8, 16, 2048]),
    (
        "stage(memory, x, round * ROUND, rows);\n        __syncthreads();",
        "stage(memory, x, round * ROUND, rows);",
        Format::Q8_0,
        [2, 16, 512],
    ),
    ("= sums[at];\n  }\n  __syncthreads();", "= sums[at];\n  }", Format::BF16, [8, 16, 512]),
    // Wrong strides.
    ("K / 32 * 34", "K / 32 * 32", Format::Q8_0, [1, 16, 256]),
    ("const Word PITCH = CHUNK * 2 + 64", "const Word PITCH = CHUNK * 2 - 64", Format::BF16, [2, 16, 512]),
    (
        "(row < TILE) memory.partial[warp][at / 2 * 8 + group]",
        "(row < TILE) memory.partial[warp][at / 2 * 7 + group]",
        Format::F16,
        [1, 16, 64],
    ),
    ("unit / 4 * 144", "unit / 4 * 128", Format::Q4_K, [1, 16, 512]),
    // One off, and bounds that are not looked at.
    ("(column < COLUMNS ? column : COLUMNS - 1)", "column", Format::BF16, [1, 17, 8192]),
    ("row < rows && first_column + column < COLUMNS", "row < rows", Format::BF16, [2, 17, 64]),
    ("if (first + k < K) v", "v", Format::BF16, [1, 16, 8224]),
    ("of < WARPS; ++of", "of < WARPS - 1; ++of", Format::BF16, [1, 16, 512]),
    ("unit + WEIGHT::AHEAD * WARPS", "unit + WARPS", Format::Q4_0, [1, 16, 4096]),
    ("if (next < UNITS)", "if (next + 1 < UNITS)", Format::Q4_0, [1, 16, 4096]),
    // Too few terms, sums of too few elements, elements in another order.
    ("const Word TERMS = 3", "const Word TERMS = 2", Format::Q8_0, [1, 16, 64]),
    ("mask < 8; mask *= 2", "mask < 4; mask *= 2", Format::Q4_K, [1, 16, 256]),
    ("if (WEIGHT::SHUFFLED)", "if (!WEIGHT::SHUFFLED)", Format::Q8_0, [1, 16, 64]),
    (
        "multiply_bf16(sums, a.x, b.x, a.y, b.y, v.x, v.y)",
        "multiply_bf16(sums, a.x, a.y, b.x, b.y, v.x, v.y)",
        Format::BF16,
        [1, 16, 64],
    ),
    ("0x43084308u", "0x43004300u", Format::Q4_0, [1, 16, 64]),
    ("(c & 15) | a >> 6 << 4", "(c & 15) | a >> 6 << 3", Format::Q4_K, [1, 16, 256]),
    ("pair + at < TILE ? pair + at : 0", "pair + at < TILE ? pair : 0", Format::Q4_K, [2, 16, 256]),
    ("bits[1], half * 4, number)", "bits[1], half * 4, number + 1)", Format::Q5_K, [1, 16, 256]),
    ("odd * 4 + half * 2", "odd * 4 + half", Format::Q6_K, [1, 16, 256]),
    ("(float)(signed char)(", "(float)(", Format::Q6_K, [1, 16, 256]),
    // An address that is no multiple of what is read there.
    ("(unit * 2 + block) * 34)", "(unit * 2 + block) * 33)", Format::Q8_0, [1, 16, 64]),
    // Of the kernel for many rows: copies that are not waited for, or not long enough, or that overtake what is read.
    ("wait_for_copies<RING - 1>();", "", Format::BF16, [16, 32, 512]),
    ("wait_for_copies<RING - 1>();", "wait_for_copies<RING>();", Format::BF16, [16, 32, 512]),
    ("    commit_copies();", "", Format::BF16, [16, 32, 512]),
    ("activations.request(item + RING)", "activations.request(item + RING - 1)", Format::BF16, [32, 64, 1024]),
    // Barriers that are dropped there.
    ("    __syncthreads();\n    UNROLL for (Word tile", "    UNROLL for (Word tile", Format::BF16, [16, 32, 512]),
    ("    __syncthreads();\n    for (Word at", "    for (Word at", Format::BF16, [16, 32, 512]),
    // Strides, bounds and numbers of its copies, units and sums.
    ("(row < rows ? row : rows - 1) * K", "row * K", Format::BF16, [9, 32, 8192]),
    ("first_row * K, rows, warp", "0, rows, warp", Format::BF16, [33, 64, 64]),
    ("row < rows && column < COLUMNS", "row < rows", Format::BF16, [9, 17, 64]),
    ("row < rows && column < COLUMNS", "column < COLUMNS", Format::BF16, [9, 32, 64]),
    ("SUM_PITCH = TILE + 4", "SUM_PITCH = TILE - 4", Format::BF16, [16, 32, 512]),
    ("half / 2 * WARPS + warp", "half / 2 + warp", Format::BF16, [16, 32, 1024]),
    ("* UNIT + half % 2 * 32;", "* UNIT;", Format::Q8_0, [16, 32, 512]),
    ("(UNITS - 1 - warp) / WARPS + 1", "(UNITS - 1 - warp) / WARPS", Format::BF16, [16, 32, 1024]),
    ("half == 1 && unit + WARPS < UNITS", "half == 1 && unit + WARPS + 1 < UNITS", Format::BF16, [16, 32, 1024]),
    ("if (half == 1 && unit", "if (half == 0 && unit", Format::Q4_K, [16, 32, 1024]),
    ("first_column + panel * 16 + at % 16", "first_column + at % 16", Format::BF16, [16, 32, 64]),
    ("of_lane[panel], w, first_column + panel * 16", "of_lane[panel], w, first_column", Format::BF16, [16, 32, 64]),
    // Its terms and sums.
    ("part * 4 + 16 :", "part * 4 + 8 :", Format::Q4_0, [16, 32, 64]),
    ("WEIGHT::SHUFFLED ? shuffled : in_order", "in_order", Format::Q6_K, [16, 32, 256]),
    ("mask < 4; mask *= 2", "mask < 2; mask *= 2", Format::Q4_K, [16, 32, 256]),
    ("(threadIdx.x % 4 * 2 + at) * 4", "threadIdx.x % 4 * 8", Format::Q5_K, [16, 32, 256]),
    // An exchange that not all threads come to.
    ("if (row >= rows) break;", "if (row >= rows || k % 8) break;", Format::BF16, [1, 16, 512]),
];

/// Whether a kernel is told from the right one by some of the orders in which its threads may run.
fn is_caught(driver: &CudaDriver, product: &Product, kernel: &ProductKernel) -> bool {
    let Ok(module) = module(driver, std::slice::from_ref(kernel)) else { return true };
    (0..6).any(|_| product.run(driver, module, kernel).map_or(true, |got| product.error(&got) >= MOST_ROUNDINGS))
}

#[test]
#[ignore = "needs a compiler of C++"]
fn each_mistake_in_the_text_is_found() {
    let (mut survivors, mut tried) = (Vec::new(), HashSet::new());
    for &(right, wrong, format, [rows, columns, k]) in MISTAKES {
        // A fault ends a context: each has a device of its own.
        let machine = FakeCuda::new(&[]);
        let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
        let product = Product::new(format, rows, columns, k);
        let kernel = product.kernel();
        assert_eq!(kernel.source.matches(right).count().min(1), 1, "the text has no `{right}`");
        if tried.insert((format.info().name, rows, columns, k)) {
            assert!(!is_caught(&driver, &product, &kernel), "the right text of {format:?} for `{right}`");
        }
        let mutant = ProductKernel { source: kernel.source.replace(right, wrong), ..kernel };
        if is_caught(&driver, &product, &mutant) {
            continue;
        }
        survivors.push(format!("`{right}` as `{wrong}`"));
    }
    assert!(survivors.is_empty(), "{} of {}: {survivors:#?}", survivors.len(), MISTAKES.len());
}

/// What a graph of two products gives, of which the second begins early and reads what the first makes.
fn chained(machine: &FakeCuda, rows: u32, change: impl Fn(&str) -> String) -> Result<Vec<f32>, String> {
    let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
    let product = Product::new(Format::BF16, rows, 64, 64);
    let mut kernel = product.kernel();
    kernel.source = change(&kernel.source);
    let module = module(&driver, std::slice::from_ref(&kernel))?;
    let Operands { launch: first, y } = product.operands(&driver, module, &kernel);
    let Operands { launch: mut second, y: last } = product.operands(&driver, module, &kernel);
    second.bindings[1].slice = y;
    let capture = driver.graph_capture().unwrap();
    let commands = [first, second].map(StepCommand::Launch).into();
    let graph = capture.capture(commands).map_err(|error| error.to_string())?;
    capture.replay(graph).map_err(|error| error.to_string())?;
    let value = driver.signal().map_err(|error| error.to_string())?;
    driver.wait(value, crate::support::LONG).map_err(|error| error.to_string())?;
    Ok(words(&driver, last).iter().map(|&bits| f32::from_bits(bits)).collect())
}

#[test]
#[ignore = "needs a compiler of C++"]
fn launches_of_a_graph_begin_early_and_wait_by_themselves() {
    [2, 20].into_iter().for_each(begin_early_and_wait);
}

/// By the kernel for so many rows.
fn begin_early_and_wait(rows: u32) {
    let machine = FakeCuda::new(&[]);
    let early = chained(&machine, rows, str::to_owned).unwrap();
    assert_eq!(machine.stats().early_launches, 1, "what is behind another launch begins early");
    let older = FakeCuda::new(&[("FAKE_CUDA_ARCH", "sm_86")]);
    assert_eq!(chained(&older, rows, str::to_owned).unwrap(), early);
    assert_eq!(older.stats().early_launches, 0, "a device before sm_90 begins none early");
    for (right, wrong, wanted) in [
        // The wait is missing, or behind what has to wait.
        ("  wait_for_earlier();\n", "\n", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (
            "  wait_for_earlier();\n",
            "  if (x[blockIdx.x] == 0) return;\n  wait_for_earlier();\n",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
        ),
        ("  let_next_begin();\n  wait_for_earlier();", "  return;", "CUDA_ERROR_LAUNCH_FAILED"),
    ] {
        let change = |source: &str| {
            assert!(source.contains(right), "the text has no `{right}`");
            source.replacen(right, wrong, 1)
        };
        let said = chained(&FakeCuda::new(&[]), rows, change).unwrap_err();
        assert!(said.contains(wanted), "{right}: {said}");
    }
}

/// The kernel that a plan of a product has, and what is said of the choice.
fn chosen(product: &str) -> (String, String) {
    let library = KernelLibrary::with_products(
        yirage_kernels::target("cuda", "sm_90", DeviceLimits::aligned(256)),
        matmul("sm_90").unwrap(),
    );
    let (graph, target) = (text::parse(&format!("graph g {{ {product} output %y }}")).unwrap(), library.target());
    let (mut told, bucket) = (Vec::new(), Dims { tokens: 4, seqs: 1, blocks: 1, rows: 1 });
    let weights = plan_weights(&graph, &target).unwrap();
    let options = CompileOptions::new(Precision::Exact);
    let plan = compile_explained(&graph, bucket, &target, &weights, &options, &mut told).unwrap();
    let why = told.iter().flat_map(|pass| &pass.decisions).map(|decision| decision.why.as_str());
    (plan.kernels[0].name.clone(), why.collect::<Vec<_>>().join("; "))
}

#[test]
fn a_plan_names_the_kernel_or_says_what_it_does_not_take() {
    let product = |format: &str, k: u32| {
        let (x, w) = (format!("input %x: f32[Tokens, {k}]"), format!("weight %w: {format}[64, {k}]"));
        chosen(&format!("{x} {w} %y = linear{{groups=1}}(%x, %w): f32[Tokens, 64]"))
    };
    assert_eq!(product("q8_0", 96).0, "cuda/matmul@1");
    let (kernel, why) = product("bf16", 100);
    let wanted = "`linear` has the width of input 1 = 100; cuda/matmul@1 wants the width of input 1 a multiple of 32";
    assert!(kernel == "kir/kernels@1" && why.contains(wanted), "{kernel}: {why}");
    let (kernel, why) = product("q5_0", 64);
    assert!(kernel == "kir/kernels@1" && why.contains("a weight in plain rows of q5_0"), "{kernel}: {why}");
}

#[test]
fn a_device_that_is_too_old_has_no_such_kernels() {
    assert!(matmul("sm_75").is_none() && matmul("gfx942").is_none());
}

/// The operator's own cases, of which those of the formats above are run by these kernels.
#[test]
#[ignore = "needs a compiler of C++"]
fn every_case_of_products_holds() {
    let device = device();
    assert!(device.target().kernels.iter().any(|facts| facts.kernel.name == "cuda/matmul@1"));
    crate::conformance::holds(&device, &Suite::quick_of(&["linear"]));
    let facts = backend().open(0, &OpenOptions::default()).unwrap().0.info().facts.clone();
    assert!(facts.iter().any(|(name, said)| *name == "early launches" && said == "in captured graphs"), "{facts:?}");
    assert_eq!(machine().stats().overruns, 0);
}
