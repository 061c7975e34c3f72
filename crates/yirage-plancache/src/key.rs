//! All that a plan depends on, as text.

use crate::error::PlanFileError;
use crate::interface::Interface;
use crate::interface_text::interface_hash;
use std::fmt;
use yirage_compile::CompileOptions;
use yirage_ir::hash::fnv128;
use yirage_ir::{Dims, Graph};
use yirage_plan::{Precision, Target};

/// All that a plan depends on. Equal keys have equal plans.
///
/// The sizes and types of all inputs follow from the graph and the sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanKey {
    /// What the graph computes ([`Graph::structural_hash`]).
    pub graph: u128,
    /// Names and types of what it takes and gives.
    pub interface: u128,
    /// The compiler that makes plans: its package and [`yirage_compile::VERSION`].
    pub compiler: String,
    /// The target in one line.
    pub target: String,
    /// All facts of the target: its kernels with their versions and rules, its layouts, executors and limits.
    pub facts: u128,
    /// How closely products are computed.
    pub precision: Precision,
    /// Whether ops are fused.
    pub fuse: bool,
    /// The largest sizes of a call.
    pub bucket: Dims,
}

/// The compiler of this program.
pub(crate) fn compiler() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), yirage_compile::VERSION)
}

/// The hash of all facts of a target.
pub(crate) fn facts(target: &Target) -> u128 {
    fnv128(format!("{target:?}").as_bytes())
}

impl PlanKey {
    /// The key of the plan that is made of `graph` for `bucket` on `target`.
    pub fn of(graph: &Graph, bucket: Dims, target: &Target, options: &CompileOptions) -> PlanKey {
        let interface = interface_hash(&Interface::of(graph));
        PlanKey::of_hashes(graph.structural_hash(), interface, bucket, target, options)
    }

    /// The same of a graph that was hashed before.
    pub(crate) fn of_hashes(
        graph: u128,
        interface: u128,
        bucket: Dims,
        target: &Target,
        options: &CompileOptions,
    ) -> PlanKey {
        PlanKey {
            graph,
            interface,
            compiler: compiler(),
            target: target.describe(),
            facts: facts(target),
            precision: options.precision,
            fuse: options.fuse,
            bucket,
        }
    }

    /// A short name of it, for files and tables.
    pub fn id(&self) -> u128 {
        fnv128(self.to_string().as_bytes())
    }

    /// Each part as a name and a word.
    fn lines(&self) -> [(&'static str, String); 8] {
        let Dims { tokens, seqs, blocks, rows } = self.bucket;
        [
            ("graph", format!("{:032x}", self.graph)),
            ("interface", format!("{:032x}", self.interface)),
            ("compiler", self.compiler.clone()),
            ("target", self.target.clone()),
            ("facts", format!("{:032x}", self.facts)),
            ("precision", self.precision.to_string()),
            ("fuse", self.fuse.to_string()),
            ("bucket", format!("{tokens} {seqs} {blocks} {rows}")),
        ]
    }

    /// Reads the text form.
    pub(crate) fn parse(text: &str) -> Result<PlanKey, PlanFileError> {
        let mut lines = text.lines().enumerate();
        let wrong = |line: usize, what: String| PlanFileError::Line { section: "key", line: line + 1, what };
        let mut next = |name: &'static str| {
            let (at, line) = lines.next().ok_or_else(|| wrong(0, format!("no line `{name}`")))?;
            let word = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
            word.map(|word| (at, word)).ok_or_else(|| wrong(at, format!("`{name} ...` wanted, `{line:.60}` found")))
        };
        let hash = |(at, word): (usize, &str)| {
            let digits = word.len() == 32 && word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let parsed = digits.then(|| u128::from_str_radix(word, 16).ok()).flatten();
            parsed.ok_or_else(|| wrong(at, format!("`{word:.60}` is no hash of 32 hexadecimal digits")))
        };
        let (graph, interface) = (hash(next("graph")?)?, hash(next("interface")?)?);
        let (compiler, target) = (next("compiler")?.1.to_owned(), next("target")?.1.to_owned());
        let facts = hash(next("facts")?)?;
        let (at, word) = next("precision")?;
        let precision = word.parse().map_err(|what| wrong(at, what))?;
        let (at, word) = next("fuse")?;
        let fuse = word.parse().map_err(|_| wrong(at, format!("`{word:.60}`: true or false wanted")))?;
        let (at, word) = next("bucket")?;
        let sizes: Option<Vec<u32>> = word.split(' ').map(|n| n.parse().ok()).collect();
        let Some(&[tokens, seqs, blocks, rows]) = sizes.as_deref() else {
            return Err(wrong(at, format!("`{word:.60}`: four numbers wanted")));
        };
        if let Some((at, line)) = lines.next() {
            return Err(wrong(at, format!("`{line:.60}` follows its end")));
        }
        let bucket = Dims { tokens, seqs, blocks, rows };
        Ok(PlanKey { graph, interface, compiler, target, facts, precision, fuse, bucket })
    }

    /// Whether it is this key.
    ///
    /// # Errors
    /// [`PlanFileError::Other`] with the first part that is not.
    pub(crate) fn check(&self, wanted: &PlanKey) -> Result<(), PlanFileError> {
        let other = self.lines().into_iter().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
        match other {
            Some(((field, found), (_, wanted))) => Err(PlanFileError::Other { field, wanted, found }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for PlanKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|(name, word)| writeln!(f, "{name} {word}"))
    }
}
