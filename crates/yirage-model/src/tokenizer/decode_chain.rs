//! The decoders of `tokenizer.json`: a chain of rewrites, each of which takes the tokens that the one before it gives
//! and gives tokens again. What comes out of the last one, joined, is the text.
//!
//! Every rewrite works on a stream and holds back only what later tokens can change, so that whole and streamed texts
//! are the same by construction.

use super::bytes;
use super::deadline::EncodeDeadline;
use super::limits;
use super::pattern::Pattern;

/// What the reference library's clean-up rewrites within a token, in its order.
const CLEANUP: [(&str, &str); 11] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

/// One rewrite.
#[derive(Debug)]
pub(super) enum Rewrite {
    /// A space in front of every token but the first: what a file without a decoder asks for.
    Spaces,
    /// From the GPT-2 alphabet; all tokens become one.
    ByteLevel,
    /// The end-of-word suffix becomes a space, or nothing behind the last word.
    Bpe { suffix: String },
    /// A token without the prefix begins a word.
    WordPiece { prefix: String, cleanup: bool },
    /// The mark becomes a space, or nothing in the first token.
    Metaspace { mark: char, drop_first: bool },
    /// Repeats of a token are one token; padding goes.
    Ctc { pad: String, delimiter: String, cleanup: bool },
    /// Every match in a token becomes something else.
    Replace { pattern: Pattern, content: String },
    /// Up to so many of a character go from the start and the end of each token.
    Strip { content: char, start: usize, stop: usize },
    /// All tokens become one.
    Fuse,
    /// Tokens that name bytes become characters.
    ByteFallback,
}

/// A part of a token on its way through the chain.
#[derive(Clone, Copy)]
struct TokenPart<'a> {
    text: &'a str,
    /// The token begins with it.
    begins: bool,
    /// The token ends with it.
    ends: bool,
}

/// What one rewrite remembers of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct RewriteState {
    /// Tokens begun.
    tokens: usize,
    /// The token so far.
    token: String,
    /// A token that waits for the next one.
    last: Option<String>,
    /// Bytes that are no character yet.
    bytes: Vec<u8>,
    /// How many characters may still go from the start of this token.
    strippable: usize,
    /// Something was given out.
    emitted: bool,
}

/// The state of a stream: one memory for each rewrite.
#[derive(Debug, Clone)]
pub(super) struct ChainState(Vec<RewriteState>);

/// A chain of rewrites.
#[derive(Debug)]
pub(super) struct DecoderChain(pub(super) Vec<Rewrite>);

impl DecoderChain {
    /// The state in front of a text, or within one, where nothing is taken off the front.
    pub(super) fn begin(&self, within: bool) -> ChainState {
        let memory = |rewrite: &Rewrite| {
            let started = within && !matches!(rewrite, Rewrite::Spaces);
            RewriteState { tokens: usize::from(started), emitted: started, ..RewriteState::default() }
        };
        ChainState(self.0.iter().map(memory).collect())
    }

    /// Takes a token and appends the text that is certain by now.
    pub(super) fn push(&self, state: &mut ChainState, token: &str, out: &mut String) {
        feed(&self.0, &mut state.0, TokenPart { text: token, begins: true, ends: true }, out);
    }

    /// Ends the stream.
    pub(super) fn finish(&self, state: &mut ChainState, out: &mut String) {
        for at in 0..self.0.len() {
            if let Some((memory, later)) = state.0[at..].split_first_mut() {
                finish_one(&self.0[at], memory, &mut |part| feed(&self.0[at + 1..], later, part, out));
            }
        }
    }

    /// The bytes of a token within a text, as far as they do not depend on its neighbours.
    pub(super) fn bytes_of(&self, token: &str) -> Vec<u8> {
        let mut text = token.to_owned();
        let mut fused = false;
        for rewrite in &self.0 {
            match rewrite {
                Rewrite::ByteLevel => return bytes::decode(&text).unwrap_or_else(|| text.into_bytes()),
                Rewrite::ByteFallback => {
                    if let Some(byte) = bytes::fallback_byte(&text) {
                        return vec![byte];
                    }
                }
                Rewrite::Fuse => fused = true,
                Rewrite::Spaces => {}
                Rewrite::Strip { .. } if fused => {}
                Rewrite::Bpe { suffix } => text = text.replace(suffix.as_str(), " "),
                other => {
                    let mut next = String::new();
                    whole(other, 1, &text, &mut |part| next.push_str(part));
                    text = next;
                }
            }
        }
        text.into_bytes()
    }
}

fn feed(rewrites: &[Rewrite], memories: &mut [RewriteState], part: TokenPart<'_>, out: &mut String) {
    match (rewrites.split_first(), memories.split_first_mut()) {
        (Some((rewrite, rewrites)), Some((memory, memories))) => {
            push_one(rewrite, memory, part, &mut |part| feed(rewrites, memories, part, out));
        }
        _ => out.push_str(part.text),
    }
}

fn push_one(rewrite: &Rewrite, memory: &mut RewriteState, part: TokenPart<'_>, give: &mut dyn FnMut(TokenPart<'_>)) {
    if part.begins {
        memory.tokens += 1;
    }
    match rewrite {
        Rewrite::Fuse => {
            give(TokenPart { text: part.text, begins: !memory.emitted, ends: false });
            memory.emitted = true;
            return;
        }
        Rewrite::Spaces if part.begins && memory.tokens > 1 => {
            give(TokenPart { text: " ", begins: true, ends: false });
            return give(TokenPart { begins: false, ..part });
        }
        Rewrite::Spaces => return give(part),
        Rewrite::Strip { content, start, stop: 0 } => return strip_start(*content, *start, memory, part, give),
        Rewrite::Metaspace { mark, drop_first } => {
            let space = if *drop_first && memory.tokens <= 1 { "" } else { " " };
            return give(TokenPart { text: &part.text.replace(*mark, space), ..part });
        }
        _ => {}
    }
    memory.token.push_str(part.text);
    if part.ends {
        let token = std::mem::take(&mut memory.token);
        end_token(rewrite, memory, token, give);
    }
}

/// Takes from the start what may go, up to so many characters of each token.
fn strip_start(
    content: char,
    start: usize,
    memory: &mut RewriteState,
    part: TokenPart<'_>,
    give: &mut dyn FnMut(TokenPart<'_>),
) {
    if part.begins {
        memory.strippable = start;
    }
    let gone = part.text.chars().take(memory.strippable).take_while(|&c| c == content).count();
    let rest = &part.text[gone * content.len_utf8()..];
    memory.strippable = if rest.is_empty() { memory.strippable - gone } else { 0 };
    give(TokenPart { text: rest, ..part });
}

/// A whole token of a rewrite that looks at whole tokens.
fn end_token(rewrite: &Rewrite, memory: &mut RewriteState, token: String, give: &mut dyn FnMut(TokenPart<'_>)) {
    match rewrite {
        Rewrite::ByteLevel => {
            memory.bytes.extend(bytes::decode(&token).unwrap_or_else(|| token.into_bytes()));
            let ready = bytes::take_characters(&mut memory.bytes);
            give(TokenPart { text: &ready, begins: !memory.emitted, ends: false });
            memory.emitted = true;
        }
        Rewrite::ByteFallback => match bytes::fallback_byte(&token) {
            Some(byte) => memory.bytes.push(byte),
            None => {
                give_bytes(memory, give);
                give(TokenPart { text: &token, begins: true, ends: true });
            }
        },
        Rewrite::Bpe { suffix } => {
            if let Some(last) = memory.last.replace(token) {
                give(TokenPart { text: &last.replace(suffix.as_str(), " "), begins: true, ends: true });
            }
        }
        Rewrite::Ctc { .. } => {
            if memory.last.as_ref() != Some(&token) {
                whole(rewrite, memory.tokens, &token, &mut |text| {
                    if !text.is_empty() {
                        give(TokenPart { text, begins: true, ends: true });
                    }
                });
                memory.last = Some(token);
            }
        }
        other => {
            whole(other, memory.tokens - 1, &token, &mut |text| give(TokenPart { text, begins: true, ends: true }))
        }
    }
}

fn finish_one(rewrite: &Rewrite, memory: &mut RewriteState, give: &mut dyn FnMut(TokenPart<'_>)) {
    match rewrite {
        Rewrite::Fuse => give(TokenPart { text: "", begins: !memory.emitted, ends: true }),
        Rewrite::ByteLevel => {
            let rest = String::from_utf8_lossy(&memory.bytes);
            give(TokenPart { text: &rest, begins: !memory.emitted, ends: true });
        }
        Rewrite::ByteFallback => give_bytes(memory, give),
        Rewrite::Bpe { suffix } => {
            if let Some(last) = memory.last.take() {
                give(TokenPart { text: &last.replace(suffix.as_str(), ""), begins: true, ends: true });
            }
        }
        _ => {}
    }
}

/// A run of bytes is the text that it spells, or one sign of a lost character for each byte.
fn give_bytes(memory: &mut RewriteState, give: &mut dyn FnMut(TokenPart<'_>)) {
    let run = std::mem::take(&mut memory.bytes);
    match std::str::from_utf8(&run) {
        Ok("") => {}
        Ok(text) => give(TokenPart { text, begins: true, ends: true }),
        Err(_) => run.iter().for_each(|_| give(TokenPart { text: "\u{fffd}", begins: true, ends: true })),
    }
}

/// What a whole token becomes that has `before` tokens in front of it. One that is far too long stays as it is.
fn whole(rewrite: &Rewrite, before: usize, token: &str, give: &mut dyn FnMut(&str)) {
    if token.len() > limits::MAX_TOKEN_TEXT {
        return give(token);
    }
    match rewrite {
        Rewrite::WordPiece { prefix, cleanup } => {
            let spaced = match token.strip_prefix(prefix.as_str()) {
                _ if before == 0 => token.to_owned(),
                Some(rest) => rest.to_owned(),
                None => format!(" {token}"),
            };
            give(&if *cleanup { cleaned(&spaced) } else { spaced });
        }
        Rewrite::Ctc { pad, delimiter, cleanup } => {
            let text = token.replace(pad.as_str(), "");
            give(&if *cleanup { cleaned(&text).replace(delimiter.as_str(), " ") } else { text });
        }
        Rewrite::Metaspace { mark, drop_first } => {
            give(&token.replace(*mark, if *drop_first && before == 0 { "" } else { " " }));
        }
        Rewrite::Replace { pattern, content } => give(&replaced(pattern, content, token)),
        Rewrite::Strip { content, start, stop } => {
            let first = token.chars().take(*start).take_while(|c| c == content).count() * content.len_utf8();
            let last = token.chars().rev().take(*stop).take_while(|c| c == content).count() * content.len_utf8();
            give(token.get(first..token.len() - last).unwrap_or_default());
        }
        _ => give(token),
    }
}

/// A pattern that gives up, and one that makes the token far too long, leave it as it is: a text that was made must be
/// readable.
fn replaced(pattern: &Pattern, content: &str, token: &str) -> String {
    let (mut out, mut done) = (String::new(), 0);
    let found = pattern.each(token, &EncodeDeadline::new(token.len()), |found| {
        if out.len() > limits::MAX_TOKEN_TEXT {
            return;
        }
        out.push_str(&token[done..found.start]);
        out.push_str(content);
        done = found.end;
    });
    if found.is_err() || out.len() > limits::MAX_TOKEN_TEXT {
        return token.to_owned();
    }
    out.push_str(&token[done..]);
    out
}

fn cleaned(text: &str) -> String {
    CLEANUP
        .iter()
        .fold(text.to_owned(), |text, (from, to)| if text.contains(from) { text.replace(from, to) } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(chain: Vec<Rewrite>, tokens: &[&str]) -> String {
        let chain = DecoderChain(chain);
        let mut state = chain.begin(false);
        let mut out = String::new();
        tokens.iter().for_each(|token| chain.push(&mut state, token, &mut out));
        chain.finish(&mut state, &mut out);
        out
    }

    fn replace(from: &str, to: &str) -> Rewrite {
        Rewrite::Replace { pattern: Pattern::literal("t", from).unwrap(), content: to.into() }
    }

    /// Asked of `tokenizers` 0.23.3.
    #[test]
    fn chains_give_what_the_reference_library_gives() {
        let bytes = ["a", "<0xE2>", "<0x84>", "<0xBB>", "b", "<0x41>", "<0xE2>", "c"];
        assert_eq!(decoded(vec![Rewrite::ByteFallback, Rewrite::Fuse], &bytes), "a℻b\u{fffd}\u{fffd}c");
        let llama = || vec![replace("▁", " "), Rewrite::ByteFallback, Rewrite::Fuse, strip(' ', 1, 0)];
        assert_eq!(decoded(llama(), &["▁", "▁a", "<0x20>", "▁▁"]), " a   ");
        assert_eq!(decoded(vec![strip('H', 1, 0)], &["Hey", "HHHey!"]), "eyHHey!");
        assert_eq!(decoded(vec![strip('y', 0, 1)], &["Heyy", "Hey", "y"]), "HeyHe");
        let suffix = || Rewrite::Bpe { suffix: "</w>".into() };
        assert_eq!(decoded(vec![suffix()], &["a", "b</w>", "c</w>"]), "ab c");
        let pieces = || Rewrite::WordPiece { prefix: "##".into(), cleanup: true };
        assert_eq!(decoded(vec![pieces()], &["##uelo", "Ara", "##új", "##o", "No", "."]), "##uelo Araújo No.");
        let marks = || Rewrite::Metaspace { mark: '▁', drop_first: true };
        assert_eq!(decoded(vec![marks()], &["▁Hey▁", "▁friend!"]), "Hey friend!");
        let ctc = || Rewrite::Ctc { pad: "<pad>".into(), delimiter: "|".into(), cleanup: true };
        assert_eq!(decoded(vec![ctc()], &["<pad>", "h", "h", "e", "l", "<pad>", "l", "o", "|", "|", "w"]), "hello w");
        assert_eq!(decoded(vec![Rewrite::Spaces], &["a", "", "b"]), "a  b");
        assert_eq!(decoded(vec![Rewrite::Fuse, replace("ab", "x")], &["a", "b"]), "x");
    }

    fn strip(content: char, start: usize, stop: usize) -> Rewrite {
        Rewrite::Strip { content, start, stop }
    }
}
