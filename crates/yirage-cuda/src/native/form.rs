//! The two forms of a kernel that is written by hand: a kernel by itself, and a function of one that runs many.

use super::DEVICE;
use std::fmt::Write;

/// How a kernel is declared.
pub(super) struct KernelHead<'a> {
    pub(super) threads: u32,
    /// Blocks that a multiprocessor has room for at least.
    pub(super) blocks: u32,
    pub(super) name: &'a str,
    pub(super) parameters: &'a str,
    /// The type of its block's memory, which its body knows as `memory`.
    pub(super) memory: &'a str,
}

const KERNEL: &str = "extern \"C\" __global__ void __launch_bounds__(";
const MEMORY: (&str, &str) = ("  __shared__ ", " memory;\n");

/// The end of a kernel's text.
pub(super) fn as_kernel(head: &KernelHead<'_>, body: &str) -> String {
    let KernelHead { threads, blocks, name, parameters, memory } = head;
    let (before, behind) = MEMORY;
    format!("{KERNEL}{threads}, {blocks}) {name}({parameters}) {{\n{before}{memory}{behind}{body}}}\n")
}

/// The text of a kernel as that of a function, without what all of them have in common: its memory is where `group_memory` is, and what it defines is not defined behind it.
/// None of a text that does not end as [`as_kernel`] writes it.
pub(crate) fn as_function(source: &str) -> Option<String> {
    let (body, end) = source.split_once(DEVICE).and_then(|(before, behind)| {
        let (behind, end) = behind.rsplit_once(KERNEL)?;
        Some((format!("{before}{behind}"), end))
    })?;
    let (_, declared) = end.split_once(") ")?;
    let (declared, run) = declared.split_once(MEMORY.0)?;
    let (memory, run) = run.split_once(MEMORY.1)?;
    let mut text = format!(
        "{body}TASK_FUNCTION void {declared}  {memory}& memory = *({memory}*)group_memory;\n{run}\
         static_assert(sizeof({memory}) <= TASK_BYTES, \"a group's memory is too small\");\n"
    );
    let names = body.lines().filter_map(|line| line.strip_prefix("#define ")?.split([' ', '(']).next());
    let undefined: Vec<String> = names.map(String::from).collect();
    for name in undefined {
        // A text grows without end or not at all.
        let _ = writeln!(text, "#undef {name}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_becomes_a_function() {
        let head = KernelHead { threads: 256, blocks: 1, name: "k", parameters: "float* y", memory: "Memory" };
        let source = format!("#define K 3u\n{DEVICE}\n{}", as_kernel(&head, "  run(memory, y);\n"));
        let made = as_function(&source).unwrap();
        let wanted = "#define K 3u\n\nTASK_FUNCTION void k(float* y) {\n  Memory& memory = *(Memory*)group_memory;\n  \
                      run(memory, y);\n}\n";
        assert!(made.starts_with(wanted) && made.ends_with("#undef K\n"), "{}", made);
        assert!(as_function("void k() {}").is_none());
    }
}
