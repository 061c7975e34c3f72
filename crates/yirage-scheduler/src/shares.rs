//! What each key was served, so that the keys of one priority take turns.
//!
//! It deliberately knows no sequences: a key is served tokens, and has so many requests.

use std::collections::BTreeMap;

/// A key's account, while it has requests.
#[derive(Clone, Debug)]
struct FairShareAccount {
    /// Tokens computed for it, counted from what others had when it came.
    served: u64,
    requests: usize,
}

/// The accounts of all keys that have requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    accounts: BTreeMap<u64, FairShareAccount>,
}

impl Shares {
    /// A request of `key` came. A key that had none begins where the least served one is: what it did not ask for earlier
    /// it is not owed.
    pub(super) fn enter(&mut self, key: u64) {
        if let Some(account) = self.accounts.get_mut(&key) {
            account.requests += 1;
            return;
        }
        let least = self.accounts.values().map(|account| account.served).min();
        self.accounts.insert(key, FairShareAccount { served: least.unwrap_or_default(), requests: 1 });
    }

    /// A request of `key` is over.
    pub(super) fn leave(&mut self, key: u64) {
        if let Some(account) = self.accounts.get_mut(&key) {
            account.requests -= 1;
            if account.requests == 0 {
                self.accounts.remove(&key);
            }
        }
    }

    /// So many tokens are computed for `key`.
    pub(super) fn charge(&mut self, key: u64, tokens: usize) {
        if let Some(account) = self.accounts.get_mut(&key) {
            account.served += tokens as u64;
        }
    }

    /// Tokens computed for `key`; none for one without requests.
    pub(super) fn served(&self, key: u64) -> Option<u64> {
        self.accounts.get(&key).map(|account| account.served)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_owed_nothing_for_the_time_before_it_came() {
        let mut shares = Shares::default();
        shares.enter(1);
        shares.charge(1, 100);
        shares.enter(2);
        shares.charge(2, 30);
        shares.enter(3);
        assert_eq!([1, 2, 3].map(|key| shares.served(key)), [Some(100), Some(130), Some(100)]);
        shares.enter(1);
        shares.leave(1);
        assert_eq!(shares.served(1), Some(100), "it still has a request");
        shares.leave(1);
        assert_eq!(shares.served(1), None);
        shares.charge(1, 5);
        assert_eq!(shares.served(1), None);
    }
}
