//! Bounds, counts and constants as numbers that the library keeps exactly.
//!
//! llguidance holds bounds as doubles and writes integers by the digits of 64 bits: at the ends of that range it overflows
//! (bounds near -2^63 call `rx_int_range` without end), and doubles beyond 2^53 stand for other numbers. So bounds of integers
//! are rounded inwards to doubles within 64 bits, those of other numbers to 10^15, and constants that a double does not hold are
//! refused.

use serde_json::{Map, Number, Value};

/// The largest integer that is both a double and one of 64 bits with room for its negative.
const MOST: i128 = (1 << 63) - 1024;

/// The largest bound of numbers that are no integers: the library takes their integer parts as 64 bits.
const MOST_NUMBER: f64 = 1e15;

/// The largest factor of a multiple; the library computes with 32 bits.
const MOST_FACTOR: u64 = u32::MAX as u64;

/// A number as the integer that it is.
pub(super) fn integer(number: &Number) -> Option<i128> {
    let text = number.to_string();
    if let Ok(exact) = text.parse::<i128>() {
        return Some(exact);
    }
    // 3.0 and 1e2 are integers as well.
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.strip_prefix('+').unwrap_or(exponent).parse::<i32>().ok()?),
        None => (text.as_str(), 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let zeros = exponent.checked_sub(i32::try_from(part.len()).ok()?)?;
    let digits = format!("{whole}{part}").parse::<i128>().ok()?;
    match zeros {
        _ if digits == 0 => Some(0),
        0..=38 => digits.checked_mul(10_i128.checked_pow(zeros.unsigned_abs())?),
        _ => {
            // 120e-1 is one too, 125e-1 is none.
            let by = 10_i128.checked_pow(u32::try_from(zeros.checked_neg()?).ok()?)?;
            (digits % by == 0).then_some(digits / by)
        }
    }
}

/// A count: `maxItems: 2.0` is two.
///
/// # Errors
/// What is no count.
pub(super) fn count(keyword: &str, value: &Value) -> Result<u64, String> {
    let whole = value.as_number().and_then(integer);
    let whole = whole.ok_or_else(|| format!("`{keyword}` has to be a whole number that is not negative"))?;
    match u64::try_from(whole) {
        Ok(count) => Ok(count),
        Err(_) if whole > 0 => Ok(u64::MAX),
        Err(_) => Err(format!("`{keyword}` has to be a whole number that is not negative")),
    }
}

/// A value that an answer is to be: its numbers in the shape in which the library writes them.
///
/// # Errors
/// A number that the library would write as another one.
pub(super) fn constant(value: &Value) -> Result<Value, String> {
    Ok(match value {
        Value::Number(number) => Value::Number(exact(number)?),
        Value::Array(list) => Value::Array(list.iter().map(constant).collect::<Result<_, _>>()?),
        Value::Object(map) => Value::Object(
            map.iter().map(|(key, one)| Ok((key.clone(), constant(one)?))).collect::<Result<_, String>>()?,
        ),
        other => other.clone(),
    })
}

fn exact(number: &Number) -> Result<Number, String> {
    let wrong = || format!("{number} has more digits than a double holds, and would be written as another number");
    match integer(number) {
        Some(whole) if whole.unsigned_abs() <= 1 << 53 => i64::try_from(whole).map(Number::from).map_err(|_| wrong()),
        // A double of these is written with all of its digits.
        Some(whole) if whole as f64 as i128 == whole && whole.unsigned_abs() < 1 << 100 => Ok(number.clone()),
        Some(_) => Err(wrong()),
        None => {
            let double = number.as_f64().filter(|double| double.is_finite() && double.abs() < MOST_NUMBER);
            let double = double.filter(|double| *double != 0.0).ok_or_else(wrong)?;
            Number::from_f64(double).ok_or_else(wrong)
        }
    }
}

/// A bound as it is written: how far, and whether the number itself is left out.
struct NumberBound {
    at: Number,
    exclusive: bool,
}

/// The bounds and the factor of a schema, as the library takes them exactly. `only_integers` where its type is such.
///
/// # Errors
/// What is no number; bounds between which the library could not write all.
pub(super) fn put(from: &Map<String, Value>, to: &mut Map<String, Value>, only_integers: bool) -> Result<(), String> {
    let least = bounds(from, "minimum", "exclusiveMinimum")?;
    let most = bounds(from, "maximum", "exclusiveMaximum")?;
    let factor = match from.get("multipleOf") {
        None => None,
        Some(Value::Number(number)) => Some(number),
        Some(_) => return Err("`multipleOf` has to be a number".into()),
    };
    let whole = factor.map(self::factor).transpose()?.flatten();
    if only_integers {
        let low = least.iter().map(|bound| bound.inner(true)).max();
        let high = most.iter().map(|bound| bound.inner(false)).min();
        let (low, high) = within(low, high, whole)?;
        low.map(|low| to.insert("minimum".into(), low.into()));
        high.map(|high| to.insert("maximum".into(), high.into()));
    } else {
        for (bounds, inclusive, exclusive, low) in
            [(least, "minimum", "exclusiveMinimum", true), (most, "maximum", "exclusiveMaximum", false)]
        {
            for bound in bounds {
                let (at, cut) = bound.double(low)?;
                let key = if bound.exclusive && !cut { exclusive } else { inclusive };
                let at = Number::from_f64(at).ok_or_else(|| format!("`{key}` is no number that can be held"))?;
                to.insert(key.into(), Value::Number(at));
            }
        }
    }
    match (factor, whole) {
        // All integers are.
        (Some(_), Some(1)) if only_integers => {}
        (Some(number), _) => drop(to.insert("multipleOf".into(), Value::Number(number.clone()))),
        _ => {}
    }
    Ok(())
}

fn bounds(from: &Map<String, Value>, inclusive: &str, exclusive: &str) -> Result<Vec<NumberBound>, String> {
    let mut found = Vec::new();
    let mut exclusively = false;
    match from.get(exclusive) {
        None => {}
        // Draft 4 says so of the other bound.
        Some(Value::Bool(is)) => exclusively = *is,
        Some(Value::Number(at)) => found.push(NumberBound { at: at.clone(), exclusive: true }),
        Some(_) => return Err(format!("`{exclusive}` has to be a number")),
    }
    match from.get(inclusive) {
        None => {}
        Some(Value::Number(at)) => found.push(NumberBound { at: at.clone(), exclusive: exclusively }),
        Some(_) => return Err(format!("`{inclusive}` has to be a number")),
    }
    Ok(found)
}

impl NumberBound {
    /// The integer that is the last one within, from below where this bounds from below.
    fn inner(&self, low: bool) -> i128 {
        let step = if low { 1 } else { -1 };
        if let Some(whole) = integer(&self.at) {
            return whole.saturating_add(if self.exclusive { step } else { 0 });
        }
        let double = self.nearest();
        // Digits that a double rounds away: one further in is within for sure.
        let (whole, far) = (double.trunc() as i128, double.abs() > 1e15);
        let inner = match (low, double == double.trunc()) {
            (true, false) => double.ceil() as i128,
            (false, false) => double.floor() as i128,
            // The text is no integer, and its double is one.
            (_, true) => whole.saturating_add(step),
        };
        if far { inner.saturating_add(step) } else { inner }
    }

    /// The double that is nearest.
    fn nearest(&self) -> f64 {
        let beyond = if self.at.to_string().starts_with('-') { f64::MIN } else { f64::MAX };
        self.at.as_f64().filter(|double| double.is_finite()).unwrap_or(beyond)
    }

    /// The double that bounds as this does, and whether it is further in.
    fn double(&self, low: bool) -> Result<(f64, bool), String> {
        let at = self.nearest();
        let sign = if low { -1.0 } else { 1.0 };
        match at * sign {
            far if far > MOST_NUMBER => Ok((MOST_NUMBER * sign, true)),
            far if far < -MOST_NUMBER => Err(format!("numbers beyond {} cannot be bounded", self.at)),
            // Beside zero the library would count the zeros one by one.
            near if near != 0.0 && near.abs() < 1e-30 => Ok((if near > 0.0 { 0.0 } else { -1e-30 * sign }, true)),
            _ => Ok((at, false)),
        }
    }
}

/// Bounds of integers as doubles that are the same numbers.
fn within(low: Option<i128>, high: Option<i128>, factor: Option<u64>) -> Result<(Option<i64>, Option<i64>), String> {
    let (mut low, mut high) = (low, high);
    if let Some(factor) = factor.map(i128::from).filter(|factor| *factor > 0) {
        low = low.map(|low| low.checked_add((factor - low.rem_euclid(factor)) % factor).unwrap_or(low));
        high = high.map(|high| high.checked_sub(high.rem_euclid(factor)).unwrap_or(high));
    }
    // Where one end is open the library needs room for one digit more.
    const OPEN: i128 = 99_999_999_999_999_999;
    let ends_too = |at: i128| if at.abs() > OPEN { Some(at) } else { None };
    if high.is_none() && low.is_some_and(|low| ends_too(low).is_some()) {
        high = Some(MOST);
    }
    if low.is_none() && high.is_some_and(|high| ends_too(high).is_some()) {
        low = Some(-MOST);
    }
    if low.is_some_and(|low| low > MOST) || high.is_some_and(|high| high < -MOST) {
        return Err("no integer of 64 bits is within its bounds".into());
    }
    let low = low.map(|low| inwards(low.max(-MOST), 1));
    let high = high.map(|high| inwards(high.min(MOST), -1));
    let narrow = |at: Option<i128>| at.and_then(|at| i64::try_from(at).ok());
    Ok((narrow(low), narrow(high)))
}

/// The next integer that a double holds exactly, of one within 64 bits.
fn inwards(mut at: i128, step: i128) -> i128 {
    // They are 1024 apart at most there.
    while at as f64 as i128 != at {
        at += step;
    }
    at
}

/// A factor as an integer, none where it is another number.
fn factor(number: &Number) -> Result<Option<u64>, String> {
    let wrong = |why: &str| Err(format!("`multipleOf` {number} {why}"));
    match integer(number) {
        Some(0) => wrong("has to be more than 0"),
        Some(whole) => match u64::try_from(whole) {
            Ok(whole) if whole <= MOST_FACTOR => Ok(Some(whole)),
            Ok(_) => wrong("is more than 32 bits"),
            Err(_) => wrong("has to be more than 0"),
        },
        None => {
            let double = number.as_f64().unwrap_or(f64::NAN);
            let digits = (0..=6).find(|digits| (double * 10f64.powi(*digits)).fract() == 0.0);
            match digits {
                Some(digits) if double > 0.0 && double * 10f64.powi(digits) <= f64::from(u32::MAX) => Ok(None),
                _ => wrong("has to be more than 0 and have six digits behind its point at most"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn one_number_in_many_spellings_is_one() {
        for (text, whole) in [
            ("1", Some(1)),
            ("1.0", Some(1)),
            ("1e0", Some(1)),
            ("10E-1", Some(1)),
            ("1e2", Some(100)),
            ("-1.50e1", Some(-15)),
            ("0.0", Some(0)),
            ("-0", Some(0)),
            ("0e999999999999", None),
            ("1.5", None),
            ("18446744073709551615", Some(u64::MAX.into())),
            ("1e400", None),
            ("1e-400", None),
        ] {
            assert_eq!(integer(&number(text)), whole, "{text}");
        }
    }

    #[test]
    fn bounds_of_integers_are_rounded_inwards() {
        for (schema, least, most) in [
            (r#"{"minimum": -9223372036854775808, "maximum": 9223372036854775807}"#, Some(-MOST), Some(MOST)),
            (r#"{"minimum": 0, "maximum": 18446744073709551615}"#, Some(0), Some(MOST)),
            (r#"{"minimum": 0.5, "maximum": 7.5}"#, Some(1), Some(7)),
            (r#"{"exclusiveMinimum": 1.0, "exclusiveMaximum": 1e1}"#, Some(2), Some(9)),
            (r#"{"minimum": 1, "exclusiveMinimum": true, "maximum": 3, "exclusiveMaximum": true}"#, Some(2), Some(2)),
            (r#"{"minimum": 1, "exclusiveMinimum": 5}"#, Some(6), None),
            (r#"{"minimum": 9007199254740993}"#, Some(9_007_199_254_740_994), None),
            (r#"{"minimum": 1000000000000000000}"#, Some(1_000_000_000_000_000_000), Some(MOST)),
            (r#"{"maximum": -1e30, "minimum": -1e31}"#, None, None),
            (r#"{"minimum": 5, "multipleOf": 7}"#, Some(7), None),
            (r#"{"minimum": -1e400}"#, Some(-MOST), Some(MOST)),
        ] {
            let from: Map<String, Value> = serde_json::from_str(schema).unwrap();
            let mut to = Map::new();
            if put(&from, &mut to, true).is_err() {
                assert!(schema.contains("e31"), "{schema}");
                continue;
            }
            let of = |key: &str| to.get(key).and_then(Value::as_i64).map(i128::from);
            assert_eq!((of("minimum"), of("maximum")), (least, most), "{schema}: {to:?}");
        }
    }

    #[test]
    fn what_no_double_holds_is_no_constant() {
        assert_eq!(constant(&json!([1.0, {"a": 0.5}])).unwrap(), json!([1, {"a": 0.5}]));
        assert!(constant(&Value::Number(number("9007199254740993"))).is_err());
        assert!(constant(&Value::Number(number("100000000000000000000"))).is_ok());
        assert!(constant(&Value::Number(number("1e400"))).is_err());
    }
}
