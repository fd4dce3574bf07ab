//! Public test suites run whole: pjdfstest (POSIX conformance) and fsx (random reads, writes and mappings against a copy in
//! memory). deploy/test-tools.sh installs them; `make test` calls it.

use crate::common::run::{Done, run};
use crate::common::{Farm, long};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How many tests pjdfstest 0.2.2 has.
const PJDFSTEST: usize = 398;

/// Tests of pjdfstest that may be skipped, on any file system.
const SKIPPED: &[(&str, &str)] =
    &[("erofs", "remounts the file system read-only: runs by itself in `pjdfstest_of_a_read_only_file_system`")];

/// Tests of pjdfstest that pass on ext4 and do not run on the mount.
const SKIPPED_ON_THE_MOUNT: &[(&str, &str)] = &[(
    "link::link_count_max",
    "glibc's pathconf(_PC_LINK_MAX) knows the limits of ten file systems by their statfs type and says 127 for FUSE, which the \
     suite takes for unknown; the limit is in `a_file_has_at_most_65000_links`",
)];

/// A program that deploy/test-tools.sh installs.
fn tool(name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/test-tools.sh");
    let done = run(Command::new(&script).arg("--print"), b"", Duration::from_secs(10));
    let path = Path::new(done.out().trim()).join("bin").join(name);
    assert!(path.is_file(), "{} is missing: run deploy/test-tools.sh", path.display());
    path
}

fn open_to_all(dir: &Path) {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
}

/// Runs pjdfstest in `dir`, with `other` on another file system; returns how each test ended: ok, FAILED or skipped.
fn pjdfstest(
    farm: &Farm,
    (dir, other): (&Path, &Path),
    remount: bool,
    patterns: &[&str],
) -> (BTreeMap<String, String>, Done) {
    let group = if Path::new("/etc/debian_version").exists() { "nogroup" } else { "nobody" };
    let config = format!(
        "[features]\nposix_fallocate = {{}}\nrename_ctime = {{}}\nutime_now = {{}}\nutimensat = {{}}\n\
         secondary_fs = \"{}\"\n[settings]\nnaptime = 0.01\nallow_remount = {remount}\n\
         [dummy_auth]\nentries = [[\"nobody\", \"{group}\"], [\"daemon\", \"daemon\"]]\n",
        other.display()
    );
    let file = farm.path("pjdfstest.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(tool("pjdfstest"));
    command.arg("-c").arg(&file).arg("-p").arg(dir).args(patterns).env("RUST_BACKTRACE", "0");
    if remount {
        // mount(8) hands a FUSE mount to a helper named after its type, which has no part in a remount.
        let bin = farm.path("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("mount"), "#!/bin/sh\nexec /bin/mount -i \"$@\"\n").unwrap();
        std::fs::set_permissions(bin.join("mount"), std::fs::Permissions::from_mode(0o755)).unwrap();
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    }
    let done = run(&mut command, b"", Duration::from_secs(300));
    let ends = ["ok", "FAILED", "skipped"];
    let end_of = |line: &str| {
        let (name, end) = line.trim_end().rsplit_once(' ')?;
        let known = ends.contains(&end) && name.contains("::");
        known.then(|| (name.trim_end().to_owned(), end.to_owned()))
    };
    (done.out().lines().filter_map(end_of).collect(), done)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn pjdfstest_passes_as_on_a_plain_directory() {
    let mut farm = Farm::new();
    let space = farm.space();
    let other = farm.space();
    let mut mount = |space| farm.mount(space, &["--allow-other", "--shadow", "none"]);
    let (m, other) = (mount(&space), mount(&other));
    let plain = farm.plain();
    for dir in [&plain, &m, &other] {
        open_to_all(dir);
    }
    let (there, _) = pjdfstest(&farm, (&plain, &other), false, &[]);
    let (here, done) = pjdfstest(&farm, (&m, &other), false, &[]);
    assert_eq!((there.len(), here.len()), (PJDFSTEST, PJDFSTEST), "{}", done.tail());
    let failed: Vec<_> = here.iter().filter(|(_, end)| *end == "FAILED").collect();
    assert!(failed.is_empty(), "{failed:?}\n{}", done.out());
    let listed = |name: &str, list: &[(&str, &str)]| list.iter().any(|(part, _)| name.contains(part));
    for (name, end) in &here {
        // Without root many tests cannot switch users; then both sides skip the same.
        let fine = end == "ok"
            || listed(name, SKIPPED)
            || (listed(name, SKIPPED_ON_THE_MOUNT) && there[name] == "ok")
            || (!is_root() && there[name] == *end);
        assert!(fine, "{name} is {end} on the mount and {} on a plain directory", there[name]);
    }
}

#[test]
fn pjdfstest_of_a_read_only_file_system() {
    if !is_root() {
        eprintln!("not root: a file system cannot be remounted; this runs in CI");
        return;
    }
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &["--allow-other", "--shadow", "none"]);
    open_to_all(&m);
    // By itself, because the rest of the suite leaves a file open for writing, and a file system with one cannot be remounted.
    let (ends, done) = pjdfstest(&farm, (&m, &m), true, &["erofs"]);
    assert_eq!(ends.len(), 13, "{}", done.tail());
    assert!(ends.values().all(|end| end == "ok"), "{ends:?}\n{}", done.tail());
}

/// Every operation of fsx, with these settings before the sections.
fn fsx_config(settings: &str, largest: u32) -> String {
    format!(
        "{settings}\n[opsize]\nmax = {largest}\n[weights]\nclose_open = 1\nread = 10\nwrite = 10\nmapread = 10\nmapwrite = 10\n\
         invalidate = 1\ntruncate = 2\nfsync = 0.5\nfdatasync = 0.5\nposix_fallocate = 1\npunch_hole = 3\nsendfile = 2\n\
         posix_fadvise = 1\ncopy_file_range = 3\n"
    )
}

/// 200,000 operations on a file in `dir`, as processes of 20,000 each with a seed of its own: fsx keeps every mapping that it
/// makes, which makes the kernel slower with each, and its `-b`, to begin in the middle, fails with copy_file_range (on any
/// file system). `make test-long` runs the 200,000 in one process too.
fn fsx(farm: &Farm, dir: &Path, seed: u32, config: &str) {
    let file = farm.path("fsx.toml");
    std::fs::write(&file, config).unwrap();
    let once = |seed: u32, operations: u32, limit: u64| {
        let mut command = Command::new(tool("fsx"));
        command.arg("-q").arg("-f").arg(&file).arg("-P").arg(farm.path(".")).arg("-S").arg(seed.to_string());
        command.arg("-N").arg(operations.to_string()).arg(dir.join("fsx"));
        let done = run(&mut command, b"", Duration::from_secs(limit));
        assert!(done.status.success() && done.out().contains("A-OK"), "seed {seed}: {}\n{}", done.status, done.tail());
    };
    for piece in 0..10 {
        once(seed * 100 + piece, 20_000, 400);
    }
    if long() {
        once(seed, 200_000, 3_600);
    }
}

fn fsx_on_a_mount(seed: u32, options: &[&str], config: &str) {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, options);
    fsx(&farm, &m, seed, config);
    farm.umount(&m);
}

#[test]
fn fsx_with_every_mapped_write_synced() {
    // Each synced write is a version that is kept: a small file and few of them, or they fill the disk.
    let config = fsx_config("flen = 65536", 16_384).replace("mapwrite = 10", "mapwrite = 2");
    fsx_on_a_mount(1, &[], &config);
}

#[test]
fn fsx_of_a_small_file() {
    fsx_on_a_mount(2, &[], &fsx_config("flen = 262144\nnomsyncafterwrite = true", 65_536));
}

#[test]
fn fsx_of_a_file_changed_in_place() {
    fsx_on_a_mount(3, &[], &fsx_config("flen = 4194304\nnomsyncafterwrite = true", 131_072));
}

#[test]
fn fsx_with_a_small_cache() {
    let options = ["--cache-size", "64M", "--memory-limit", "64M"];
    fsx_on_a_mount(4, &options, &fsx_config("flen = 1048576\nnomsyncafterwrite = true", 65_536));
}

#[test]
fn fsx_in_a_shadow_directory() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    std::fs::create_dir(m.join("node_modules")).unwrap();
    fsx(&farm, &m.join("node_modules"), 5, &fsx_config("flen = 262144", 65_536));
    farm.umount(&m);
}
