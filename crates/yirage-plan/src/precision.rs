//! How closely products are computed: an option of compilation, which the plan records.

use std::fmt;
use std::str::FromStr;

/// How matrix products are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Precision {
    /// f32 activations and accumulation; weights de-quantised exactly.
    Exact,
    /// int8 activations in blocks of 32 for quantised weights, bf16 products for BF16 weights.
    #[default]
    Fast,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::Exact => "exact",
            Precision::Fast => "fast",
        })
    }
}

impl FromStr for Precision {
    type Err = String;
    fn from_str(s: &str) -> Result<Precision, String> {
        match s {
            "exact" => Ok(Precision::Exact),
            "fast" => Ok(Precision::Fast),
            _ => Err(format!("`{s}` is no precision: `exact` or `fast` wanted")),
        }
    }
}
