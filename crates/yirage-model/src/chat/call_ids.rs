//! Ids of calls: made up where clients leave them out, and nine letters and digits where a template wants them so, as those of
//! Mistral's models.
//!
//! The same id is the same nine letters in every request, so that beginnings of prompts stay equal. Ids that are missing
//! are made up: a tool's answer without one is that of the first call that has none yet. This module knows no template.

use std::collections::VecDeque;

use serde_json::Value as Json;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH: usize = 9;

/// Gives calls and what answers them ids where there are none; where `all` is said, all are nine letters.
pub(super) fn give_call_ids(messages: &mut [Json], all: bool) {
    let kept = |id: &str| if all { short(id) } else { id.to_owned() };
    let (mut made, mut unanswered) = (0_usize, VecDeque::new());
    for message in messages.iter_mut().filter_map(Json::as_object_mut) {
        for call in message.get_mut("tool_calls").and_then(Json::as_array_mut).into_iter().flatten() {
            let Some(call) = call.as_object_mut() else { continue };
            let id = call.get("id").and_then(Json::as_str).map(kept).unwrap_or_else(|| {
                made += 1;
                short(&format!("call {made}"))
            });
            unanswered.push_back(id.clone());
            call.insert("id".to_owned(), id.into());
        }
        if message.get("role").is_some_and(|role| role == "tool") {
            let id = message.get("tool_call_id").and_then(Json::as_str).map(kept);
            unanswered.retain(|open| Some(open) != id.as_ref());
            if let Some(id) = id.or_else(|| unanswered.pop_front()) {
                message.insert("tool_call_id".to_owned(), id.into());
            }
        }
    }
}

/// Nine letters for an id: itself where it is that already, else of its hash (FNV-1a).
fn short(id: &str) -> String {
    if id.len() == LENGTH && id.bytes().all(|letter| letter.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    let letter = |_| {
        let letter = LETTERS[(hash % 62) as usize];
        hash /= 62;
        char::from(letter)
    };
    (0..LENGTH).map(letter).collect()
}
