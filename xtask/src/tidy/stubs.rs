//! The stubs of layer methods are what the table's rows say: `cargo xtask stubs` writes them, and this rule compares them.
//!
//! A class of layers has its rows in one file (`layer_methods!`), from which its methods are made as well. Of the stubs file
//! only the bodies of these classes are written: the rest is by hand.

use super::{RepoTree, TidyFinding};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

pub(crate) const USAGE: &str =
    "       cargo xtask stubs      write the stubs of layer methods from the rows of their tables\n";

const STUBS: &str = "python/yirage/_yirage.pyi";
/// Where the rows of classes stand.
const TABLES: &[&str] =
    &["crates/yirage-python/src/persistent/layers.rs", "crates/yirage-python/src/persistent/latent.rs"];
/// What begins a table, before the name of its class.
const BEGIN: &str = "\nlayer_methods! {\n    ";
const ROW: &str = "\n    fn ";
const WIDTH: usize = 120;

/// The types of rows as Python's checkers of types know them.
const KINDS: &[(&str, &str)] = &[
    ("TensorHandle", "KernelTensor"),
    ("TensorPair", "Sequence[KernelTensor]"),
    ("RoutingPair", "Sequence[KernelTensor]"),
    ("PyKernelTensor", "KernelTensor"),
    ("Vec<u32>", "Sequence[int]"),
    ("Py<PyAny>", "Any"),
    ("u32", "int"),
    ("u64", "int"),
    ("f32", "float"),
    ("bool", "bool"),
];

/// Writes the stubs of the repository at `root`.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let tree = RepoTree::read(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let text = with_rows(&tree).map_err(|(path, why)| format!("{path}: {why}"))?;
    fs::write(root.join(STUBS), text).map_err(|error| format!("{STUBS}: {error}"))
}

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let Some(file) = tree.file(STUBS) else { return };
    match with_rows(tree) {
        Ok(text) if text == file.text => {}
        Ok(_) => {
            findings.push(TidyFinding::new(STUBS, 0, "is not what the rows of layers say: run `cargo xtask stubs`"))
        }
        Err((path, why)) => findings.push(TidyFinding::new(path, 0, why)),
    }
}

/// The stubs with the methods that the rows have; else where there is something wrong, and what.
fn with_rows(tree: &RepoTree) -> Result<String, (&'static str, String)> {
    let mut text = tree.file(STUBS).map(|file| file.text.clone()).ok_or((STUBS, "is not there".to_owned()))?;
    for path in TABLES {
        let table = tree.file(path).map(|file| &file.text[..]).ok_or((*path, "is not there".to_owned()))?;
        let (class, methods) = class_of(table).map_err(|why| (*path, why))?;
        let head = text.find(&format!("\nclass {class}")).and_then(|at| Some(at + text[at..].find(":\n")? + 2));
        let begin = head.ok_or_else(|| (STUBS, format!("has no class {class}, which {path} has rows of")))?;
        let end = text[begin..].find("\n\n").map_or(text.len(), |length| begin + length + 1);
        text.replace_range(begin..end, &methods);
    }
    Ok(text)
}

/// The class of a table, and the stubs of its rows.
fn class_of(table: &str) -> Result<(&str, String), String> {
    let begin = table.find(BEGIN).ok_or("has no `layer_methods!` with a class in its first line")? + BEGIN.len();
    let rows = &table[begin..];
    let rows = &rows[..rows.find("\n}\n").ok_or("has a `layer_methods!` without an end")?];
    let class = rows.split(',').next().unwrap_or_default();
    let methods = rows.split(ROW).skip(1).map(|row| method(row, table)).collect::<Result<String, String>>()?;
    Ok((class, methods))
}

/// The stub of a row, which begins with its name.
fn method(row: &str, table: &str) -> Result<String, String> {
    let whole = row.split_once('(').and_then(|(name, rest)| Some((name, rest.split_once(')')?)));
    let (name, (arguments, rest)) = whole.ok_or_else(|| format!("has a row without arguments: {row}"))?;
    let mut parameters = vec!["self".to_owned()];
    for argument in arguments.split([',', ';']).map(str::trim).filter(|argument| !argument.is_empty()) {
        match argument {
            "launch" => parameters.extend(["grid_dim", "block_dim"].map(|of| format!("{of}: _Dim3 | None = None"))),
            "*" => parameters.push("*".to_owned()),
            _ => parameters.push(parameter(argument, table).map_err(|why| format!("{name}: {why}"))?),
        }
    }
    let head = rest.split(" =>").next().and_then(|head| head.split(';').next());
    let made = head
        .and_then(|head| Some(head.split_once("-> ")?.1))
        .map_or(Ok("None".to_owned()), kind)
        .map_err(|why| format!("{name}: {why}"))?;
    Ok(laid_out(name, &parameters, &made))
}

/// A method as formatters of Python lay it out.
fn laid_out(name: &str, parameters: &[String], made: &str) -> String {
    let on_one = parameters.join(", ");
    let line = format!("    def {name}({on_one}) -> {made}: ...\n");
    if line.trim_end().len() <= WIDTH {
        return line;
    }
    let below = if "        ".len() + on_one.len() <= WIDTH {
        format!("        {on_one}\n")
    } else {
        parameters.iter().fold(String::new(), |mut below, parameter| {
            let _ = writeln!(below, "        {parameter},");
            below
        })
    };
    format!("    def {name}(\n{below}    ) -> {made}: ...\n")
}

/// An argument of a row for Python.
fn parameter(argument: &str, table: &str) -> Result<String, String> {
    let (name, rest) = argument.split_once(": ").ok_or_else(|| format!("`{argument}` has no type"))?;
    match rest.split_once(" = ") {
        Some((of, default)) => Ok(format!("{name}: {} = {}", kind(of)?, value(default, table)?)),
        None => Ok(format!("{name}: {}", kind(rest)?)),
    }
}

fn kind(of: &str) -> Result<String, String> {
    if let Some(of) = of.strip_prefix("Option<").and_then(|of| of.strip_suffix('>')) {
        return Ok(format!("{} | None", kind(of)?));
    }
    let found = KINDS.iter().find(|(rust, _)| *rust == of).map(|(_, python)| (*python).to_owned());
    found.ok_or_else(|| format!("`{of}` has no name in Python: give it one in xtask/src/tidy/stubs.rs"))
}

/// A default: a literal, or a constant of the table's file.
fn value<'a>(default: &'a str, table: &'a str) -> Result<&'a str, String> {
    match default {
        "None" => return Ok("None"),
        "true" => return Ok("True"),
        "false" => return Ok("False"),
        number if number.starts_with(|first: char| first.is_ascii_digit()) => return Ok(number),
        _ => {}
    }
    let constant =
        table.lines().find_map(|line| line.strip_prefix("const ")?.strip_prefix(default)?.strip_prefix(": "));
    let number = constant.and_then(|line| line.split_once(" = ")?.1.strip_suffix(';'));
    number.ok_or_else(|| format!("the default `{default}` is no literal and no constant of this file"))
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::{STUBS, TABLES, check, method};

    const LAYERS: &str = "//! Layers.\n
layer_methods! {
    KernelLayers, |slf| &slf.get().0;

    beside {
        fn __getattr__(slf: &Bound<'_, Self>) {}
    }

    /// Adds.
    fn add_layer(input: TensorHandle, output: RoutingPair; launch, by: u32 = 3);

    /// Guesses.
    fn guess(of: Py<PyAny>; *, scale: Option<f32> = None) as other -> PyKernelTensor => |call| {
        call.make(of)
    };
}

/// fn more(
";
    const LATENT: &str = "const HEADS: u32 = 128;\n
layer_methods! {
    LatentLayers, |slf| &slf.as_super().get().0;

    fn heads_layer(sizes: Vec<u32>; *, heads: u32 = HEADS) => |call| call.add(sizes);
}
";
    const WRITTEN: &str = "class Other:
    def a(self) -> None: ...

class KernelLayers:
    def add_layer(
        self,
        input: KernelTensor,
        output: Sequence[KernelTensor],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        by: int = 3,
    ) -> None: ...
    def guess(self, of: Any, *, scale: float | None = None) -> KernelTensor: ...

class LatentLayers(KernelLayers):
    def heads_layer(self, sizes: Sequence[int], *, heads: int = 128) -> None: ...

def last() -> int: ...
";

    #[test]
    fn stubs_are_what_the_rows_say() {
        let files = |stubs: &'static str| [(TABLES[0], LAYERS), (TABLES[1], LATENT), (STUBS, stubs)];
        assert!(run(check, &files(WRITTEN)).is_empty(), "{:?}", run(check, &files(WRITTEN)));
        let stale = Box::leak(WRITTEN.replace("by: int = 3", "by: int = 4").into_boxed_str());
        let found = run(check, &files(stale));
        assert_eq!(found, [format!("{STUBS}:0: is not what the rows of layers say: run `cargo xtask stubs`")]);
    }

    #[test]
    fn a_row_that_has_no_stub_is_found() {
        let of = |row: &str| method(row, "const A: u32 = 7;\n").unwrap_err();
        assert_eq!(of("a(x: Map);"), "a: `Map` has no name in Python: give it one in xtask/src/tidy/stubs.rs");
        assert_eq!(of("a(x: u32 = B);"), "a: the default `B` is no literal and no constant of this file");
        assert_eq!(of("a(x);"), "a: `x` has no type");
        assert_eq!(
            method("a(x: u32 = A);", "const A: u32 = 7;\n").unwrap(),
            "    def a(self, x: int = 7) -> None: ...\n"
        );
    }
}
