//! Rows of embeddings that stand in a prompt in the place of tokens' own: of pictures, say.
//!
//! Scheduler and cache see of a row a token beside the vocabulary, which no other row has that is in use or cached. So
//! beginnings with equal rows share their blocks, and such with others never do. This module does not know what rows are
//! of, nor who made them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use thiserror::Error;

/// The first token that is a row. No vocabulary has so many tokens.
const FIRST: u32 = 1 << 31;

/// Names of rows that are kept for prompts to come.
const MAX_KNOWN: usize = 4096;

/// Rows of embeddings, as wide as the model's own.
#[derive(Clone, PartialEq, Debug)]
pub struct EmbeddingRows {
    key: [u8; 32],
    width: u32,
    values: Vec<f32>,
}

impl EmbeddingRows {
    /// Rows of `width` numbers, one after the other. `key` names what they were made of: rows of equal keys are equal.
    ///
    /// # Errors
    /// [`EmbeddedError::Rows`], [`EmbeddedError::NotFinite`].
    pub fn new(key: [u8; 32], width: u32, values: Vec<f32>) -> Result<EmbeddingRows, EmbeddedError> {
        let whole = width > 0 && !values.is_empty() && values.len().is_multiple_of(width as usize);
        if !whole || values.len() / width as usize >= FIRST as usize {
            return Err(EmbeddedError::Rows { numbers: values.len(), width });
        }
        match values.iter().position(|x| !x.is_finite()) {
            None => Ok(EmbeddingRows { key, width, values }),
            Some(at) => Err(EmbeddedError::NotFinite { row: at / width as usize }),
        }
    }

    /// How many.
    pub fn rows(&self) -> u32 {
        // `new` has bounded it.
        (self.values.len() / self.width as usize) as u32
    }

    /// Numbers of a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// All rows, one after the other.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// Rows with their place in a prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct EmbeddedSpan {
    /// The token of the prompt in whose place the first row stands; the others follow it.
    pub at: usize,
    /// The rows.
    pub rows: Arc<EmbeddingRows>,
}

/// Rows that a model or a prompt cannot take.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum EmbeddedError {
    /// Numbers that are no whole rows.
    #[error("{numbers} numbers are no whole rows of {width}; one row at least is wanted")]
    Rows {
        /// How many.
        numbers: usize,
        /// Numbers of a row.
        width: u32,
    },
    /// A row that is not made of numbers.
    #[error("row {row} of the embeddings has an element that is no finite number; give finite numbers")]
    NotFinite {
        /// The row.
        row: usize,
    },
    /// A model that was loaded without a place for rows.
    #[error(
        "rows of embeddings are given, and the engine was loaded without a place for them; load it with the option `embedded`"
    )]
    NoPlace,
    /// Rows of another width than the model's embeddings.
    #[error("rows of embeddings have {width} elements, the model's have {wanted}; give rows of {wanted}")]
    Width {
        /// Elements of a given row.
        width: u32,
        /// Elements of the model's.
        wanted: u32,
    },
    /// Rows that are not all inside the prompt, or overlap those before them.
    #[error(
        "{rows} rows of embeddings at place {at}: they have to lie within the prompt's {tokens} tokens, behind the rows before them, which end at {free}; give another place"
    )]
    Place {
        /// Where the first stands.
        at: usize,
        /// How many.
        rows: u32,
        /// Where the rows before end.
        free: usize,
        /// Tokens of the prompt.
        tokens: usize,
    },
    /// Numbers of a picture that the tower does not take.
    #[error(
        "a picture of {width} x {height} pixels with {numbers} numbers; the model's tower takes {side} x {side}, three numbers a pixel"
    )]
    Picture {
        /// Pixels of a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Numbers.
        numbers: usize,
        /// Pixels of each side that the tower takes.
        side: u32,
    },
}

/// The rows in use, by the tokens that stand for them.
#[derive(Debug)]
pub(crate) struct EmbeddedTokens {
    next: u32,
    /// How often the tokens were all used up.
    round: u32,
    known: HashMap<[u8; 32], u32>,
    live: BTreeMap<u32, Arc<EmbeddingRows>>,
}

impl Default for EmbeddedTokens {
    fn default() -> Self {
        EmbeddedTokens { next: FIRST, round: 0, known: HashMap::new(), live: BTreeMap::new() }
    }
}

impl EmbeddedTokens {
    /// Puts tokens for the rows of `spans` into `prompt`. Gives what distinguishes its cached beginnings besides, and the rows,
    /// which are there for as long as somebody holds them, and then until the next prompt.
    ///
    /// # Errors
    /// [`EmbeddedError::NoPlace`], [`EmbeddedError::Width`], [`EmbeddedError::Place`]; then nothing is changed.
    pub(crate) fn put(
        &mut self,
        spans: &[EmbeddedSpan],
        width: Option<u32>,
        prompt: &mut [u32],
    ) -> Result<(u32, Vec<Arc<EmbeddingRows>>), EmbeddedError> {
        check(spans, width, prompt.len())?;
        self.live.retain(|_, rows| Arc::strong_count(rows) > 1);
        let mut held = Vec::new();
        for EmbeddedSpan { at, rows } in spans {
            let first = self.first_token(rows);
            held.push(self.live.entry(first).or_insert_with(|| rows.clone()).clone());
            prompt[*at..].iter_mut().zip(first..first + rows.rows()).for_each(|(token, row)| *token = row);
        }
        Ok((if spans.is_empty() { 0 } else { self.round }, held))
    }

    fn first_token(&mut self, rows: &EmbeddingRows) -> u32 {
        if let Some(&first) = self.known.get(&rows.key) {
            return first;
        }
        if self.known.len() >= MAX_KNOWN {
            // A picture that comes again is computed again; nothing else depends on it.
            self.known.clear();
        }
        if self.next.checked_add(rows.rows()).is_none() {
            (self.next, self.round) = (FIRST, self.round + 1);
            self.known.clear();
        }
        // What is in use since an earlier round keeps its tokens.
        while let Some((&first, live)) = self.live.range(..self.next + rows.rows()).next_back()
            && first + live.rows() > self.next
        {
            self.next = first + live.rows();
        }
        let first = self.next;
        self.next += rows.rows();
        self.known.insert(rows.key, first);
        first
    }

    /// The row that a token stands for.
    pub(crate) fn row(&self, token: u32) -> Option<&[f32]> {
        if token < FIRST {
            return None;
        }
        let (first, rows) = self.live.range(..=token).next_back()?;
        rows.values.chunks_exact(rows.width as usize).nth((token - first) as usize)
    }
}

/// The id that a step's slot gets of a token: a row has none.
pub(crate) fn slot_id(token: u32) -> i32 {
    if token < FIRST { token as i32 } else { 0 }
}

fn check(spans: &[EmbeddedSpan], width: Option<u32>, tokens: usize) -> Result<(), EmbeddedError> {
    let mut free = 0;
    for EmbeddedSpan { at, rows } in spans {
        let wanted = width.ok_or(EmbeddedError::NoPlace)?;
        if rows.width != wanted {
            return Err(EmbeddedError::Width { width: rows.width, wanted });
        }
        let end = at.checked_add(rows.rows() as usize).filter(|&end| *at >= free && end <= tokens);
        free = end.ok_or(EmbeddedError::Place { at: *at, rows: rows.rows(), free, tokens })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(key: u8, count: usize) -> Arc<EmbeddingRows> {
        Arc::new(EmbeddingRows::new([key; 32], 2, vec![f32::from(key); 2 * count]).unwrap())
    }

    fn span(at: usize, rows: &Arc<EmbeddingRows>) -> EmbeddedSpan {
        EmbeddedSpan { at, rows: rows.clone() }
    }

    #[test]
    fn equal_rows_have_equal_tokens_and_others_never() {
        let (mut all, a, b) = (EmbeddedTokens::default(), rows(1, 3), rows(2, 2));
        let mut put = |spans: &[EmbeddedSpan]| {
            let mut prompt = vec![7; 8];
            all.put(spans, Some(2), &mut prompt).unwrap();
            prompt
        };
        let first = put(&[span(1, &a), span(4, &b)]);
        assert_eq!([first[0], first[6], first[7]], [7; 3]);
        let again = put(&[span(0, &b), span(2, &a)]);
        assert_eq!((&again[..2], &again[2..5]), (&first[4..6], &first[1..4]));
        let other = put(&[span(0, &rows(3, 2))]);
        assert!(first.iter().all(|token| *token == 7 || !other.contains(token)));
        put(&[]);
        assert_eq!(all.row(first[5]), Some(&[2.0; 2][..]));
        assert_eq!((all.row(7), all.row(other[1])), (None, None), "whose request has ended is gone with the next one");
    }

    #[test]
    fn tokens_that_are_used_up_begin_again_beside_those_in_use() {
        let (mut all, held) = (EmbeddedTokens::default(), rows(1, 5));
        let mut prompt = vec![0; 5];
        assert_eq!(all.put(&[span(0, &held)], Some(2), &mut prompt).unwrap().0, 0);
        all.next = u32::MAX - 1;
        let (next, mut later) = (rows(2, 4), vec![0; 4]);
        assert_eq!(all.put(&[span(0, &next)], Some(2), &mut later).unwrap().0, 1);
        assert!(later.iter().all(|token| !prompt.contains(token)), "{later:?}");
        assert_eq!(all.row(prompt[4]), Some(&[1.0; 2][..]));
        assert_eq!(all.row(later[3]), Some(&[2.0; 2][..]));
    }

    #[test]
    fn rows_that_do_not_fit_are_named() {
        let (mut all, a) = (EmbeddedTokens::default(), rows(1, 3));
        let mut put = |spans: &[EmbeddedSpan], width| all.put(spans, width, &mut [0; 5]).unwrap_err();
        assert_eq!(put(&[span(0, &a)], None), EmbeddedError::NoPlace);
        assert_eq!(put(&[span(0, &a)], Some(3)), EmbeddedError::Width { width: 2, wanted: 3 });
        let place = |at, free| EmbeddedError::Place { at, rows: 3, free, tokens: 5 };
        assert_eq!(put(&[span(3, &a)], Some(2)), place(3, 0));
        assert_eq!(put(&[span(usize::MAX, &a)], Some(2)), place(usize::MAX, 0));
        assert_eq!(put(&[span(0, &a), span(2, &a)], Some(2)), place(2, 3));
        let new = |width, values: &[f32]| EmbeddingRows::new([0; 32], width, values.to_vec()).unwrap_err();
        assert_eq!(new(2, &[0.0; 3]), EmbeddedError::Rows { numbers: 3, width: 2 });
        assert_eq!(new(0, &[]), EmbeddedError::Rows { numbers: 0, width: 0 });
        assert_eq!(new(2, &[0.0, 1.0, f32::NAN, 0.0]), EmbeddedError::NotFinite { row: 1 });
    }
}
