//! Parameters that a request gives and its chain does not read.

use super::chain::SamplerStage;
use super::params::SamplingParams;

impl SamplingParams {
    /// The parameters that ask for something.
    fn active(&self) -> Vec<&'static str> {
        let own = [
            ("temperature", self.temperature != 1.0),
            ("top_k", self.top_k != 0),
            ("top_p", self.top_p < 1.0),
            ("min_p", self.min_p > 0.0),
            ("repetition_penalty", self.repetition_penalty != 1.0),
            ("presence_penalty", self.presence_penalty != 0.0),
            ("frequency_penalty", self.frequency_penalty != 0.0),
        ];
        own.into_iter().filter(|(_, active)| *active).map(|(name, _)| name).chain(self.chain.active()).collect()
    }

    /// The parameters that ask for something and change nothing, because mirostat takes their place or the order of samplers
    /// has no stage that reads them; by llama.cpp's and vLLM's names.
    pub fn unused(&self) -> Vec<&'static str> {
        if self.chain.is_off() {
            return Vec::new();
        }
        let mirostat = self.chain.mirostat.version != 0;
        let stages = SamplerStage::of(&self.chain);
        let read = |name: &&str| match mirostat {
            true => matches!(*name, "temperature" | "mirostat"),
            false => stages.iter().any(|stage| stage.reads(name)),
        };
        let mut unused: Vec<&str> = self.active().into_iter().filter(|name| !read(name)).collect();
        unused.extend((mirostat && self.chain.order.is_some()).then_some("samplers"));
        unused
    }
}
