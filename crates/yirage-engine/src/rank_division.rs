//! Whether ranks can share a model.

use thiserror::Error;
use yirage_ir::Format;
use yirage_model::arch::{self, BuildOptions, KvCacheSpec};
use yirage_model::{Checkpoint, ModelError, RawConfig};

/// KV heads that so many ranks cannot share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "expected a number of ranks that divides the KV heads of the model ({kv_heads}), got {ranks}; use {}",
    self.divisors()
)]
pub struct UnevenHeads {
    /// The model's, of the first kind of cache that does not divide.
    pub kv_heads: u32,
    /// Ranks asked for.
    pub ranks: u32,
}

impl UnevenHeads {
    /// The numbers of ranks that can share the heads, in words: `1, 2 or 4`.
    pub fn divisors(&self) -> String {
        let all: Vec<String> =
            (1..=self.kv_heads).filter(|n| self.kv_heads.is_multiple_of(*n)).map(|n| n.to_string()).collect();
        match all.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, first)) => format!("{} or {last}", first.join(", ")),
            None => "1".into(),
        }
    }
}

/// How ranks share a model's caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankDivision {
    /// Kinds of caches that the model has.
    pub caches: usize,
    /// Those of them that have no heads to divide, or one that all query heads read: each rank has all of it.
    pub whole: usize,
}

impl RankDivision {
    /// How so many ranks share the model of a checkpoint.
    ///
    /// # Errors
    /// What is wrong with the files; the second value's error where the heads do not divide.
    pub fn of(checkpoint: &Checkpoint, ranks: u32) -> Result<Result<RankDivision, UnevenHeads>, ModelError> {
        let build = BuildOptions { kv: Format::F32, kv_block: 32, context: 1, hidden: false, embedded: false };
        let model = arch::build(checkpoint, &RawConfig::load(checkpoint)?, build)?;
        Ok(RankDivision::of_caches(&model.groups, ranks))
    }

    fn of_caches(caches: &[KvCacheSpec], ranks: u32) -> Result<RankDivision, UnevenHeads> {
        let mut division = RankDivision { caches: caches.len(), whole: 0 };
        for cache in caches {
            match *cache {
                KvCacheSpec::Paged { kv_heads: 1, .. } => division.whole += 1,
                KvCacheSpec::Paged { kv_heads, .. } if !kv_heads.is_multiple_of(ranks.max(1)) => {
                    return Err(UnevenHeads { kv_heads, ranks });
                }
                KvCacheSpec::Paged { .. } => {}
                KvCacheSpec::Latent { .. } | KvCacheSpec::Recurrent => division.whole += 1,
            }
        }
        Ok(division)
    }

    /// What whoever asked for ranks should know.
    pub fn notice(&self) -> Option<String> {
        let RankDivision { caches, whole } = self;
        (*whole > 0).then(|| {
            format!(
                "{whole} of the model's {caches} kinds of caches have no heads to divide: each rank has all of them"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{RankDivision, UnevenHeads};
    use yirage_model::arch::KvCacheSpec;

    #[test]
    fn heads_that_do_not_divide_are_refused_with_the_numbers_that_do() {
        let of = |kv_heads| KvCacheSpec::Paged { kv_heads, k_width: 8, v_width: 8, window: None };
        let caches = [of(12), KvCacheSpec::Recurrent];
        assert_eq!(RankDivision::of_caches(&caches, 6), Ok(RankDivision { caches: 2, whole: 1 }));
        let refused = RankDivision::of_caches(&caches, 5).unwrap_err();
        assert_eq!(refused, UnevenHeads { kv_heads: 12, ranks: 5 });
        assert!(refused.to_string().ends_with("(12), got 5; use 1, 2, 3, 4, 6 or 12"), "{refused}");
        let odd = RankDivision::of_caches(&[of(7)], 2).unwrap_err().to_string();
        assert!(odd.ends_with("(7), got 2; use 1 or 7"), "{odd}");
        assert_eq!(RankDivision::of_caches(&[of(1), of(2)], 2), Ok(RankDivision { caches: 2, whole: 1 }));
    }
}
