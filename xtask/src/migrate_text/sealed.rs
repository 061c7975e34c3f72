//! Plan files: sections with their lengths under a checksum, and the hash of one within another.
//!
//! Nothing is repaired: a checksum or a hash that does not hold before does not hold after.

use sha2::{Digest, Sha256};

const OLD: &str = "yirage-plan 1\nsum ";
const NEW: &str = "yirage-plan 2\nsum ";
/// The digits of a checksum.
const DIGITS: usize = 64;

/// A plan file in form 2; nothing where it is none of form 1.
pub(super) fn migrated(file: &[u8]) -> Option<Vec<u8>> {
    let sealed = file.strip_prefix(OLD.as_bytes())?;
    let (sum, rest) = sealed.split_at_checked(DIGITS).unwrap_or((sealed, &[]));
    let old = rest.strip_prefix(b"\n").unwrap_or(rest);
    let new = sections(old).map_or_else(|| super::body(old), |sections| with_hash(sections).concat());
    let sum = if digits(old).as_bytes() == sum { digits(&new).into_bytes() } else { sum.to_vec() };
    Some([NEW.as_bytes(), &sum, &rest[..rest.len() - old.len()], &new].concat())
}

fn digits(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A section: its name, its old body, its new one.
struct PlanFileSection<'a> {
    name: &'a [u8],
    old: &'a [u8],
    new: Vec<u8>,
}

/// The sections of a file, where their lengths hold.
fn sections(mut rest: &[u8]) -> Option<Vec<PlanFileSection<'_>>> {
    let mut sections = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        let (head, body) = (&rest[..end], &rest[end + 1..]);
        let space = head.iter().position(|&byte| byte == b' ')?;
        let bytes: usize = std::str::from_utf8(&head[space + 1..]).ok()?.parse().ok()?;
        let old = body.get(..bytes)?;
        rest = body.get(bytes..)?.strip_prefix(b"\n")?;
        sections.push(PlanFileSection { name: &head[..space], old, new: super::body(old) });
    }
    Some(sections)
}

/// The sections as they are written, with the hash of the new interface where the key had that of the old one.
fn with_hash(mut sections: Vec<PlanFileSection<'_>>) -> Vec<Vec<u8>> {
    let interface = sections.iter().find(|section| section.name == b"interface");
    let hashes = interface.map(|section| (line_of(section.old), line_of(&section.new)));
    if let (Some((old, new)), Some(key)) = (hashes, sections.iter_mut().find(|section| section.name == b"key")) {
        key.new = super::first(&key.new, (&old, &new), true);
    }
    let written = |section: &PlanFileSection<'_>| {
        [section.name, format!(" {}\n", section.new.len()).as_bytes(), &section.new, b"\n"].concat()
    };
    sections.iter().map(written).collect()
}

/// The line of a key that says an interface's hash, which is FNV-1a of 128 bits as `yirage_ir::hash` has it.
fn line_of(interface: &[u8]) -> String {
    let hash = interface.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    });
    format!("\ninterface {hash:032x}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u32, bodies: [&str; 3]) -> String {
        let rest: String = ["key", "interface", "plan"]
            .iter()
            .zip(bodies)
            .map(|(name, body)| format!("{name} {}\n{body}\n", body.len()))
            .collect();
        format!("yirage-plan {version}\nsum {}\n{rest}", digits(rest.as_bytes()))
    }

    fn key(interface: &str) -> String {
        format!("graph 00{}bucket 8 2 3 4\n", line_of(interface.as_bytes()))
    }

    #[test]
    fn a_plan_file_keeps_its_seal_and_its_damage() {
        let (old, new) = ("graph g\nslot %x: f32[4]\n", "graph g\ninput %x: f32[4]\n");
        let plan = |word| format!("plan cpu\n{word} 1 offset=0 bytes=4\n");
        let whole = file(1, [&key(old), old, &plan("place")]);
        let wanted = file(2, [&key(new), new, &plan("placement")]);
        assert_eq!(migrated(whole.as_bytes()), Some(wanted.clone().into_bytes()));
        assert_eq!(migrated(wanted.as_bytes()), None);
        let damaged = whole.replace("bytes=4", "bytes=8");
        let text = String::from_utf8(migrated(damaged.as_bytes()).unwrap()).unwrap();
        let [sum, rest] = text.strip_prefix("yirage-plan 2\nsum ").unwrap().splitn(2, '\n').collect::<Vec<_>>()[..]
        else {
            panic!()
        };
        assert!(sum != digits(rest.as_bytes()) && rest.contains("placement 1 offset=0 bytes=8"), "{text}");
        let cut = &whole[..whole.len() - 3];
        assert!(migrated(cut.as_bytes()).is_some_and(|text| text.starts_with(NEW.as_bytes())));
        assert!(migrated(&OLD.as_bytes()[..OLD.len() - 1]).is_none());
    }
}
