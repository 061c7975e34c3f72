//! The weight plan: layout of every weight, decided once per model and target and shared by all buckets.

use crate::weight_layout::WeightLayout;
use std::collections::HashSet;
use std::fmt::Write;
use thiserror::Error;
use yirage_ir::hash::fnv128;
use yirage_ir::{Dim, Type};

/// How one weight is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeightEntry {
    /// The weight's name in the graph.
    pub name: String,
    /// Its type: stored format and logical shape.
    pub ty: Type,
    /// The layout in device memory: one of [`crate::Target::weight_layouts`].
    pub layout: String,
    /// Equal matrices that a two-dimensional weight is made of, one below the other (grouped products); else 1.
    pub groups: u32,
    /// The dimension along which the weight may be divided; where the target has several ranks, along which it is, one part
    /// after the other.
    pub shard_axis: Option<u32>,
}

/// Why a text is not a weight plan.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("weight plan, line {line}: {what}")]
pub struct WeightTextError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Layout, format and shard axis of every weight of a model on a target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WeightPlan {
    /// One entry a weight, in the order of the graph's inputs.
    pub entries: Vec<WeightEntry>,
}

impl WeightPlan {
    /// The entry called `name`.
    pub fn get(&self, name: &str) -> Option<&WeightEntry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// The text form: one line a weight.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for e in &self.entries {
            let axis = e.shard_axis.map_or("-".to_string(), |a| a.to_string());
            let _ = writeln!(out, "weight %{}: {} layout={} groups={} shard={axis}", e.name, e.ty, e.layout, e.groups);
        }
        out
    }

    /// The inverse of [`WeightPlan::print`].
    ///
    /// # Errors
    /// The first line that is no weight, or names one a second time.
    pub fn parse(text: &str) -> Result<WeightPlan, WeightTextError> {
        let mut plan = WeightPlan::default();
        let mut names = HashSet::new();
        for (i, line) in text.lines().enumerate() {
            let error = |what: String| WeightTextError { line: i + 1, what };
            let entry = WeightEntry::parse(line).map_err(error)?;
            if !names.insert(entry.name.clone()) {
                return Err(error(format!("the weight `{}` has a line already", entry.name)));
            }
            plan.entries.push(entry);
        }
        Ok(plan)
    }

    /// The key of anything cached for this plan.
    pub fn stable_hash(&self) -> u128 {
        fnv128(self.print().as_bytes())
    }
}

impl WeightEntry {
    /// Whether it is held in this layout.
    pub fn lies_in(&self, layout: WeightLayout) -> bool {
        self.layout == layout.name()
    }

    /// The weight as each of so many ranks holds it: its part along [`WeightEntry::shard_axis`], or all of it where there is
    /// none. No row is cut, and of a grouped product a rank has whole matrices; `None` where it does not divide so.
    pub fn part(&self, ranks: u32) -> Option<WeightEntry> {
        let mut part = WeightEntry { shard_axis: None, ..self.clone() };
        let Some(axis) = self.shard_axis else { return Some(part) };
        let divided = |n: u32| n.checked_rem(ranks).filter(|&rest| rest == 0).map(|_| n / ranks);
        let (_, rows) = part.ty.shape.split_last_mut()?;
        let Dim::Const(rows) = rows.get_mut(axis as usize)? else { return None };
        *rows = divided(*rows)?;
        if self.groups > 1 {
            part.groups = divided(self.groups)?;
        }
        Some(part)
    }

    /// Reads one line.
    pub(crate) fn parse(line: &str) -> Result<WeightEntry, String> {
        let form = "`weight %NAME: TYPE layout=NAME groups=N shard=AXIS`";
        let wanted = || format!("{form} wanted, `{line:.80}` found");
        let (name, rest) = line.strip_prefix("weight %").and_then(|l| l.split_once(": ")).ok_or_else(wanted)?;
        let (ty, rest) = rest.split_once(" layout=").ok_or_else(wanted)?;
        let (layout, rest) = rest.split_once(" groups=").ok_or_else(wanted)?;
        let (groups, shard) = rest.split_once(" shard=").ok_or_else(wanted)?;
        let word =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.@-".contains(c));
        if !word(name) || !word(layout) {
            return Err(format!(
                "the name `{name:.80}` or the layout `{layout:.80}` is no word of letters, digits, `_.@-`"
            ));
        }
        let ty = yirage_ir::text::parse_type(ty).map_err(|e| format!("type of `{name}`: {}", e.what))?;
        let groups: u32 = groups.parse().map_err(|_| format!("groups of `{name}`: `{groups:.40}` is no number"))?;
        let shard_axis = match shard {
            "-" => None,
            axis => {
                Some(axis.parse::<u32>().map_err(|_| format!("shard axis of `{name}`: `{axis:.40}` is no number"))?)
            }
        };
        let rank = ty.shape.len() as u32;
        if groups == 0 || shard_axis.is_some_and(|axis| axis >= rank) {
            return Err(format!("`{name}`: {groups} groups, shard axis {shard} of {rank} dimensions"));
        }
        Ok(WeightEntry { name: name.into(), ty, layout: layout.into(), groups, shard_axis })
    }
}
