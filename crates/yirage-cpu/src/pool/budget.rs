//! How many threads to use: facts about the process, and the pure rule over them.

use crate::cgroup;
use std::fs;
use std::path::Path;

/// Threads that may be asked for of each processor.
const PER_PROCESSOR: usize = 8;
/// Threads that may be asked for of few processors.
const LEAST_MOST: usize = 64;

/// What decides the default number of threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadBudgetInputs {
    /// Processors in the affinity mask.
    pub affinity: usize,
    /// Processors' worth of time that the control groups allow, if they limit it.
    pub cgroup_quota: Option<f64>,
    /// First number of `OMP_NUM_THREADS`, if set to one.
    pub omp: Option<usize>,
    /// `OMP_NUM_THREADS`, if set to something else.
    pub omp_is_no_number: Option<String>,
}

impl ThreadBudgetInputs {
    /// Reads them: affinity mask, control groups v2 and v1, environment. The only place of this crate that reads the
    /// environment.
    pub fn read() -> ThreadBudgetInputs {
        let affinity = super::allowed_cpus().map(|c| c.len()).unwrap_or(0);
        let fallback = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let set = std::env::var_os("OMP_NUM_THREADS").map(|value| value.to_string_lossy().into_owned());
        let set = set.filter(|value| !value.trim().is_empty());
        let omp = set.as_deref().and_then(parse_omp);
        ThreadBudgetInputs {
            affinity: if affinity > 0 { affinity } else { fallback() },
            cgroup_quota: cgroup_quota(&groups, Path::new(cgroup::ROOT), &|p| fs::read_to_string(p).ok()),
            omp,
            omp_is_no_number: set.filter(|_| omp.is_none()),
        }
    }

    /// The most threads that may be asked for: some more than there are processors take turns, very many do nothing but
    /// wait for each other.
    pub fn most(&self) -> usize {
        (PER_PROCESSOR * self.affinity).clamp(LEAST_MOST, super::MAX_WORKERS)
    }

    /// [`thread_budget`] of these facts.
    pub fn budget(&self, requested: Option<usize>) -> (usize, String) {
        thread_budget(self.affinity, self.cgroup_quota, self.omp, requested)
    }
}

/// Threads to use, and why. What is `requested` is used as it is (at least 1); else the least of the processors in the
/// affinity mask, the control groups' quota rounded up, and `OMP_NUM_THREADS`.
pub fn thread_budget(
    affinity: usize,
    cgroup_quota: Option<f64>,
    omp: Option<usize>,
    requested: Option<usize>,
) -> (usize, String) {
    let affinity = affinity.max(1);
    if let Some(n) = requested {
        let over = if n > affinity { format!(", more than the {affinity} allowed processors") } else { String::new() };
        return (n.max(1), format!("{} threads as requested{over}", n.max(1)));
    }
    let mut best = (affinity, format!("{affinity} processors in the affinity mask"));
    if let Some(quota) = cgroup_quota.filter(|q| q.is_finite() && *q > 0.0) {
        let n = quota.ceil() as usize;
        if n < best.0 {
            best = (n, format!("control group quota of {quota} processors"));
        }
    }
    if let Some(n) = omp.filter(|&n| n > 0 && n < best.0) {
        best = (n, format!("OMP_NUM_THREADS={n}"));
    }
    best
}

/// `OMP_NUM_THREADS` is a number, or one a nesting level: `4` or `4,2`.
fn parse_omp(value: &str) -> Option<usize> {
    value.split(',').next()?.trim().parse().ok().filter(|&n| n > 0)
}

/// The least quota on the way from the process's groups to the root.
fn cgroup_quota(groups: &str, root: &Path, read: cgroup::CgroupFileReader<'_>) -> Option<f64> {
    let quota = |g: cgroup::CgroupDir| if g.v2 { quota_v2(&g.folder, read) } else { quota_v1(&g.folder, read) };
    cgroup::groups(groups, "cpu", root).into_iter().filter_map(quota).min_by(f64::total_cmp)
}

/// `cpu.max`: "QUOTA PERIOD" in microseconds, QUOTA may be `max`.
fn quota_v2(folder: &Path, read: cgroup::CgroupFileReader<'_>) -> Option<f64> {
    let text = read(&folder.join("cpu.max"))?;
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next().map_or(Some(100_000.0), |p| p.parse().ok())?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// `cpu.cfs_quota_us` (-1 is none) over `cpu.cfs_period_us`.
fn quota_v1(folder: &Path, read: cgroup::CgroupFileReader<'_>) -> Option<f64> {
    let number = |name: &str| read(&folder.join(name))?.trim().parse::<f64>().ok();
    let (quota, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::path::PathBuf;

    #[test]
    fn least_of_the_facts_wins() {
        let cases = [
            ((8, None, None, None), 8, "8 processors in the affinity mask"),
            ((8, Some(2.5), None, None), 3, "control group quota of 2.5 processors"),
            ((8, Some(0.2), None, None), 1, "control group quota of 0.2 processors"),
            ((2, Some(4.0), None, None), 2, "2 processors in the affinity mask"),
            ((8, Some(6.0), Some(4), None), 4, "OMP_NUM_THREADS=4"),
            ((8, Some(2.0), Some(4), None), 2, "control group quota of 2 processors"),
            ((2, None, Some(16), None), 2, "2 processors in the affinity mask"),
            ((0, None, None, None), 1, "1 processors in the affinity mask"),
            ((4, Some(f64::NAN), Some(0), None), 4, "4 processors in the affinity mask"),
            ((4, Some(1.0), Some(1), Some(3)), 3, "3 threads as requested"),
            ((4, None, None, Some(9)), 9, "9 threads as requested, more than the 4 allowed processors"),
            ((4, None, None, Some(0)), 1, "1 threads as requested"),
        ];
        for ((affinity, quota, omp, requested), n, why) in cases {
            assert_eq!(thread_budget(affinity, quota, omp, requested), (n, why.to_owned()));
        }
    }

    fn quota(groups: &str, files: &[(&str, &str)]) -> Option<f64> {
        let files: HashMap<PathBuf, String> =
            files.iter().map(|(p, t)| (Path::new("/r").join(p), (*t).to_owned())).collect();
        cgroup_quota(groups, Path::new("/r"), &|p| files.get(p).cloned())
    }

    #[test]
    fn quotas_of_both_versions() {
        assert_eq!(quota("0::/", &[("cpu.max", "150000 100000\n")]), Some(1.5));
        assert_eq!(quota("0::/", &[("cpu.max", "max 100000\n")]), None);
        assert_eq!(quota("0::/a/b", &[("a/b/cpu.max", "max 100000"), ("a/cpu.max", "50000 100000")]), Some(0.5));
        assert_eq!(quota("0::/a/b", &[("a/b/cpu.max", "300000 100000"), ("cpu.max", "400000 100000")]), Some(3.0));
        let v1 = [("cpu/x/cpu.cfs_quota_us", "200000\n"), ("cpu/x/cpu.cfs_period_us", "100000\n")];
        assert_eq!(quota("4:cpu,cpuacct:/x\n3:memory:/x", &v1), Some(2.0));
        let none = [("cpu/cpu.cfs_quota_us", "-1"), ("cpu/cpu.cfs_period_us", "100000")];
        assert_eq!(quota("4:cpuacct,cpu:/", &none), None);
        assert_eq!(quota("0::/../../x", &[("cpu.max", "100000 100000")]), Some(1.0));
        for bad in ["", "nonsense", "0::", "::::", "0::/\u{0}"] {
            assert_eq!(quota(bad, &[]), None);
        }
        assert_eq!(quota("0::/", &[("cpu.max", "1e999 0")]), None);
        assert_eq!(quota("0::/", &[("cpu.max", "")]), None);
    }

    #[test]
    fn few_processors_have_a_sane_most() {
        let most = |affinity| ThreadBudgetInputs { affinity, ..ThreadBudgetInputs::default() }.most();
        assert_eq!([1, 2, 8, 16, 96, 4096].map(most), [64, 64, 64, 128, 768, 1024]);
    }

    #[test]
    fn omp_lists() {
        assert_eq!(parse_omp("4"), Some(4));
        assert_eq!(parse_omp(" 4 ,2"), Some(4));
        assert_eq!(parse_omp("0"), None);
        assert_eq!(parse_omp("many"), None);
        assert!(ThreadBudgetInputs::read().budget(None).0 >= 1);
    }
}
