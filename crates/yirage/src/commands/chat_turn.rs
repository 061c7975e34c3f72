//! What is said in a conversation: its texts and pictures, as templates see them and as files keep them.
//!
//! This module opens no picture.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use yirage_session::PreparedPicture;

/// A picture that was read, and where.
#[derive(Clone)]
pub(super) struct ShownPicture {
    /// Its file.
    pub(super) path: PathBuf,
    /// What the model reads of it.
    pub(super) picture: Arc<PreparedPicture>,
}

/// What one side said at once.
pub(super) struct ChatTurn {
    /// Pictures in front of the text.
    pub(super) pictures: Vec<ShownPicture>,
    /// The text.
    pub(super) text: String,
}

impl ChatTurn {
    /// A message's content for templates.
    pub(super) fn content(&self) -> Value {
        self.parts(|_| json!({"type": "image"}))
    }

    /// A message's content for a file, which has the pictures by their paths.
    pub(super) fn kept(&self) -> Value {
        self.parts(|shown| json!({"type": "image", "path": shown.path.to_string_lossy()}))
    }

    fn parts(&self, picture: impl Fn(&ShownPicture) -> Value) -> Value {
        if self.pictures.is_empty() {
            return self.text.as_str().into();
        }
        let text = json!({"type": "text", "text": self.text});
        self.pictures.iter().map(picture).chain([text]).collect()
    }
}

/// The system message of a saved conversation, and its turns: files of pictures, and a text.
pub(super) type SavedConversation = (Option<String>, Vec<(Vec<PathBuf>, String)>);

/// Understands a saved conversation.
///
/// # Errors
/// What is wrong with it.
pub(super) fn conversation(value: &Value) -> Result<SavedConversation, String> {
    let messages = value["messages"].as_array().ok_or("there is no list called messages")?;
    let mut system = None;
    let mut turns = Vec::new();
    for (i, m) in messages.iter().enumerate() {
        let (role, (pictures, content)) = (m["role"].as_str().unwrap_or_default(), parts(i, &m["content"])?);
        let expected = if turns.len() % 2 == 0 { "user" } else { "assistant" };
        if !pictures.is_empty() && (role, expected) != ("user", "user") {
            return Err(format!("message {i} is of {role:?} and has pictures, which users show"));
        }
        match role {
            "system" if i == 0 => system = Some(content),
            _ if role == expected => turns.push((pictures, content)),
            _ => return Err(format!("message {i} is of {role:?} where {expected:?} speaks")),
        }
    }
    if turns.len() % 2 == 1 { Err("the last message has no answer".into()) } else { Ok((system, turns)) }
}

/// The files of a message's pictures, and the text behind them.
fn parts(message: usize, content: &Value) -> Result<(Vec<PathBuf>, String), String> {
    if let Some(text) = content.as_str() {
        return Ok((Vec::new(), text.to_owned()));
    }
    let wrong = || format!("message {message} has no text called content, nor a list of pictures with a text behind");
    let (last, pictures) = content.as_array().and_then(|parts| parts.split_last()).ok_or_else(wrong)?;
    let text = last["text"].as_str().filter(|_| last["type"] == "text").ok_or_else(wrong)?;
    let file = |part: &Value| part["path"].as_str().filter(|_| part["type"] == "image").map(PathBuf::from);
    let files = pictures.iter().map(file).collect::<Option<_>>().ok_or_else(wrong)?;
    Ok((files, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_session::message;

    #[test]
    fn saved_conversations_are_checked() {
        let of = |list: &[(&str, &str)]| {
            let messages: Vec<Value> = list.iter().map(|(role, text)| message(role, text)).collect();
            conversation(&json!({"messages": messages}))
        };
        let good = of(&[("system", "s"), ("user", "u"), ("assistant", "a")]);
        assert_eq!(good, Ok((Some("s".into()), vec![(vec![], "u".into()), (vec![], "a".into())])));
        assert_eq!(of(&[]), Ok((None, vec![])));
        assert!(of(&[("user", "u")]).unwrap_err().contains("no answer"));
        assert!(of(&[("user", "u"), ("user", "v")]).unwrap_err().contains("message 1"));
        assert!(of(&[("user", "u"), ("assistant", "a"), ("system", "s")]).is_err());
        assert!(conversation(&json!({"messages": [{"role": "user"}]})).is_err());
        assert!(conversation(&json!(7)).is_err());
    }

    #[test]
    fn saved_pictures_are_files_in_front_of_what_a_user_says() {
        let of = |role: &str, content: Value| {
            let other = if role == "user" { "assistant" } else { "user" };
            let mut messages = vec![json!({"role": role, "content": content}), message(other, "b")];
            messages.sort_by_key(|m| m["role"] != "user");
            conversation(&json!({"messages": messages}))
        };
        let (image, text) = (json!({"type": "image", "path": "a b.png"}), json!({"type": "text", "text": "t"}));
        let good = of("user", json!([image, image, text])).unwrap().1;
        assert_eq!(good[0], (vec!["a b.png".into(), "a b.png".into()], "t".into()));
        assert!(of("assistant", json!([image, text])).unwrap_err().contains("which users show"));
        for bad in
            [json!([]), json!([image]), json!([text, image]), json!([{"type": "image"}, text]), json!([text, text])]
        {
            assert!(of("user", bad).unwrap_err().contains("message 0 has no text"));
        }
    }
}
