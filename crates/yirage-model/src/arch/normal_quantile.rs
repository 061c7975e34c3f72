//! Quantiles of the normal distribution (Wichura, algorithm AS 241, Applied Statistics 37, 1988). It knows nothing else.

/// The number that a standard normal variable does not exceed with probability `p`, above 0 and below 1; within some 1e-15
/// of itself.
pub(super) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let tail = if r <= 5.0 { ratio(r - 1.6, &NEAR_TAIL) } else { ratio(r - 5.0, &FAR_TAIL) };
    if q < 0.0 { -tail } else { tail }
}

/// Coefficients of a polynomial and of its divisor, the lowest power first.
type Coefficients = [[f64; 8]; 2];

fn ratio(x: f64, of: &Coefficients) -> f64 {
    let [above, below] = of.map(|list| list.iter().rev().fold(0.0, |sum, c| sum * x + c));
    above / below
}

const CENTRE: Coefficients = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];

const NEAR_TAIL: Coefficients = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        0.000_774_545_014_278_341_4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        0.000_547_593_808_499_534_5,
        1.050_750_071_644_416_9e-9,
    ],
];

const FAR_TAIL: Coefficients = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        0.000_786_869_131_145_613_3,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_7e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::normal_quantile;

    /// Of Python's `statistics.NormalDist().inv_cdf`.
    #[test]
    fn quantiles_are_those_of_another_implementation() {
        let known = [
            (0.5, 0.0),
            (0.95, 1.644_853_626_951_471_5),
            (0.9, 1.281_551_565_544_600_8),
            (0.3, -0.524_400_512_708_040_7),
            (0.999_999, 4.753_424_308_817_089),
            (1e-13, -7.348_796_102_800_676_5),
        ];
        for (p, x) in known {
            let found = normal_quantile(p);
            assert!((found - x).abs() <= 1e-12 * x.abs(), "{p}: {found} and not {x}");
        }
    }
}
