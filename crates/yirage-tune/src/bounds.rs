//! The numbers of a search, checked before anything is done by them.

use crate::error::TuneError;
use crate::limits::{CANDIDATES, LONGEST, NODES, STEPS, TILES};
use crate::options::SuperOptions;
use std::fmt::Display;
use std::ops::RangeInclusive;
use yirage_ir::types::MAX_RANK;
use yirage_search::Tilings;

/// An error of an option's value.
fn wrong(option: &'static str, given: impl Display, wanted: impl Display) -> TuneError {
    TuneError::Option { option, why: format!("{given} is given: {wanted} is wanted") }
}

fn within<T: PartialOrd + Display>(option: &'static str, given: T, wanted: RangeInclusive<T>) -> Result<T, TuneError> {
    if wanted.contains(&given) {
        return Ok(given);
    }
    let wanted = format!("a whole number from {} to {}", wanted.start(), wanted.end());
    Err(wrong(option, given, wanted))
}

/// The dimension that a map names; -1 is none.
fn dim(option: &'static str, given: i32) -> Result<Option<u32>, TuneError> {
    let most = MAX_RANK as i32 - 1;
    let wanted = || format!("a dimension from 0 to {most}, or -1 for none,");
    match given {
        -1 => Ok(None),
        n if n > most => Err(wrong(option, n, wanted())),
        n => u32::try_from(n).map(Some).map_err(|_| wrong(option, n, wanted())),
    }
}

type Maps = Vec<[Option<u32>; 3]>;

fn maps(option: &'static str, given: Option<&Vec<[i32; 3]>>) -> Result<Option<Maps>, TuneError> {
    let map = |m: &[i32; 3]| Ok([dim(option, m[0])?, dim(option, m[1])?, dim(option, m[2])?]);
    given.map(|all| all.iter().map(map).collect()).transpose()
}

/// Numbers of blocks, threads or iterations: of each there is one at least.
fn counts<'a>(option: &'static str, given: impl IntoIterator<Item = &'a u32>) -> Result<(), TuneError> {
    given.into_iter().try_for_each(|&n| within(option, n, 1..=TILES).map(drop))
}

impl SuperOptions {
    /// Which tilings may be tried, where all options are numbers that a search can follow.
    ///
    /// # Errors
    /// [`TuneError::Option`] with the option, its value and what is wanted.
    pub(crate) fn checked(&self) -> Result<Tilings, TuneError> {
        within("warmup_iters", self.warmup_iters, 0..=STEPS)?;
        within("profile_iters", self.profile_iters, 1..=STEPS)?;
        within("budget", self.budget, 1..=NODES)?;
        within("keep", self.keep, 1..=CANDIDATES)?;
        if let Some(limit) = self.time_limit.filter(|limit| limit.is_zero() || *limit > LONGEST) {
            let wanted = format!("a time above 0 and up to {} s", LONGEST.as_secs());
            return Err(wrong("time_limit", format!("{} s", limit.as_secs_f64()), wanted));
        }
        counts("griddims", self.griddims.iter().flatten().flatten())?;
        counts("blockdims", self.blockdims.iter().flatten().flatten())?;
        counts("franges", self.franges.iter().flatten())?;
        let loop_dims = self.fmaps.as_ref().map(|all| all.iter().map(|&n| dim("fmaps", n)).collect()).transpose()?;
        Ok(Tilings {
            input_maps: maps("imaps", self.imaps.as_ref())?,
            output_maps: maps("omaps", self.omaps.as_ref())?,
            grids: self.griddims.clone(),
            loop_dims,
            loops: self.franges.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dimensions_are_counted_from_0_and_none_is_minus_one() {
        let given = SuperOptions { imaps: Some(vec![[0, -1, 2]]), fmaps: Some(vec![-1, 1]), ..SuperOptions::default() };
        let tilings = given.checked().unwrap();
        assert_eq!(tilings.input_maps, Some(vec![[Some(0), None, Some(2)]]));
        assert_eq!(tilings.loop_dims, Some(vec![None, Some(1)]));
    }

    #[test]
    fn numbers_that_no_search_can_follow_are_refused_by_name_with_what_is_wanted() {
        let usual = SuperOptions::default;
        let time = |seconds| SuperOptions { time_limit: Some(Duration::from_secs(seconds)), ..usual() };
        let cases = [
            ("omaps", "-2 is", SuperOptions { omaps: Some(vec![[0, -2, 0]]), ..usual() }),
            ("imaps", "8 is", SuperOptions { imaps: Some(vec![[0, 8, 0]]), ..usual() }),
            ("fmaps", "-3 is", SuperOptions { fmaps: Some(vec![-3]), ..usual() }),
            ("griddims", "0 is", SuperOptions { griddims: Some(vec![[4, 0, 1]]), ..usual() }),
            ("blockdims", "0 is", SuperOptions { blockdims: Some(vec![[0, 1, 1]]), ..usual() }),
            ("franges", "4294967295 is", SuperOptions { franges: Some(vec![4, u32::MAX]), ..usual() }),
            ("warmup_iters", "4294967295 is", SuperOptions { warmup_iters: u32::MAX, ..usual() }),
            ("profile_iters", "0 is", SuperOptions { profile_iters: 0, ..usual() }),
            ("budget", "0 is", SuperOptions { budget: 0, ..usual() }),
            ("budget", "18446744073709551615 is", SuperOptions { budget: u64::MAX, ..usual() }),
            ("keep", "0 is", SuperOptions { keep: 0, ..usual() }),
            ("time_limit", "0 s is", time(0)),
            ("time_limit", "1000000 s is", time(1_000_000)),
        ];
        for (option, given, options) in cases {
            let why = options.checked().unwrap_err().to_string();
            assert!(why.contains(&format!("`{option}`: {given} given: ")) && why.ends_with("is wanted"), "{why}");
        }
        let cold = SuperOptions { warmup_iters: 0, ..time(1) };
        assert!(cold.checked().is_ok() && usual().checked().is_ok());
    }
}
