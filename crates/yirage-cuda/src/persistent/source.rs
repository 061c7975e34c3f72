//! The text of a kernel that runs a step: the step's kernels as functions, and what calls them.

use crate::native::{DEVICE, PERSISTENT, as_function};
use std::collections::BTreeMap;
use std::fmt::Write;
use yirage_kernels::{ModuleKernel, NativeKernel};
use yirage_kir::ComputeKernel;
use yirage_kir::render::{CDialect, group_memory_bytes};

/// The kernel's name.
pub(crate) const ENTRY: &str = "persistent_step";

/// Threads that run in step: a part of a block that meets by itself is a multiple of them.
const WARP: u32 = 32;
/// Threads of a block at least, so that kernels of few have some groups there at once.
const LEAST_THREADS: u32 = 256;
/// Groups that a block runs at once at most: a block has sixteen barriers.
const MOST_AT_ONCE: u32 = 8;
/// Bytes of shared memory that every block may have.
const MOST_SHARED: usize = 48 << 10;
/// Those that the kernel has for itself.
const OWN_SHARED: usize = 256;
/// What kernels may have of it.
const MOST_MEMORY: usize = MOST_SHARED - OWN_SHARED;

/// Where the functions of kernels go in the text around them.
const KERNELS: &str = "// KERNELS\n";

/// The kernel that runs steps of these kernels in CUDA C++, as a device compiles it.
///
/// # Errors
/// Why kernels cannot be a part of one: which, and what it has.
pub fn persistent_kernel(kernels: &[&ModuleKernel]) -> Result<NativeKernel, String> {
    Ok(source(kernels, &CDialect::CUDA, around())?.kernel)
}

/// A kernel that runs others.
pub(super) struct PersistentSource {
    pub(super) kernel: NativeKernel,
    /// Of each kernel, how many of its groups a block runs at once.
    pub(super) at_once: Vec<u32>,
}

/// The text for these kernels, which have the numbers of their places: a kernel by itself.
///
/// # Errors
/// Why kernels cannot be a part of one: which, and what it has.
pub(super) fn source(kernels: &[&ModuleKernel], dialect: &CDialect, around: &str) -> Result<PersistentSource, String> {
    let threads = kernels.iter().map(|kernel| kernel.threads()).max().unwrap_or(0).max(LEAST_THREADS);
    let (mut functions, mut memory) = (String::new(), 16);
    let mut computed: BTreeMap<u32, Vec<ComputeKernel>> = BTreeMap::new();
    for (number, kernel) in kernels.iter().enumerate() {
        let (name, own) = (kernel.name(), kernel.threads());
        if !own.is_multiple_of(WARP) {
            return Err(format!("kernel `{name}` has groups of {own} threads, which is no multiple of {WARP}"));
        }
        match kernel {
            ModuleKernel::Computed(kernel) => computed.entry(own).or_default().push(kernel.clone()),
            ModuleKernel::Native(kernel) => {
                let made = as_function(&kernel.source).ok_or_else(|| format!("kernel `{name}` has no other form"))?;
                memory = MOST_MEMORY;
                in_namespace(&mut functions, &format!("kernel_{number}"), own, MOST_MEMORY, &made);
            }
        }
    }
    let mut together: BTreeMap<u32, u32> = BTreeMap::new();
    for (&own, kernels) in &computed {
        let bytes = kernels.iter().map(group_memory_bytes).max().unwrap_or(0).max(16);
        let at_once = (threads / own).min(MOST_AT_ONCE).min((MOST_MEMORY / bytes) as u32);
        if at_once == 0 {
            return Err(format!("groups of {own} threads have {bytes} bytes of memory, {MOST_MEMORY} at most"));
        }
        memory = memory.max(at_once as usize * bytes);
        together.insert(own, at_once);
        in_namespace(&mut functions, &format!("threads_{own}"), own, bytes, &dialect.functions(kernels));
    }
    functions += &calls(kernels);
    let source = format!(
        "#define BLOCK_THREADS {threads}u\n#define MOST_AT_ONCE {MOST_AT_ONCE}u\n#define BLOCK_BYTES {memory}u\n{DEVICE}\n{}",
        around.replacen(KERNELS, &functions, 1)
    );
    let of_kernel = |kernel: &&ModuleKernel| match kernel {
        ModuleKernel::Computed(kernel) => together.get(&kernel.threads).copied().unwrap_or(1),
        ModuleKernel::Native(_) => 1,
    };
    let kernel = NativeKernel { name: ENTRY.into(), threads, buffers: 4, source };
    Ok(PersistentSource { kernel, at_once: kernels.iter().map(of_kernel).collect() })
}

/// The text around the functions, as it is.
pub(crate) fn around() -> &'static str {
    PERSISTENT
}

fn in_namespace(all: &mut String, name: &str, threads: u32, bytes: usize, text: &str) {
    // A text grows without end or not at all.
    let _ = write!(
        all,
        "namespace {name} {{\n#define TASK_THREADS {threads}u\n#define TASK_BYTES {bytes}u\n{text}#undef TASK_THREADS\n\
         #undef TASK_BYTES\n}}\n"
    );
}

/// What runs some groups of a kernel by its number.
fn calls(kernels: &[&ModuleKernel]) -> String {
    let mut text = String::from(
        "DEVICE void run_groups(Word kernel, Word together, const unsigned long long* at) {\n  switch (kernel) {\n",
    );
    for (number, kernel) in kernels.iter().enumerate() {
        let (threads, name) = (kernel.threads(), kernel.name());
        let space = match kernel {
            ModuleKernel::Computed(_) => format!("threads_{threads}"),
            ModuleKernel::Native(_) => format!("kernel_{number}"),
        };
        let pointers: Vec<String> = (0..kernel.buffers()).map(|at| format!("KernelPointer{{at[{at}]}}")).collect();
        let pointers = pointers.join(", ");
        let _ = writeln!(
            text,
            "    case {number}: if (block_thread() < {threads}u * together) {space}::{name}({pointers}); break;"
        );
    }
    text + "  }\n}\n"
}
