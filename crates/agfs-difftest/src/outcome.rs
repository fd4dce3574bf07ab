//! What an operation answers, as plain data of one shape for every target. What is equal is decided in `compare`.

use std::collections::BTreeMap;
use std::fmt;

/// What an operation answered.
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It failed.
    Errno(i32),
    /// It succeeded and says nothing.
    Done,
    /// A count or a position.
    Number(u64),
    /// Bytes that were read, a link's target, an attribute.
    Data(Vec<u8>),
    /// Attributes.
    Stat(Stat),
    /// Names, sorted, with their kinds where there are any.
    Names(Vec<(Vec<u8>, Kind)>),
    /// An answer that may differ and was held against the content; why it is wrong, if it is.
    Judged(Result<(), String>),
    /// A whole tree, by path.
    Tree(BTreeMap<Vec<u8>, Seen>),
}

/// The answer of a call, with the errno of a failure.
pub type Answer = Result<Outcome, i32>;

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Outcome {
        answer.unwrap_or_else(Outcome::Errno)
    }
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the usual kinds")]
pub enum Kind {
    File,
    Dir,
    Link,
    Fifo,
    Socket,
    Other,
}

impl Kind {
    /// By the type bits of a mode.
    pub const fn of(mode: u32) -> Kind {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Dir,
            libc::S_IFLNK => Kind::Link,
            libc::S_IFIFO => Kind::Fifo,
            libc::S_IFSOCK => Kind::Socket,
            _ => Kind::Other,
        }
    }
}

/// Attributes of an inode. Times in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of stat(2)")]
pub struct Stat {
    pub ino: u64,
    pub kind: Kind,
    /// Permission and set-id bits.
    pub mode: u32,
    pub nlink: u64,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u64,
    pub size: u64,
    /// In units of 512 bytes.
    pub blocks: u64,
    pub atime: i128,
    pub mtime: i128,
    pub ctime: i128,
}

/// One path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its attributes.
    pub stat: Stat,
    /// The first path of the same inode, if that is another.
    pub same_as: Option<Vec<u8>>,
    /// A hash of a file's content or of a link's target.
    pub content: Option<blake3::Hash>,
    /// Extended attributes of the namespaces user and trusted.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The hash of a content, which is given in pieces with their places. Zeros do not count: a hole is as good.
#[derive(Default)]
pub struct ContentHash(blake3::Hasher);

impl ContentHash {
    const PAGE: usize = 4_096;

    /// Adds what is at `at`, a multiple of the page size. Every piece but the last is a whole number of pages.
    pub fn add(&mut self, at: u64, piece: &[u8]) {
        for (n, page) in piece.chunks(Self::PAGE).enumerate() {
            let end = page.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
            if end > 0 {
                self.0.update(&(at + (n * Self::PAGE) as u64).to_le_bytes());
                self.0.update(&(end as u64).to_le_bytes());
                self.0.update(&page[..end]);
            }
        }
    }

    /// The hash of a content of this size.
    pub fn end(mut self, size: u64) -> blake3::Hash {
        self.0.update(&size.to_le_bytes());
        self.0.finalize()
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Errno(errno) => f.write_str(&errno_name(*errno)),
            Outcome::Done => f.write_str("ok"),
            Outcome::Number(n) => write!(f, "{n}"),
            Outcome::Data(bytes) if bytes.len() > 40 => write!(f, "{} bytes", bytes.len()),
            Outcome::Data(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Outcome::Stat(stat) => stat.fmt(f),
            Outcome::Names(names) => {
                f.debug_list().entries(names.iter().map(|(n, k)| (String::from_utf8_lossy(n), k))).finish()
            }
            Outcome::Judged(judgement) => judgement.fmt(f),
            Outcome::Tree(tree) => write!(f, "{} paths", tree.len()),
        }
    }
}

impl fmt::Debug for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |t: i128| format!("{}.{:09}", t.div_euclid(1_000_000_000), t.rem_euclid(1_000_000_000));
        write!(f, "{:?} {} mode {:o} nlink {} ", self.kind, self.ino, self.mode, self.nlink)?;
        write!(f, "owner {}:{} rdev {} size {} blocks {} ", self.uid, self.gid, self.rdev, self.size, self.blocks)?;
        write!(f, "atime {} mtime {} ctime {}", seconds(self.atime), seconds(self.mtime), seconds(self.ctime))
    }
}

/// The name of an errno, where it is one that file systems give.
pub fn errno_name(errno: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::EACCES, "EACCES"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::ESPIPE, "ESPIPE"),
        (libc::EMLINK, "EMLINK"),
        (libc::ERANGE, "ERANGE"),
        (libc::ENAMETOOLONG, "ENAMETOOLONG"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ENOTEMPTY, "ENOTEMPTY"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENODATA, "ENODATA"),
        (libc::EOVERFLOW, "EOVERFLOW"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ESTALE, "ESTALE"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::ENODEV, "ENODEV"),
    ];
    known.iter().find(|(n, _)| *n == errno).map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned())
}

/// The bytes that a write of this fill puts at these places: the same however it is cut. A fill of 0 is zeros.
pub fn filled(fill: u8, at: u64, len: u64) -> Vec<u8> {
    let byte = |i: u64| (i.wrapping_mul(u64::from(fill) | 1) >> 3).wrapping_add(u64::from(fill)) as u8;
    (at..at.saturating_add(len)).map(|i| if fill == 0 { 0 } else { byte(i) }).collect()
}
