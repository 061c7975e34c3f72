//! The frequencies of a model's rotation, with the divisors that stand in its files.

use crate::checkpoint::Checkpoint;
use crate::config::{FrequencyDivisors, RopeConfig, RopeScaling};
use crate::error::ModelError;
use crate::rope::{Dynamic, Frequencies, LongerSequences};

/// What the frequencies of `rotary` elements are read from.
pub(super) struct ScaledFrequencies<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    /// The file of the configuration, for messages.
    pub(super) file: &'a str,
    pub(super) rotary: u32,
}

impl ScaledFrequencies<'_> {
    /// The frequencies of sequences within the trained context, and how those of longer ones come about, where they are
    /// others and the context of the engine has any.
    pub(super) fn read(&self, config: &RopeConfig, context: u32) -> Result<(Frequencies, Option<Dynamic>), ModelError> {
        let rotary = self.rotary;
        let divided = |divisors: &FrequencyDivisors| -> Result<Frequencies, ModelError> {
            Ok(Frequencies::new(config, rotary, Some(&self.divisors(divisors)?)))
        };
        Ok(match &config.scaling {
            &RopeScaling::Dynamic { factor, original } => {
                let longer = LongerSequences::Ntk { theta: config.theta, factor, rotary };
                (Frequencies::new(config, rotary, None), Some(Dynamic { original, longer }))
            }
            RopeScaling::LongRope { short, long, original, .. } => {
                let (short, long) = (divided(short)?, divided(long)?);
                let longer = LongerSequences::LongRope { short: short.clone(), long };
                (short, (context > *original).then_some(Dynamic { original: *original, longer }))
            }
            RopeScaling::Factors { tensor } => (divided(&FrequencyDivisors::Tensor(tensor.clone()))?, None),
            _ => (Frequencies::new(config, rotary, None), None),
        })
    }

    /// One divisor for each rotating pair.
    fn divisors(&self, of: &FrequencyDivisors) -> Result<Vec<f64>, ModelError> {
        let n = self.rotary as usize / 2;
        match of {
            FrequencyDivisors::Stated { values, .. } if values.len() == n => Ok(values.clone()),
            FrequencyDivisors::Stated { key, values } => Err(ModelError::Config {
                file: self.file.to_owned(),
                key: key.clone(),
                expected: format!("{n} numbers, one for each rotating pair"),
                found: format!("{} numbers", values.len()),
            }),
            FrequencyDivisors::Tensor(tensor) => self.stored(tensor, n),
        }
    }

    fn stored(&self, tensor: &str, n: usize) -> Result<Vec<f64>, ModelError> {
        let info = self.checkpoint.require(tensor)?;
        let format = self.checkpoint.format(info)?;
        let mut values = vec![0f32; n];
        if info.elements() != n || format.info().block != 1 {
            return Err(ModelError::Config {
                file: self.checkpoint.label(),
                key: format!("tensor {tensor:?}"),
                expected: format!("{n} floats, one for each rotating pair"),
                found: format!("{} elements of {}", info.elements(), format.info().name),
            });
        }
        (format.info().decode)(self.checkpoint.elements(info, 0..n, &mut Vec::new())?, &mut values);
        Ok(values.into_iter().map(f64::from).collect())
    }
}
