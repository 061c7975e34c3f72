//! `yirage logits`: what a model computes for given ids.

use super::score::score;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::logit_row::{argmax, logsumexp};
use crate::options::Layers;
use crate::session::Session;
use serde::Serialize;
use std::time::Instant;
use yirage_engine::scheduler::LogitsWanted;

#[derive(Serialize)]
struct LogitsOutput {
    positions: Vec<Position>,
}

#[derive(Serialize)]
struct Position {
    pos: usize,
    argmax: usize,
    logsumexp: f64,
    /// Ids with their logits, the largest first, smaller ids first among equals.
    top: Vec<(usize, f32)>,
}

impl Position {
    fn new(pos: usize, row: &[f32], top: usize) -> Position {
        let mut order: Vec<usize> = (0..row.len()).collect();
        let descending = |a: &usize, b: &usize| row[*b].total_cmp(&row[*a]).then(a.cmp(b));
        let top = top.min(row.len());
        if top > 0 && top < row.len() {
            order.select_nth_unstable_by(top - 1, descending);
        }
        order.truncate(top);
        order.sort_unstable_by(descending);
        let top = order.into_iter().map(|id| (id, row[id])).collect();
        Position { pos, argmax: argmax(row), logsumexp: logsumexp(row), top }
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, model or device.
pub(crate) fn run(layers: &Layers, console: &Console, started: Instant) -> Result<(), CliFailure> {
    let ids =
        layers.ids("ids")?.ok_or_else(|| CliFailure::Usage("--ids is missing; give token ids: --ids 1,2,3".into()))?;
    let top = layers.number("top", "a whole number", |_: &usize| true)?.unwrap_or(10);
    let all_tokens = layers.switch("all")?;
    let wanted = if layers.choice("positions")? == "all" { LogitsWanted::All } else { LogitsWanted::Last };
    let top = if all_tokens { usize::MAX } else { top };
    let session = Session::load(layers, console, started)?;
    let mut positions = Vec::new();
    let notes = score(&session.model, &ids, wanted, &mut |pos, row| positions.push(Position::new(pos, row, top)))?;
    notes.iter().for_each(|note| console.note(note));
    show(console, &session, positions)?;
    session.settle(console)
}

fn show(console: &Console, session: &Session, positions: Vec<Position>) -> Result<(), CliFailure> {
    if console.json {
        return console.value(&LogitsOutput { positions });
    }
    for p in positions {
        console.line(&format!("position {}: argmax {}, logsumexp {:.5}", p.pos, p.argmax, p.logsumexp))?;
        for (id, logit) in p.top {
            let piece = session.model.texts().and_then(|t| t.tokenizer.piece(id as u32)).unwrap_or_default();
            console.line(&format!("{id:>8} {logit:>10.5} {piece:?}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Position;

    #[test]
    fn top_is_sorted_with_ties_by_id() {
        let row = [1.0, 5.0, 3.0, 5.0, -2.0];
        assert_eq!(Position::new(7, &row, 3).top, [(1, 5.0), (3, 5.0), (2, 3.0)]);
        assert_eq!(Position::new(0, &row, 99).top.len(), 5);
        assert_eq!(Position::new(0, &row, 0).top, []);
    }
}
