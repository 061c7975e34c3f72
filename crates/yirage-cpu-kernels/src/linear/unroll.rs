//! Unrolling by macro. LLVM leaves loops of this size rolled now and then, and then the accumulators live in memory.

/// The block once for every `$t` in `0..$n` (at most 16), `$t` a constant.
macro_rules! unroll {
    ($t:ident < $n:ident $b:block) => {
        $crate::linear::unroll::unroll!(@ $t $n $b 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($t:ident in [$($i:literal)*] $b:block) => { $( { const $t: usize = $i; $b } )* };
    (@ $t:ident $n:ident $b:block $($i:literal)*) => { $( { const $t: usize = $i; if $t < $n $b } )* };
}
pub(crate) use unroll;
