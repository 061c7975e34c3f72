//! What GGUF files say and do not say of GLM-4's vocabulary.

use yirage_model::tokenizer::{EncodeOptions, GgufVocab, Tokenizer};
use yirage_model::{Checkpoint, GenerationConfig, RawConfig};
use yirage_testkit::gguf::GgufWriter;
use yirage_testkit::scratch::ScratchFolder;

/// The metadata name the first two; the third ends a turn that calls a tool.
#[test]
fn three_tokens_end_a_text() {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    let tokens = ["a", "<|endoftext|>", "[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|observation|>"];
    let ends = |observation: i32| {
        let types = [NORMAL, CONTROL, CONTROL, CONTROL, CONTROL, CONTROL, observation];
        let file = GgufWriter::new().str("general.architecture", "glm4").strings("tokenizer.ggml.tokens", &tokens);
        let file = file.i32_list("tokenizer.ggml.token_type", &types);
        let file = file.u32("tokenizer.ggml.eos_token_id", 1).u32("tokenizer.ggml.eot_token_id", 4);
        let folder = ScratchFolder::new("glm-ends");
        let checkpoint = Checkpoint::open(folder.write("m.gguf", &file.bytes())).unwrap();
        GenerationConfig::load(&checkpoint, &RawConfig::load(&checkpoint).unwrap()).unwrap().eos
    };
    assert_eq!(ends(CONTROL), [1, 4, 6]);
    assert_eq!(ends(NORMAL), [1, 4], "in another vocabulary it is a word");
}

/// The second tokenizer takes a word that is a token whole, where merges would not lead to it.
#[test]
fn the_two_splitting_rules_differ_in_whole_words() {
    let ids = |pre: &'static str| {
        let tokens = vec!["a", "b", "c", "bc", "abc"];
        let vocab =
            GgufVocab { model: "gpt2", pre: Some(pre), tokens, merges: Some(vec!["b c"]), ..Default::default() };
        let options = EncodeOptions { add_special: true, parse_special: true };
        Tokenizer::from_gguf(vocab).unwrap().encode("abc", options).unwrap()
    };
    assert_eq!(ids("chatglm-bpe"), [0, 3]);
    assert_eq!(ids("glm4"), [4]);
}
