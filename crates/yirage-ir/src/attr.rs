//! Attributes of ops: the constants an op carries, and their text form.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A value that an op can carry as an attribute. `Display` and `FromStr` round-trip exactly.
pub trait AttrValue: fmt::Display + FromStr + Clone {}
impl AttrValue for u32 {}
impl AttrValue for bool {}
impl AttrValue for F32 {}
impl AttrValue for crate::expr::Scalar {}

/// Several values of one kind: `[1, 2]` in text forms.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct List<T>(pub Vec<T>);

impl AttrValue for List<u32> {}

impl<T: fmt::Display> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.iter().map(T::to_string).collect();
        write!(f, "[{}]", items.join(", "))
    }
}

impl<T: FromStr> FromStr for List<T> {
    type Err = ();
    fn from_str(s: &str) -> Result<List<T>, ()> {
        let items = s.strip_prefix('[').and_then(|s| s.strip_suffix(']')).ok_or(())?;
        if items.is_empty() {
            return Ok(List(Vec::new()));
        }
        items.split(',').map(|item| item.trim().parse().map_err(|_| ())).collect::<Result<_, _>>().map(List)
    }
}

/// An f32 attribute compared, hashed and printed by value: the shortest decimal that reads back to the same bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct F32(pub f32);

impl PartialEq for F32 {
    fn eq(&self, other: &F32) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for F32 {}
impl std::hash::Hash for F32 {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
impl fmt::Display for F32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
impl FromStr for F32 {
    type Err = std::num::ParseFloatError;
    fn from_str(s: &str) -> Result<F32, Self::Err> {
        s.parse().map(F32)
    }
}
impl From<f32> for F32 {
    fn from(v: f32) -> F32 {
        F32(v)
    }
}

/// What is wrong with the attributes of an op in a text form.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AttrError {
    /// An attribute is not given.
    #[error("attribute `{0}` is missing")]
    Missing(&'static str),
    /// An attribute does not parse.
    #[error("attribute `{name}` cannot be `{value}`")]
    Bad {
        /// The attribute.
        name: &'static str,
        /// The text that does not parse.
        value: String,
    },
    /// The op has no such attribute.
    #[error("there is no attribute `{0}`")]
    Unknown(String),
}

/// Takes the attribute `name` out of `list`.
pub fn take<T: AttrValue>(list: &mut Vec<(String, String)>, name: &'static str) -> Result<T, AttrError> {
    let at = list.iter().position(|(n, _)| n == name).ok_or(AttrError::Missing(name))?;
    let (_, value) = list.remove(at);
    value.parse().map_err(|_| AttrError::Bad { name, value })
}

/// Declares an op's struct with its attributes and their text form.
#[macro_export]
macro_rules! op_struct {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty),* }

        impl $crate::op::Attrs for $name {
            fn attrs(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($field), self.$field.to_string())),*]
            }
            #[allow(unused_mut)]
            fn from_attrs(mut list: Vec<(String, String)>) -> Result<Self, $crate::attr::AttrError> {
                let op = $name { $($field: $crate::attr::take(&mut list, stringify!($field))?),* };
                match list.pop() {
                    Some((name, _)) => Err($crate::attr::AttrError::Unknown(name)),
                    None => Ok(op),
                }
            }
        }
    };
}

/// Declares an enum attribute whose variants print as lower-case words.
#[macro_export]
macro_rules! attr_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// All variants.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($name::$variant => $word),* })
            }
        }
        impl std::str::FromStr for $name {
            type Err = ();
            fn from_str(s: &str) -> Result<Self, ()> {
                match s { $($word => Ok($name::$variant),)* _ => Err(()) }
            }
        }
        impl $crate::attr::AttrValue for $name {}
    };
}
