//! Dates and times that every reader takes.
//!
//! llguidance writes all that the grammar of RFC 3339 has, and more: `t` and `z` in small letters, the year 0000, the 29th
//! of each February and a 60th second at any minute, which validators refuse. A schema that asks for such a format gets a
//! pattern beside it. What a schema means otherwise stays with the library.

use serde_json::{Map, Value, json};

const YEAR: &str = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})";
/// The rule of Gregory: divisible by 4, and by 400 where it is by 100.
const LEAP: &str = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
const TIME: &str = r"[0-9]{2}:[0-9]{2}:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})";

/// The formats that the library enforces. All others are annotations (2020-12, validation, 7.2.1), but for those of
/// [`other`].
pub(super) fn of_library(format: &str) -> bool {
    const KNOWN: [&str; 10] =
        ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];
    KNOWN.contains(&format)
}

/// A pattern for a format of the standard that the library does not know; it may have fewer texts than the format.
pub(super) fn other(format: &str) -> Option<&'static str> {
    Some(match format {
        "json-pointer" => "^(/([^/~]|~[01])*)*$",
        "relative-json-pointer" => "^(0|[1-9]{1,8}0?)(#|(/([^/~]|~[01])*)*)$",
        "regex" => r"^([A-Za-z0-9 _,;:=<>@%&'/-]|\\[dDwWsS.])*$",
        "idn-email" => r"^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]+(\.[A-Za-z]{2,8})+$",
        "idn-hostname" => "^[a-z0-9]{1,32}(\\.[a-z][a-z0-9]{0,31}){0,4}$",
        "iri" => "^[a-z][a-z0-9+.-]{0,15}:(//[a-zA-Z0-9.-]{1,64})?(/[a-zA-Z0-9._~-]{0,64})*$",
        "uri-reference" | "iri-reference" => "^(/?[a-zA-Z0-9._~-]+(/[a-zA-Z0-9._~-]*)*)?(#[a-zA-Z0-9._~-]*)?$",
        "uri-template" => r"^([a-zA-Z0-9._~/-]|\{[a-z][a-z0-9]{0,15}\})*$",
        _ => return None,
    })
}

/// Puts a pattern beside a schema's own date or time.
pub(super) fn narrow(schema: &mut Map<String, Value>) {
    if let Some(pattern) = schema.get("format").and_then(Value::as_str).and_then(pattern) {
        put(schema, pattern);
    }
}

fn pattern(format: &str) -> Option<String> {
    let date = format!("(?:{YEAR}-(?:(?:0[13-9]|1[0-2])-[0-9]{{2}}|02-(?:[01][0-9]|2[0-8]))|{LEAP}-02-29)");
    match format {
        "date" => Some(format!("^{date}$")),
        "time" => Some(format!("^{TIME}$")),
        "date-time" => Some(format!("^{date}T{TIME}$")),
        _ => None,
    }
}

fn put(map: &mut Map<String, Value>, pattern: String) {
    match (map.contains_key("pattern"), map.get_mut("allOf")) {
        (false, _) => drop(map.insert("pattern".into(), pattern.into())),
        (true, Some(Value::Array(all))) => all.push(json!({"pattern": pattern})),
        (true, None) => drop(map.insert("allOf".into(), json!([{"pattern": pattern}]))),
        // The library says what is wrong with it.
        (true, Some(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::each;
    use super::*;

    #[test]
    fn patterns_stand_beside_formats_and_nowhere_else() {
        let time = pattern("time").unwrap();
        let mut schema = json!({
            "type": "string", "format": "time",
            "items": [{"format": "time", "pattern": "a"}, {"format": "time", "pattern": "a", "allOf": [true]}],
            "properties": {"format": {"format": "email"}, "enum": {"format": "time"}},
            "enum": [{"format": "time"}],
        });
        each(&mut schema, &mut narrow);
        let wanted = json!({
            "type": "string", "format": "time", "pattern": time,
            "items": [
                {"format": "time", "pattern": "a", "allOf": [{"pattern": time}]},
                {"format": "time", "pattern": "a", "allOf": [true, {"pattern": time}]},
            ],
            "properties": {"format": {"format": "email"}, "enum": {"format": "time", "pattern": time}},
            "enum": [{"format": "time"}],
        });
        assert_eq!(schema, wanted);
    }
}
