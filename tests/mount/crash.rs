//! Things die: what fsync acknowledged is there whole, whoever was killed, and a retried call is not applied twice.

use crate::common::Farm;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that writes files and remembers those that fsync acknowledged.
struct Writer {
    stop: std::sync::Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

/// The content that belongs to a name.
fn content(name: &str) -> Vec<u8> {
    let number: usize = name.bytes().filter(u8::is_ascii_digit).fold(0, |n, d| n * 10 + usize::from(d - b'0'));
    blake3::hash(name.as_bytes()).as_bytes().repeat(1 + number % 300)
}

impl Writer {
    fn start(m: &Path, tag: String) -> Writer {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let (stopped, m) = (std::sync::Arc::clone(&stop), m.to_owned());
        let device = fs::metadata(&m).unwrap().dev();
        let thread = std::thread::spawn(move || {
            let mut acknowledged = Vec::new();
            for i in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let name = format!("{tag}{i}");
                let write = || -> std::io::Result<bool> {
                    let mut file = File::create(m.join(&name))?;
                    file.write_all(&content(&name))?;
                    file.sync_all()?;
                    // When the mount has been cleared away, the same path leads to the plain disk below it.
                    Ok(file.metadata()?.dev() == device)
                };
                match write() {
                    Ok(true) => acknowledged.push(name),
                    Ok(false) | Err(_) => std::thread::sleep(Duration::from_millis(20)),
                }
            }
            acknowledged
        });
        Writer { stop, thread }
    }

    fn finish(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn check(m: &Path, acknowledged: &[String]) {
    for name in acknowledged {
        let got = fs::read(m.join(name)).unwrap_or_else(|e| panic!("{name} was acknowledged: {e}"));
        assert!(got == content(name), "{name}: {} bytes, not what was acknowledged", got.len());
    }
}

/// What was not acknowledged is absent, or a beginning of its content; never zeros or a mixture.
fn check_rest(m: &Path) {
    for entry in fs::read_dir(m).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let got = fs::read(m.join(&name)).unwrap();
        assert!(content(&name).starts_with(&got), "{name}: {} bytes that were never written", got.len());
    }
}

#[test]
fn kill_the_client() {
    let mut farm = Farm::new();
    let space = farm.space();
    let cache = farm.path("killcache");
    let mut all = Vec::new();
    for round in 0..5u64 {
        let m = farm.mount_with_cache(&space, &[], &cache);
        let writer = Writer::start(&m, format!("r{round}x"));
        std::thread::sleep(Duration::from_millis(300 + 100 * round));
        farm.kill9(&m);
        all.extend(writer.finish());
        // With the cache that the killed client left, and without one.
        let m = if round % 2 == 1 { farm.mount_with_cache(&space, &[], &cache) } else { farm.mount(&space, &[]) };
        check(&m, &all);
        check_rest(&m);
        farm.umount(&m);
    }
    assert!(all.len() > 50, "only {} acknowledged writes: the run proves nothing", all.len());
}

#[test]
fn kill_the_server() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let writer = Writer::start(&m, "w".into());
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(500));
        farm.kill_server();
        std::thread::sleep(Duration::from_millis(200));
        farm.start_server();
    }
    std::thread::sleep(Duration::from_millis(500));
    let acknowledged = writer.finish();
    check(&m, &acknowledged);
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    check(&m, &acknowledged);
    check_rest(&m);
    assert!(acknowledged.len() > 50, "only {} acknowledged writes: the run proves nothing", acknowledged.len());
}

#[test]
fn retried_calls_are_applied_once() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let work = m.clone();
    // Each of these fails when it is applied a second time.
    let busy = std::thread::spawn(move || -> (usize, Vec<(PathBuf, std::io::Error)>) {
        let (mut done, mut failed) = (0, Vec::new());
        for i in 0..600 {
            let (dir, moved) = (work.join(format!("d{i}")), work.join(format!("m{i}")));
            let round = || -> Result<(), std::io::Error> {
                fs::create_dir(&dir)?;
                File::options().write(true).create_new(true).open(dir.join("f"))?;
                fs::hard_link(dir.join("f"), dir.join("g"))?;
                fs::rename(&dir, &moved)?;
                fs::remove_file(moved.join("f"))
            };
            match round() {
                Ok(()) => done += 1,
                Err(error) => failed.push((dir, error)),
            }
        }
        (done, failed)
    });
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(300));
        farm.kill_server();
        farm.start_server();
    }
    let (done, failed) = busy.join().unwrap();
    // A server that is away for long may be reported as EIO; a repeated call never as anything else.
    let wrong: Vec<_> =
        failed.iter().filter(|(_, e)| e.raw_os_error() != Some(rustix::io::Errno::IO.raw_os_error())).collect();
    assert!(wrong.is_empty(), "{} of 600, first {:?}", wrong.len(), wrong.first());
    assert!(done > 500, "only {done} rounds went through");
    let names = fs::read_dir(&m).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(names.filter(|n| n.starts_with('m')).count() >= done);
}

#[test]
fn a_killed_client_leaves_nothing_that_stops_the_next() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    fs::write(a.join("f"), "1").unwrap();
    let unlinked = File::create(a.join("orphan")).unwrap();
    fs::remove_file(a.join("orphan")).unwrap();
    farm.kill9(&a);
    drop(unlinked);
    // The dead one is waited for no longer than its lease; then the other goes on.
    fs::write(b.join("f"), "2").unwrap();
    assert_eq!(fs::read_to_string(b.join("f")).unwrap(), "2");
    let names: Vec<_> = fs::read_dir(&b).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["f"]);
}
