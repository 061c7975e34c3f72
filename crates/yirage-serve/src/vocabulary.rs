//! A model's tokens as grammars see them.

use llguidance::ParserFactory;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use std::sync::Arc;
use yirage_session::ModelHandle;

/// Before the text of a special token, so that no text of a grammar is one.
const SPECIAL: u8 = 0xff;

/// The end of a text where each byte is a token.
pub(crate) const BYTES: u32 = 256;

/// Symbols that a grammar has at most. A schema of hundreds of kilobytes has ten thousand; properties that may be left out, times
/// the alternatives that an object has them in, make more.
pub(crate) const MAX_SYMBOLS: usize = 16_384;

/// Rows of a parser's state that the tokens of one mask lead to, each as large as the grammar at most.
const MAX_ROWS: usize = 64;

/// A model's tokens as grammars see them.
pub(crate) struct Vocabulary {
    pub(crate) factory: ParserFactory,
    /// All tokens that end a text; the first one stands for them.
    pub(crate) ends: Vec<u32>,
}

impl Vocabulary {
    /// The tokens of a model.
    ///
    /// # Errors
    /// Why a model cannot be held to a form.
    pub(crate) fn new(model: &ModelHandle) -> Result<Arc<Vocabulary>, String> {
        let tokenizer = &model.texts().ok_or("the model has no tokenizer")?.tokenizer;
        let ends = model.ends().to_vec();
        let size = model.facts().vocabulary;
        let end = ends.first().copied().filter(|end| *end < size).ok_or("the model has no token that ends a text")?;
        let word = |id| {
            let bytes = tokenizer.token_bytes(id).unwrap_or_default();
            if tokenizer.is_special(id) || ends.contains(&id) {
                [&[SPECIAL], &*bytes].concat()
            } else {
                bytes.into_owned()
            }
        };
        let words: Vec<Vec<u8>> = (0..size).map(word).collect();
        Vocabulary::of_words(&words, end, ends)
    }

    /// The 256 bytes as tokens, and an end behind them: what forms are read with where there is no model.
    ///
    /// # Errors
    /// What the library says that reads them.
    pub(crate) fn of_bytes() -> Result<Arc<Vocabulary>, String> {
        Vocabulary::of_bytes_and(&[])
    }

    /// The same with special tokens behind the end.
    ///
    /// # Errors
    /// As [`Vocabulary::of_bytes`].
    pub(crate) fn of_bytes_and(marks: &[String]) -> Result<Arc<Vocabulary>, String> {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let special = |text: &str| [&[SPECIAL], text.as_bytes()].concat();
        let marks = marks.iter().map(|mark| special(mark));
        let words: Vec<Vec<u8>> = bytes.chain([special("<end>")]).chain(marks).collect();
        Vocabulary::of_words(&words, BYTES, vec![BYTES])
    }

    /// How many tokens there are.
    pub(crate) fn size(&self) -> u32 {
        u32::try_from(self.factory.tok_env().tok_trie().vocab_size()).unwrap_or(u32::MAX)
    }

    /// Tokens of these bytes, of which one ends a text. A special one begins with [`SPECIAL`].
    ///
    /// # Errors
    /// What the library says that reads them.
    pub(crate) fn of_words(words: &[Vec<u8>], end: u32, ends: Vec<u32>) -> Result<Arc<Vocabulary>, String> {
        let size = u32::try_from(words.len()).map_err(|_| format!("{} tokens are too many", words.len()))?;
        let trie = TokTrie::from(&TokRxInfo::new(size, end), words);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).map_err(|e| e.to_string())?;
        factory.quiet();
        // A row has each rule of a grammar about once. By the library's own limits a grammar may be 250 times larger than a row,
        // so that an answer would end where a wide row is met; with these, what is too large is refused before there is an answer.
        let limits = factory.limits_mut();
        limits.max_grammar_size = MAX_SYMBOLS;
        limits.max_items_in_row = MAX_SYMBOLS;
        limits.step_max_items = MAX_ROWS * MAX_SYMBOLS;
        Ok(Arc::new(Vocabulary { factory, ends }))
    }

    /// The bytes of a token; of a special one those of its name.
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        let trie = self.factory.tok_env().tok_trie();
        let bytes = if (id as usize) < trie.vocab_size() { trie.token(id) } else { &[] };
        bytes.strip_prefix(&[SPECIAL]).unwrap_or(bytes)
    }
}
