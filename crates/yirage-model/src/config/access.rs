//! Typed reading of configuration values.

use super::RawConfig;
use super::names::ConfigKeyNames;
use crate::error::ModelError;
use serde_json::{Map, Value};

/// The error for a value of another type or range than `expected`.
pub(super) fn mismatch(file: &str, key: &str, expected: &str, found: &Value) -> ModelError {
    let found = describe_value(found);
    ModelError::Config { file: file.to_owned(), key: key.to_owned(), expected: expected.to_owned(), found }
}

/// A value in words, not too many of them.
pub(super) fn describe_value(value: &Value) -> String {
    let found = match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) => format!("the string {s:?}"),
        Value::Array(a) => format!("a list of {}", a.len()),
        Value::Object(o) => format!("an object of {}", o.len()),
    };
    if found.len() > 200 { found.chars().take(200).chain("...".chars()).collect() } else { found }
}

/// An object inside a configuration, with what its errors need.
pub(super) struct Section<'a> {
    pub(super) file: &'a str,
    /// Dotted path of the section with a final dot; empty for the configuration itself.
    pub(super) prefix: &'a str,
    pub(super) values: &'a Map<String, Value>,
    /// What the file calls the keys.
    pub(super) names: &'a ConfigKeyNames,
}

impl<'a> Section<'a> {
    fn error(&self, key: &str, expected: &str, found: &Value) -> ModelError {
        mismatch(self.file, &self.called(key), expected, found)
    }

    /// What the file calls `key` of this section.
    pub(super) fn called(&self, key: &str) -> String {
        self.names.of(&format!("{}{key}", self.prefix))
    }

    /// The value of `key`, where it is neither absent nor null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.values.get(key).filter(|v| !v.is_null())
    }

    /// The value as `read` understands it.
    pub(super) fn opt<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        self.get(key).map(|v| read(v).ok_or_else(|| self.error(key, expected, v))).transpose()
    }

    pub(super) fn opt_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        self.opt(key, U32, as_u32)
    }

    pub(super) fn opt_f64(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.opt(key, "a number", Value::as_f64)
    }

    /// A finite number above zero.
    pub(super) fn opt_positive(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.opt(key, "a number above 0", |v| v.as_f64().filter(|&x| x > 0.0 && x.is_finite()))
    }

    pub(super) fn opt_bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        self.opt(key, "true or false", Value::as_bool)
    }

    pub(super) fn opt_str(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        self.opt(key, "a string", Value::as_str)
    }

    pub(super) fn required<T>(&self, key: &str, expected: &str, value: Option<T>) -> Result<T, ModelError> {
        value.ok_or_else(|| self.error(key, expected, &Value::Null))
    }
}

const U32: &str = "an integer from 0 to 4294967295";

/// An integer, also when written as `4096.0`.
pub(super) fn as_u32(v: &Value) -> Option<u32> {
    match v.as_u64() {
        Some(n) => u32::try_from(n).ok(),
        None => {
            let x = v.as_f64()?;
            (x.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&x)).then_some(x as u32)
        }
    }
}

/// A list of finite numbers above zero.
pub(super) fn as_positive_list(v: &Value) -> Option<Vec<f64>> {
    v.as_array()?.iter().map(|x| x.as_f64().filter(|&x| x > 0.0 && x.is_finite())).collect()
}

fn as_u32_list(v: &Value) -> Option<Vec<u32>> {
    v.as_array()?.iter().map(as_u32).collect()
}

/// All accessors fail with [`ModelError::Config`], which names file, key, what is expected and what was found.
impl RawConfig {
    pub(super) fn top(&self) -> Section<'_> {
        Section { file: &self.file, prefix: "", values: &self.values, names: &self.names }
    }

    /// Whether `key` has a value other than null.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The value of `key`, where it is neither absent nor null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.top().get(key)
    }

    /// An error about `key` for a value that has the right type, but that the model cannot have.
    pub fn invalid(&self, key: &str, expected: &str) -> ModelError {
        mismatch(&self.file, &self.called(key), expected, self.get(key).unwrap_or(&Value::Null))
    }

    /// An unsigned integer.
    pub fn u32(&self, key: &str) -> Result<u32, ModelError> {
        self.top().required(key, U32, self.opt_u32(key)?)
    }

    /// An unsigned integer, if there.
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        self.top().opt_u32(key)
    }

    /// An unsigned integer, or `default` where absent.
    pub fn u32_or(&self, key: &str, default: u32) -> Result<u32, ModelError> {
        Ok(self.opt_u32(key)?.unwrap_or(default))
    }

    /// A number.
    pub fn f64(&self, key: &str) -> Result<f64, ModelError> {
        self.top().required(key, "a number", self.opt_f64(key)?)
    }

    /// A number, if there.
    pub fn opt_f64(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.top().opt_f64(key)
    }

    /// A number, or `default` where absent.
    pub fn f64_or(&self, key: &str, default: f64) -> Result<f64, ModelError> {
        Ok(self.opt_f64(key)?.unwrap_or(default))
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<bool, ModelError> {
        self.top().required(key, "true or false", self.opt_bool(key)?)
    }

    /// A boolean, if there.
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        self.top().opt_bool(key)
    }

    /// A boolean, or `default` where absent.
    pub fn bool_or(&self, key: &str, default: bool) -> Result<bool, ModelError> {
        Ok(self.opt_bool(key)?.unwrap_or(default))
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<&str, ModelError> {
        self.top().required(key, "a string", self.opt_str(key)?)
    }

    /// A string, if there.
    pub fn opt_str(&self, key: &str) -> Result<Option<&str>, ModelError> {
        self.top().opt_str(key)
    }

    /// A list of strings, or `None` where absent.
    ///
    /// # Errors
    /// [`ModelError::Config`] for a value of another type.
    pub fn opt_str_list(&self, key: &str) -> Result<Option<Vec<&str>>, ModelError> {
        let list = |v: &'_ Value| v.as_array().map(Vec::as_slice).unwrap_or_default().iter().all(Value::is_string);
        let found = self.top().opt(key, "a list of strings", |v| v.as_array().filter(|_| list(v)))?;
        Ok(found.map(|list| list.iter().filter_map(Value::as_str).collect()))
    }

    /// A list of unsigned integers, if there.
    pub fn opt_u32_list(&self, key: &str) -> Result<Option<Vec<u32>>, ModelError> {
        self.top().opt(key, "a list of unsigned integers", as_u32_list)
    }

    /// One unsigned integer for each of `layers` layers: a list of that length, or one number for all.
    pub fn u32_per_layer(&self, key: &str, layers: u32) -> Result<Vec<u32>, ModelError> {
        let expected = format!("an unsigned integer, or a list of {layers}");
        let read = |v: &Value| match as_u32(v) {
            Some(n) => Some(vec![n; layers as usize]),
            None => as_u32_list(v).filter(|list| list.len() == layers as usize),
        };
        let value = self.top().opt(key, &expected, read)?;
        self.top().required(key, &expected, value)
    }
}

/// One token id, a list of them within the budget, or nothing. Negative numbers are taken as files have them; lists may
/// have nulls.
pub(super) fn signed_ids(section: &Section<'_>, key: &str) -> Result<Vec<i64>, ModelError> {
    let one = |v: &Value| {
        as_u32(v).map(i64::from).or_else(|| v.as_f64().filter(|x| *x < 0.0 && x.fract() == 0.0).map(|x| x as i64))
    };
    let read = |v: &Value| match (one(v), v.as_array()) {
        (Some(id), _) => Some(vec![id]),
        (None, Some(list)) if list.len() <= crate::limits::EOS_IDS => {
            list.iter().filter(|v| !v.is_null()).map(one).collect()
        }
        _ => None,
    };
    Ok(section.opt(key, "a token id or a list of at most 1024", read)?.unwrap_or_default())
}
