//! Memory that is nearer to some processors than to others.

use super::processors::count;
use super::{SysfsReader, line};

/// More nodes than a machine has.
const MOST: usize = 1024;

/// The nodes with their processors: `2 nodes (0-15; 16-31)`.
pub(super) fn nodes(read: SysfsReader<'_>) -> Option<String> {
    let online = line(read, "devices/system/node/online")?;
    let nodes = count(&online)?;
    if nodes == 1 {
        return Some("one node".into());
    }
    let of = |node: usize| read(&format!("devices/system/node/node{node}/cpulist")).map(|list| list.trim().to_owned());
    let lists: Vec<String> = (0..MOST).filter_map(of).take(nodes).collect();
    Some(format!("{nodes} nodes (processors {})", lists.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::nodes;
    use crate::machine::files;

    #[test]
    fn nodes_and_their_processors() {
        assert_eq!(nodes(&files::of(&[("devices/system/node/online", "0\n")])).unwrap(), "one node");
        let two = files::of(&[
            ("devices/system/node/online", "0,2"),
            ("devices/system/node/node0/cpulist", "0-15\n"),
            ("devices/system/node/node2/cpulist", "16-31\n"),
        ]);
        assert_eq!(nodes(&two).unwrap(), "2 nodes (processors 0-15; 16-31)");
        assert_eq!(nodes(&files::of(&[])), None);
    }
}
