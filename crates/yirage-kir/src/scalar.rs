//! Types of what a thread computes with, and constants.

/// The type of a register or of an element of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ScalarType {
    /// A float of 32 bits (IEEE 754).
    F32,
    /// A signed whole number of 32 bits; arithmetic wraps around.
    I32,
    /// A whole number of 32 bits; arithmetic wraps around.
    U32,
    /// True or false: registers alone, never memory.
    Bool,
}

impl ScalarType {
    /// All types.
    pub const ALL: [ScalarType; 4] = [ScalarType::F32, ScalarType::I32, ScalarType::U32, ScalarType::Bool];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::F32 => "f32",
            ScalarType::I32 => "i32",
            ScalarType::U32 => "u32",
            ScalarType::Bool => "bool",
        }
    }

    /// The inverse of [`ScalarType::name`].
    pub fn parse(name: &str) -> Option<ScalarType> {
        ScalarType::ALL.into_iter().find(|ty| ty.name() == name)
    }
}

impl std::fmt::Display for ScalarType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A constant: its type and its 32 bits (0 or 1 of a bool).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScalarConst {
    /// The type.
    pub ty: ScalarType,
    /// The bits.
    pub bits: u32,
}

impl From<f32> for ScalarConst {
    fn from(x: f32) -> ScalarConst {
        ScalarConst { ty: ScalarType::F32, bits: x.to_bits() }
    }
}

impl From<i32> for ScalarConst {
    fn from(x: i32) -> ScalarConst {
        ScalarConst { ty: ScalarType::I32, bits: x as u32 }
    }
}

impl From<u32> for ScalarConst {
    fn from(x: u32) -> ScalarConst {
        ScalarConst { ty: ScalarType::U32, bits: x }
    }
}

impl From<bool> for ScalarConst {
    fn from(x: bool) -> ScalarConst {
        ScalarConst { ty: ScalarType::Bool, bits: u32::from(x) }
    }
}
