//! What an entry of the tree costs in memory, measured.

use super::VersionTree;
use super::state::State;
use crate::testing::allocated_here;
use agfs_core::apply::new_root;
use agfs_core::manifest::{Extent, Manifest};
use agfs_core::name::Name;
use agfs_core::node::{Body, Content, DirInfo, Link, Node};
use agfs_core::{ChunkHash, FileId, Seq, Timestamp};

fn file(id: u64, dir: FileId) -> (Name, Node) {
    let name = Name::new(format!("source_file_{id}.rs").as_bytes()).unwrap();
    let hash = ChunkHash::of(&id.to_le_bytes());
    let content = Content::inline(Manifest::new([Extent::whole(hash, 4_000)]).unwrap());
    let mut node = new_root(Seq(1), Timestamp(1), 0o644, 0, 0);
    node.file_id = FileId(id);
    // As off the wire: the link's name is another copy.
    node.link = Some(Link { parent: dir, name: Name::new(name.as_bytes()).unwrap() });
    node.body = Body::File(content);
    node.version_no = 1;
    (name, node)
}

#[test]
fn an_entry_takes_less_than_400_bytes() {
    const DIRS: u64 = 1_000;
    const FILES: u64 = 1_000;
    let tree = VersionTree::new(std::time::Duration::ZERO);
    let before = allocated_here();
    for d in 0..DIRS {
        let id = FileId(10 + d);
        let entries: Vec<_> = (0..FILES).map(|f| file(1_000_000 + d * FILES + f, id)).collect();
        let mut dir = new_root(Seq(1), Timestamp(1), 0o755, 0, 0);
        dir.file_id = id;
        dir.link = Some(Link { parent: FileId::ROOT, name: Name::new(format!("dir{d}").as_bytes()).unwrap() });
        dir.body = Body::Dir(DirInfo { entries: FILES, subdirs: 0, dead: 0, entry_set: id, shadow: false });
        let mut state = tree.state.write();
        State::install(&mut state, dir, entries, Seq(1));
    }
    let per_entry = (allocated_here() - before) / (DIRS * FILES) as i64;
    println!("{per_entry} bytes an entry, at {} entries", DIRS * FILES);
    assert_eq!(tree.counts(), (DIRS * FILES + DIRS, DIRS));
    assert!(per_entry < 400, "{per_entry} bytes an entry");
}
