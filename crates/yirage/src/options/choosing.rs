//! The options that say how tokens are chosen: a part of the list.

use super::command::CliCommand::{BenchServe, Chat, Run};
use super::spec::{Default, OptionKind, Spec, option, short};
use super::takers::GENERATE;
use Default::{Described, Value};
use OptionKind::{Choice, Number, Text, Texts};

/// The options, in the order of help texts.
pub(super) const CHOOSING: &[Spec] = &[
    short(
        'n',
        option("max-tokens", Number("N"), Described("512, or what the context leaves"), GENERATE, "New tokens at most"),
    ),
    option(
        "temperature",
        Number("X"),
        Described("the model's suggestion, else 0.8"),
        GENERATE,
        "Divisor of the logits; 0 takes the likeliest token",
    ),
    option(
        "top-k",
        Number("N"),
        Described("the model's suggestion, else 40"),
        GENERATE,
        "Keep this many likeliest tokens; 0 keeps all",
    ),
    option(
        "top-p",
        Number("X"),
        Described("the model's suggestion, else 0.95"),
        GENERATE,
        "Keep the fewest likeliest tokens that reach this share",
    ),
    option(
        "min-p",
        Number("X"),
        Described("the model's suggestion, else 0.05"),
        GENERATE,
        "Drop tokens below this share of the likeliest one's probability",
    ),
    option(
        "repetition-penalty",
        Number("X"),
        Described("the model's suggestion, else 1"),
        GENERATE,
        "Weaken tokens of prompt and answer by this factor; 1 does nothing",
    ),
    option("presence-penalty", Number("X"), Value("0"), GENERATE, "Weaken tokens the answer has; -2 to 2"),
    option("frequency-penalty", Number("X"), Value("0"), GENERATE, "Weaken tokens by how often the answer has them"),
    option(
        "seed",
        Text("N"),
        Value("0"),
        &[Run, Chat, BenchServe],
        "Key of the random numbers; `random` draws one and says which",
    ),
    option("stop", Texts("TEXT"), Described("none"), GENERATE, "End the text before this string; may be repeated"),
    // llama.cpp's samplers: the host chooses, in its order.
    option(
        "samplers",
        Text("NAMES"),
        Described("none, or llama.cpp's order where one of the samplers below is asked for"),
        GENERATE,
        "Samplers and their order, with ; between them: penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
    ),
    option(
        "dry-multiplier",
        Number("X"),
        Value("0"),
        GENERATE,
        "Weaken what would go on with a repetition (DRY), times this; 0 does nothing",
    ),
    option("dry-base", Number("X"), Value("1.75"), GENERATE, "DRY: each further repeated token multiplies it by this"),
    option("dry-allowed-length", Number("N"), Value("2"), GENERATE, "DRY: repeated tokens that cost nothing"),
    option("dry-penalty-last-n", Number("N"), Value("64"), GENERATE, "DRY: tokens that are looked at; -1 looks at all"),
    option(
        "dry-sequence-breaker",
        Texts("TEXT"),
        Described("newline, :, \" and *"),
        GENERATE,
        "DRY: no repetition goes over this text; may be repeated, none is no text",
    ),
    option(
        "xtc-probability",
        Number("X"),
        Value("0"),
        GENERATE,
        "How often the likeliest tokens are dropped (XTC), all above a probability but the last of them; 0 to 1",
    ),
    option("xtc-threshold", Number("X"), Value("0.1"), GENERATE, "XTC: that probability; above 0.5 drops nothing"),
    option(
        "typical",
        Number("X"),
        Value("1"),
        GENERATE,
        "Keep the tokens whose surprise is nearest to the expected one, up to this share; 1 keeps all",
    ),
    option(
        "top-nsigma",
        Number("X"),
        Value("0"),
        GENERATE,
        "Keep logits within so many standard deviations of the largest; 0 keeps all",
    ),
    option(
        "dynatemp-range",
        Number("X"),
        Value("0"),
        GENERATE,
        "Let the temperature follow the entropy, within this much of --temperature",
    ),
    option("dynatemp-exp", Number("X"), Value("1"), GENERATE, "Power of the entropy's share for --dynatemp-range"),
    option(
        "mirostat",
        Choice(&["0", "1", "2"]),
        Value("0"),
        GENERATE,
        "Hold the tokens' surprise at a target, in the place of every limit (Mirostat, version 1 or 2); 0 does not",
    ),
    option("mirostat-lr", Number("X"), Value("0.1"), GENERATE, "Mirostat: how fast the limit follows; 0 to 1"),
    option("mirostat-ent", Number("X"), Value("5"), GENERATE, "Mirostat: the target, in bits"),
];
