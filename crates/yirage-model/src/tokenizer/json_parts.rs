//! The small components of a `tokenizer.json`: normalisers, pre-tokenisers, decoders, post-processors.
//!
//! Every component is known by its `type`; one that is not known is a typed error with that name, never skipped.

use serde_json::Value;

use super::bert;
use super::charsmap::Charsmap;
use super::decode_chain::{DecoderChain, Rewrite};
use super::error::TokenizerError;
use super::framed::PairPart;
use super::limits;
use super::normalize::Normalizer;
use super::pattern::Pattern;
use super::scripts::Scripts;
use super::split::{Behavior, PreTokenizer, Prepend};
use super::vocab::TokenTable;

/// All components of a file.
pub(super) struct TokenizerComponents {
    pub(super) normalizers: Vec<Normalizer>,
    pub(super) splitting: Splitting,
    pub(super) decoder: DecoderChain,
    pub(super) template: PostProcessor,
}

/// What a post-processor puts around texts.
#[derive(Default)]
pub(super) struct PostProcessor {
    pub(super) prefix: Vec<u32>,
    pub(super) suffix: Vec<u32>,
    pub(super) pair: Option<Vec<PairPart>>,
}

/// The pre-tokenisers of a file.
#[derive(Default)]
pub(super) struct Splitting {
    pub(super) steps: Vec<PreTokenizer>,
    /// The vocabulary is written in the GPT-2 byte alphabet, and the last step to it is left to the model.
    pub(super) byte_level: bool,
    /// The patterns that words are cut out by, where nothing else is done.
    pub(super) patterns: Option<Vec<String>>,
}

/// The pattern of a part that cuts words out and does nothing else, if it has one; an error where it does more.
fn isolating(part: &Value) -> Result<Option<&str>, ()> {
    let invert = flag(part, "invert", false);
    match (kind(part), part.get("behavior").and_then(Value::as_str)) {
        // What is between the words goes; the patterns of published files leave nothing there.
        ("Split", Some("Isolated")) if !invert => part["pattern"]["Regex"].as_str().map(Some).ok_or(()),
        ("Split", Some("Removed")) if invert => part["pattern"]["Regex"].as_str().map(Some).ok_or(()),
        ("Digits", _) if flag(part, "individual_digits", false) => Ok(Some(r"\p{N}")),
        ("ByteLevel", _) if flag(part, "add_prefix_space", true) => Err(()),
        ("ByteLevel", _) => Ok(flag(part, "use_regex", true).then_some(BYTE_LEVEL_SPLIT)),
        _ => Err(()),
    }
}

const BYTE_LEVEL_SPLIT: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The components of a chain, `Sequence`s opened, in order.
fn flatten<'v>(name: &str, value: &'v Value, list_key: &str) -> Result<Vec<&'v Value>, TokenizerError> {
    let mut out = Vec::new();
    open(name, value, list_key, 0, &mut out)?;
    TokenizerError::limit(name, "number of components in a chain", out.len(), limits::MAX_COMPONENTS)?;
    Ok(out)
}

fn open<'v>(
    name: &str,
    value: &'v Value,
    list_key: &str,
    depth: usize,
    out: &mut Vec<&'v Value>,
) -> Result<(), TokenizerError> {
    TokenizerError::limit(name, "nesting of Sequence components", depth, limits::MAX_NESTING)?;
    match (value, value.get("type").and_then(Value::as_str)) {
        (Value::Null, _) => Ok(()),
        (_, Some("Sequence")) => {
            let list = value.get(list_key).and_then(Value::as_array);
            let list = list.ok_or_else(|| TokenizerError::field(name, list_key, "is not a list"))?;
            list.iter().try_for_each(|part| open(name, part, list_key, depth + 1, out))
        }
        (_, Some(_)) => {
            out.push(value);
            Ok(())
        }
        (_, None) => Err(TokenizerError::field(name, list_key, "a component has no `type`")),
    }
}

fn kind(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, key: &str, default: bool) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(default)
}

fn text<'v>(name: &str, value: &'v Value, key: &str) -> Result<&'v str, TokenizerError> {
    let field = || format!("{}.{key}", kind(value));
    value.get(key).and_then(Value::as_str).ok_or_else(|| TokenizerError::field(name, field(), "is not a string"))
}

fn pattern(name: &str, value: &Value) -> Result<Pattern, TokenizerError> {
    let pattern = value.get("pattern").unwrap_or(&Value::Null);
    match (pattern.get("String").and_then(Value::as_str), pattern.get("Regex").and_then(Value::as_str)) {
        (Some(literal), _) => Pattern::literal(name, literal),
        (None, Some(source)) => Pattern::regex(name, source),
        (None, None) => {
            let field = format!("{}.pattern", kind(value));
            Err(TokenizerError::field(name, field, "is neither {\"String\": ...} nor {\"Regex\": ...}"))
        }
    }
}

pub(super) fn normalizers(name: &str, value: &Value) -> Result<Vec<Normalizer>, TokenizerError> {
    let mut out = Vec::new();
    for part in flatten(name, value, "normalizers")? {
        out.push(match kind(part) {
            "NFC" => Normalizer::Nfc,
            "NFD" => Normalizer::Nfd,
            "NFKC" => Normalizer::Nfkc,
            "NFKD" => Normalizer::Nfkd,
            "Lowercase" => Normalizer::Lowercase,
            "Strip" => {
                Normalizer::Strip { left: flag(part, "strip_left", true), right: flag(part, "strip_right", true) }
            }
            "StripAccents" => Normalizer::StripAccents(Pattern::combining_marks(name)?),
            "Nmt" => Normalizer::Translation,
            "ByteLevel" => Normalizer::Bytes,
            "Precompiled" => {
                Normalizer::Charsmap(Charsmap::from_base64(name, text(name, part, "precompiled_charsmap")?)?)
            }
            "Prepend" => Normalizer::Prepend(text(name, part, "prepend")?.to_owned()),
            "Replace" => Normalizer::Replace(pattern(name, part)?, text(name, part, "content")?.to_owned()),
            "BertNormalizer" => {
                out.extend(bert(part));
                continue;
            }
            other => return Err(TokenizerError::unsupported(name, "normalizer", other)),
        });
    }
    Ok(out)
}

/// The rewrites of BERT, in its order. Accents go where letters are lowered, unless the file says otherwise.
fn bert(part: &Value) -> Vec<Normalizer> {
    let lowercase = flag(part, "lowercase", true);
    let mut out = Vec::new();
    if flag(part, "clean_text", true) {
        out.push(Normalizer::Clean);
    }
    if flag(part, "handle_chinese_chars", true) {
        out.push(Normalizer::SpaceIdeographs);
    }
    if flag(part, "strip_accents", lowercase) {
        out.extend([Normalizer::Nfd, Normalizer::StripMarks]);
    }
    if lowercase {
        out.push(Normalizer::Lowercase);
    }
    out
}

pub(super) fn pre_tokenizers(name: &str, value: &Value) -> Result<Splitting, TokenizerError> {
    let mut out = Splitting::default();
    let parts = flatten(name, value, "pretokenizers")?;
    let patterns: Result<Vec<Option<&str>>, ()> = parts.iter().map(|part| isolating(part)).collect();
    out.patterns = patterns.ok().map(|all| all.into_iter().flatten().map(str::to_owned).collect());
    for part in parts {
        if std::mem::take(&mut out.byte_level) {
            out.steps.push(PreTokenizer::Bytes);
        }
        let cut = |pattern: Pattern, behavior: Behavior| PreTokenizer::Split { pattern, behavior, invert: false };
        match kind(part) {
            "ByteLevel" => {
                out.byte_level = true;
                if flag(part, "add_prefix_space", true) {
                    out.steps.push(PreTokenizer::SpacePrefix);
                }
                if flag(part, "use_regex", true) {
                    out.steps.push(cut(Pattern::regex(name, BYTE_LEVEL_SPLIT)?, Behavior::Isolated));
                }
            }
            "Split" => out.steps.push(PreTokenizer::Split {
                pattern: pattern(name, part)?,
                behavior: behavior(name, part)?,
                invert: flag(part, "invert", false),
            }),
            "Digits" => {
                let alone = flag(part, "individual_digits", false);
                let behavior = if alone { Behavior::Isolated } else { Behavior::Contiguous };
                out.steps.push(cut(Pattern::Chars(char::is_numeric), behavior));
            }
            "Whitespace" => out.steps.push(PreTokenizer::Split {
                pattern: Pattern::words_and_signs(name)?,
                behavior: Behavior::Removed,
                invert: true,
            }),
            "WhitespaceSplit" => out.steps.push(cut(Pattern::Chars(char::is_whitespace), Behavior::Removed)),
            "CharDelimiterSplit" => {
                out.steps.push(cut(Pattern::Char(one_char(name, part, "delimiter")?), Behavior::Removed));
            }
            "Punctuation" => {
                let stated = part.get("behavior").is_some();
                let behavior = if stated { behavior(name, part)? } else { Behavior::Isolated };
                out.steps.push(cut(Pattern::Chars(bert::is_punctuation), behavior));
            }
            "UnicodeScripts" => out.steps.push(PreTokenizer::Scripts(Scripts::new(name)?)),
            "FixedLength" => {
                let length = part.get("length").map_or(Some(5), Value::as_u64).filter(|&length| length > 0);
                let length = length.and_then(|length| usize::try_from(length).ok());
                let wrong = || TokenizerError::field(name, "FixedLength.length", "is not a number above 0");
                out.steps.push(PreTokenizer::Length(length.ok_or_else(wrong)?));
            }
            "Metaspace" => out.steps.push(metaspace(name, part)?),
            "BertPreTokenizer" => out.steps.push(PreTokenizer::Bert),
            other => return Err(TokenizerError::unsupported(name, "pre_tokenizer", other)),
        }
    }
    Ok(out)
}

fn behavior(name: &str, part: &Value) -> Result<Behavior, TokenizerError> {
    Ok(match text(name, part, "behavior")? {
        "Isolated" => Behavior::Isolated,
        "Removed" => Behavior::Removed,
        "MergedWithPrevious" => Behavior::MergedWithPrevious,
        "MergedWithNext" => Behavior::MergedWithNext,
        "Contiguous" => Behavior::Contiguous,
        other => return Err(TokenizerError::unsupported(name, "pre_tokenizer", format!("Split with {other}"))),
    })
}

fn one_char(name: &str, part: &Value, key: &str) -> Result<char, TokenizerError> {
    let mut chars = text(name, part, key)?.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(TokenizerError::field(name, format!("{}.{key}", kind(part)), "is not one character")),
    }
}

fn prepend(name: &str, part: &Value) -> Result<Prepend, TokenizerError> {
    match part.get("prepend_scheme").and_then(Value::as_str) {
        Some("always") => Ok(Prepend::Always),
        Some("first") => Ok(Prepend::First),
        Some("never") => Ok(Prepend::Never),
        Some(other) => Err(TokenizerError::unsupported(name, "pre_tokenizer", format!("Metaspace with {other}"))),
        None if flag(part, "add_prefix_space", true) => Ok(Prepend::Always),
        None => Ok(Prepend::Never),
    }
}

fn metaspace(name: &str, part: &Value) -> Result<PreTokenizer, TokenizerError> {
    let mark = one_char(name, part, "replacement")?;
    Ok(PreTokenizer::Metaspace { mark, prepend: prepend(name, part)?, cut: flag(part, "split", true) })
}

pub(super) fn decoder(name: &str, value: &Value) -> Result<DecoderChain, TokenizerError> {
    if value.is_null() {
        return Ok(DecoderChain(vec![Rewrite::Spaces]));
    }
    let parts = flatten(name, value, "decoders")?;
    parts.into_iter().map(|part| rewrite(name, part)).collect::<Result<_, _>>().map(DecoderChain)
}

fn rewrite(name: &str, part: &Value) -> Result<Rewrite, TokenizerError> {
    let owned = |key: &str| text(name, part, key).map(str::to_owned);
    let count =
        |key: &str| part.get(key).and_then(Value::as_u64).map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX));
    Ok(match kind(part) {
        "ByteLevel" => Rewrite::ByteLevel,
        "BPEDecoder" => Rewrite::Bpe { suffix: owned("suffix")? },
        "WordPiece" => Rewrite::WordPiece { prefix: owned("prefix")?, cleanup: flag(part, "cleanup", true) },
        "Metaspace" => Rewrite::Metaspace {
            mark: one_char(name, part, "replacement")?,
            drop_first: prepend(name, part)? != Prepend::Never,
        },
        "CTC" => Rewrite::Ctc {
            pad: owned("pad_token")?,
            delimiter: owned("word_delimiter_token")?,
            cleanup: flag(part, "cleanup", true),
        },
        "Replace" => Rewrite::Replace { pattern: pattern(name, part)?, content: owned("content")? },
        "Strip" => {
            Rewrite::Strip { content: one_char(name, part, "content")?, start: count("start"), stop: count("stop") }
        }
        "Fuse" => Rewrite::Fuse,
        "ByteFallback" => Rewrite::ByteFallback,
        other => return Err(TokenizerError::unsupported(name, "decoder", other)),
    })
}

/// What the post-processors of a file put around a text and a pair of texts.
pub(super) fn template(name: &str, value: &Value, vocab: &TokenTable) -> Result<PostProcessor, TokenizerError> {
    let mut out = PostProcessor::default();
    for part in flatten(name, value, "processors")? {
        match kind(part) {
            "ByteLevel" => {}
            "TemplateProcessing" => {
                single(name, part, vocab, &mut out)?;
                out.pair = pair(name, part, vocab)?;
            }
            processing @ ("RobertaProcessing" | "BertProcessing") => {
                let (cls, sep) = (pair_id(name, part, "cls", vocab)?, pair_id(name, part, "sep", vocab)?);
                out.prefix.push(cls);
                out.suffix.push(sep);
                out.pair = Some(fixed_pair(cls, sep, processing == "RobertaProcessing"));
            }
            other => return Err(TokenizerError::unsupported(name, "post_processor", other)),
        }
    }
    Ok(out)
}

/// The pair of the post-processors that are no templates. RoBERTa has tokens of one type, and two between the texts.
fn fixed_pair(cls: u32, sep: u32, roberta: bool) -> Vec<PairPart> {
    use PairPart::{First, Second, Token};
    let second = u32::from(!roberta);
    let mut out = vec![Token(cls, 0), First(0), Token(sep, 0)];
    if roberta {
        out.push(Token(sep, 0));
    }
    out.extend([Second(second), Token(sep, second)]);
    out
}

fn single(name: &str, part: &Value, vocab: &TokenTable, out: &mut PostProcessor) -> Result<(), TokenizerError> {
    let mut seen_text = false;
    for piece in pieces(name, part, "single")? {
        if piece.get("Sequence").is_some() {
            seen_text = true;
            continue;
        }
        let ids = template_ids(name, part, piece, "single", vocab)?;
        if seen_text { &mut out.suffix } else { &mut out.prefix }.extend(ids);
    }
    Ok(())
}

/// What a template says of pairs; `None` where it says nothing.
fn pair(name: &str, part: &Value, vocab: &TokenTable) -> Result<Option<Vec<PairPart>>, TokenizerError> {
    if part.get("pair").is_none_or(Value::is_null) {
        return Ok(None);
    }
    let wrong = |detail: String| TokenizerError::field(name, "post_processor.pair", detail);
    let mut out = Vec::new();
    for piece in pieces(name, part, "pair")? {
        let inner = piece.get("Sequence").or_else(|| piece.get("SpecialToken")).unwrap_or(&Value::Null);
        let of_type = inner.get("type_id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
        let of_type = of_type.ok_or_else(|| wrong(format!("has a piece without a type: {piece}")))?;
        match piece.get("Sequence").map(|text| text.get("id").and_then(Value::as_str)) {
            Some(Some("A")) => out.push(PairPart::First(of_type)),
            Some(Some("B")) => out.push(PairPart::Second(of_type)),
            Some(_) => return Err(wrong(format!("has a text that is neither A nor B: {piece}"))),
            None => {
                let ids = template_ids(name, part, piece, "pair", vocab)?;
                out.extend(ids.into_iter().map(|id| PairPart::Token(id, of_type)));
            }
        }
    }
    Ok(Some(out))
}

/// The pieces of the template `key`.
fn pieces<'v>(name: &str, part: &'v Value, key: &str) -> Result<&'v [Value], TokenizerError> {
    let wrong = || TokenizerError::field(name, format!("post_processor.{key}"), "is not a list");
    let pieces = part.get(key).and_then(Value::as_array).ok_or_else(wrong)?;
    TokenizerError::limit(name, "number of pieces in the template", pieces.len(), limits::MAX_COMPONENTS)?;
    Ok(pieces)
}

/// The ids of a template's special token.
fn template_ids(
    name: &str,
    part: &Value,
    piece: &Value,
    key: &str,
    vocab: &TokenTable,
) -> Result<Vec<u32>, TokenizerError> {
    let wrong = |detail: String| TokenizerError::field(name, format!("post_processor.{key}"), detail);
    let token = piece.get("SpecialToken").and_then(|t| t.get("id")).and_then(Value::as_str);
    let token = token.ok_or_else(|| wrong(format!("has a piece that is neither token nor text: {piece}")))?;
    let ids = part.get("special_tokens").and_then(|t| t.get(token)).and_then(|t| t.get("ids"));
    let ids = ids.and_then(Value::as_array).ok_or_else(|| wrong(format!("names {token:?} without ids")))?;
    TokenizerError::limit(name, "number of ids of a template token", ids.len(), limits::MAX_COMPONENTS)?;
    ids.iter().map(|id| known_id(name, id, vocab)).collect()
}

fn pair_id(name: &str, part: &Value, key: &str, vocab: &TokenTable) -> Result<u32, TokenizerError> {
    known_id(name, part.get(key).and_then(|pair| pair.get(1)).unwrap_or(&Value::Null), vocab)
}

fn known_id(name: &str, value: &Value, vocab: &TokenTable) -> Result<u32, TokenizerError> {
    let id = value.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|&id| vocab.text(id).is_some());
    id.ok_or_else(|| TokenizerError::field(name, "post_processor", format!("names the unknown id {value}")))
}
