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
/// Bytes of shared memory that every block may have.
const MOST_SHARED: usize = 48 << 10;
/// Those that the kernel has for itself.
const OWN_SHARED: usize = 128;

/// Where the functions of kernels go in the text around them.
const KERNELS: &str = "// KERNELS\n";

/// The kernel that runs steps of these kernels in CUDA C++, as a device compiles it.
///
/// # Errors
/// Why kernels cannot be a part of one: which, and what it has.
pub fn persistent_kernel(kernels: &[&ModuleKernel]) -> Result<NativeKernel, String> {
    source(kernels, &CDialect::CUDA, around())
}

/// The text for these kernels, which have the numbers of their places: a kernel by itself.
///
/// # Errors
/// Why kernels cannot be a part of one: which, and what it has.
pub(super) fn source(kernels: &[&ModuleKernel], dialect: &CDialect, around: &str) -> Result<NativeKernel, String> {
    let mut functions = String::new();
    let (mut threads, mut memory) = (WARP, 0);
    let mut computed: BTreeMap<u32, Vec<ComputeKernel>> = BTreeMap::new();
    for (number, kernel) in kernels.iter().enumerate() {
        let (name, own) = (kernel.name(), kernel.threads());
        if !own.is_multiple_of(WARP) {
            return Err(format!("kernel `{name}` has groups of {own} threads, which is no multiple of {WARP}"));
        }
        threads = threads.max(own);
        match kernel {
            ModuleKernel::Computed(kernel) => {
                memory = memory.max(group_memory_bytes(kernel));
                computed.entry(own).or_default().push(kernel.clone());
            }
            ModuleKernel::Native(kernel) => {
                let made = as_function(&kernel.source).ok_or_else(|| format!("kernel `{name}` has no other form"))?;
                memory = MOST_SHARED - OWN_SHARED;
                in_namespace(&mut functions, &format!("kernel_{number}"), own, &made);
            }
        }
    }
    if memory > MOST_SHARED - OWN_SHARED {
        return Err(format!("a kernel's groups have {memory} bytes of memory, {} at most", MOST_SHARED - OWN_SHARED));
    }
    for (&own, kernels) in &computed {
        let text = dialect.functions(kernels);
        in_namespace(&mut functions, &format!("threads_{own}"), own, &text);
    }
    functions += &calls(kernels);
    let source = format!(
        "#define BLOCK_THREADS {threads}u\n#define GROUP_BYTES {}u\n{DEVICE}\n{}",
        memory.next_multiple_of(16).max(16),
        around.replacen(KERNELS, &functions, 1)
    );
    Ok(NativeKernel { name: ENTRY.into(), threads, buffers: 4, source })
}

/// The text around the functions, as it is.
pub(crate) fn around() -> &'static str {
    PERSISTENT
}

fn in_namespace(all: &mut String, name: &str, threads: u32, text: &str) {
    // A text grows without end or not at all.
    let _ = write!(all, "namespace {name} {{\n#define TASK_THREADS {threads}u\n{text}#undef TASK_THREADS\n}}\n");
}

/// What runs a group of a kernel by its number.
fn calls(kernels: &[&ModuleKernel]) -> String {
    let mut text =
        String::from("DEVICE void run_group(Word kernel, const unsigned long long* at) {\n  switch (kernel) {\n");
    for (number, kernel) in kernels.iter().enumerate() {
        let (threads, name) = (kernel.threads(), kernel.name());
        let space = match kernel {
            ModuleKernel::Computed(_) => format!("threads_{threads}"),
            ModuleKernel::Native(_) => format!("kernel_{number}"),
        };
        let pointers: Vec<String> = (0..kernel.buffers()).map(|at| format!("KernelPointer{{at[{at}]}}")).collect();
        let pointers = pointers.join(", ");
        let _ = writeln!(text, "    case {number}: if (threadIdx.x < {threads}u) {space}::{name}({pointers}); break;");
    }
    text + "  }\n}\n"
}
