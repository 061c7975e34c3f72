//! What a comparison has shown, as a value and as text.
//!
//! A certificate names its graphs by hash. It says nothing of other graphs, and [`Certificate::check`] refuses them.

use super::class::Class;
use super::error::CertificateError;
use std::fmt;
use std::str::{FromStr, SplitWhitespace};
use yirage_ir::hash::fnv128;
use yirage_ir::{Dims, Graph};

/// The version of the checker. It changes with what is accepted or refused.
pub const CHECKER_VERSION: u32 = 2;

/// Longest text of a certificate, in bytes.
const MAX_TEXT: usize = 1 << 16;

/// Two graphs are equal, as far as this was shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Certificate {
    /// The checker that compared.
    pub version: u32,
    /// The hash of the original.
    pub original: u128,
    /// The hash of the candidate, which may stand for the original.
    pub candidate: u128,
    /// What all random inputs followed from.
    pub seed: u64,
    /// The values of the symbols; one entry of zeros for graphs without symbols.
    pub sizes: Vec<Dims>,
    /// The fields.
    pub fields: Vec<FieldEvidence>,
    /// The classes of inputs in floats.
    pub classes: Vec<ClassEvidence>,
}

/// What was compared over one field.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldEvidence {
    /// The order of the field of values, a prime.
    pub p: u32,
    /// The order of the field of exponents, a prime that divides `p - 1`.
    pub q: u32,
    /// Trials at each of the sizes.
    pub trials: u32,
    /// Elements of outputs that were compared, over all sizes and trials.
    pub compared: u64,
    /// Elements of outputs that there are, over all sizes and trials.
    pub elements: u64,
    /// The binary logarithm of a bound of the probability that different functions of floats pass all of these trials;
    /// 0 where there is no bound below 1.
    pub false_accept_log2: f64,
}

/// What was compared on one class of inputs.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassEvidence {
    /// The inputs.
    pub class: Class,
    /// Elements that were judged.
    pub judged: u64,
    /// Elements where the original's own rounding leaves every value possible.
    pub open: u64,
    /// The distance that came closest to its bound.
    pub error: f64,
    /// That bound.
    pub bound: f64,
}

impl Certificate {
    /// Whether the certificate is of these graphs, and of this checker.
    ///
    /// # Errors
    /// [`CertificateError::Version`] and [`CertificateError::Foreign`].
    pub fn check(&self, original: &Graph, candidate: &Graph) -> Result<(), CertificateError> {
        if self.version != CHECKER_VERSION {
            return Err(CertificateError::Version { found: self.version, wanted: CHECKER_VERSION });
        }
        let (first, second) = Certificate::names(original, candidate);
        let same = |which, found: u128, wanted: u128| match wanted == found {
            true => Ok(()),
            false => Err(CertificateError::Foreign { which, found, wanted }),
        };
        same("original", self.original, first)?;
        same("candidate", self.candidate, second)
    }

    /// The hashes by which a certificate names a pair of graphs: of what each computes, whatever it is called and in whatever
    /// order it is written, the candidate's with which of the original's inputs each of its own is.
    pub fn names(original: &Graph, candidate: &Graph) -> (u128, u128) {
        let name = |graph: &Graph, at: usize| graph.value(graph.inputs[at]).name.clone();
        let of_original: Vec<String> = (0..original.inputs.len()).map(|at| name(original, at)).collect();
        let place = |at: usize| of_original.iter().position(|of| *of == name(candidate, at));
        let places: Vec<Option<usize>> = (0..candidate.inputs.len()).map(place).collect();
        let candidate = format!("{:032x} {places:?}", candidate.structural_hash());
        (original.structural_hash(), fnv128(candidate.as_bytes()))
    }

    /// The bound of all fields together. It holds for each set of whole numbers that were drawn, and where all elements
    /// were compared; how it is made is said in `degree.rs`.
    pub fn false_accept_log2(&self) -> f64 {
        self.fields.iter().map(|f| f.false_accept_log2).sum()
    }
}

/// The text form: a line for each fact, and the hash of these lines in the last one.
impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = CertificateBody(self).to_string();
        writeln!(f, "{facts}end {:032x}", fnv128(facts.as_bytes()))
    }
}

struct CertificateBody<'a>(&'a Certificate);

impl fmt::Display for CertificateBody<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CertificateBody(certificate) = self;
        writeln!(f, "equality {}", certificate.version)?;
        writeln!(f, "original {:032x}", certificate.original)?;
        writeln!(f, "candidate {:032x}", certificate.candidate)?;
        writeln!(f, "seed {}", certificate.seed)?;
        for d in &certificate.sizes {
            writeln!(f, "sizes {} {} {} {}", d.tokens, d.seqs, d.blocks, d.rows)?;
        }
        for e in &certificate.fields {
            let (compared, elements, log2) = (e.compared, e.elements, e.false_accept_log2);
            writeln!(f, "field {} {} {} {compared} {elements} {log2:?}", e.p, e.q, e.trials)?;
        }
        for c in &certificate.classes {
            writeln!(f, "class {} {} {} {:?} {:?}", c.class, c.judged, c.open, c.error, c.bound)?;
        }
        Ok(())
    }
}

/// The rest of one line.
struct CertificateLine<'a> {
    line: usize,
    words: SplitWhitespace<'a>,
}

impl CertificateLine<'_> {
    fn wrong(&self, what: impl Into<String>) -> CertificateError {
        CertificateError::Text { line: self.line, what: what.into() }
    }

    fn word(&mut self, what: &str) -> Result<&str, CertificateError> {
        let line = self.line;
        self.words.next().ok_or_else(|| CertificateError::Text { line, what: format!("{what} is missing") })
    }

    fn take<T: FromStr>(&mut self, what: &str) -> Result<T, CertificateError> {
        let line = self.line;
        let word = self.word(what)?;
        word.parse().map_err(|_| CertificateError::Text { line, what: format!("`{word}` is no {what}") })
    }

    fn hash(&mut self, what: &str) -> Result<u128, CertificateError> {
        let line = self.line;
        let word = self.word(what)?;
        let hash = u128::from_str_radix(word, 16).ok().filter(|_| word.len() == 32);
        hash.ok_or_else(|| CertificateError::Text { line, what: format!("`{word}` is no hash of 32 digits") })
    }

    fn number(&mut self, what: &str) -> Result<f64, CertificateError> {
        let number: f64 = self.take(what)?;
        if number.is_nan() { Err(self.wrong(format!("{what} is no number"))) } else { Ok(number) }
    }

    fn end(mut self) -> Result<(), CertificateError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => {
                let what = format!("`{word}` is one word too many");
                Err(self.wrong(what))
            }
        }
    }
}

/// What has been read so far of what a certificate has once.
#[derive(Default)]
struct Head {
    version: Option<u32>,
    original: Option<u128>,
    candidate: Option<u128>,
    seed: Option<u64>,
}

impl FromStr for Certificate {
    type Err = CertificateError;

    fn from_str(text: &str) -> Result<Certificate, CertificateError> {
        if text.len() > MAX_TEXT {
            let what = format!("{} bytes are no certificate, {MAX_TEXT} are the most", text.len());
            return Err(CertificateError::Text { line: 1, what });
        }
        let text = whole(text)?;
        let (mut head, mut sizes, mut fields, mut classes) = (Head::default(), Vec::new(), Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate() {
            let mut w = CertificateLine { line: at + 1, words: line.split_whitespace() };
            match w.word("the first word")? {
                "equality" => once(&mut head.version, w.take("version")?, &w)?,
                "original" => once(&mut head.original, w.hash("hash")?, &w)?,
                "candidate" => once(&mut head.candidate, w.hash("hash")?, &w)?,
                "seed" => once(&mut head.seed, w.take("seed")?, &w)?,
                "sizes" => sizes.push(Dims {
                    tokens: w.take("size")?,
                    seqs: w.take("size")?,
                    blocks: w.take("size")?,
                    rows: w.take("size")?,
                }),
                "field" => fields.push(FieldEvidence {
                    p: w.take("prime")?,
                    q: w.take("prime")?,
                    trials: w.take("number of trials")?,
                    compared: w.take("number of elements")?,
                    elements: w.take("number of elements")?,
                    false_accept_log2: w.number("logarithm")?,
                }),
                "class" => classes.push(ClassEvidence {
                    class: w.take("class of inputs")?,
                    judged: w.take("number of elements")?,
                    open: w.take("number of elements")?,
                    error: w.number("error")?,
                    bound: w.number("bound")?,
                }),
                other => {
                    let what = format!("`{other}` begins no line of a certificate");
                    return Err(w.wrong(what));
                }
            }
            w.end()?;
        }
        let line = text.lines().count() + 1;
        let missing = |what: &str| CertificateError::Text { line, what: format!("{what} is missing") };
        Ok(Certificate {
            version: head.version.ok_or_else(|| missing("the version"))?,
            original: head.original.ok_or_else(|| missing("the original"))?,
            candidate: head.candidate.ok_or_else(|| missing("the candidate"))?,
            seed: head.seed.ok_or_else(|| missing("the seed"))?,
            sizes,
            fields,
            classes,
        })
    }
}

/// The lines before the last, which must be their hash.
fn whole(text: &str) -> Result<&str, CertificateError> {
    let line = text.lines().count().max(1);
    let cut = || CertificateError::Text { line, what: "the text does not end in the hash of its lines".into() };
    let at = text.rfind("end ").ok_or_else(cut)?;
    let (facts, end) = text.split_at(at);
    if end == format!("end {:032x}\n", fnv128(facts.as_bytes())) { Ok(facts) } else { Err(cut()) }
}

fn once<T>(slot: &mut Option<T>, value: T, at: &CertificateLine<'_>) -> Result<(), CertificateError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(at.wrong("this was said before")),
    }
}
