//! The errno that a program gets is the one that a plain directory gives: the same calls on both, compared.

use crate::common::Farm;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

type Case = (&'static str, fn(&Path) -> Result<(), Errno>);

fn open(path: PathBuf, flags: OFlags) -> Result<rustix::fd::OwnedFd, Errno> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::from(0o644))
}

fn rename(root: &Path, a: &str, b: &str) -> Result<(), Errno> {
    rustix::fs::rename(root.join(a), root.join(b))
}

fn long(n: usize) -> String {
    "n".repeat(n)
}

/// A path of existing directories, `n` bytes long with its root.
fn deep(root: &Path, n: usize) -> PathBuf {
    let mut path = root.as_os_str().to_owned();
    while path.len() + 2 <= n {
        path.push("/d");
        path.push("/..");
    }
    PathBuf::from(path)
}

/// Calls on a directory that holds: f (a file), d (a directory with d/x in it), e (an empty directory), l (a link to f),
/// loop (a link to itself), broken (a link to nothing).
const CASES: &[Case] = &[
    ("open a missing file", |r| open(r.join("none"), OFlags::RDONLY).map(drop)),
    ("open below a file", |r| open(r.join("f/x"), OFlags::RDONLY).map(drop)),
    ("open below a missing directory", |r| open(r.join("none/x"), OFlags::CREATE | OFlags::WRONLY).map(drop)),
    ("open a directory for writing", |r| open(r.join("d"), OFlags::WRONLY).map(drop)),
    ("open a file as a directory", |r| open(r.join("f"), OFlags::DIRECTORY).map(drop)),
    ("create what exists", |r| open(r.join("f"), OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY).map(drop)),
    ("create over a link", |r| open(r.join("l"), OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY).map(drop)),
    ("create through a broken link", |r| open(r.join("broken"), OFlags::CREATE | OFlags::WRONLY).map(drop)),
    ("open a loop", |r| open(r.join("loop"), OFlags::RDONLY).map(drop)),
    ("open a link unfollowed", |r| open(r.join("l"), OFlags::RDONLY | OFlags::NOFOLLOW).map(drop)),
    ("create a name of 255 bytes", |r| open(r.join(long(255)), OFlags::CREATE | OFlags::WRONLY).map(drop)),
    ("create a name of 256 bytes", |r| open(r.join(long(256)), OFlags::CREATE | OFlags::WRONLY).map(drop)),
    ("look up a name of 256 bytes", |r| rustix::fs::lstat(r.join(long(256))).map(drop)),
    ("mkdir a name of 256 bytes", |r| rustix::fs::mkdir(r.join(long(256)), Mode::RWXU)),
    ("symlink a name of 256 bytes", |r| rustix::fs::symlink("f", r.join(long(256)))),
    ("link to a name of 256 bytes", |r| rustix::fs::link(r.join("f"), r.join(long(256)))),
    ("rename to a name of 256 bytes", |r| rename(r, "f", &long(256))),
    ("unlink a name of 256 bytes", |r| rustix::fs::unlink(r.join(long(256)))),
    ("rmdir a name of 256 bytes", |r| rustix::fs::rmdir(r.join(long(256)))),
    ("stat a path under 4,096 bytes", |r| rustix::fs::stat(deep(r, 4_080)).map(drop)),
    ("stat a path over 4,096 bytes", |r| rustix::fs::stat(deep(r, 4_200)).map(drop)),
    ("symlink to a target of 4,095 bytes", |r| rustix::fs::symlink(long(4_095), r.join("s4095"))),
    ("symlink to a target of 4,096 bytes", |r| rustix::fs::symlink(long(4_096), r.join("s4096"))),
    ("symlink to nothing", |r| rustix::fs::symlink("", r.join("s0"))),
    ("symlink over a name", |r| rustix::fs::symlink("x", r.join("f"))),
    ("mkdir over a file", |r| rustix::fs::mkdir(r.join("f"), Mode::RWXU)),
    ("mkdir over a directory", |r| rustix::fs::mkdir(r.join("d"), Mode::RWXU)),
    ("mkdir below a file", |r| rustix::fs::mkdir(r.join("f/x"), Mode::RWXU)),
    ("mkdir of a dot", |r| rustix::fs::mkdir(r.join("d/."), Mode::RWXU)),
    ("rmdir with entries", |r| rustix::fs::rmdir(r.join("d"))),
    ("rmdir a file", |r| rustix::fs::rmdir(r.join("f"))),
    ("rmdir nothing", |r| rustix::fs::rmdir(r.join("none"))),
    ("rmdir a dot", |r| rustix::fs::rmdir(r.join("e/."))),
    ("unlink a directory", |r| rustix::fs::unlink(r.join("e"))),
    ("unlink nothing", |r| rustix::fs::unlink(r.join("none"))),
    ("link a directory", |r| rustix::fs::link(r.join("e"), r.join("e2"))),
    ("link over a name", |r| rustix::fs::link(r.join("f"), r.join("d/x"))),
    ("link nothing", |r| rustix::fs::link(r.join("none"), r.join("x"))),
    ("rename nothing", |r| rename(r, "none", "x")),
    ("rename a file over a directory", |r| rename(r, "f", "e")),
    ("rename a directory over a file", |r| rename(r, "e", "f")),
    ("rename over a directory with entries", |r| rename(r, "e", "d")),
    ("rename a directory into itself", |r| rename(r, "d", "d/y")),
    ("rename a directory onto its parent", |r| rename(r, "d/x", "d")),
    ("rename a dot", |r| rename(r, "d/.", "x")),
    ("rename to a slash", |r| rename(r, "f", "new/")),
    ("exchange with nothing", |r| {
        rustix::fs::renameat_with(CWD, r.join("f"), CWD, r.join("none"), RenameFlags::EXCHANGE)
    }),
    ("exchange a directory with its parent", |r| {
        rustix::fs::renameat_with(CWD, r.join("d"), CWD, r.join("d/x"), RenameFlags::EXCHANGE)
    }),
    ("no-replace onto a name", |r| {
        rustix::fs::renameat_with(CWD, r.join("f"), CWD, r.join("l"), RenameFlags::NOREPLACE)
    }),
    ("readlink a file", |r| rustix::fs::readlink(r.join("f"), Vec::new()).map(drop)),
    ("truncate a directory", |r| {
        std::fs::File::options().write(true).open(r.join("d")).map_err(errno)?.set_len(0).map_err(errno)
    }),
    ("truncate beyond every size", |r| {
        let file = open(r.join("f"), OFlags::WRONLY)?;
        rustix::fs::ftruncate(&file, u64::MAX)
    }),
    ("read a directory", |r| {
        let dir = open(r.join("d"), OFlags::RDONLY)?;
        rustix::io::read(&dir, &mut [0u8; 8][..]).map(drop)
    }),
    ("seek for data past the end", |r| {
        let file = open(r.join("f"), OFlags::RDONLY)?;
        rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(1 << 40)).map(drop)
    }),
    ("an attribute that is not there", |r| rustix::fs::getxattr(r.join("f"), "user.none", &mut [0u8; 8][..]).map(drop)),
    ("remove an attribute that is not there", |r| rustix::fs::removexattr(r.join("f"), "user.none")),
    ("an attribute without a namespace", |r| rustix::fs::setxattr(r.join("f"), "none", b"x", XattrFlags::empty())),
    ("a user attribute on a link", |r| rustix::fs::lsetxattr(r.join("l"), "user.x", b"x", XattrFlags::empty())),
    ("an attribute with a name of 256 bytes", |r| {
        rustix::fs::setxattr(r.join("f"), format!("user.{}", long(251)), b"x", XattrFlags::empty())
    }),
    ("an attribute over 64 KiB", |r| rustix::fs::setxattr(r.join("f"), "user.x", &[0; 65_537], XattrFlags::empty())),
    ("chmod nothing", |r| rustix::fs::chmod(r.join("none"), Mode::RWXU)),
    ("access to a missing file", |r| rustix::fs::access(r.join("none"), rustix::fs::Access::READ_OK)),
    ("execute a file without the bit", |r| rustix::fs::access(r.join("f"), rustix::fs::Access::EXEC_OK)),
    ("unlink with an unknown flag", |r| rustix::fs::unlinkat(CWD, r.join("f"), AtFlags::from_bits_retain(0x4000_0000))),
];

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap()
}

fn prepare(root: &Path) {
    std::fs::write(root.join("f"), "content").unwrap();
    std::fs::create_dir_all(root.join("d/x")).unwrap();
    std::fs::create_dir(root.join("e")).unwrap();
    for (link, target) in [("l", "f"), ("loop", "loop"), ("broken", "none/none")] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
}

#[test]
fn a_program_gets_the_errno_of_a_plain_directory() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    prepare(&m);
    prepare(&plain);
    let mut wrong = Vec::new();
    for (what, call) in CASES {
        let (want, got) = (call(&plain), call(&m));
        if want != got {
            wrong.push(format!("{what}: {got:?}, a plain directory gives {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n  {}", wrong.len(), CASES.len(), wrong.join("\n  "));
    let look = |root: &Path| crate::common::tree::look(root, &crate::common::tree::Look::default());
    crate::common::tree::same(&look(&plain), &look(&m), "what the failed calls left");
}

#[test]
fn deep_trees_are_reached_step_by_step() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    // Far more than 4,096 bytes of path, which only a walk by handles can reach.
    let step = long(200);
    let mut at = open(m.clone(), OFlags::DIRECTORY | OFlags::RDONLY).unwrap();
    for _ in 0..30 {
        rustix::fs::mkdirat(&at, &step, Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, &step, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    }
    let file = rustix::fs::openat(&at, "f", OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RWXU).unwrap();
    assert_eq!(rustix::io::write(&file, b"deep"), Ok(4));
    drop((file, at));
    let found = farm.sh(&m, "find . -type f -size 4c | wc -c");
    assert!(found.trim().parse::<usize>().unwrap() > 6_000, "{found}");
    farm.sh(&m, "rm -rf n*");
    assert_eq!(std::fs::read_dir(&m).unwrap().count(), 0);
}

#[test]
fn a_program_that_runs_cannot_be_written() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    std::fs::create_dir(m.join("node_modules")).unwrap();
    let sleep = std::fs::read("/bin/sleep").unwrap();
    for dir in [farm.plain(), m.clone(), m.join("node_modules")] {
        let program = dir.join("sleep");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut running = std::process::Command::new(&program).arg("60").spawn().unwrap();
        // An open that only cuts comes to the file system before the kernel refuses it.
        let attempts = [OFlags::WRONLY, OFlags::RDWR, OFlags::RDONLY | OFlags::TRUNC, OFlags::WRONLY | OFlags::TRUNC]
            .map(|flags| open(program.clone(), flags).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let alive = running.try_wait().unwrap().is_none();
        running.kill().unwrap();
        running.wait().unwrap();
        assert_eq!(attempts, [Err(Errno::TXTBSY); 4], "{}", dir.display());
        assert!(alive, "{}: the program died", dir.display());
        assert!(std::fs::read(&program).unwrap() == sleep, "{}: the program was cut", dir.display());
    }
    // Another one may be cut while a program runs.
    let mut running = std::process::Command::new(m.join("sleep")).arg("60").spawn().unwrap();
    std::fs::write(m.join("other"), "text").unwrap();
    let cut = open(m.join("other"), OFlags::RDONLY | OFlags::TRUNC).map(drop);
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!((cut, std::fs::read(m.join("other")).unwrap()), (Ok(()), Vec::new()));
    farm.umount(&m);
}
