//! How many of a sequence's guesses came true.

use crate::sampling::{SampleError, SamplerOutput};

/// The tokens that a step gives a sequence: sampled ones in order, up to the first that is not the draft at its place. A
/// row that gives no token ends the run before it; the next step computes it again, and fails if it is the first.
pub(super) fn verify(
    drafts: &[u32],
    sampled: Vec<Result<SamplerOutput, SampleError>>,
) -> Result<Vec<SamplerOutput>, String> {
    let mut run = Vec::new();
    for (at, sampled) in sampled.into_iter().enumerate() {
        match sampled {
            Err(why) if at == 0 => return Err(why.to_string()),
            Err(_) => break,
            Ok(sampled) => {
                let accepted = drafts.get(at) == Some(&sampled.token);
                run.push(sampled);
                if !accepted {
                    break;
                }
            }
        }
    }
    Ok(run)
}
