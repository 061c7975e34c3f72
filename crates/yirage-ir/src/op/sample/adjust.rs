//! Steps 1 to 3: masks, biases and penalties.

use super::{Sample, SampleInput};
use crate::tensor::Tensor;

impl Sample {
    /// Steps 1 to 3 for sequence `s`.
    pub(super) fn adjust(&self, ins: &[&Tensor], s: usize, row: &mut [f32]) {
        if self.mask {
            let words = self.at(ins, SampleInput::Allowed);
            let words = &words.bits()[s * words.width()..][..words.width()];
            let masked = row.iter_mut().enumerate().filter(|(token, _)| words[token / 32] >> (token % 32) & 1 == 0);
            masked.for_each(|(_, logit)| *logit = f32::NEG_INFINITY);
        }
        if self.bias {
            let at = self.at(ins, SampleInput::BiasAt).ints().chunks_exact(2);
            for (at, bias) in at.zip(self.at(ins, SampleInput::Bias).floats()) {
                if at[0] as usize == s
                    && let Some(logit) = row.get_mut(at[1] as usize)
                {
                    *logit += bias;
                }
            }
        }
        if self.penalties {
            let of = |slot| self.at(ins, slot).floats()[s];
            let (repetition, frequency, presence) =
                (of(SampleInput::Repetition), of(SampleInput::Frequency), of(SampleInput::Presence));
            for entry in self.at(ins, SampleInput::History).ints().chunks_exact(3).filter(|e| e[0] as usize == s) {
                let Some(logit) = row.get_mut(entry[1] as usize) else { continue };
                *logit = if *logit > 0.0 { *logit / repetition } else { *logit * repetition };
                if entry[2] > 0 {
                    *logit = *logit - frequency * entry[2] as f32 - presence;
                }
            }
        }
    }
}
