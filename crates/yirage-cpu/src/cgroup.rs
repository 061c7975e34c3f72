//! The control groups this process is in, of both versions.

use std::path::{Component, Path, PathBuf};

/// Where the system shows control groups.
pub(crate) const ROOT: &str = "/sys/fs/cgroup";

/// What reads a file: tests have files of their own.
pub(crate) type CgroupFileReader<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// A folder of a control group.
pub(crate) struct CgroupDir {
    /// Where its files are.
    pub(crate) folder: PathBuf,
    /// Whether its files are those of version 2.
    pub(crate) v2: bool,
}

/// The process's groups that `controller` may limit, each with its parents up to the root. `groups` is
/// `/proc/self/cgroup`.
pub(crate) fn groups(groups: &str, controller: &str, root: &Path) -> Vec<CgroupDir> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let v2 = controllers.is_empty();
        if !v2 && !controllers.split(',').any(|c| c == controller) {
            continue;
        }
        let mount = if v2 { root.to_path_buf() } else { root.join(controller) };
        found.extend(folders(&mount, path).into_iter().map(|folder| CgroupDir { folder, v2 }));
    }
    found
}

/// The group's folder and its parents up to the mount. Inside a container the path may not exist below the mount, but
/// the mount itself then is the container's group.
fn folders(mount: &Path, path: &str) -> Vec<PathBuf> {
    let relative = Path::new(path.trim_start_matches('/'));
    let inside = |p: &Path| !p.components().any(|c| matches!(c, Component::ParentDir));
    relative.ancestors().filter(|p| inside(p)).map(|p| mount.join(p)).collect()
}
