//! Elements between memory and lanes: what they are held as, casts, and runs of elements a stride apart.

use super::elem::Elem;
use crate::simd::{LANES, Lanes, WithLanes};

/// Floats cut off to signed numbers: NaN is 0, and what is outside becomes the nearest.
#[inline(always)]
pub(super) fn signed<V: Lanes>(x: V) -> V {
    const END: f32 = 2_147_483_648.0;
    let cut = x.less(V::splat(END)).choose(x.cut(), V::word(i32::MAX as u32));
    let cut = x.less(V::splat(-END)).choose(V::word(i32::MIN as u32), cut);
    x.equal(x).and(cut)
}

/// Floats cut off to numbers without sign: NaN is 0, and what is outside becomes the nearest.
#[inline(always)]
pub(super) fn unsigned<V: Lanes>(x: V) -> V {
    const HALF: f32 = 2_147_483_648.0;
    let upper = x.sub(V::splat(HALF)).cut().xor(V::word(1 << 31));
    let cut = x.less(V::splat(HALF)).choose(x.cut(), upper);
    let cut = x.less(V::splat(2.0 * HALF)).choose(cut, V::word(u32::MAX));
    V::splat(0.0).less(x).and(cut)
}

/// Numbers without sign as floats, to nearest.
#[inline(always)]
pub(super) fn floats_of_unsigned<V: Lanes>(x: V) -> V {
    // Both halves are exact, and the sum is rounded once.
    x.shr::<16>().floats().fma(V::splat(65_536.0), x.and(V::word(0xffff)).floats())
}

/// The upper halves of floats after rounding to nearest, ties to even, in the low bits; NaN is quiet.
#[inline(always)]
fn upper_halves<V: Lanes>(x: V) -> V {
    let upper = x.shr::<16>();
    let tie = upper.and(V::word(1)).wrapping_add(V::word(0x7fff));
    x.equal(x).choose(x.wrapping_add(tie).shr::<16>(), upper.or(V::word(0x40)))
}

/// Floats rounded to bf16.
#[inline(always)]
pub(super) fn rounded_to_bf16<V: Lanes>(x: V) -> V {
    upper_halves(x).shl::<16>()
}

/// The other way round.
#[inline(always)]
pub(super) fn not<V: Lanes>(mask: V) -> V {
    mask.xor(V::word(u32::MAX))
}

/// A type of elements, known when its loop is compiled.
trait InMemory {
    /// Sixteen elements that follow each other, as they are held.
    ///
    /// # Safety
    /// They exist.
    unsafe fn load<V: Lanes>(p: *const u8) -> V;
    /// Sixteen elements that follow each other, from what they are held as.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn store<V: Lanes>(v: V, p: *mut u8);
}

macro_rules! in_memory {
    ($($name:ident: $p:ident => $load:expr, $v:ident => $store:expr;)*) => {$(
        struct $name;
        impl InMemory for $name {
            #[inline(always)]
            unsafe fn load<V: Lanes>($p: *const u8) -> V {
                // SAFETY: what `InMemory::load` is promised; `StridedInput::within` and `StridedOutput::within` check
                // the operands.
                unsafe { $load }
            }
            #[inline(always)]
            unsafe fn store<V: Lanes>($v: V, $p: *mut u8) {
                // SAFETY: what `InMemory::store` is promised; `StridedInput::within` and `StridedOutput::within` check
                // the operands.
                unsafe { $store }
            }
        }
    )*};
}

in_memory! {
    Word: p => V::load(p.cast()), v => v.store(p.cast());
    F16: p => V::load_f16(p.cast()), v => v.store_f16(p.cast());
    Bf16: p => V::load_u16(p.cast()).shl::<16>(), v => upper_halves(v).store_u16(p.cast());
    Bool: p => not(V::load_u8(p).whole_equal(V::word(0))), v => v.and(V::word(1)).store_u8(p);
}

/// A call with the type of the elements as `$T`: one loop for each.
macro_rules! in_memory_as {
    ($elem:expr, $T:ident => $call:expr) => {
        match $elem {
            Elem::F32 | Elem::I32 | Elem::U32 => {
                type $T = Word;
                $call
            }
            Elem::F16 => {
                type $T = F16;
                $call
            }
            Elem::BF16 => {
                type $T = Bf16;
                $call
            }
            Elem::Bool => {
                type $T = Bool;
                $call
            }
        }
    };
}

/// Up to sixteen elements of `bytes` bytes each between places a number of bytes apart.
///
/// # Safety
/// There are `n` elements at both, or sixteen if that is fewer, and those that are written are nobody else's.
#[inline(always)]
unsafe fn move_apart(bytes: usize, from: *const u8, from_step: isize, to: *mut u8, to_step: isize, n: usize) {
    for i in 0..n.min(LANES) as isize {
        // SAFETY: `move_apart` is promised n elements at both; `StridedInput::within` and `StridedOutput::within`
        // check the operands.
        unsafe {
            let (from, to) = (from.offset(i * from_step), to.offset(i * to_step));
            match bytes {
                4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
                2 => to.cast::<u16>().write_unaligned(from.cast::<u16>().read_unaligned()),
                _ => to.write(from.read()),
            }
        }
    }
}

/// `n` elements, `stride` apart, as they are held. What `out` has room for up to a multiple of sixteen is filled with
/// what zero bits are.
///
/// # Safety
/// The elements exist, and `out` has room.
#[inline(always)]
pub(super) unsafe fn read<V: Lanes>(elem: Elem, p: *const u8, stride: i64, n: usize, out: *mut f32) {
    // SAFETY: `ReadKernel` wants what `read` is promised.
    unsafe { V::apart(ReadKernel { elem, p, stride, n, out }) };
}

/// [`read`] as a function of its own.
struct ReadKernel {
    elem: Elem,
    p: *const u8,
    stride: i64,
    n: usize,
    out: *mut f32,
}

impl WithLanes for ReadKernel {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let ReadKernel { elem, p, stride, n, out } = self;
        // SAFETY: the contract of `read`.
        in_memory_as!(elem, T => unsafe { read_as::<V, T>(elem.bytes(), p, stride, n, out) });
    }
}

/// [`read`] of one type.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
unsafe fn read_as<V: Lanes, T: InMemory>(bytes: usize, p: *const u8, stride: i64, n: usize, out: *mut f32) {
    let step = stride as isize * bytes as isize;
    let mut i = 0;
    if stride == 1 {
        while i + LANES <= n {
            // SAFETY: what `read_as` is promised; `StridedInput::within` and `StridedOutput::within` check the
            // operands.
            unsafe { T::load::<V>(p.add(i * bytes)).store(out.add(i)) };
            i += LANES;
        }
    }
    while i < n {
        let mut all = [0u8; 4 * LANES];
        // SAFETY: what `read_as` is promised; sixteen elements fit the array; `StridedInput::within` and
        // `StridedOutput::within` check the operands.
        unsafe {
            move_apart(bytes, p.offset(i as isize * step), step, all.as_mut_ptr(), bytes as isize, n - i);
            T::load::<V>(all.as_ptr()).store(out.add(i));
        }
        i += LANES;
    }
}

/// One element in all of sixteen lanes.
///
/// # Safety
/// The element exists, and `out` has room.
#[inline(always)]
pub(super) unsafe fn spread<V: Lanes>(elem: Elem, p: *const u8, out: *mut f32) {
    // SAFETY: what `spread` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
    unsafe { read::<V>(elem, p, 0, LANES, out) }
}

/// `n` elements, `stride` apart, from what they are held as.
///
/// # Safety
/// The elements exist, and `from` has as many up to a multiple of sixteen.
#[inline(always)]
pub(super) unsafe fn write<V: Lanes>(elem: Elem, from: *const f32, p: *mut u8, stride: i64, n: usize) {
    // SAFETY: `WriteKernel` wants what `write` is promised.
    unsafe { V::apart(WriteKernel { elem, from, p, stride, n }) };
}

/// [`write`] as a function of its own.
struct WriteKernel {
    elem: Elem,
    from: *const f32,
    p: *mut u8,
    stride: i64,
    n: usize,
}

impl WithLanes for WriteKernel {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let WriteKernel { elem, from, p, stride, n } = self;
        // SAFETY: the contract of `write`.
        in_memory_as!(elem, T => unsafe { write_as::<V, T>(elem.bytes(), from, p, stride, n) });
    }
}

/// [`write`] of one type.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
unsafe fn write_as<V: Lanes, T: InMemory>(bytes: usize, from: *const f32, p: *mut u8, stride: i64, n: usize) {
    let step = stride as isize * bytes as isize;
    let mut i = 0;
    if stride == 1 {
        while i + LANES <= n {
            // SAFETY: what `write_as` is promised; `StridedInput::within` and `StridedOutput::within` check the
            // operands.
            unsafe { T::store(V::load(from.add(i)), p.add(i * bytes)) };
            i += LANES;
        }
    }
    while i < n {
        let mut all = [0u8; 4 * LANES];
        // SAFETY: what `write_as` is promised; sixteen elements fit the array; `StridedInput::within` and
        // `StridedOutput::within` check the operands.
        unsafe {
            T::store(V::load(from.add(i)), all.as_mut_ptr());
            move_apart(bytes, all.as_ptr(), bytes as isize, p.offset(i as isize * step), step, n - i);
        }
        i += LANES;
    }
}
