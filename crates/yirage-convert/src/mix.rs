//! The mixes: what files are called, and the format that most of their tensors have.

use crate::encode::named;
use crate::error::ConvertError;
use yirage_model::gguf::GgmlType;

/// A mix of formats under a published name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    /// Its name: `Q4_K_M`.
    pub name: &'static str,
    /// The number of `general.file_type`.
    pub file_type: u32,
    /// The name of the format that most tensors have.
    pub format: &'static str,
}

/// Every mix that is written.
const MIXES: &[Mix] = &[
    Mix { name: "F32", file_type: 0, format: "F32" },
    Mix { name: "F16", file_type: 1, format: "F16" },
    Mix { name: "BF16", file_type: 32, format: "BF16" },
    Mix { name: "Q8_0", file_type: 7, format: "Q8_0" },
    Mix { name: "Q6_K", file_type: 18, format: "Q6_K" },
    Mix { name: "Q5_K_M", file_type: 17, format: "Q5_K" },
    Mix { name: "Q5_K_S", file_type: 16, format: "Q5_K" },
    Mix { name: "Q5_1", file_type: 9, format: "Q5_1" },
    Mix { name: "Q5_0", file_type: 8, format: "Q5_0" },
    Mix { name: "Q4_K_M", file_type: 15, format: "Q4_K" },
    Mix { name: "Q4_K_S", file_type: 14, format: "Q4_K" },
    Mix { name: "IQ4_NL", file_type: 25, format: "IQ4_NL" },
    Mix { name: "IQ4_XS", file_type: 30, format: "IQ4_XS" },
    Mix { name: "Q4_1", file_type: 3, format: "Q4_1" },
    Mix { name: "Q4_0", file_type: 2, format: "Q4_0" },
    Mix { name: "MXFP4_MOE", file_type: 38, format: "MXFP4" },
    Mix { name: "Q3_K_L", file_type: 13, format: "Q3_K" },
    Mix { name: "Q3_K_M", file_type: 12, format: "Q3_K" },
    Mix { name: "Q3_K_S", file_type: 11, format: "Q3_K" },
    Mix { name: "Q2_K", file_type: 10, format: "Q2_K" },
    Mix { name: "Q2_K_S", file_type: 21, format: "Q2_K" },
];

/// Names that others give some of them.
const OTHER_NAMES: &[(&str, &str)] = &[("Q3_K", "Q3_K_M"), ("Q4_K", "Q4_K_M"), ("Q5_K", "Q5_K_M")];

impl Mix {
    /// All of them, from most bits to fewest.
    pub const ALL: &'static [Mix] = MIXES;

    /// The mix of a name, in any case: `q4_k_m`; `Q4_K` is `Q4_K_M`, as elsewhere.
    ///
    /// # Errors
    /// [`ConvertError::UnknownMix`] with those that there are.
    pub fn parse(name: &str) -> Result<Mix, ConvertError> {
        let upper = name.to_ascii_uppercase();
        let asked = OTHER_NAMES.iter().find(|(other, _)| *other == upper).map_or(upper.as_str(), |(_, meant)| meant);
        MIXES.iter().copied().find(|mix| mix.name == asked).ok_or_else(|| ConvertError::UnknownMix {
            name: name.to_owned(),
            known: MIXES.iter().map(|mix| mix.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The mix of one float format, by the name of the format: `f16`.
    ///
    /// # Errors
    /// [`ConvertError::UnknownFormat`] for names of other mixes and none.
    pub fn of_floats(name: &str) -> Result<Mix, ConvertError> {
        let upper = name.to_ascii_uppercase();
        let floats = || MIXES.iter().filter(|mix| matches!(mix.name, "F32" | "F16" | "BF16"));
        floats().copied().find(|mix| mix.name == upper).ok_or_else(|| ConvertError::UnknownFormat {
            name: name.to_owned(),
            known: floats().map(|mix| mix.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The format that most tensors have.
    pub(crate) fn ggml_type(self) -> GgmlType {
        named(self.format).expect("each mix names a published format")
    }

    /// Whether it is one of these.
    pub(crate) fn is(self, names: &[&str]) -> bool {
        names.contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::encoder;

    #[test]
    fn every_mix_is_found_by_its_name_and_has_an_encoder() {
        for mix in Mix::ALL {
            assert_eq!(Mix::parse(&mix.name.to_lowercase()).unwrap(), *mix);
            assert!(encoder(mix.ggml_type()).is_some(), "{}", mix.name);
        }
        assert_eq!(Mix::parse("Q4_K").unwrap().name, "Q4_K_M");
        let error = Mix::parse("IQ2_XXS").unwrap_err().to_string();
        assert!(error.contains("\"IQ2_XXS\"") && error.contains("Q4_K_M"), "{error}");
    }
}
