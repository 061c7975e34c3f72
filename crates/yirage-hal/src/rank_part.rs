//! A rank's part of a weight: which of its rows the rank holds, and the sink that takes those alone.
//!
//! A weight may be several matrices, one below the other (one for each expert): of each of them a rank has its span of rows.

use crate::device::WeightSink;
use crate::error::HalError;
use crate::handle::WeightHandle;
use yirage_ir::Dim;
use yirage_plan::WeightEntry;

/// What one rank holds of a weight.
pub struct RankPart {
    entry: WeightEntry,
    is_divided: bool,
    rows: RankRows,
}

/// The rows of one rank.
#[derive(Clone, Copy)]
struct RankRows {
    rank: usize,
    ranks: usize,
    /// Matrices of which the rank has a span each.
    matrices: usize,
    /// Rows of a span.
    span: usize,
    row_bytes: usize,
}

impl RankPart {
    /// The part of `rank`, one of `ranks`: all of a weight that is not divided.
    ///
    /// # Errors
    /// A weight that so many ranks cannot divide as its entry says.
    pub fn of(entry: &WeightEntry, rank: usize, ranks: u32) -> Result<RankPart, HalError> {
        let part = entry.part(ranks).ok_or_else(|| HalError::Weight {
            name: entry.name.clone(),
            why: format!(
                "expected a dimension that {ranks} ranks can divide, got dimension {} of {} in {} matrices",
                entry.shard_axis.unwrap_or_default(),
                entry.ty,
                entry.groups
            ),
        })?;
        let product = |dims: &[Dim]| dims.iter().filter_map(|dim| dim.as_const()).product::<usize>();
        let (shape, axis) = (&part.ty.shape, entry.shard_axis.map_or(0, |axis| axis as usize));
        let rows = RankRows {
            rank,
            ranks: ranks as usize,
            matrices: product(&shape[..axis.min(shape.len())]),
            span: product(shape.get(axis..shape.len().saturating_sub(1)).unwrap_or_default()),
            row_bytes: entry.ty.dtype.row_bytes(entry.ty.width().unwrap_or(1)).max(1),
        };
        Ok(RankPart { is_divided: entry.shard_axis.is_some(), entry: part, rows })
    }

    /// The weight as the rank's device has it.
    pub fn entry(&self) -> &WeightEntry {
        &self.entry
    }

    /// A sink that is given all rows of the weight, in their order, and gives `sink` those of the rank.
    pub fn sink(self, sink: Box<dyn WeightSink>) -> Box<dyn WeightSink> {
        match self.is_divided {
            true => Box::new(RankSink { sink, name: self.entry.name, rows: self.rows, next: 0, pending: Vec::new() }),
            false => sink,
        }
    }
}

impl RankRows {
    /// Where the rank's rows among `first..end` of the weight begin in its part, and where they lie among those: one span a
    /// matrix.
    fn spans(self, first: usize, end: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let matrix_rows = (self.ranks * self.span).max(1);
        (first / matrix_rows..end.div_ceil(matrix_rows)).filter_map(move |matrix| {
            let own = matrix * matrix_rows + self.rank * self.span;
            let (from, to) = (first.max(own), end.min(own + self.span));
            (from < to).then(|| (matrix * self.span + from - own, from - first..to - first))
        })
    }
}

/// Takes the rows of one rank, and leaves those of the others.
struct RankSink {
    sink: Box<dyn WeightSink>,
    name: String,
    rows: RankRows,
    /// The first row of the part that `sink` was not given.
    next: usize,
    /// Rows from there on that are fewer than `sink` takes at once.
    pending: Vec<u8>,
}

impl RankSink {
    /// Rows of the part from `row` on.
    fn take(&mut self, row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let row_bytes = self.rows.row_bytes;
        if row != self.next + self.pending.len() / row_bytes {
            // Not what follows: what is pending was the end of a piece.
            self.flush(1)?;
            self.next = row;
        }
        self.pending.extend_from_slice(bytes);
        self.flush(self.sink.row_step().max(1))
    }

    /// Gives `sink` what is pending, as far as it is a multiple of so many rows.
    fn flush(&mut self, step: usize) -> Result<(), HalError> {
        let rows = self.pending.len() / self.rows.row_bytes / step * step;
        if rows > 0 {
            let bytes = rows * self.rows.row_bytes;
            self.sink.write_rows(self.next, &self.pending[..bytes])?;
            self.pending.drain(..bytes);
            self.next += rows;
        }
        Ok(())
    }
}

impl WeightSink for RankSink {
    /// Any: a rank's rows begin where they begin.
    fn row_step(&self) -> usize {
        1
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let (rows, all) = (self.rows, self.rows.matrices * self.rows.ranks * self.rows.span);
        let end = first_row.checked_add(bytes.len() / rows.row_bytes).filter(|&end| end <= all);
        let Some(end) = end.filter(|_| bytes.len().is_multiple_of(rows.row_bytes)) else {
            let why = format!(
                "expected whole rows of {} bytes of {all}, got {} bytes from row {first_row} on",
                rows.row_bytes,
                bytes.len()
            );
            return Err(HalError::Weight { name: self.name.clone(), why });
        };
        for (row, span) in rows.spans(first_row, end) {
            self.take(row, &bytes[span.start * rows.row_bytes..span.end * rows.row_bytes])?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<WeightHandle, HalError> {
        self.flush(1)?;
        self.sink.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::RankPart;
    use crate::device::WeightSink;
    use crate::error::HalError;
    use crate::handle::WeightHandle;
    use std::sync::{Arc, Mutex};
    use yirage_ir::{DType, Dim, Format, Type};
    use yirage_plan::WeightEntry;

    /// Rows of one byte each, as a sink was given them.
    type Given = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

    struct RowRecorder {
        step: usize,
        given: Given,
    }

    impl WeightSink for RowRecorder {
        fn row_step(&self) -> usize {
            self.step
        }

        fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
            assert!(first_row.is_multiple_of(self.step), "row {first_row} in steps of {}", self.step);
            self.given.lock().unwrap().push((first_row, bytes.to_vec()));
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
            Ok(WeightHandle(Arc::new(())))
        }
    }

    fn entry(shape: &[u32], groups: u32, shard_axis: Option<u32>) -> WeightEntry {
        let ty = Type::new(DType::Stored(Format::F32), shape.iter().map(|&n| Dim::Const(n)));
        WeightEntry { name: "w".into(), ty, layout: "rows".into(), groups, shard_axis }
    }

    /// The rows that a rank has after pieces of so many rows, each row known by its number.
    fn held(entry: &WeightEntry, rank: usize, ranks: u32, step: usize, piece: usize) -> Vec<u8> {
        let part = RankPart::of(entry, rank, ranks).unwrap();
        let (row_bytes, given) = (part.rows.row_bytes, Given::default());
        let all: usize = entry.ty.shape[..entry.ty.shape.len() - 1].iter().filter_map(|d| d.as_const()).product();
        let mut sink = part.sink(Box::new(RowRecorder { step, given: given.clone() }));
        for first in (0..all).step_by(piece) {
            let rows: Vec<u8> = (first..all.min(first + piece)).flat_map(|row| vec![row as u8; row_bytes]).collect();
            sink.write_rows(first, &rows).unwrap();
        }
        sink.finish().unwrap();
        let mut next = 0;
        let mut rows = Vec::new();
        for (first, bytes) in given.lock().unwrap().iter() {
            assert_eq!(*first, next);
            rows.extend(bytes.chunks(row_bytes).map(|row| row[0]));
            next = rows.len();
        }
        rows
    }

    #[test]
    fn each_rank_has_its_span_of_each_matrix_whatever_the_pieces_and_steps() {
        for (step, piece) in [(1, 1), (4, 5), (3, 7), (6, 24), (16, 2)] {
            let experts = entry(&[3, 8, 2], 1, Some(1));
            assert_eq!(held(&experts, 1, 2, step, piece), [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23]);
            assert_eq!(held(&experts, 0, 4, step, piece), [0, 1, 8, 9, 16, 17]);
            assert_eq!(held(&entry(&[12, 2], 1, Some(0)), 2, 3, step, piece), [8, 9, 10, 11]);
            assert_eq!(held(&entry(&[4, 2], 1, None), 1, 2, 1, piece), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn a_weight_that_does_not_divide_is_refused_by_name_and_so_are_rows_beyond_it() {
        let why = |entry: &WeightEntry, ranks| RankPart::of(entry, 0, ranks).err().map(|e| e.to_string());
        for odd in [entry(&[3, 9, 2], 1, Some(1)), entry(&[12, 2], 3, Some(0)), entry(&[12, 2], 1, Some(1))] {
            let why = why(&odd, 2).unwrap();
            assert!(why.starts_with("weight `w`: expected a dimension that 2 ranks can divide"), "{why}");
        }
        assert_eq!(RankPart::of(&entry(&[12, 2], 4, Some(0)), 1, 2).unwrap().entry().groups, 2);
        let part = RankPart::of(&entry(&[4, 2], 1, Some(0)), 1, 2).unwrap();
        let mut sink = part.sink(Box::new(RowRecorder { step: 1, given: Given::default() }));
        for (first, bytes) in [(4, 8), (usize::MAX, 8), (0, 7), (3, 16)] {
            assert!(sink.write_rows(first, &vec![0; bytes]).is_err(), "{bytes} bytes from row {first}");
        }
    }
}
