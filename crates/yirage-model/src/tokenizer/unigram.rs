//! Unigram (Kudo, 2018, as SentencePiece trains it): of all ways to cut a text into tokens, the one whose scores add up
//! to most.
//!
//! Knows nothing of how text became words.

use super::deadline::EncodeDeadline;
use super::error::TokenizerError;
use super::vocab::{NO_TOKEN, TokenTable};

/// How much worse than the worst token a character is that has none.
const UNKNOWN_PENALTY: f64 = 10.0;

/// The parameters of a file.
#[derive(Debug)]
pub(super) struct Unigram {
    /// By token id.
    scores: Vec<f64>,
    /// Ids in the order of their text.
    sorted: Vec<u32>,
    unk: Option<u32>,
    unknown_score: f64,
    /// Tokens of the bytes, where unknown characters become them.
    bytes: Option<Box<[u32; 256]>>,
}

/// The best way to a place in a text.
#[derive(Clone, Copy)]
struct ViterbiNode {
    score: f64,
    /// Where its last token begins; `usize::MAX` where there is no way yet.
    from: usize,
    id: u32,
}

impl Unigram {
    /// `scores` are by token id.
    pub(super) fn new(
        name: &str,
        vocab: &TokenTable,
        scores: Vec<f64>,
        unk: Option<u32>,
        byte_fallback: bool,
    ) -> Result<Self, TokenizerError> {
        if let Some(unk) = unk.filter(|&id| id as usize >= scores.len()) {
            let detail = format!("is {unk}, but the vocabulary has {} tokens", scores.len());
            return Err(TokenizerError::field(name, "model.unk_id", detail));
        }
        let mut sorted: Vec<u32> = (0..scores.len() as u32).filter(|&id| vocab.is_answer(id)).collect();
        sorted.retain(|&id| vocab.text(id).is_some_and(|text| !text.is_empty()));
        sorted.sort_unstable_by_key(|&id| vocab.text(id).unwrap_or_default());
        let worst = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let bytes = byte_fallback.then(|| vocab.byte_tokens());
        Ok(Self { scores, sorted, unk, unknown_score: worst - UNKNOWN_PENALTY, bytes })
    }

    /// Appends the tokens of `word`.
    pub(super) fn encode(
        &self,
        vocab: &TokenTable,
        word: &str,
        watch: &EncodeDeadline,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let best = self.best_paths(vocab, word, watch)?;
        let mut cuts = Vec::new();
        let mut end = word.len();
        while end > 0 {
            let node = best[end];
            cuts.push((node.from, node.id));
            end = node.from;
        }
        let mut unknown: Option<usize> = None;
        for &(start, id) in cuts.iter().rev() {
            if Some(id) == self.unk {
                unknown.get_or_insert(start);
                continue;
            }
            if let Some(from) = unknown.take() {
                self.push_unknown(vocab, word, from, start, out)?;
            }
            out.push(id);
        }
        unknown.map_or(Ok(()), |from| self.push_unknown(vocab, word, from, word.len(), out))
    }

    /// Neighbouring unknown characters are one token, or the bytes of all of them.
    fn push_unknown(
        &self,
        vocab: &TokenTable,
        word: &str,
        start: usize,
        end: usize,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let part = &word[start..end];
        if let Some(id) = vocab.own(part.as_bytes()) {
            out.push(id);
            return Ok(());
        }
        if let Some(ids) = &self.bytes
            && part.bytes().all(|b| ids[b as usize] != NO_TOKEN)
        {
            out.extend(part.bytes().map(|b| ids[b as usize]));
            return Ok(());
        }
        out.push(self.unk.ok_or_else(|| unrepresentable(part, start))?);
        Ok(())
    }

    fn best_paths(
        &self,
        vocab: &TokenTable,
        word: &str,
        watch: &EncodeDeadline,
    ) -> Result<Vec<ViterbiNode>, TokenizerError> {
        let mut best = vec![ViterbiNode { score: 0.0, from: usize::MAX, id: 0 }; word.len() + 1];
        let improve = |at: usize, from: usize, score: f64, id: u32, best: &mut Vec<ViterbiNode>| {
            if best[at].from == usize::MAX || score > best[at].score {
                best[at] = ViterbiNode { score, from, id };
            }
        };
        for (start, c) in word.char_indices() {
            watch.look("Unigram", start)?;
            let so_far = best[start].score;
            let mut alone = false;
            for (len, id) in Prefixes::new(vocab, &self.sorted, &word.as_bytes()[start..]) {
                watch.look("Unigram", start)?;
                improve(start + len, start, self.scores[id as usize] + so_far, id, &mut best);
                alone |= len == c.len_utf8();
            }
            if !alone {
                let end = start + c.len_utf8();
                let score = self.unknown_score + so_far;
                if best[end].from == usize::MAX || score > best[end].score {
                    let id = self.unk.ok_or_else(|| unrepresentable(&word[start..], start))?;
                    improve(end, start, score, id, &mut best);
                }
            }
        }
        Ok(best)
    }
}

fn unrepresentable(part: &str, offset: usize) -> TokenizerError {
    TokenizerError::Unrepresentable { character: part.chars().next().unwrap_or_default(), offset }
}

/// All tokens that a text begins with, short ones first, with their lengths: the sorted ids, narrowed byte by byte.
struct Prefixes<'a> {
    vocab: &'a TokenTable,
    left: &'a [u32],
    text: &'a [u8],
    len: usize,
}

impl<'a> Prefixes<'a> {
    fn new(vocab: &'a TokenTable, sorted: &'a [u32], text: &'a [u8]) -> Self {
        Self { vocab, left: sorted, text, len: 0 }
    }
}

impl Iterator for Prefixes<'_> {
    type Item = (usize, u32);

    fn next(&mut self) -> Option<(usize, u32)> {
        while let Some(&byte) = self.text.get(self.len) {
            let at = |id: u32| self.vocab.text(id).and_then(|text| text.as_bytes().get(self.len).copied());
            // Tokens that end here have been given out and are smaller than any byte.
            let low = self.left.partition_point(|&id| at(id) < Some(byte));
            let high = low + self.left[low..].partition_point(|&id| at(id) == Some(byte));
            self.left = &self.left[low..high];
            let first = *self.left.first()?;
            self.len += 1;
            if self.vocab.text(first).is_some_and(|text| text.len() == self.len) {
                return Some((self.len, first));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the reference library's own documentation, and ways that only a sum finds.
    #[test]
    fn the_best_sum_wins_and_unknown_neighbours_are_one() {
        let pieces = [("<unk>", 0.0), ("a", 0.0), ("b", 0.0), ("c", 0.0), ("d", 0.0), ("cd", 1.0), ("ab", 2.0)];
        let mut vocab = TokenTable::with_capacity(16);
        let all: Vec<_> = pieces.into_iter().chain([("abc", 5.0), ("abcd", 10.0), ("<0x78>", 0.0)]).collect();
        for (id, (text, _)) in all.iter().enumerate() {
            vocab.insert("t", id as u32, text).unwrap();
        }
        let scores: Vec<f64> = all.iter().map(|(_, score)| *score).collect();
        let encode = |unk, bytes, text: &str| {
            let model = Unigram::new("t", &vocab, scores.clone(), unk, bytes).unwrap();
            let mut out = Vec::new();
            model.encode(&vocab, text, &EncodeDeadline::new(64), &mut out).map(|()| out)
        };
        assert_eq!(encode(Some(0), false, "abcdacdxx").unwrap(), [8, 1, 5, 0]);
        assert_eq!(encode(Some(0), true, "xxa").unwrap(), [9, 9, 1]);
        assert_eq!(encode(Some(0), true, "xya").unwrap(), [0, 1]);
        assert_eq!(encode(None, false, "ab").unwrap(), [6]);
        assert!(matches!(encode(None, false, "ax"), Err(TokenizerError::Unrepresentable { character: 'x', .. })));
        assert!(Unigram::new("t", &vocab, scores.clone(), Some(99), false).is_err());
    }
}
