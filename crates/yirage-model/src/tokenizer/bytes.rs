//! The GPT-2 byte alphabet: each of the 256 bytes is written as one printable character, so that a vocabulary of
//! arbitrary bytes can be kept as text. Also the `<0x0A>` names of byte-fallback tokens.

/// The character that stands for `byte`: printable Latin-1 stands for itself, the other 68 follow U+0100 in order.
pub(super) const fn byte_char(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => byte as char,
        0..=0x20 => offset_char(byte as u32),
        0x7F..=0xA0 => offset_char(byte as u32 - 0x7F + 33),
        0xAD => offset_char(67),
    }
}

const fn offset_char(offset: u32) -> char {
    match char::from_u32(0x100 + offset) {
        Some(c) => c,
        None => char::REPLACEMENT_CHARACTER,
    }
}

/// The byte a character of the alphabet stands for.
pub(super) fn char_byte(c: char) -> Option<u8> {
    match c as u32 {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8),
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// The bytes that `text` stands for, or `None` where a character is not of the alphabet.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    text.chars().map(char_byte).collect()
}

/// The name of the byte-fallback token of `byte`, such as `<0x0A>`.
pub(super) fn fallback_name(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// The byte of a byte-fallback token's name.
pub(super) fn fallback_byte(text: &str) -> Option<u8> {
    let hex = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() != 2 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(hex, 16).ok()
}

/// Takes from `pending` everything but a possibly incomplete character at the end; bytes that are no character become
/// U+FFFD.
pub(super) fn take_characters(pending: &mut Vec<u8>) -> String {
    let mut ready = String::new();
    let mut used = 0;
    for chunk in pending.utf8_chunks() {
        ready.push_str(chunk.valid());
        used += chunk.valid().len();
        let rest = &pending[used..];
        let incomplete = std::str::from_utf8(rest).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none());
        if incomplete {
            break;
        }
        if !chunk.invalid().is_empty() {
            ready.push(char::REPLACEMENT_CHARACTER);
            used += chunk.invalid().len();
        }
    }
    pending.drain(..used);
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_a_bijection_with_the_published_corner_points() {
        let all: std::collections::BTreeSet<char> = (0..=255).map(byte_char).collect();
        assert_eq!(all.len(), 256);
        assert!((0..=255).all(|b| char_byte(byte_char(b)) == Some(b)));
        assert_eq!((byte_char(b' '), byte_char(b'\n'), byte_char(0xAD), byte_char(0xA0)), ('Ġ', 'Ċ', 'Ń', 'ł'));
        assert_eq!(char_byte('ń'), None);
    }

    #[test]
    fn fallback_names_round_trip_and_lookalikes_are_refused() {
        assert!((0..=255).all(|b| fallback_byte(&fallback_name(b)) == Some(b)));
        assert!(["<0x0>", "<0x+1>", "<0x000>", "0x0A", "<0xZZ>", ""].iter().all(|t| fallback_byte(t).is_none()));
    }
}
