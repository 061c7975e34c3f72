//! Texts with words taken away, doubled, exchanged, or made other numbers.

use yirage_ir::rng::Rng;

const NUMBERS: [&str; 12] =
    ["0", "1", "2", "5", "32", "63", "64", "65", "1024", "2147483648", "4294967295", "18446744073709551615"];

/// One or two places of a text spoilt.
pub(crate) fn spoil(text: &str, rng: &mut Rng) -> String {
    let mut words = split(text);
    for _ in 0..1 + rng.index(2) {
        let (at, other) = (rng.index(words.len()), rng.index(words.len()));
        match rng.index(10) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[other]),
            2 => words.swap(at, other),
            _ => {
                let is_number = |w: &str| w.bytes().all(|b| b.is_ascii_digit());
                let numbers: Vec<usize> = (0..words.len()).filter(|&i| is_number(words[i])).collect();
                let at = numbers[rng.index(numbers.len())];
                // Other numbers of the text are likelier to mean something than those of the list.
                let others = [NUMBERS[rng.index(NUMBERS.len())], words[numbers[rng.index(numbers.len())]]];
                words[at] = others[rng.index(2)];
            }
        }
    }
    words.concat()
}

/// Words, and the characters between them.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first.is_alphanumeric() {
            true => rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}
