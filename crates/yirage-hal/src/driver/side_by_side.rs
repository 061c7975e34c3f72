//! The same for many things, on as many threads as there are processors: compilers of kernels take milliseconds to seconds for one.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What `task` makes of each, in their order. Of several errors the first one in that order is told.
///
/// # Errors
/// That of `task`.
pub fn side_by_side<S: Sync, T: Send, E: Send>(
    all: &[S],
    task: impl Fn(&S) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get()).min(all.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let mine = numbers.map_while(|number| Some((number, all.get(number)?)));
        mine.map(|(number, one)| (number, task(one))).collect::<Vec<_>>()
    };
    let mut made: Vec<(usize, Result<T, E>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut made = work();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    });
    made.sort_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::side_by_side;

    #[test]
    fn all_come_in_their_order_and_the_first_error_is_told() {
        let numbers: Vec<u32> = (0..100).collect();
        let doubled = side_by_side(&numbers, |&number| Ok::<_, u32>(number * 2));
        assert_eq!(doubled, Ok(numbers.iter().map(|number| number * 2).collect()));
        assert_eq!(side_by_side(&numbers, |&number| if number % 40 == 39 { Err(number) } else { Ok(()) }), Err(39));
        assert_eq!(side_by_side(&[], |&(): &()| Ok::<_, u32>(1)), Ok(Vec::new()));
    }
}
