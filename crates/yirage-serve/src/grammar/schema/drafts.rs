//! Drafts of JSON Schema: which keywords a schema's own draft has.
//!
//! A keyword of a later draft still narrows what is written, as whoever wrote it meant; a validator of the draft ignores it and
//! takes that. Turned round it would widen: what is not a `const` is nothing for draft 4, which has no `const`. There it is
//! refused.

use serde_json::Value;

/// A draft, the older ones first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum SchemaDraft {
    Three,
    Four,
    Six,
    Seven,
    Of2019,
    Of2020,
}

/// The words of `$schema` that name a draft.
const NAMES: [(&str, SchemaDraft); 6] = [
    ("draft-03", SchemaDraft::Three),
    ("draft-04", SchemaDraft::Four),
    ("draft-06", SchemaDraft::Six),
    ("draft-07", SchemaDraft::Seven),
    ("2019-09", SchemaDraft::Of2019),
    ("2020-12", SchemaDraft::Of2020),
];

impl SchemaDraft {
    /// The draft that a schema names in `$schema`.
    pub(super) fn named(schema: &Value) -> Option<SchemaDraft> {
        let named = schema.get("$schema").and_then(Value::as_str)?;
        NAMES.iter().find(|(name, _)| named.contains(name)).map(|(_, draft)| *draft)
    }

    /// The draft of a whole document; the newest one where it names none.
    pub(super) fn of(schema: &Value) -> SchemaDraft {
        SchemaDraft::named(schema).unwrap_or(SchemaDraft::Of2020)
    }

    /// Whether a reference is all of its schema, so that what stands beside it says nothing.
    pub(super) fn hides(self) -> bool {
        self <= SchemaDraft::Seven
    }

    /// Whether the draft has a keyword that asks for something, with this value.
    pub(super) fn has(self, keyword: &str, value: &Value) -> bool {
        let since = match keyword {
            "allOf" | "anyOf" | "oneOf" | "not" | "multipleOf" | "minProperties" | "maxProperties" => SchemaDraft::Four,
            "const" | "contains" | "propertyNames" => SchemaDraft::Six,
            // SchemaDraft 4 has a truth value there, which belongs to the other bound.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_number() => SchemaDraft::Six,
            "if" | "then" | "else" => SchemaDraft::Seven,
            "minContains"
            | "maxContains"
            | "dependentRequired"
            | "dependentSchemas"
            | "unevaluatedItems"
            | "unevaluatedProperties" => SchemaDraft::Of2019,
            "prefixItems" | "$dynamicRef" => SchemaDraft::Of2020,
            _ => SchemaDraft::Three,
        };
        self >= since
    }

    /// Why a keyword that the draft has not cannot be enforced here.
    pub(super) fn lacks(self, keyword: &str) -> String {
        let name = NAMES.iter().find(|(_, draft)| *draft == self).map_or("", |(name, _)| *name);
        let instead = if keyword == "const" { "write `enum` with one value, or " } else { "" };
        format!(
            "`{keyword}` is no keyword of {name}, which `$schema` names, so that validators ignore it here, where `not` or \
             `oneOf` turns it round; {instead}name a draft that has it in `$schema`"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_draft_is_what_a_schema_names() {
        for (named, draft) in [
            ("http://json-schema.org/draft-04/schema#", SchemaDraft::Four),
            ("https://json-schema.org/draft-07/schema", SchemaDraft::Seven),
            ("https://json-schema.org/draft/2019-09/schema", SchemaDraft::Of2019),
            ("http://json-schema.org/schema#", SchemaDraft::Of2020),
            ("", SchemaDraft::Of2020),
        ] {
            assert_eq!(SchemaDraft::of(&json!({"$schema": named})), draft, "{named}");
        }
        assert_eq!(
            (SchemaDraft::of(&json!({})), SchemaDraft::of(&json!(true))),
            (SchemaDraft::Of2020, SchemaDraft::Of2020)
        );
    }

    #[test]
    fn a_keyword_is_of_its_draft_and_all_later_ones() {
        for (keyword, value, since) in [
            ("enum", json!([]), SchemaDraft::Three),
            ("oneOf", json!([]), SchemaDraft::Four),
            ("exclusiveMinimum", json!(true), SchemaDraft::Three),
            ("exclusiveMinimum", json!(1), SchemaDraft::Six),
            ("const", json!(1), SchemaDraft::Six),
            ("if", json!({}), SchemaDraft::Seven),
            ("minContains", json!(0), SchemaDraft::Of2019),
            ("prefixItems", json!([]), SchemaDraft::Of2020),
        ] {
            for (_, draft) in NAMES {
                assert_eq!(draft.has(keyword, &value), draft >= since, "{keyword} {draft:?}");
            }
        }
    }
}
