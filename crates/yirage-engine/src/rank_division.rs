//! Whether ranks can share a model.

use thiserror::Error;
use yirage_ir::op::ExpertLinear;
use yirage_ir::{Graph, NodeKind, Op};
use yirage_model::arch::{self, BuildOptions, KvCacheSpec};
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_plan::ExpertDivision;

/// Why so many ranks cannot share a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum IndivisibleModel {
    /// KV heads, of the first kind of cache that does not divide.
    #[error(
        "expected a number of ranks that divides the KV heads of the model ({kv_heads}), got {ranks}; use {}",
        divisors(*kv_heads)
    )]
    Heads {
        /// The model's.
        kv_heads: u32,
        /// Ranks asked for.
        ranks: u32,
    },
    /// Experts, of which each rank was to have its own.
    #[error(
        "expected a number of ranks that divides the experts of the model ({experts}), got {ranks}; use {}",
        divisors(*experts)
    )]
    Experts {
        /// The model's, in the first layer whose do not divide.
        experts: u32,
        /// Ranks asked for.
        ranks: u32,
    },
    /// Layers, of which each stage of a pipeline has one at least.
    #[error("expected as many stages as the model has layers at most ({layers}), got {stages}; use 1 to {layers}")]
    Layers {
        /// The model's.
        layers: u32,
        /// Stages asked for.
        stages: u32,
    },
    /// There are none.
    #[error("expected a model with experts, got one without; each rank has its part of every layer anyway")]
    NoExperts,
}

/// The numbers that divide another, in words: `1, 2 or 4`.
fn divisors(of: u32) -> String {
    let all: Vec<String> = (1..=of).filter(|n| of.is_multiple_of(*n)).map(|n| n.to_string()).collect();
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => "1".into(),
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
    /// How so many ranks share the model of a checkpoint, and its experts so.
    ///
    /// # Errors
    /// What is wrong with the files; the second value's error where heads or experts do not divide.
    pub fn of(
        checkpoint: &Checkpoint,
        ranks: u32,
        experts: ExpertDivision,
    ) -> Result<Result<RankDivision, IndivisibleModel>, ModelError> {
        let build = BuildOptions::plain(1);
        let model = arch::build(checkpoint, &RawConfig::load(checkpoint)?, build)?;
        let divided = match experts {
            ExpertDivision::Rows => Ok(()),
            ExpertDivision::Whole => check_experts(&experts_of(&model.graph), ranks),
        };
        Ok(divided.and_then(|()| RankDivision::of_caches(&model.groups, ranks)))
    }

    /// Whether the model of a checkpoint can be cut into so many pipeline stages.
    ///
    /// # Errors
    /// What is wrong with the files, and a model that cannot be cut at all; the second value's error for more stages than layers.
    pub fn check_stages(checkpoint: &Checkpoint, stages: u32) -> Result<Result<(), IndivisibleModel>, ModelError> {
        let model = arch::build(checkpoint, &RawConfig::load(checkpoint)?, BuildOptions::plain(1))?;
        let layers = model.stages(1)?.iter().map(|stage| stage.layers.end).max().unwrap_or(0);
        if stages > layers {
            return Ok(Err(IndivisibleModel::Layers { layers, stages }));
        }
        model.stages(stages).map(|_| Ok(()))
    }

    fn of_caches(caches: &[KvCacheSpec], ranks: u32) -> Result<RankDivision, IndivisibleModel> {
        let mut division = RankDivision { caches: caches.len(), whole: 0 };
        for cache in caches {
            match *cache {
                KvCacheSpec::Paged { kv_heads: 1, .. } => division.whole += 1,
                KvCacheSpec::Paged { kv_heads, .. } if !kv_heads.is_multiple_of(ranks.max(1)) => {
                    return Err(IndivisibleModel::Heads { kv_heads, ranks });
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

/// The numbers of experts that the matmuls of a graph choose from.
fn experts_of(graph: &Graph) -> Vec<u32> {
    let of_node = |node: &yirage_ir::Node| match node.kind {
        NodeKind::Op(Op::ExpertLinear(ExpertLinear { .. })) => graph.ty(node.ins[1]).shape[0].as_const(),
        _ => None,
    };
    graph.nodes.iter().filter_map(of_node).map(|experts| experts as u32).collect()
}

fn check_experts(experts: &[u32], ranks: u32) -> Result<(), IndivisibleModel> {
    if experts.is_empty() {
        return Err(IndivisibleModel::NoExperts);
    }
    match experts.iter().find(|experts| !experts.is_multiple_of(ranks.max(1))) {
        Some(&experts) => Err(IndivisibleModel::Experts { experts, ranks }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{IndivisibleModel, RankDivision, check_experts};
    use yirage_model::Checkpoint;
    use yirage_model::arch::KvCacheSpec;

    #[test]
    fn heads_that_do_not_divide_are_refused_with_the_numbers_that_do() {
        let of = |kv_heads| KvCacheSpec::Paged { kv_heads, k_width: 8, v_width: 8, window: None };
        let caches = [of(12), KvCacheSpec::Recurrent];
        assert_eq!(RankDivision::of_caches(&caches, 6), Ok(RankDivision { caches: 2, whole: 1 }));
        let refused = RankDivision::of_caches(&caches, 5).unwrap_err();
        assert_eq!(refused, IndivisibleModel::Heads { kv_heads: 12, ranks: 5 });
        assert!(refused.to_string().ends_with("(12), got 5; use 1, 2, 3, 4, 6 or 12"), "{refused}");
        let odd = RankDivision::of_caches(&[of(7)], 2).unwrap_err().to_string();
        assert!(odd.ends_with("(7), got 2; use 1 or 7"), "{odd}");
        assert_eq!(RankDivision::of_caches(&[of(1), of(2)], 2), Ok(RankDivision { caches: 2, whole: 1 }));
    }

    #[test]
    fn layers_are_counted() {
        let checkpoint = Checkpoint::open(yirage_testkit::tiny::model("llama")).unwrap();
        assert_eq!(RankDivision::check_stages(&checkpoint, 3).unwrap(), Ok(()));
        let refused = RankDivision::check_stages(&checkpoint, 4).unwrap().unwrap_err();
        assert_eq!(refused, IndivisibleModel::Layers { layers: 3, stages: 4 });
        assert!(refused.to_string().ends_with("layers at most (3), got 4; use 1 to 3"), "{refused}");
    }

    #[test]
    fn experts_that_do_not_divide_are_refused_with_the_numbers_that_do() {
        assert_eq!(check_experts(&[8, 8], 4), Ok(()));
        let refused = check_experts(&[8, 6], 4).unwrap_err();
        assert_eq!(refused, IndivisibleModel::Experts { experts: 6, ranks: 4 });
        assert!(refused.to_string().ends_with("experts of the model (6), got 4; use 1, 2, 3 or 6"), "{refused}");
        assert_eq!(check_experts(&[], 2), Err(IndivisibleModel::NoExperts));
    }
}
