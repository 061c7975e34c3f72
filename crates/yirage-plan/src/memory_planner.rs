//! Memory for values that live for a while: those that live at the same time share no byte, all others may.
//!
//! The only place where that is decided: arenas of plans, rows that stay with a worker, tiles of a block. Offsets for values
//! whose lives are known ([`plan_memory`]), or one after the other ([`MemoryStack`]).

use std::cmp::Reverse;
use std::ops::Range;

/// Bytes that must hold for a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRequest {
    /// How many, a multiple of the alignment.
    pub bytes: u64,
    /// When they are written first.
    pub from: u32,
    /// When they are read last.
    pub to: u32,
}

/// Where bytes lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryLayout {
    /// For each request the first of its bytes.
    pub offsets: Vec<u64>,
    /// Bytes of all together.
    pub end: u64,
}

/// Offsets for requests: the least memory of two orders, the largest first and the earliest first, of which each takes the
/// lowest offset that is free during its life. None where that is no number.
pub fn plan_memory(requests: &[MemoryRequest], align: u64) -> Option<MemoryLayout> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&at| (Reverse(requests[at].bytes), requests[at].from));
    let by_size = placed(requests, &order, align);
    order.sort_by_key(|&at| requests[at].from);
    let by_time = placed(requests, &order, align);
    match (by_size, by_time) {
        (Some(size), Some(time)) => Some(if time.end < size.end { time } else { size }),
        (size, time) => size.or(time),
    }
}

fn placed(requests: &[MemoryRequest], order: &[usize], align: u64) -> Option<MemoryLayout> {
    let mut layout = MemoryLayout { offsets: vec![0; requests.len()], end: 0 };
    let mut done: Vec<usize> = Vec::with_capacity(order.len());
    for &at in order {
        let MemoryRequest { bytes, from, to } = requests[at];
        let meets = |&&other: &&usize| requests[other].from <= to && from <= requests[other].to;
        let busy = done.iter().filter(meets).map(|&other| {
            let offset = layout.offsets[other];
            offset..offset + requests[other].bytes
        });
        let place = lowest_fit(busy.collect(), bytes, align)?;
        layout.offsets[at] = place.start;
        layout.end = layout.end.max(place.end);
        done.push(at);
    }
    Some(layout)
}

/// The lowest bytes that meet none of the busy ones; none where that is no number.
fn lowest_fit(mut busy: Vec<Range<u64>>, bytes: u64, align: u64) -> Option<Range<u64>> {
    busy.sort_unstable_by_key(|range| range.start);
    let mut at: u64 = 0;
    for range in busy {
        if at.checked_add(bytes)? <= range.start {
            break;
        }
        at = at.max(range.end.checked_next_multiple_of(align.max(1))?);
    }
    Some(at..at.checked_add(bytes)?)
}

/// Memory handed out one piece after the other, to whoever says until when it is wanted.
#[derive(Clone, Default, Debug)]
pub struct MemoryStack {
    /// What is held, and the step that reads it last.
    held: Vec<(Range<u64>, usize)>,
    end: u64,
}

impl MemoryStack {
    /// Gives back what was wanted up to a step before this one.
    pub fn begin(&mut self, step: usize) {
        self.held.retain(|(_, last)| *last >= step);
    }

    /// Bytes that are free, up to a step; none where that is no number.
    pub fn take(&mut self, bytes: u64, align: u64, last: usize) -> Option<Range<u64>> {
        let range = lowest_fit(self.held.iter().map(|(range, _)| range.clone()).collect(), bytes, align)?;
        self.end = self.end.max(range.end);
        self.held.push((range.clone(), last));
        Some(range)
    }

    /// Keeps what is held already up to another step. False where it is not held.
    pub fn keep(&mut self, range: &Range<u64>, last: usize) -> bool {
        let held = self.held.iter_mut().find(|(held, _)| held == range);
        held.is_some_and(|(_, until)| {
            *until = last;
            true
        })
    }

    /// How many pieces are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives back all but the first pieces.
    pub fn give_back(&mut self, but_first: usize) {
        self.held.truncate(but_first);
    }

    /// Bytes of all that were handed out.
    pub fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::rng::Rng;

    fn requests(rng: &mut Rng) -> Vec<MemoryRequest> {
        let mut below = |n: u64| rng.next_u64() % n;
        let count = below(24);
        let request = |_| {
            let from = below(20) as u32;
            MemoryRequest { bytes: 64 * below(40), from, to: from + below(6) as u32 }
        };
        (0..count).map(request).collect()
    }

    fn check_apart(requests: &[MemoryRequest], layout: &MemoryLayout) {
        let of = |at: usize| layout.offsets[at]..layout.offsets[at] + requests[at].bytes;
        for a in 0..requests.len() {
            assert!(of(a).end <= layout.end);
            for b in 0..a {
                let at_once = requests[a].from <= requests[b].to && requests[b].from <= requests[a].to;
                let shared = of(a).start.max(of(b).start) < of(a).end.min(of(b).end);
                assert!(!(at_once && shared), "{requests:?} {layout:?}");
            }
        }
    }

    #[test]
    fn two_thousand_layouts_are_apart_and_never_above_either_order() {
        let mut rng = Rng::new(48);
        let mut smaller = 0;
        for _ in 0..2000 {
            let requests = requests(&mut rng);
            let layout = plan_memory(&requests, 64).unwrap();
            check_apart(&requests, &layout);
            let mut order: Vec<usize> = (0..requests.len()).collect();
            order.sort_by_key(|&at| (Reverse(requests[at].bytes), requests[at].from));
            let by_size = placed(&requests, &order, 64).unwrap().end;
            order.sort_by_key(|&at| requests[at].from);
            let by_time = placed(&requests, &order, 64).unwrap().end;
            assert!(layout.end <= by_size && layout.end <= by_time);
            smaller += u32::from(layout.end < by_size);
            let most = (0..26)
                .map(|now| requests.iter().filter(|r| r.from <= now && now <= r.to).map(|r| r.bytes).sum::<u64>());
            assert!(layout.end >= most.max().unwrap_or(0), "less than lives at once");
        }
        assert!(smaller > 0, "one order alone would do");
    }

    #[test]
    fn a_stack_gives_what_is_read_no_more_to_what_follows() {
        let mut stack = MemoryStack::default();
        assert_eq!(stack.take(100, 64, 0), Some(0..100));
        assert_eq!(stack.take(10, 64, 5), Some(128..138));
        stack.begin(1);
        assert_eq!(stack.take(64, 64, 2), Some(0..64));
        assert!(stack.keep(&(0..64), 7) && !stack.keep(&(0..65), 7));
        stack.begin(3);
        assert_eq!(stack.take(65, 64, 3), Some(192..257));
        assert_eq!((stack.end(), stack.take(u64::MAX, 64, 3)), (257, None));
    }

    #[test]
    fn sizes_that_are_no_number_are_refused() {
        let whole = MemoryRequest { bytes: u64::MAX, from: 0, to: 0 };
        assert_eq!(plan_memory(&[whole, whole], 64), None);
    }
}
