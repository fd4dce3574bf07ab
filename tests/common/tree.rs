//! Whole trees: filled with files that are the same every time, and read as a person would see them, to be compared.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What can be seen of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A directory and its mode.
    Dir(u32),
    /// A file: mode, size in bytes, time of last change in nanoseconds (0 when times are not looked at), content.
    File(u32, u64, i128, blake3::Hash),
    /// A symbolic link and where it points.
    Link(PathBuf),
    /// A fifo, socket or device: mode and device number.
    Special(u32, u64),
}

/// A tree as seen, by path relative to its root.
pub type Tree = BTreeMap<PathBuf, Seen>;

/// What of a tree to look at.
#[derive(Clone, Copy, Default)]
pub struct Look<'a> {
    /// Times of last change of files too.
    pub times: bool,
    /// Names that are left out, with all below them.
    pub skip: &'a [&'a str],
    /// Endings of names whose size and content are not compared: they differ from run to run on any file system.
    pub only_present: &'a [&'a str],
}

/// The whole tree, with times.
pub fn tree(root: &Path) -> Tree {
    look(root, &Look { times: true, ..Look::default() })
}

/// The tree as far as `what` says.
pub fn look(root: &Path, what: &Look<'_>) -> Tree {
    let named = |e: &walkdir::DirEntry, list: &[&str], hit: fn(&str, &str) -> bool| {
        let name = e.file_name().to_string_lossy();
        list.iter().any(|n| hit(&name, n))
    };
    let mut out = Tree::new();
    let walk = walkdir::WalkDir::new(root).min_depth(1).into_iter();
    for entry in walk.filter_entry(|e| !named(e, what.skip, |a, b| a == b)) {
        let entry = entry.unwrap_or_else(|e| panic!("walking {}: {e}", root.display()));
        let bare = named(&entry, what.only_present, |a, b| a.ends_with(b));
        let seen = see(entry.path(), what.times, bare);
        out.insert(entry.path().strip_prefix(root).unwrap().to_owned(), seen);
    }
    out
}

fn see(path: &Path, times: bool, bare: bool) -> Seen {
    let at = |e: std::io::Error| -> ! { panic!("{}: {e}", path.display()) };
    let meta = path.symlink_metadata().unwrap_or_else(|e| at(e));
    let kind = meta.file_type();
    if kind.is_symlink() {
        return Seen::Link(path.read_link().unwrap_or_else(|e| at(e)));
    }
    if kind.is_dir() {
        return Seen::Dir(meta.mode());
    }
    if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
        return Seen::Special(meta.mode(), meta.rdev());
    }
    if bare {
        return Seen::File(meta.mode(), 0, 0, blake3::hash(b""));
    }
    let content = std::fs::read(path).unwrap_or_else(|e| at(e));
    assert_eq!(content.len() as u64, meta.len(), "{}: read another length than stat told", path.display());
    let time = if times { i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()) } else { 0 };
    Seen::File(meta.mode(), meta.len(), time, blake3::hash(&content))
}

/// Fails with the first differences when the two are not the same.
#[track_caller]
pub fn same(want: &Tree, got: &Tree, what: &str) {
    let paths: std::collections::BTreeSet<&PathBuf> = want.keys().chain(got.keys()).collect();
    let differ: Vec<String> = paths
        .into_iter()
        .filter(|p| want.get(*p) != got.get(*p))
        .map(|p| format!("{}: want {:?}, got {:?}", p.display(), want.get(p), got.get(p)))
        .collect();
    let first = differ.iter().take(5).cloned().collect::<Vec<_>>().join("\n  ");
    assert!(differ.is_empty(), "{what}: {} differences:\n  {first}", differ.len());
}

/// The part of a tree that `keep` chooses.
pub fn part(tree: &Tree, keep: impl Fn(&Path) -> bool) -> Tree {
    tree.iter().filter(|(p, _)| keep(p)).map(|(p, s)| (p.clone(), s.clone())).collect()
}

/// Fills an empty directory with files of many sizes, a symbolic link and an executable: the same every time.
pub fn fill(root: &Path, files: usize) {
    let mut random = Random::new(1);
    for i in 0..files {
        let dir = root.join(format!("d{}/e{}", i % 13, i % 5));
        std::fs::create_dir_all(&dir).unwrap();
        let size = *random.pick(&[0, 1, 100, 4096, 70_000]);
        std::fs::write(dir.join(format!("f{i}.txt")), random.bytes(size)).unwrap();
    }
    std::os::unix::fs::symlink("d1/e1", root.join("link")).unwrap();
    chmod(&root.join("d0/e0/f0.txt"), 0o755);
}

/// Sets the permission bits.
pub fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Numbers that look random and are the same every time (splitmix64).
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[(self.number() % from.len() as u64) as usize]
    }

    /// So many bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n.div_ceil(8)).flat_map(|_| self.number().to_le_bytes()).take(n).collect()
    }
}
