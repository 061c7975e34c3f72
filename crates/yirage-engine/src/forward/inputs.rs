//! The slots of a call.

use super::kv_reservation::KvReservation;
use super::row::ForwardRow;
use crate::error::EngineError;
use crate::scheduler::LogitsWanted;
use yirage_hal::{HalError, Record};
use yirage_ir::Dims;
use yirage_model::rope::Dynamic;
use yirage_plancache::{CacheError, HostArray};

/// Token rows whose logits are wanted, counted through all rows.
fn wanted_rows(rows: &[ForwardRow<'_>], wanted: LogitsWanted) -> Vec<i32> {
    let (mut out, mut first) = (Vec::new(), 0);
    for row in rows {
        let end = first + row.tokens.len() as i32;
        let from = if wanted == LogitsWanted::All { first } else { end - 1 };
        out.extend(from..end);
        first = end;
    }
    out
}

/// The slots of a call, in the order of the graph. The rows were checked.
pub(super) fn inputs(
    room: &KvReservation,
    rows: &[ForwardRow<'_>],
    wanted: LogitsWanted,
    rope: Option<&Dynamic>,
) -> Result<Vec<HostArray>, EngineError> {
    let wanted = wanted_rows(rows, wanted);
    let dims = Dims {
        tokens: rows.iter().map(|row| row.tokens.len()).sum::<usize>() as u32,
        seqs: rows.len() as u32,
        blocks: room.blocks,
        rows: wanted.len() as u32,
    };
    let interface = room.graph.interface().fixed(&dims);
    let rotations = rope.map(|rope| rotations(rope, rows));
    let mut arrays = Vec::with_capacity(interface.step_inputs.len());
    for (name, ty) in interface.step_inputs {
        let record = match (name.as_str(), &rotations) {
            ("ids", _) => each(rows, |row| row.tokens.iter().map(|&id| id as i32).collect()),
            ("positions", _) => each(rows, |row| row.positions().collect()),
            ("seqs", _) => {
                let of = |(at, row): (usize, &ForwardRow<'_>)| std::iter::repeat_n(at as i32, row.tokens.len());
                Record::of(&rows.iter().enumerate().flat_map(of).collect::<Vec<i32>>())
            }
            ("rows", _) => Record::of(&wanted),
            ("rope.cos", Some((cosines, _))) => Record::of(cosines),
            ("rope.sin", Some((_, sines))) => Record::of(sines),
            (name, _) if name.starts_with("slots.") => {
                each(rows, |row| row.slots(room.blocks, room.positions).collect())
            }
            (name, _) if name.starts_with("table.") => each(rows, |row| row.table(room.blocks).collect()),
            (name, _) => return Err(HalError::Step(format!("nobody knows what the step input `{name}` is for")).into()),
        };
        arrays.push(HostArray::new(ty, record).map_err(CacheError::from)?);
    }
    Ok(arrays)
}

fn each(rows: &[ForwardRow<'_>], of: impl Fn(&ForwardRow<'_>) -> Vec<i32>) -> Record {
    Record::of(&rows.iter().flat_map(of).collect::<Vec<i32>>())
}

/// Cosines and sines of every token, by how many positions its sequence has then.
fn rotations(rope: &Dynamic, rows: &[ForwardRow<'_>]) -> (Vec<f32>, Vec<f32>) {
    let (mut cosines, mut sines) = (Vec::new(), Vec::new());
    for row in rows {
        let end = row.start + row.tokens.len() as u32;
        let (c, s) = rope.frequencies(end).tables(row.start..end);
        cosines.extend(c);
        sines.extend(s);
    }
    (cosines, sines)
}
