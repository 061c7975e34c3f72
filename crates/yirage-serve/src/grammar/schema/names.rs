//! Names of properties by patterns.
//!
//! llguidance takes the names that are listed out of those that a pattern gives. Where a pattern has no others, it lets an
//! answer begin a property that cannot have a name. So patterns of few names become those names, and what is said of all names
//! becomes what is said of additional ones. Of two patterns that one name may fit the library takes neither; they become one.

use llguidance::derivre::{RegexAst, RegexBuilder};
use llguidance::regex_to_lark;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde_json::{Map, Value, json};

/// Names that are listed instead of their pattern.
const MAX_NAMES: usize = 64;

/// Work for one look at a pattern, as the library counts it.
const FUEL: u64 = 10_000;

/// All names of a pattern; none where there are many.
pub(super) fn all(pattern: &str) -> Option<Vec<String>> {
    let hir = regex_syntax::parse(pattern).ok()?;
    // A name is looked for within the text: only between both ends it is the whole.
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let [first, inner @ .., last] = parts.as_slice() else { return None };
    let ends = matches!(first.kind(), HirKind::Look(Look::Start)) && matches!(last.kind(), HirKind::Look(Look::End));
    if !ends {
        return None;
    }
    let mut names = inner.iter().try_fold(vec![String::new()], |names, part| product(&names, &texts(part)?))?;
    names.sort();
    names.dedup();
    Some(names)
}

/// The texts of a part; none where they are many.
fn texts(hir: &Hir) -> Option<Vec<String>> {
    let found = match hir.kind() {
        HirKind::Empty => vec![String::new()],
        HirKind::Literal(literal) => vec![String::from_utf8(literal.0.to_vec()).ok()?],
        HirKind::Class(Class::Unicode(class)) => {
            let chars = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            chars.take(MAX_NAMES + 1).map(String::from).collect()
        }
        HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => return None,
        HirKind::Repetition(repetition) => {
            let one = texts(&repetition.sub)?;
            let most = repetition.max.filter(|most| *most <= 64)?;
            let mut of = vec![String::new()];
            let mut all = Vec::new();
            for times in 0..=most {
                if times >= repetition.min {
                    all.extend(of.iter().cloned());
                }
                of = if times < most { product(&of, &one)? } else { Vec::new() };
            }
            all
        }
        HirKind::Capture(capture) => texts(&capture.sub)?,
        HirKind::Concat(parts) => {
            parts.iter().try_fold(vec![String::new()], |texts, part| product(&texts, &self::texts(part)?))?
        }
        HirKind::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(texts(part)?);
            }
            all
        }
    };
    (found.len() <= MAX_NAMES).then_some(found)
}

fn product(left: &[String], right: &[String]) -> Option<Vec<String>> {
    if left.len() * right.len() > MAX_NAMES {
        return None;
    }
    Some(left.iter().flat_map(|l| right.iter().map(move |r| format!("{l}{r}"))).collect())
}

/// Patterns of which each two are looked at together.
const MAX_PATTERNS: usize = 32;

/// Patterns of which no name fits two. Those of which one may are one pattern, whose names have to hold what all of them say.
pub(super) fn apart(patterns: Map<String, Value>) -> Map<String, Value> {
    if patterns.len() > MAX_PATTERNS {
        return patterns;
    }
    let mut apart: Vec<(String, Value)> = Vec::with_capacity(patterns.len());
    for (mut pattern, mut one) in patterns {
        while let Some(at) = apart.iter().position(|(other, _)| meet(other, &pattern)) {
            let (other, of) = apart.remove(at);
            pattern = format!("(?:{other})|(?:{pattern})");
            one = json!({"allOf": [of, one]});
        }
        apart.push((pattern, one));
    }
    apart.into_iter().collect()
}

/// Whether a name may fit both patterns; not where one cannot be read, which the library says.
fn meet(a: &str, b: &str) -> bool {
    let mut builder = RegexBuilder::new();
    let mut read = |pattern: &str| builder.mk_regex_for_serach(&regex_to_lark(pattern, "dw"));
    let (Ok(a), Ok(b)) = (read(a), read(b)) else { return false };
    let Ok(both) = builder.mk(&RegexAst::And(vec![RegexAst::ExprRef(a), RegexAst::ExprRef(b)])) else { return false };
    builder.to_regex_limited(both, FUEL).map_or(true, |mut regex| !regex.always_empty())
}

/// Whether a pattern is sure to fit each name.
pub(super) fn fits_all(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    let open = inner.len() < pattern.len();
    // Between both ends a dot is no end of a line, which names seldom have.
    let anything = [".*", "(.*)", "(?:.*)", "[\\s\\S]*", "(?s:.*)", "(?s:.)*", "(?s).*"].contains(&inner);
    anything || (inner.is_empty() && !(open && pattern == "^$"))
}

/// Whether a name has what a pattern looks for.
///
/// # Errors
/// A pattern that the library does not know.
pub(super) fn fits(pattern: &str, name: &str) -> Result<bool, String> {
    let mut builder = RegexBuilder::new();
    let wrong = |why: String| format!("the pattern {pattern:?} cannot be enforced: {why}");
    let regex = builder.mk_regex_for_serach(&regex_to_lark(pattern, "dw")).map_err(|e| wrong(e.to_string()))?;
    let mut regex = builder.to_regex_limited(regex, FUEL).map_err(|e| wrong(e.to_string()))?;
    Ok(regex.is_match(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_names_are_listed() {
        for (pattern, names) in [
            ("^score$", Some(vec!["score"])),
            ("^(a|b)$", Some(vec!["a", "b"])),
            ("^[a-c]x?$", Some(vec!["a", "ax", "b", "bx", "c", "cx"])),
            ("^(ab){1,2}$", Some(vec!["ab", "abab"])),
            ("^a.b$", None),
            ("score", None),
            ("^a|b$", None),
            ("^a+$", None),
            ("^[0-9]{3}$", None),
            ("(", None),
        ] {
            let names = names.map(|names| names.into_iter().map(str::to_owned).collect());
            assert_eq!(all(pattern), names, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_meet_become_one() {
        let of = |patterns: Value| Value::Object(apart(patterns.as_object().unwrap().clone()));
        let distinct = json!({"^a": 1, "^b": 2, "(": 3});
        assert_eq!(of(distinct.clone()), distinct);
        assert_eq!(of(json!({"^a": 1, "^b": 2, "c$": 3})).as_object().unwrap().len(), 1);
        assert_eq!(of(json!({"^a": 1, "^ab": 2, "^c": 3})), json!({"(?:^a)|(?:^ab)": {"allOf": [1, 2]}, "^c": 3}));
    }

    #[test]
    fn patterns_fit_names() {
        for pattern in ["", "^", "$", ".*", "^.*$", "^.*", "(.*)"] {
            assert!(fits_all(pattern), "{pattern}");
        }
        assert!(!fits_all("^$") && !fits_all("a") && !fits_all("^.+$"));
        assert!(fits("b", "abc").unwrap() && !fits("^b", "abc").unwrap());
        assert!(fits("(?=a)", "a").is_err());
    }
}
