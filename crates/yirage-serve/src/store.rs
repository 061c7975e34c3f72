//! Responses that are kept, in memory alone: so many at most, for so long at most, each for its own key.

use crate::limits::{MAX_STORED, STORED_BYTES, STORED_TIME};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// A response with the conversation that it ends.
#[derive(Debug)]
pub(crate) struct StoredResponse {
    pub(crate) response: Value,
    /// The conversation, the answer included and the instructions not; none where there is no answer.
    pub(crate) messages: Option<Vec<Value>>,
    /// What was sent, as items.
    pub(crate) input: Arc<Vec<Value>>,
    /// Ends what computes it, as long as it is computed.
    pub(crate) running: Option<Arc<Notify>>,
}

impl StoredResponse {
    fn bytes(&self) -> usize {
        let all = self.messages.iter().flatten().chain(self.input.iter());
        self.response.to_string().len() + all.map(|value| value.to_string().len()).sum::<usize>()
    }

    /// Nobody can ask for it any more.
    fn forgotten(&self) {
        self.running.iter().for_each(|running| running.notify_one());
    }
}

struct StoreEntry {
    id: String,
    owner: String,
    since: Instant,
    bytes: usize,
    stored: Arc<StoredResponse>,
}

/// The responses that are kept, the oldest first.
#[derive(Default)]
pub(crate) struct ResponseStore(Mutex<VecDeque<StoreEntry>>);

impl ResponseStore {
    /// The entries that are not too old.
    fn fresh(&self) -> MutexGuard<'_, VecDeque<StoreEntry>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while entries.front().is_some_and(|entry| entry.since.elapsed() > STORED_TIME) {
            if let Some(old) = entries.pop_front() {
                old.stored.forgotten();
            }
        }
        entries
    }

    /// Keeps a response of `owner`. The oldest ones make room.
    pub(crate) fn keep(&self, id: &str, owner: &str, kept: StoredResponse) {
        let bytes = kept.bytes();
        let mut entries = self.fresh();
        let entry = StoreEntry {
            id: id.to_owned(),
            owner: owner.to_owned(),
            since: Instant::now(),
            bytes,
            stored: Arc::new(kept),
        };
        entries.push_back(entry);
        evict_oldest(&mut entries);
    }

    /// Puts another response in the place of one; where that was forgotten nothing is kept.
    pub(crate) fn replace(&self, id: &str, owner: &str, kept: StoredResponse) {
        let bytes = kept.bytes();
        let mut entries = self.fresh();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id && entry.owner == owner) {
            (entry.stored, entry.bytes) = (Arc::new(kept), bytes);
        }
        evict_oldest(&mut entries);
    }

    /// The response of this id, where it is the owner's.
    pub(crate) fn get(&self, id: &str, owner: &str) -> Option<Arc<StoredResponse>> {
        let entries = self.fresh();
        let found = entries.iter().find(|entry| entry.id == id && entry.owner == owner);
        found.map(|entry| entry.stored.clone())
    }

    /// An item of one of the owner's responses, or of what they were answers to; the newest of its id.
    pub(crate) fn item(&self, id: &str, owner: &str) -> Option<Value> {
        let entries = self.fresh();
        entries.iter().rev().filter(|entry| entry.owner == owner).find_map(|entry| {
            let output = entry.stored.response["output"].as_array();
            let mut all = output.into_iter().flatten().chain(entry.stored.input.iter());
            all.find(|item| item["id"] == id).cloned()
        })
    }

    /// Forgets a response; false where there is none.
    pub(crate) fn delete(&self, id: &str, owner: &str) -> bool {
        let mut entries = self.fresh();
        let Some(at) = entries.iter().position(|entry| entry.id == id && entry.owner == owner) else { return false };
        entries.remove(at).iter().for_each(|entry| entry.stored.forgotten());
        true
    }
}

/// Forgets the oldest ones until all are within their limits.
fn evict_oldest(entries: &mut VecDeque<StoreEntry>) {
    let mut taken: usize = entries.iter().map(|entry| entry.bytes).sum();
    while entries.len() > MAX_STORED || taken > STORED_BYTES {
        let Some(oldest) = entries.pop_front() else { break };
        taken -= oldest.bytes;
        oldest.stored.forgotten();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn responses_are_their_owners_and_bounded() {
        let store = ResponseStore::default();
        let kept = |text: String| StoredResponse {
            response: json!(text),
            messages: Some(Vec::new()),
            input: Arc::default(),
            running: None,
        };
        store.keep("a", "ann", kept("x".into()));
        assert!(store.get("a", "ann").is_some() && store.get("a", "bob").is_none());
        assert!(!store.delete("a", "bob") && store.delete("a", "ann") && store.get("a", "ann").is_none());
        let mut with_items = kept("x".into());
        with_items.response = json!({"output": [{"id": "msg_1", "text": "out"}]});
        with_items.input = Arc::new(vec![json!({"id": "item_1", "text": "in"})]);
        store.keep("b", "ann", with_items);
        assert_eq!(store.item("msg_1", "ann").map(|item| item["text"].clone()), Some(json!("out")));
        assert_eq!(store.item("item_1", "ann").map(|item| item["text"].clone()), Some(json!("in")));
        assert!(store.item("msg_1", "bob").is_none() && store.item("msg_2", "ann").is_none());
        (0..=MAX_STORED).for_each(|i| store.keep(&i.to_string(), "ann", kept("x".into())));
        assert!(store.get("0", "ann").is_none() && store.get("1", "ann").is_some());
        store.keep("large", "ann", kept("x".repeat(STORED_BYTES - 2)));
        assert!(store.get("large", "ann").is_some() && store.get("5", "ann").is_none());
        store.keep("too large", "ann", kept("x".repeat(STORED_BYTES)));
        assert!(store.get("too large", "ann").is_none(), "nothing larger than all may be is kept");
    }
}
