//! Texts in named sections under a checksum: what small results are kept as.
//!
//! ```text
//! yirage-plan 2
//! sum 64 hexadecimal digits of the SHA-256 of all that follows
//! NAME BYTES
//! as many bytes
//! ```
//! The checksum finds damage. It is no defence against someone who writes a text on purpose: what a section says is for its
//! reader to prove.

use crate::sum::sha256;
use std::fmt::Write;
use thiserror::Error;

/// Why a text is not the whole of what was sealed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SealError {
    /// The first line is another.
    #[error(
        "it begins with `{found}`, `{wanted}` is wanted: it is something else, or of another version; make it anew with this program"
    )]
    Head {
        /// The first line wanted.
        wanted: String,
        /// The beginning of the one that is there.
        found: String,
    },
    /// The checksum is another.
    #[error("it was damaged: the checksum `{found}` is written, `{wanted}` is computed; make it anew")]
    Sum {
        /// The one computed.
        wanted: String,
        /// What is written in its place.
        found: String,
    },
    /// A section is not there, or not whole.
    #[error("its section `{0}` is not whole; make it anew")]
    Section(&'static str),
    /// Something follows the last section.
    #[error("{0} bytes follow its end; make it anew")]
    More(usize),
}

/// The checksum of what follows its line.
pub fn sum(rest: &str) -> String {
    sha256(&[rest.as_bytes()]).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text that holds these sections, in their order, behind the line `head`.
pub fn seal(head: &str, sections: &[(&'static str, &str)]) -> String {
    let mut rest = String::new();
    for (name, body) in sections {
        // Writing to a string does not fail.
        let _ = write!(rest, "{name} {}\n{body}\n", body.len());
    }
    format!("{head}\nsum {}\n{rest}", sum(&rest))
}

/// The sections called `names`, which have to be all that `text` holds, in this order, behind the line `head`.
///
/// # Errors
/// [`SealError`]: the first thing that is otherwise.
pub fn open<'a, const N: usize>(
    head: &str,
    names: [&'static str; N],
    text: &'a str,
) -> Result<[&'a str; N], SealError> {
    let rest = text
        .strip_prefix(head)
        .and_then(|rest| rest.strip_prefix('\n'))
        .ok_or_else(|| SealError::Head { wanted: head.into(), found: shown(text) })?;
    let wanted = |rest: &str| format!("sum {}", sum(rest));
    let (found, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    if found != wanted(rest) {
        return Err(SealError::Sum { wanted: wanted(rest), found: shown(found) });
    }
    let (mut bodies, mut rest) = ([""; N], rest);
    for (name, place) in names.into_iter().zip(&mut bodies) {
        (*place, rest) = section(name, rest).ok_or(SealError::Section(name))?;
    }
    if rest.is_empty() { Ok(bodies) } else { Err(SealError::More(rest.len())) }
}

/// The body of the section at the beginning of a text, and what follows it.
fn section<'a>(name: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let (head, body) = text.split_once('\n')?;
    let bytes: usize = head.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()?;
    Some((body.get(..bytes)?, body.get(bytes..)?.strip_prefix('\n')?))
}

/// The beginning of a line, to be shown.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["key", "body", "notes"];

    fn sealed() -> String {
        seal("test 1", &[("key", "a\nb"), ("body", ""), ("notes", "über\n\n")])
    }

    #[test]
    fn sections_come_back_whatever_they_hold() {
        assert_eq!(open("test 1", NAMES, &sealed()), Ok(["a\nb", "", "über\n\n"]));
        let nested = seal("test 1", &[("key", &sealed()), ("body", &sealed()), ("notes", "")]);
        assert_eq!(open("test 1", NAMES, &nested), Ok([&*sealed(), &*sealed(), ""]));
    }

    #[test]
    fn every_byte_counts() {
        let whole = sealed().into_bytes();
        for at in 0..whole.len() {
            for other in [b'0', b'\n', b' ', whole[at] ^ 1] {
                let mut changed = whole.clone();
                changed[at] = other;
                let Ok(text) = String::from_utf8(changed) else { continue };
                assert_eq!(open("test 1", NAMES, &text).is_ok(), text.as_bytes() == whole, "byte {at}");
            }
            if let Ok(text) = std::str::from_utf8(&whole[..at]) {
                assert!(open("test 1", NAMES, text).is_err(), "{at} bytes");
            }
        }
    }

    #[test]
    fn sections_are_those_that_are_wanted_also_under_a_sum_that_fits() {
        let resummed = |rest: &str| format!("test 1\nsum {}\n{rest}", sum(rest));
        for (rest, wanted) in [
            ("", SealError::Section("key")),
            ("key 1\na\nnotes 0\n\nbody 0\n\n", SealError::Section("body")),
            ("key 9\na\nbody 0\n\nnotes 0\n\n", SealError::Section("body")),
            ("key 99999999999999999999999\na\n", SealError::Section("key")),
            ("key -1\na\n", SealError::Section("key")),
            ("key 18446744073709551615\na\n", SealError::Section("key")),
            ("key 1\nü\nbody 0\n\nnotes 0\n\n", SealError::Section("key")),
            ("key 1\na\nbody 0\n\nnotes 0\n\nmore", SealError::More(4)),
        ] {
            assert_eq!(open("test 1", NAMES, &resummed(rest)), Err(wanted), "{rest}");
        }
    }
}
