//! Who may speak after whom in a template, and messages put together where it takes them no other way.
//!
//! Agents send several messages of the system, and several of the user in a row; they say something of their own behind
//! what tools answered. Many templates refuse that, or show the first alone. No text is lost here: what may not stand by
//! itself stands behind an empty line in the message before it, or in front of the user's first one.
//!
//! This module does not know templates: what one takes it is told.

use serde_json::{Value as Json, json};

/// What a template does not take, so that messages are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnRules {
    /// The system has no message of its own: it becomes part of the user's first one.
    pub no_system: bool,
    /// The system has one message at most.
    pub one_system: bool,
    /// The system speaks first or never: what it says later is the user's.
    pub system_first: bool,
    /// The user has one message at a time.
    pub one_user: bool,
    /// The user says nothing behind what a tool answered: it becomes part of that.
    pub no_user_behind_tool: bool,
    /// An assistant that calls has a thought or says something, not both: what it says is behind the thought.
    pub thought_or_text: bool,
}

impl TurnRules {
    /// Messages put together as the template takes them. Thoughts are under `thoughts`.
    pub(super) fn joined(self, messages: &[Json], thoughts: &[&str]) -> Vec<Json> {
        if self == Self::default() {
            return messages.to_vec();
        }
        let mut out: Vec<Json> = Vec::new();
        for message in messages {
            let mut message = message.clone();
            if is_system(&message) {
                if out.iter().all(is_system) {
                    if let Some(last) = out.last_mut().filter(|_| self.one_system || self.no_system) {
                        append(last, &message);
                        continue;
                    }
                } else if self.system_first || self.no_system {
                    message["role"] = "user".into();
                }
            }
            let behind = out.last().map(role).unwrap_or_default();
            let joins = behind == "user" && self.one_user || behind == "tool" && self.no_user_behind_tool;
            match out.last_mut().filter(|_| joins && role(&message) == "user") {
                Some(last) => append(last, &message),
                None => out.push(message),
            }
        }
        if self.no_system {
            system_to_user(&mut out);
        }
        if self.thought_or_text {
            out.iter_mut().for_each(|message| text_to_thought(message, thoughts));
        }
        out
    }
}

fn role(message: &Json) -> &str {
    message["role"].as_str().unwrap_or_default()
}

fn is_system(message: &Json) -> bool {
    matches!(role(message), "system" | "developer")
}

/// Puts what a message says behind another.
fn append(to: &mut Json, from: &Json) {
    to["content"] = together(&to["content"], &from["content"]);
}

fn together(first: &Json, second: &Json) -> Json {
    match (first, second) {
        (Json::Null, other) | (other, Json::Null) => other.clone(),
        (Json::String(first), Json::String(second)) if first.is_empty() || second.is_empty() => {
            format!("{first}{second}").into()
        }
        (Json::String(first), Json::String(second)) => format!("{first}\n\n{second}").into(),
        _ => parts(first).into_iter().chain(parts(second)).collect(),
    }
}

fn parts(content: &Json) -> Vec<Json> {
    match content {
        Json::Array(parts) => parts.clone(),
        other => vec![json!({"type": "text", "text": other.as_str().unwrap_or_default()})],
    }
}

fn system_to_user(messages: &mut Vec<Json>) {
    if !messages.first().is_some_and(is_system) {
        return;
    }
    let mut system = messages.remove(0);
    match messages.iter_mut().find(|message| role(message) == "user") {
        Some(user) => user["content"] = together(&system["content"], &user["content"]),
        None => {
            system["role"] = "user".into();
            messages.insert(0, system);
        }
    }
}

/// Puts what an assistant says beside its calls behind what it thought.
fn text_to_thought(message: &mut Json, thoughts: &[&str]) {
    if role(message) != "assistant" || message["tool_calls"].as_array().is_none_or(Vec::is_empty) {
        return;
    }
    let said = match &message["content"] {
        Json::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    let thought = |name: &&&str| message[**name].as_str().is_some_and(|thought| !thought.is_empty());
    if let Some(name) = thoughts.iter().find(thought).filter(|_| !said.is_empty()) {
        message[*name] = together(&message[*name], &said.into());
        message["content"] = Json::Null;
    }
}
