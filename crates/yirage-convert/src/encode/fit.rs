//! Scales of few-bit blocks: searches that keep the weighted squared error of a block small. They are those of llama.cpp's
//! `ggml-quants`, addition by addition, so that files are equal byte by byte: sums are f32 and go from first to last, levels
//! are rounded to even, and of equal candidates the first is kept.
//!
//! What a level means in a block, and how blocks are packed, is not known here.

/// Below this magnitude a block counts as zeros.
pub(super) const SMALLEST: f32 = 1e-15;

/// Most numbers of a sub-block.
const LONGEST: usize = 32;

/// The nearest whole number, halves to even, as the addition of 1.5 x 2^23 gives it: right up to 2^22, defined for all.
pub(super) fn nearest(value: f32) -> i32 {
    ((value + 12_582_912.0).to_bits() & 0x007f_ffff) as i32 - 0x0040_0000
}

/// The value of largest magnitude, the first of equals.
pub(super) fn extreme(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |best: f32, &v| if v.abs() > best.abs() { v } else { best })
}

/// The two sums that a scale is made of: of `w x l`, and of `w l l`.
#[derive(Clone, Copy, Default)]
struct ScaleSums {
    xl: f32,
    ll: f32,
}

impl ScaleSums {
    fn add(&mut self, weight: f32, x: f32, level: i32) {
        let level = level as f32;
        self.xl += weight * x * level;
        self.ll += weight * level * level;
    }

    fn without(self, weight: f32, x: f32, level: i32) -> ScaleSums {
        let level = level as f32;
        ScaleSums { xl: self.xl - weight * x * level, ll: self.ll - weight * level * level }
    }

    /// Whether a scale of these sums leaves less error than one of `other`'s.
    fn beats(self, other: ScaleSums) -> bool {
        self.xl * self.xl * other.ll > other.xl * other.xl * self.ll
    }

    fn scale(self) -> f32 {
        if self.ll > 0.0 { self.xl / self.ll } else { 0.0 }
    }
}

/// A scale for levels from `-top` to `top - 1`, which are written with `top` added. Without weights, squares are weights.
pub(super) fn symmetric(top: i32, x: &[f32], weights: Option<&[f32]>, levels: &mut [u8]) -> f32 {
    let largest = extreme(x);
    if largest.abs() < SMALLEST {
        levels.fill(0);
        return 0.0;
    }
    let level = |inverse: f32, v: f32| nearest(inverse * v).clamp(-top, top - 1);
    let weight = |i: usize| weights.map_or(x[i] * x[i], |w| w[i]);
    let sums = |inverse: f32| {
        let mut sums = ScaleSums::default();
        x.iter().enumerate().for_each(|(i, &v)| sums.add(weight(i), v, level(inverse, v)));
        sums
    };
    let write = |inverse: f32, levels: &mut [u8]| {
        levels.iter_mut().zip(x).for_each(|(l, &v)| *l = (level(inverse, v) + top) as u8);
    };
    let first = -top as f32 / largest;
    write(first, levels);
    let found = sums(first);
    let mut scale = if found.ll != 0.0 { found.xl / found.ll } else { 0.0 };
    let mut best = scale * found.xl;
    for step in (-9..=9).filter(|&step| step != 0) {
        let inverse = -(top as f32 + 0.1 * step as f32) / largest;
        let found = sums(inverse);
        if found.ll > 0.0 && found.xl * found.xl > best * found.ll {
            write(inverse, levels);
            scale = found.xl / found.ll;
            best = scale * found.xl;
        }
    }
    scale
}

/// As [`symmetric`] with squares as weights, by moving one level at a time instead of trying scales.
pub(super) fn symmetric_by_moves(top: i32, x: &[f32], levels: &mut [u8]) -> f32 {
    let largest = extreme(x);
    if largest.abs() < SMALLEST {
        levels.fill(0);
        return 0.0;
    }
    let inverse = -top as f32 / largest;
    let mut found = [0; LONGEST];
    let found = &mut found[..x.len()];
    found.iter_mut().zip(x).for_each(|(level, &v)| *level = nearest(inverse * v).clamp(-top, top - 1));
    let mut sums = ScaleSums::default();
    x.iter().zip(found.iter()).for_each(|(&v, &level)| sums.add(v * v, v, level));
    for _ in 0..5 {
        let mut moved = false;
        for (&v, level) in x.iter().zip(found.iter_mut()) {
            let mut others = sums.without(v * v, v, *level);
            if others.xl <= 0.0 {
                continue;
            }
            let next = nearest(v * others.ll / others.xl).clamp(-top, top - 1);
            if next == *level {
                continue;
            }
            others.add(v * v, v, next);
            if others.ll > 0.0 && others.beats(sums) {
                (*level, sums, moved) = (next, others, true);
            }
        }
        if !moved {
            break;
        }
    }
    levels.iter_mut().zip(found.iter()).for_each(|(l, level)| *l = (level + top) as u8);
    sums.scale()
}

/// How [`with_minimum`] tries scales: the first is that of `top + from`, each further one of `by` more levels.
#[derive(Clone, Copy)]
pub(super) struct ScaleSteps {
    pub(super) from: f32,
    pub(super) by: f32,
    pub(super) steps: u32,
    /// Whether errors count as they are, not squared.
    pub(super) absolute: bool,
    /// Whether a level that no number can be rounded to is the nearest there is; else it is what the rounding makes of it.
    pub(super) bounded: bool,
}

/// A scale and what is subtracted, neither below zero, for levels from 0 to `top`: `x = scale * level - minimum`.
pub(super) fn with_minimum(top: u8, x: &[f32], weights: &[f32], steps: ScaleSteps, levels: &mut [u8]) -> (f32, f32) {
    let top_level = f32::from(top);
    let (mut low, mut high) = (x[0], x[0]);
    let (mut sum_w, mut sum_x) = (weights[0], weights[0] * x[0]);
    for (&v, &w) in x.iter().zip(weights).skip(1) {
        low = if v < low { v } else { low };
        high = if v > high { v } else { high };
        sum_w += w;
        sum_x += w * v;
    }
    low = if low > 0.0 { 0.0 } else { low };
    if high <= low {
        levels.fill(0);
        return (0.0, -low);
    }
    let level = |inverse: f32, low: f32, v: f32, bounded: bool| {
        let at = inverse * (v - low);
        if !bounded {
            return nearest(at).clamp(0, top.into()) as u8;
        }
        if at > 0.0 { nearest(if at < top_level { at } else { top_level }) as u8 } else { 0 }
    };
    let error = |scale: f32, low: f32, levels: &[u8]| {
        x.iter().zip(weights).zip(levels).fold(0.0, |sum: f32, ((&v, &w), &l)| {
            let away = scale * f32::from(l) + low - v;
            sum + w * if steps.absolute { away.abs() } else { away * away }
        })
    };
    let inverse = top_level / (high - low);
    let mut scale = 1.0 / inverse;
    levels.iter_mut().zip(x).for_each(|(l, &v)| *l = level(inverse, low, v, false));
    let mut best = error(scale, low, levels);
    let mut tried = [0; LONGEST];
    let tried = &mut tried[..x.len()];
    for step in 0..=steps.steps {
        let inverse = (steps.from + steps.by * step as f32 + top_level) / (high - low);
        let (mut sum_l, mut sum_ll, mut sum_xl) = (0.0, 0.0, 0.0);
        for ((&v, &w), l) in x.iter().zip(weights).zip(tried.iter_mut()) {
            *l = level(inverse, low, v, steps.bounded);
            let at = f32::from(*l);
            sum_l += w * at;
            sum_ll += w * at * at;
            sum_xl += w * at * v;
        }
        let determinant = sum_w * sum_ll - sum_l * sum_l;
        if determinant <= 0.0 || determinant.is_nan() {
            continue;
        }
        let mut this_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
        let mut this_low = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
        if this_low > 0.0 {
            this_low = 0.0;
            this_scale = sum_xl / sum_ll;
        }
        let left = error(this_scale, this_low, tried);
        if left < best {
            levels.copy_from_slice(tried);
            (best, scale, low) = (left, this_scale, this_low);
        }
    }
    (scale, -low)
}

/// A scale for values that are not below zero, in levels from 0 to `top`: for scales of sub-blocks.
pub(super) fn positive(top: u8, x: &[f32], weights: &[f32], levels: &mut [u8]) -> f32 {
    let largest = x.iter().fold(0.0, |best: f32, &v| if best > v { best } else { v });
    if largest < SMALLEST {
        levels.fill(0);
        return 0.0;
    }
    let top_level = f32::from(top);
    let error = |inverse: f32, bounded: bool| {
        let scale = 1.0 / inverse;
        x.iter().zip(weights).fold(0.0, |sum: f32, (&v, &w)| {
            let level = nearest(inverse * v);
            let level = if bounded { level.min(top.into()) } else { i32::from(level as u8) };
            let away = v - scale * level as f32;
            sum + w * away * away
        })
    };
    let mut inverse = top_level / largest;
    let mut best = error(inverse, false);
    for step in (-4..=4).filter(|&step| step != 0) {
        let tried = (0.1 * step as f32 + top_level) / largest;
        let left = error(tried, true);
        if left < best {
            (best, inverse) = (left, tried);
        }
    }
    let mut sums = ScaleSums::default();
    for ((&v, &w), l) in x.iter().zip(weights).zip(levels.iter_mut()) {
        let level = nearest(inverse * v).min(top.into());
        *l = level as u8;
        sums.add(w, v, level);
    }
    for _ in 0..5 {
        let mut moved = false;
        for ((&v, &w), l) in x.iter().zip(weights).zip(levels.iter_mut()) {
            let mut others = sums.without(w, v, (*l).into());
            if others.xl <= 0.0 || others.ll <= 0.0 {
                continue;
            }
            let next = nearest(v * others.ll / others.xl).min(top.into());
            if next == i32::from(*l) {
                continue;
            }
            others.add(w, v, next);
            if others.beats(sums) {
                (*l, sums, moved) = (next as u8, others, true);
            }
        }
        if !moved {
            break;
        }
    }
    sums.scale()
}
