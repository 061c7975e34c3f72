//! Dependencies point one way. The table is the architecture; a crate that is not in it has no place yet.
//!
//! Only what a crate is built from counts: its tests may use anything (a compiler test may run its plan).

use super::{RepoTree, TidyFinding, manifest};

/// Each crate and the crates of ours it may be built from.
const ARROWS: &[(&str, &[&str])] = &[
    ("yirage-ir", &[]),
    ("yirage-plan", &["yirage-ir"]),
    ("yirage-hal", &["yirage-ir", "yirage-plan", "yirage-mmap"]),
    ("yirage-compile", &["yirage-ir", "yirage-plan"]),
    ("yirage-graph", &["yirage-ir"]),
    ("yirage-call", &["yirage-ir", "yirage-plan", "yirage-hal", "yirage-compile"]),
    ("yirage-plancache", &["yirage-ir", "yirage-plan", "yirage-hal", "yirage-compile", "yirage-call", "yirage-packed"]),
    ("yirage-cpu", &["yirage-ir", "yirage-plan", "yirage-hal", "yirage-mmap"]),
    ("yirage-mmap", &[]),
    ("yirage-probe", &["yirage-plan", "yirage-hal", "yirage-mmap"]),
    ("yirage-sim", &["yirage-ir", "yirage-plan", "yirage-hal"]),
    ("yirage-registry", &["yirage-hal", "yirage-probe", "yirage-cpu", "yirage-sim"]),
    ("yirage-tune", &["yirage-ir", "yirage-plan", "yirage-hal", "yirage-compile", "yirage-packed"]),
    ("yirage-advisor", &["yirage-ir", "yirage-plan", "yirage-hal", "yirage-compile", "yirage-registry", "yirage-tune"]),
    ("yirage-explain", &["yirage-ir", "yirage-plan", "yirage-hal", "yirage-compile"]),
    ("yirage-process", &[]),
    ("yirage-packed", &["yirage-mmap"]),
    ("yirage-model", &["yirage-ir", "yirage-mmap"]),
    ("yirage-hub", &["yirage-mmap"]),
    ("yirage-stories", &[]),
    (
        "yirage-engine",
        &[
            "yirage-ir",
            "yirage-plan",
            "yirage-hal",
            "yirage-compile",
            "yirage-call",
            "yirage-plancache",
            "yirage-model",
            "yirage-mmap",
            "yirage-packed",
        ],
    ),
    (
        "yirage-persistent",
        &[
            "yirage-ir",
            "yirage-plan",
            "yirage-hal",
            "yirage-compile",
            "yirage-plancache",
            "yirage-mmap",
            "yirage-packed",
            "yirage-model",
            "yirage-engine",
        ],
    ),
    ("yirage-conformance", &["yirage-ir", "yirage-plan", "yirage-hal", "yirage-compile"]),
    ("yirage-session", &["yirage-hal", "yirage-mmap", "yirage-model", "yirage-engine", "yirage-hub"]),
    ("yirage-serve", &["yirage-engine", "yirage-model", "yirage-session"]),
    ("yirage-loadgen", &[]),
    ("yirage-dlpack", &["yirage-ir", "yirage-hal", "yirage-call"]),
    (
        "yirage-python",
        &[
            "yirage-ir",
            "yirage-plan",
            "yirage-hal",
            "yirage-compile",
            "yirage-graph",
            "yirage-call",
            "yirage-registry",
            "yirage-advisor",
            "yirage-tune",
            "yirage-explain",
            "yirage-mmap",
            "yirage-model",
            "yirage-hub",
            "yirage-engine",
            "yirage-plancache",
            "yirage-session",
            "yirage-dlpack",
            "yirage-persistent",
            // Faults are injected into its devices.
            "yirage-sim",
            // The package installs the command, which is its own main there.
            "yirage-process",
            "yirage",
        ],
    ),
    (
        "yirage",
        &[
            "yirage-ir",
            "yirage-plan",
            "yirage-hal",
            "yirage-registry",
            "yirage-advisor",
            "yirage-tune",
            "yirage-explain",
            "yirage-compile",
            "yirage-graph",
            "yirage-call",
            "yirage-plancache",
            "yirage-mmap",
            "yirage-packed",
            "yirage-process",
            "yirage-model",
            "yirage-hub",
            "yirage-stories",
            "yirage-engine",
            "yirage-session",
            "yirage-serve",
            "yirage-loadgen",
            "yirage-conformance",
        ],
    ),
    // For tests alone: only `[dev-dependencies]` name it.
    ("yirage-testkit", &["yirage-ir"]),
    ("xtask", &[]),
];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for manifest in manifest::members(tree, findings) {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == manifest.folder) else {
            let message =
                format!("crate `{}` is not in the table of arrows: add it there with its one job", manifest.folder);
            findings.push(TidyFinding::new(manifest.path, 0, message));
            continue;
        };
        for name in manifest.dependencies() {
            if ARROWS.iter().any(|(ours, _)| *ours == name) && !allowed.contains(&name.as_str()) {
                let message = format!("`{}` must not depend on `{name}`", manifest.folder);
                findings.push(TidyFinding::new(manifest.path, 0, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn a_compiler_that_knows_devices_is_found() {
        let found = run(
            check,
            &[
                ("crates/yirage-ir/Cargo.toml", "[dependencies]\nhalf = \"2\"\n[dev-dependencies]\nyirage-hal = \"1\""),
                (
                    "crates/yirage-compile/Cargo.toml",
                    "[dependencies]\nyirage-ir = \"1\"\n[target.'cfg(unix)'.dependencies]\nyirage-hal = \"1\"",
                ),
            ],
        );
        assert_eq!(found, ["crates/yirage-compile/Cargo.toml:0: `yirage-compile` must not depend on `yirage-hal`"]);
    }

    #[test]
    fn a_crate_without_a_place_and_a_broken_manifest_are_found() {
        let found = run(check, &[("crates/yirage-misc/Cargo.toml", ""), ("xtask/Cargo.toml", "[")]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("not TOML") && found[1].contains("not in the table of arrows"), "{found:?}");
    }
}
