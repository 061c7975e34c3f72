//! Prompts that say nothing: tokens drawn from those that the server makes of an ordinary text.
//!
//! Which ids a model has, and which of them are text, only the server knows; so it is asked to tokenise a text, by vLLM's
//! form of `/tokenize` or llama.cpp's. Where there is none, a prompt is as many words as tokens were asked for.

use crate::random::Random;
use crate::run::LoadRunner;
use crate::{CompletionApi, LoadError, LoadPrompt, LoadRequest, LoadTarget};
use serde_json::{Value, json};

/// The purpose of these random numbers.
const PROMPTS: u64 = 2;

/// Words of every kind of text, so that tokens of a good part of a vocabulary are among theirs.
const WORDS: &str = "the river runs past an old mill where children play after school and people sell bread fish salt \
    apples green cloth while a small dog sleeps near the door of a quiet house when rain begins to fall upon stone roads \
    we count seven boats nine horses twelve open windows today question answer number letter science music morning winter \
    garden engine market science history language bridge mountain island forest paper silver copper water light sound";

/// How long prompts and answers are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PromptLengths {
    /// Tokens of a prompt, its prefix not counted.
    pub input: u32,
    /// Tokens of an answer.
    pub output: u32,
    /// Tokens that all prompts begin with.
    pub prefix: u32,
    /// How far lengths go: from (1 - ratio) to (1 + ratio) times these; below 1.
    pub ratio: f64,
}

/// What random prompts are made of.
#[derive(Clone, Debug)]
pub struct RandomPrompts {
    /// Ids of ordinary text; none where the server has no tokenizer to ask.
    ids: Option<Vec<u32>>,
}

impl RandomPrompts {
    /// Asks the server for tokens.
    pub fn ask(run: &LoadRunner, target: &LoadTarget) -> RandomPrompts {
        let of_vllm = json!({"model": target.model, "prompt": WORDS, "add_special_tokens": false});
        let of_llamacpp = json!({"content": WORDS, "add_special": false});
        let tokens = |body: &Value| {
            let answer = run.post_json(target, "/tokenize", body).ok()?;
            let mut ids: Vec<u32> = answer["tokens"]
                .as_array()?
                .iter()
                .filter_map(Value::as_u64)
                .filter_map(|id| id.try_into().ok())
                .collect();
            // The order of a set of ids is their own.
            ids.sort_unstable();
            ids.dedup();
            (!ids.is_empty()).then_some(ids)
        };
        RandomPrompts { ids: tokens(&of_vllm).or_else(|| tokens(&of_llamacpp)) }
    }

    /// Whether prompts have exactly the tokens that were asked for.
    pub fn are_exact(&self) -> bool {
        self.ids.is_some()
    }

    /// So many samples from a seed.
    ///
    /// # Errors
    /// [`LoadError::Load`] for a ratio that is not from 0 to below 1; [`LoadError::Asked`] where the server does not turn
    /// ids into text, which conversations need.
    pub fn samples(
        &self,
        run: &LoadRunner,
        target: &LoadTarget,
        lengths: &PromptLengths,
        count: usize,
        seed: u64,
    ) -> Result<Vec<LoadRequest>, LoadError> {
        if !(0.0..1.0).contains(&lengths.ratio) {
            let given = lengths.ratio.to_string();
            return Err(LoadError::Load { what: "the range of lengths", expected: "from 0 to below 1", given });
        }
        let mut random = Random::new(seed, PROMPTS);
        let prefix: Vec<u64> = (0..lengths.prefix).map(|_| random.next()).collect();
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let input = between(lengths.input, lengths.ratio, &mut random);
            let output = between(lengths.output, lengths.ratio, &mut random);
            let drawn: Vec<u64> = prefix.iter().copied().chain((0..input).map(|_| random.next())).collect();
            let prompt = self.prompt(run, target, &drawn)?;
            samples.push(LoadRequest { prompt, input_len: Some(drawn.len()), output_len: output });
        }
        Ok(samples)
    }

    fn prompt(&self, run: &LoadRunner, target: &LoadTarget, drawn: &[u64]) -> Result<LoadPrompt, LoadError> {
        // Each number names one of so many things; which one is as good as even.
        let at = |number: u64, of: usize| Random::new(number, 0).below(of as u64) as usize;
        let Some(ids) = &self.ids else {
            let words: Vec<&str> = WORDS.split_whitespace().collect();
            let words: Vec<&str> = drawn.iter().filter_map(|n| words.get(at(*n, words.len())).copied()).collect();
            return Ok(LoadPrompt::Text(words.join(" ")));
        };
        let ids: Vec<u32> = drawn.iter().filter_map(|n| ids.get(at(*n, ids.len())).copied()).collect();
        if target.interface == CompletionApi::Completions {
            return Ok(LoadPrompt::Ids(ids));
        }
        let answer = run.post_json(target, "/detokenize", &json!({"model": target.model, "tokens": ids}))?;
        // vLLM calls it the prompt, llama.cpp the content.
        let text = answer["prompt"].as_str().or(answer["content"].as_str());
        let missing = || LoadError::Asked { path: "/detokenize".into(), why: "there is no text in the answer".into() };
        Ok(LoadPrompt::Text(text.ok_or_else(missing)?.to_owned()))
    }
}

/// A whole number from (1 - ratio) to (1 + ratio) times `middle`, both included, at least 1.
fn between(middle: u32, ratio: f64, random: &mut Random) -> u32 {
    let (low, high) = ((f64::from(middle) * (1.0 - ratio)).floor(), (f64::from(middle) * (1.0 + ratio)).ceil());
    let span = (high - low).max(0.0) as u64;
    // Both ends are below 2^33.
    let length = low as u64 + random.below(span + 1);
    u32::try_from(length).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_stay_within_their_range_and_reach_its_ends() {
        let mut random = Random::new(1, 1);
        let lengths: Vec<u32> = (0..2000).map(|_| between(10, 0.3, &mut random)).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&7), Some(&13)));
        assert!((0..100).all(|_| between(10, 0.0, &mut random) == 10));
        assert_eq!(between(0, 0.0, &mut random), 1);
    }
}
