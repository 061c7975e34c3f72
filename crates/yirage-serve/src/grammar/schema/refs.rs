//! Where a schema's references lead: within the document, by JSON pointers, anchors and the ids of schemas.
//!
//! Nothing is ever fetched. An id makes the schemas below it a document of their own, to which pointers within it are
//! relative, as JSON Schema has it.

use super::drafts::SchemaDraft;
use super::words::says_nothing;
use super::{NAMED, VALUES};
use serde_json::Value;
use std::collections::HashMap;

/// The schemas of a document by what they may be called.
pub(super) struct Index<'a> {
    root: &'a Value,
    /// By address, without a `#` where there is nothing behind it.
    named: HashMap<String, &'a Value>,
    /// The address that references in a schema are relative to, by where the schema is in memory.
    bases: HashMap<*const Value, String>,
    /// Names of dynamic anchors, with how many have them.
    dynamic: HashMap<String, usize>,
    recursive: bool,
}

impl<'a> Index<'a> {
    pub(super) fn new(root: &'a Value, draft: SchemaDraft) -> Index<'a> {
        let named = HashMap::from([(String::new(), root)]);
        let mut index = Index { root, named, bases: HashMap::new(), dynamic: HashMap::new(), recursive: false };
        index.add(root, "", draft);
        index
    }

    fn add(&mut self, schema: &'a Value, base: &str, around: SchemaDraft) {
        let map = match schema {
            Value::Object(map) => map,
            Value::Array(list) => return list.iter().for_each(|one| self.add(one, base, around)),
            _ => return,
        };
        let draft = SchemaDraft::named(schema).unwrap_or(around);
        // Where a reference is all of its schema, what stands beside it names nothing.
        let hidden = draft.hides() && map.contains_key("$ref");
        let text = |key: &str| map.get(key).filter(|_| !hidden).and_then(Value::as_str);
        // Draft 4 has `id`; a plain name behind `#` is an anchor there.
        let id = text("$id").or_else(|| text("id")).unwrap_or_default();
        let (address, fragment) = id.split_once('#').unwrap_or((id, ""));
        let own = if address.is_empty() { base.to_owned() } else { joined(base, address) };
        if own != base {
            self.named.entry(own.clone()).or_insert(schema);
        }
        self.bases.insert(std::ptr::from_ref(schema), own.clone());
        for anchor in [Some(fragment), text("$anchor"), text("$dynamicAnchor")].into_iter().flatten() {
            if !anchor.is_empty() && !anchor.starts_with('/') {
                self.named.entry(format!("{own}#{anchor}")).or_insert(schema);
            }
        }
        if let Some(name) = text("$dynamicAnchor") {
            *self.dynamic.entry(name.to_owned()).or_default() += 1;
        }
        self.recursive |= map.get("$recursiveAnchor") == Some(&Value::Bool(true));
        for (key, value) in map {
            match value {
                _ if VALUES.contains(&key.as_str()) => {}
                Value::Object(named) if NAMED.contains(&key.as_str()) => {
                    named.values().for_each(|one| self.add(one, &own, draft));
                }
                // Below what is no keyword there are no schemas until something refers to them.
                value if !says_nothing(key) => self.add(value, &own, draft),
                _ => {}
            }
        }
    }

    /// The address that references in a schema are relative to; that of the schema around it where it is not known.
    pub(super) fn base<'b>(&'b self, schema: &Value, around: &'b str) -> &'b str {
        self.bases.get(&std::ptr::from_ref(schema)).map_or(around, String::as_str)
    }

    /// Whether what a dynamic reference leads to depends on how it is reached.
    pub(super) fn depends(&self, keyword: &str, reference: &str) -> bool {
        match keyword {
            "$recursiveRef" => self.recursive && self.named.len() > 1,
            "$dynamicRef" => {
                let name = reference.rsplit('#').next().unwrap_or_default();
                self.dynamic.get(name).is_some_and(|count| *count > 1)
            }
            _ => false,
        }
    }

    /// What a reference leads to; none where there is nothing.
    pub(super) fn find(&self, base: &str, reference: &str) -> Option<&'a Value> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let address = if address.is_empty() { base.to_owned() } else { joined(base, address) };
        let fragment = decoded(fragment)?;
        if fragment.is_empty() {
            return self.named.get(&address).copied();
        }
        if !fragment.starts_with('/') {
            return self.named.get(&format!("{address}#{fragment}")).copied();
        }
        // `#/` is the whole for many who write it, and a schema with an empty name for the standard.
        let within = |document: &'a Value| match document.pointer(&fragment) {
            None if fragment == "/" => Some(document),
            found => found,
        };
        // Calls put a tool's schema into another: pointers may be those of the whole.
        self.named.get(&address).copied().and_then(within).or_else(|| within(self.root))
    }
}

/// The address of a reference, by the rules of RFC 3986 that matter here.
fn joined(base: &str, reference: &str) -> String {
    let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    });
    if has_scheme {
        return reference.to_owned();
    }
    let authority = base.find("://").map_or(0, |at| at + 3);
    let path = base.get(authority..).and_then(|rest| rest.find('/')).map_or(base.len(), |at| authority + at);
    let kept = if reference.starts_with('/') { path } else { base.rfind('/').map_or(0, |at| (at + 1).max(authority)) };
    let kept = base.get(..kept).unwrap_or_default();
    let slash = if authority > 0 && kept.len() <= authority { "/" } else { "" };
    let mut rest = reference;
    let mut kept = kept.to_owned();
    while let Some(further) = rest.strip_prefix("./").or_else(|| rest.strip_prefix("../")) {
        if rest.starts_with("..") {
            let parent = kept.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
            kept.truncate(parent.max(path.min(kept.len())));
        }
        rest = further;
    }
    format!("{kept}{slash}{rest}")
}

/// Text without percent signs as escapes; none where it is no UTF-8 then.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| behind.get(..2)).flatten();
        let escaped =
            escaped.and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|h| u8::from_str_radix(h, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_lead_where_the_standard_says() {
        let root = json!({
            "$defs": {
                "a b": {"title": "space"}, "a/b": {"title": "slash"}, "a~b": {"title": "tilde"}, "ä%": {"title": "percent"},
                "named": {"$anchor": "n", "title": "anchor"},
                "own": {"$id": "http://x.example/dir/own.json", "title": "own", "$defs": {"in": {"title": "inner"}}},
                "far": {"$id": "urn:u:1", "title": "urn"},
            },
            "enum": [{"$anchor": "no"}], "list": [{"title": "listed"}],
        });
        let index = Index::new(&root, SchemaDraft::Of2020);
        for (base, reference, title) in [
            ("", "#/$defs/a%20b", "space"),
            ("", "#/$defs/a b", "space"),
            ("", "#/$defs/a~1b", "slash"),
            ("", "#/$defs/a%7E1b", "slash"),
            ("", "#/%24defs/a~0b", "tilde"),
            ("", "#/$defs/%C3%A4%25", "percent"),
            ("", "#n", "anchor"),
            ("", "#/list/0", "listed"),
            ("", "http://x.example/dir/own.json", "own"),
            ("http://x.example/dir/other.json", "own.json#", "own"),
            ("http://x.example/dir/sub/other.json", "../own.json", "own"),
            ("http://x.example/z", "/dir/own.json", "own"),
            ("http://x.example/dir/own.json", "#/$defs/in", "inner"),
            ("", "urn:u:1", "urn"),
        ] {
            let found = index.find(base, reference);
            assert_eq!(found.and_then(|one| one["title"].as_str()), Some(title), "{base} {reference}");
        }
        for reference in ["#/$defs/none", "#no", "http://x.example/none", "#/list/7", "#/%ff"] {
            assert_eq!(index.find("", reference), None, "{reference}");
        }
        assert_eq!(index.find("", "#"), Some(&root));
    }

    #[test]
    fn beside_a_reference_of_an_old_draft_is_no_id() {
        let root = json!({"$defs": {"a": {"$id": "http://x.example/b/", "$ref": "c"}}});
        for (draft, base) in [(SchemaDraft::Seven, ""), (SchemaDraft::Of2019, "http://x.example/b/")] {
            assert_eq!(Index::new(&root, draft).base(&root["$defs"]["a"], ""), base);
        }
        // A tool's schema stands within another, and says for itself whose keywords it has.
        let around = json!({"anyOf": [{"$schema": "http://json-schema.org/draft-07/schema#", "$defs": root["$defs"]}]});
        let index = Index::new(&around, SchemaDraft::Of2020);
        assert_eq!(index.base(&around["anyOf"][0]["$defs"]["a"], ""), "");
    }
}
