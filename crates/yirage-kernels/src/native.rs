//! Kernels that a backend has in its vendor's own language, beside those that are written here.

use std::fmt::Debug;
use yirage_ir::op::Attention;
use yirage_ir::{Dim, Format, Sym};
use yirage_kir::ComputeKernel;
use yirage_kir::text::KernelTextError;
use yirage_plan::Predicate;

/// A product with a weight that a kernel is wanted for: `y[r, n] = sum over k of x[r, k] * w[n, k]`, of f32 and a weight in rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProductShape {
    /// The weight's format.
    pub format: Format,
    /// Rows of the weight: elements of a row of `y`.
    pub columns: u32,
    /// Elements that a result is a sum over.
    pub k: u32,
    /// Rows of `x` and `y`.
    pub rows: RowCount,
    /// The most rows of a step.
    pub most_rows: u32,
    /// Where in its buffer `y` begins, in words of 4 bytes.
    pub first_word: u32,
}

/// How many rows a step has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowCount {
    /// So many.
    Fixed(u32),
    /// What stands in this word of the block of step sizes.
    Size(u32),
}

impl RowCount {
    pub(crate) fn of(dim: Dim) -> RowCount {
        match dim {
            Dim::Const(rows) => RowCount::Fixed(rows),
            Dim::Sym(size) => RowCount::Size(Sym::ALL.iter().position(|&known| known == size).unwrap_or(0) as u32),
        }
    }
}

/// A kernel of a product. Its parameters are pointers: to the block of step sizes where it reads the number of rows there, to
/// `x`, to the weight and to `y`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProductKernel {
    /// The kernel's name: another shape has another one.
    pub name: String,
    /// Its text.
    pub source: String,
    /// Threads of a group.
    pub threads: u32,
    /// Rows that a group makes: groups along the first axis run over rows.
    pub rows_of_group: u32,
    /// Columns that a group makes: groups along the second axis run over columns.
    pub columns_of_group: u32,
    /// Whether it waits by itself for what earlier launches write.
    pub waits: bool,
}

/// Kernels of products in a vendor's language.
pub trait NativeProducts: Debug + Send + Sync {
    /// The name that plans have for them, as `backend/kernel@version`.
    fn name(&self) -> &'static str;
    /// The name for regions of products.
    fn name_of_regions(&self) -> &'static str;
    /// What the device has to have.
    fn variant(&self) -> &'static str;
    /// Formats of weights.
    fn formats(&self) -> &'static [Format];
    /// What else they want of a product. Its order of additions is a property of the weight's shape: what is wanted here is said
    /// of that alone.
    fn wants(&self) -> Vec<Predicate>;
    /// The kernel of a product that is as it is wanted.
    fn kernel(&self, shape: &ProductShape) -> ProductKernel;
}

/// Attention over a cache in blocks that a kernel is wanted for.
#[derive(Clone, PartialEq, Debug)]
pub struct PagedAttentionShape {
    /// What it computes.
    pub op: Attention,
    /// What keys and values are stored as.
    pub cache: Format,
    /// Whether each head has a sink.
    pub has_sinks: bool,
    /// Rows of queries.
    pub tokens: RowCount,
    /// The most of them in a step.
    pub most_tokens: u32,
    /// Rows of the table of blocks.
    pub seqs: RowCount,
    /// Blocks of a row of it.
    pub blocks: RowCount,
}

/// A kernel of attention. Its parameters are pointers: to the block of step sizes where it reads a size there, to queries, the cache,
/// positions, sequences and the table, to sinks where there are some, and to the results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttentionKernel {
    /// The kernel's name: another shape has another one.
    pub name: String,
    /// Its text.
    pub source: String,
    /// Threads of a group.
    pub threads: u32,
    /// Tokens that a group makes: groups along the first axis run over tokens.
    pub tokens_of_group: u32,
    /// Groups along the second axis, which run over heads.
    pub groups_of_heads: u32,
    /// Whether it waits by itself for what earlier launches write.
    pub waits: bool,
}

/// Kernels of attention over a cache in a vendor's language.
pub trait NativeAttention: Debug + Send + Sync {
    /// The name that plans have for them, as `backend/kernel@version`.
    fn name(&self) -> &'static str;
    /// What the device has to have.
    fn variant(&self) -> &'static str;
    /// What keys and values may be stored as.
    fn formats(&self) -> &'static [Format];
    /// How many positions a block of the cache may have.
    fn block_positions(&self) -> &'static [u32];
    /// What else they want of the op.
    fn wants(&self) -> Vec<Predicate>;
    /// The kernel of an op that is as it is wanted.
    fn kernel(&self, shape: &PagedAttentionShape) -> AttentionKernel;
}

/// A kernel of a module as its driver compiles it.
#[derive(Clone, PartialEq, Debug)]
pub enum ModuleKernel {
    /// One that is data.
    Computed(ComputeKernel),
    /// One in the vendor's language.
    Native(NativeKernel),
}

impl ModuleKernel {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            ModuleKernel::Computed(kernel) => &kernel.name,
            ModuleKernel::Native(kernel) => &kernel.name,
        }
    }

    /// Threads of a group.
    pub fn threads(&self) -> u32 {
        match self {
            ModuleKernel::Computed(kernel) => kernel.threads,
            ModuleKernel::Native(kernel) => kernel.threads,
        }
    }

    /// Buffers that it is given.
    pub fn buffers(&self) -> usize {
        match self {
            ModuleKernel::Computed(kernel) => kernel.buffers.len(),
            ModuleKernel::Native(kernel) => kernel.buffers,
        }
    }
}

/// A kernel in a vendor's language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NativeKernel {
    /// Its name.
    pub name: String,
    /// Threads of a group.
    pub threads: u32,
    /// Buffers that it is given.
    pub buffers: usize,
    /// Its text.
    pub source: String,
}

/// What a native kernel begins with in the code of a module.
const NATIVE: &str = "native ";

/// Why the code of a module is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModuleTextError {
    /// Of the kernels that are data.
    #[error(transparent)]
    Kernel(#[from] KernelTextError),
    /// Of those in the vendor's language.
    #[error("native kernel {number}: expected `native NAME THREADS BUFFERS BYTES` and as many bytes, got `{got}`")]
    Native {
        /// Which of them, counted from 0.
        number: usize,
        /// What stands there.
        got: String,
    },
}

/// The code of a module: native kernels, then those that are data.
pub(crate) fn print(kernels: &[ModuleKernel]) -> String {
    let mut code = String::new();
    for kernel in kernels {
        if let ModuleKernel::Native(NativeKernel { name, threads, buffers, source }) = kernel {
            code += &format!("{NATIVE}{name} {threads} {buffers} {}\n{source}\n", source.len());
        }
    }
    let computed = kernels.iter().filter_map(|kernel| match kernel {
        ModuleKernel::Computed(kernel) => Some(yirage_kir::text::print(kernel)),
        ModuleKernel::Native(_) => None,
    });
    code + &computed.collect::<Vec<String>>().join("\n")
}

/// The kernels of a module's code, as [`KernelLibrary`](crate::KernelLibrary) gives it.
///
/// # Errors
/// What is no such code.
pub fn module_kernels(code: &str) -> Result<Vec<ModuleKernel>, ModuleTextError> {
    let (mut kernels, mut rest) = (Vec::new(), code);
    while let Some(text) = rest.strip_prefix(NATIVE) {
        let got = || text.lines().next().unwrap_or_default().chars().take(120).collect();
        let wrong = || ModuleTextError::Native { number: kernels.len(), got: got() };
        let (kernel, behind) = native_kernel(text).ok_or_else(wrong)?;
        kernels.push(ModuleKernel::Native(kernel));
        rest = behind;
    }
    kernels.extend(yirage_kir::text::parse(rest)?.into_iter().map(ModuleKernel::Computed));
    Ok(kernels)
}

/// A native kernel behind its first word, and what follows it.
fn native_kernel(text: &str) -> Option<(NativeKernel, &str)> {
    let (line, body) = text.split_once('\n')?;
    let words: Vec<&str> = line.split(' ').collect();
    let &[name, threads, buffers, bytes] = &words[..] else { return None };
    let bytes: usize = bytes.parse().ok()?;
    let (source, behind) = (body.get(..bytes)?, body.get(bytes..)?.strip_prefix('\n')?);
    let (threads, buffers) = (threads.parse().ok()?, buffers.parse().ok()?);
    Some((NativeKernel { name: name.into(), threads, buffers, source: source.into() }, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(name: &str, source: &str) -> ModuleKernel {
        ModuleKernel::Native(NativeKernel { name: name.into(), threads: 256, buffers: 4, source: source.into() })
    }

    #[test]
    fn the_code_of_a_module_is_read_as_it_was_printed() {
        let kernels = [native("a", "one\nnative of no kernel\n"), native("b", "")];
        assert_eq!(module_kernels(&print(&kernels)).unwrap(), kernels);
        let text = "kernel k threads 1 {\nbuffer b0 u32 write own y\nr0: u32 = thread\nstore b0 r0 r0\n}\n";
        let computed = yirage_kir::text::parse(text).unwrap().remove(0);
        let both = [kernels[0].clone(), ModuleKernel::Computed(computed)];
        assert_eq!(module_kernels(&print(&both)).unwrap(), both);
    }

    #[test]
    fn what_is_no_code_is_named() {
        for code in ["native a 1 2\nx\n", "native a 1 2 3\nx\n", "native a b 2 1\nx\n", "native a 1 2 1\nxy"] {
            let said = module_kernels(code).unwrap_err().to_string();
            assert!(said.contains("native kernel 0: expected `native NAME"), "{said}");
        }
    }
}
