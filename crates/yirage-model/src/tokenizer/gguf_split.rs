//! The splitting rules that `tokenizer.ggml.pre` names: patterns applied one after the other, each within the pieces
//! the ones before it left, matches and gaps alike becoming pieces.

/// What a name of `tokenizer.ggml.pre` stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) patterns: &'static [&'static str],
    /// A word that is a token is taken whole.
    pub(super) ignore_merges: bool,
    /// BOS by default, where the file has no `add_bos_token`.
    pub(super) add_bos: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const CJK_RUN: &str = "[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+";
const CODER_CJK: &str = "[\u{4E00}-\u{9FA5}\u{800}-\u{4E00}\u{AC00}-\u{D7FF}]+";
const BAILING: &str =
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
const SEED_CODER: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";

const fn plain(patterns: &'static [&'static str]) -> Rules {
    Rules { patterns, ignore_merges: false, add_bos: false }
}

/// Names of `tokenizer.ggml.pre` and what they stand for.
const RULES: &[(&[&str], Rules)] = &[
    (&["default"], plain(&[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"])),
    (
        &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
        Rules { patterns: &[LLAMA3], ignore_merges: true, add_bos: true },
    ),
    (&["dbrx", "smaug-bpe", "chatglm-bpe"], plain(&[LLAMA3])),
    (&["glm4"], Rules { patterns: &[LLAMA3], ignore_merges: true, add_bos: false }),
    (
        &["qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2", "kormo", "f2llmv2"],
        plain(&[QWEN2]),
    ),
    (&["qwen35"], plain(&[QWEN35])),
    (&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], plain(&[O200K])),
    (&["tekken"], Rules { patterns: &[TEKKEN], ignore_merges: true, add_bos: true }),
    (&["deepseek-v3", "hunyuan-dense", "joyai-llm"], plain(&[r"\p{N}{1,3}", CJK_RUN, DEEPSEEK3])),
    (&["deepseek-coder"], plain(&[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CODER_CJK, r"\p{N}"])),
    (
        &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"],
        plain(&[r"\p{N}", GPT2]),
    ),
    (
        &[
            "gpt-2",
            "gpt2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
        ],
        plain(&[GPT2]),
    ),
    (&["falcon"], plain(&[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"])),
    (&["bailingmoe", "bailingmoe2", "llada-moe"], plain(&[BAILING])),
    (&["seed-coder"], plain(&[SEED_CODER])),
    (&["bloom", "poro-chat", "gpt3-finnish"], plain(&[BLOOM])),
    (&["viking"], plain(&[BLOOM, r"\p{N}"])),
];

/// The rules of a name; `None` for a name this crate does not know.
pub(super) fn rules(pre: &str) -> Option<Rules> {
    RULES.iter().find(|(names, _)| names.contains(&pre)).map(|(_, rules)| *rules)
}

/// The usual name of rules, by their patterns and whether a word that is a token is taken whole.
pub(super) fn named(patterns: &[String], ignore_merges: bool) -> Option<&'static str> {
    let same = |rules: &Rules| rules.ignore_merges == ignore_merges && rules.patterns == patterns;
    RULES.iter().find(|(_, rules)| same(rules)).map(|(names, _)| names[0])
}

/// All names, for a message.
pub(super) fn known() -> String {
    let names: Vec<&str> = RULES.iter().flat_map(|(names, _)| names.iter().copied()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;

    #[test]
    fn every_pattern_compiles() {
        let names = "default llama-bpe qwen2 qwen35 gpt-4o tekken deepseek-v3 deepseek-coder smollm gpt-2 falcon \
                     bailingmoe seed-coder bloom viking glm4";
        for name in names.split_whitespace() {
            for pattern in super::rules(name).unwrap().patterns {
                Pattern::regex(name, pattern).unwrap();
            }
        }
        assert!(super::rules("kimi-k2").is_none());
    }
}
