//! Where Python's packages are installed: makers give their libraries as wheels too.
//!
//! The environments that are active (`VIRTUAL_ENV`, `CONDA_PREFIX`), those whose `python3` is in `PATH`, the user's own
//! packages, and the system's. No Python is run.

use crate::environment::ProbeEnvironment;
use std::path::{Path, PathBuf};

/// Folders of packages in the folder of a Python's version.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// These folders of all packages, as far as they are there.
pub(crate) fn package_folders(folders: &[&str], surroundings: &ProbeEnvironment) -> Vec<PathBuf> {
    let packages = roots(surroundings).into_iter().flat_map(|root| libraries(&root));
    let packages = packages.flat_map(|library| PACKAGES.map(|packages| library.join(packages)));
    let all = packages.flat_map(|packages| folders.iter().map(move |folder| packages.join(folder)));
    all.filter(|folder| folder.is_dir()).collect()
}

/// The roots of installations, most wanted first. What is no absolute path is passed over.
fn roots(surroundings: &ProbeEnvironment) -> Vec<PathBuf> {
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| surroundings.variable(name));
    let path = surroundings.variable("PATH").unwrap_or_default();
    let has_python = |folder: &PathBuf| folder.is_absolute() && folder.join("python3").exists();
    let in_path = std::env::split_paths(path).filter(has_python);
    let in_path = in_path.filter_map(|folder| Some(folder.parent()?.to_path_buf()));
    let own = surroundings.variable("HOME").map(|home| Path::new(home).join(".local"));
    let system = ["/usr/local", "/usr"].map(|root| surroundings.path(Path::new(root)));
    active.map(PathBuf::from).chain(in_path).chain(own).chain(system).filter(|root| root.is_absolute()).collect()
}

/// The folders of Python's versions in a root, newest first as their names sort.
fn libraries(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_python = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"));
    let mut found: Vec<PathBuf> = entries.filter(is_python).collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may stop at anything
mod tests {
    use super::*;

    #[test]
    fn wheels_are_found_in_environments_of_python() {
        let root = tempfile::tempdir().unwrap();
        let made = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let system = made("usr/lib/python3/dist-packages/nvidia/lib");
        let own = made("env/lib/python3.12/site-packages/nvidia/lib");
        let in_path = made("opt/lib/python3.11/site-packages/nvidia/lib");
        made("opt/lib/python3.10/site-packages/other");
        std::fs::write(made("opt/bin").join("python3"), "").unwrap();
        let variables = [("VIRTUAL_ENV", root.path().join("env")), ("PATH", root.path().join("opt/bin"))];
        let surroundings = ProbeEnvironment::new(root.path(), variables);
        assert_eq!(package_folders(&["nvidia/lib"], &surroundings), [own, in_path, system]);
        let relative = ProbeEnvironment::new(root.path(), [("VIRTUAL_ENV", "env"), ("PATH", "bin")]);
        assert_eq!(package_folders(&["nvidia/lib"], &relative).len(), 1, "what is no absolute path is passed over");
    }
}
