//! The router's figures in Prometheus's text form.

use crate::choice::ChoiceReason;
use crate::replica::{Replica, ReplicaState};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the router has done, all replicas together.
#[derive(Default)]
pub(crate) struct RouteFigures {
    affinity: [AtomicU64; 3],
    pub(crate) retried: AtomicU64,
    /// Requests that no replica took.
    pub(crate) refused: AtomicU64,
}

/// The reasons of choices with their words.
const REASONS: [(ChoiceReason, &str); 3] =
    [(ChoiceReason::Affinity, "hit"), (ChoiceReason::AffinityPassed, "passed"), (ChoiceReason::Load, "none")];

impl RouteFigures {
    pub(crate) fn chosen(&self, reason: ChoiceReason) {
        for ((known, _), count) in REASONS.iter().zip(&self.affinity) {
            if *known == reason {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// All of it, and what is known of the replicas.
    pub(crate) fn text(&self, replicas: &[Arc<Replica>], known_blocks: usize) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, lines: Vec<(String, u64)>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP yirage_route_{name} {help}\n# TYPE yirage_route_{name} {kind}");
            for (labels, value) in lines {
                let _ = writeln!(text, "yirage_route_{name}{labels} {value}");
            }
        };
        let all = |of: &dyn Fn(&Replica) -> u64| -> Vec<(String, u64)> {
            let label = |replica: &Replica| format!("{{replica=\"{}\"}}", replica.address.authority());
            replicas.iter().map(|replica| (label(replica), of(replica))).collect()
        };
        let one = |count: &AtomicU64| vec![(String::new(), count.load(Ordering::Relaxed))];
        let is_up = |replica: &Replica| u64::from(replica.state() == ReplicaState::Ready);
        family("replica_up", "gauge", "Whether a replica takes requests.", all(&is_up));
        let open = |replica: &Replica| replica.figures.open.load(Ordering::Relaxed) as u64;
        family("requests_open", "gauge", "Requests that a replica answers now.", all(&open));
        let given = |replica: &Replica| replica.figures.given.load(Ordering::Relaxed);
        family("requests_given_total", "counter", "Requests that a replica was given.", all(&given));
        let mut answered = Vec::new();
        for replica in replicas {
            for (class, count) in replica.figures.answered.iter().enumerate().skip(1) {
                let labels = format!("{{replica=\"{}\",code=\"{class}xx\"}}", replica.address.authority());
                answered.push((labels, count.load(Ordering::Relaxed)));
            }
        }
        family("answers_total", "counter", "Answers that have begun, by the class of their status.", answered);
        let failed = |replica: &Replica| replica.figures.failed.load(Ordering::Relaxed);
        family(
            "requests_failed_total",
            "counter",
            "Requests that a replica gave no word of an answer to.",
            all(&failed),
        );
        let broken = |replica: &Replica| replica.figures.broken.load(Ordering::Relaxed);
        family("answers_broken_total", "counter", "Answers that broke off.", all(&broken));
        let chosen = REASONS.iter().zip(&self.affinity);
        let chosen = chosen.map(|((_, word), n)| (format!("{{outcome=\"{word}\"}}"), n.load(Ordering::Relaxed)));
        let help =
            "Choices by the prompt's beginning: its replica, another since that had too much to do, or nobody has it.";
        family("affinity_total", "counter", help, chosen.collect());
        family("retries_total", "counter", "Requests given to another replica.", one(&self.retried));
        family("refused_total", "counter", "Requests that no replica took.", one(&self.refused));
        family(
            "known_blocks",
            "gauge",
            "Blocks of prompts whose replica is known.",
            vec![(String::new(), known_blocks as u64)],
        );
        text
    }
}
