//! One server, its mounts, and the command line pointed at it: everything below one temporary directory, with nothing of
//! the user's own settings, and taken down when the test ends. Uses only what the command line documents.

use super::process::{Watchdog, detach, is_mounted, mounts_below, signal, start, wait};
use super::run::{Done, last, line, run};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a server or a mount may take to be there.
const START: Duration = Duration::from_secs(30);
/// How long a clean stop may take.
const STOP: Duration = Duration::from_secs(30);
/// How long one call of the command line may take.
const CALL: Duration = Duration::from_secs(60);
/// How long a script may take.
const SCRIPT: Duration = Duration::from_secs(300);
/// How long a whole test may take.
const TEST: Duration = Duration::from_secs(900);

/// Whether the tests that may take minutes do (`make test-long`).
pub fn long() -> bool {
    std::env::var_os("AGFS_TEST_LONG").is_some_and(|v| v == "1")
}

/// A program of tests/programs, which tests run with python3.
pub fn program(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    assert!(path.is_file(), "{}: no such program", path.display());
    path.display().to_string()
}

const DIRECTORIES: &[&str] = &["home", "xdg/data", "xdg/cache", "xdg/config", "xdg/run", "xdg/state", "m", "plain"];

/// A server with its mounts.
pub struct Farm {
    work: PathBuf,
    port: u16,
    server: Option<Child>,
    mounts: BTreeMap<PathBuf, Child>,
    made: usize,
    watchdog: Watchdog,
    /// Why programs may be told EIO in this test.
    eio: Option<&'static str>,
}

impl Farm {
    /// With its server running.
    pub fn new() -> Farm {
        let mut farm = Farm::without_server();
        farm.start_server();
        farm
    }

    /// Everything but the server: for what happens when there is none.
    pub fn without_server() -> Farm {
        let work = tempfile::Builder::new().prefix("agfs-test-").tempdir().unwrap().keep();
        // The kernel's mount table has paths without symbolic links.
        let handle = File::open(&work).unwrap();
        let work = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap();
        for dir in DIRECTORIES {
            std::fs::create_dir_all(work.join(dir)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Farm { work, port, server: None, mounts: BTreeMap::new(), made: 0, watchdog: Watchdog::new(TEST), eio: None }
    }

    /// Lets clients answer EIO in this test, for this reason. In all others it fails the test, whoever was told and whether it
    /// noticed or not.
    pub fn expect_eio(&mut self, why: &'static str) {
        self.eio = Some(why);
    }

    /// A path below the test's own directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// A new directory on the plain disk, to compare with.
    pub fn plain(&mut self) -> PathBuf {
        self.made += 1;
        let dir = self.work.join(format!("plain/{}", self.made));
        std::fs::create_dir(&dir).unwrap();
        dir
    }

    /// A new empty directory to mount at.
    pub fn mountpoint(&mut self) -> PathBuf {
        self.made += 1;
        let dir = self.work.join(format!("m/{}", self.made));
        std::fs::create_dir(&dir).unwrap();
        dir
    }

    /// The environment that makes a program use this farm and nothing of the user's.
    pub fn isolate(&self, command: &mut Command) {
        for (key, _) in std::env::vars_os() {
            let key_text = key.to_string_lossy();
            if ["AGFS_", "GIT_", "PYTHON"].iter().any(|p| key_text.starts_with(p)) {
                command.env_remove(&key);
            }
        }
        command.env("AGFS_SERVER", format!("http://{}", self.address())).env("NO_COLOR", "1");
        command.env("HOME", self.path("home")).env("LC_ALL", "C.UTF-8").env("GIT_CONFIG_NOSYSTEM", "1");
        for kind in ["DATA", "CACHE", "CONFIG", "STATE"] {
            command.env(format!("XDG_{kind}_HOME"), self.path(&format!("xdg/{}", kind.to_lowercase())));
        }
        command.env("XDG_RUNTIME_DIR", self.path("xdg/run"));
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@x");
            // The same commits wherever a script runs.
            command.env(format!("GIT_{who}_DATE"), "2026-01-02T03:04:05Z");
        }
    }

    // ---- the server

    /// Where the server listens.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts the server (again, on the same data and port) and waits until it answers.
    pub fn start_server(&mut self) {
        let mut command = self.agfs(["server", "run"]);
        command.arg("--data").arg(self.path("data")).arg("--listen").arg(self.address());
        self.server = Some(start(&mut command, &self.path("server.log")));
        let begin = Instant::now();
        while begin.elapsed() < START {
            let ended = self.server.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {ended:?}\n{}", self.log("server.log"));
            if self.cli_any(["space", "list", "--json"]).status.success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server did not answer in {START:?}\n{}", self.log("server.log"));
    }

    /// Stops the server cleanly.
    pub fn stop_server(&mut self) {
        self.end_server(Signal::TERM);
    }

    /// Kills the server.
    pub fn kill_server(&mut self) {
        self.end_server(Signal::KILL);
    }

    fn end_server(&mut self, how: Signal) {
        let mut server = self.server.take().expect("a server runs");
        signal(&server, how);
        let status = wait(&mut server, STOP);
        if status.is_none() {
            self.server = Some(server);
            panic!("the server did not end in {STOP:?}\n{}", self.log("server.log"));
        }
        if how == Signal::TERM {
            assert!(
                status.is_some_and(|s| s.success()),
                "the server ended with {status:?}\n{}",
                self.log("server.log")
            );
        }
    }

    // ---- mounts

    /// Mounts the space with a fresh cache and waits until it is there.
    pub fn mount(&mut self, space: &str, options: &[&str]) -> PathBuf {
        self.made += 1;
        let cache = self.work.join(format!("cache{}", self.made));
        self.mount_with_cache(space, options, &cache)
    }

    /// Mounts the space with this cache directory and waits until it is there.
    pub fn mount_with_cache(&mut self, space: &str, options: &[&str], cache: &Path) -> PathBuf {
        let dir = self.mountpoint();
        let mut command = self.agfs(["mount", space]);
        command.arg(&dir).arg("--cache-dir").arg(cache).args(options);
        self.mount_by(&mut command, &dir);
        dir
    }

    /// Runs a command that mounts at `dir` and stays, and waits until the mount is there.
    pub fn mount_by(&mut self, command: &mut Command, dir: &Path) {
        require_fuse();
        let log = format!("{}.log", mount_name(dir));
        let mut child = start(command, &self.path(&log));
        self.watchdog.add(&child);
        let begin = Instant::now();
        while !is_mounted(dir) {
            let ended = child.try_wait().unwrap();
            if ended.is_some() || begin.elapsed() > START {
                self.watchdog.remove(&child);
                let _ = child.kill();
                detach(dir);
                panic!("not mounted in {:?} ({ended:?})\n{}", begin.elapsed(), self.log(&log));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.mounts.insert(dir.to_owned(), child);
    }

    /// Unmounts and mounts again at the same path with an empty cache, for programs that remember where they were.
    pub fn remount(&mut self, space: &str, options: &[&str], dir: &Path) {
        self.umount(dir);
        self.made += 1;
        let cache = self.work.join(format!("cache{}", self.made));
        let mut command = self.agfs(["mount", space]);
        command.arg(dir).arg("--cache-dir").arg(cache).args(options);
        self.mount_by(&mut command, dir);
    }

    /// Unmounts with the command line; the client must end well.
    pub fn umount(&mut self, dir: &Path) {
        self.cli([OsStr::new("umount"), dir.as_os_str()]);
        self.ends_well(dir);
    }

    /// Interrupts the client as Ctrl-C does; it must unmount and end well.
    pub fn interrupt(&mut self, dir: &Path) {
        signal(&self.mounts[dir], Signal::INT);
        self.ends_well(dir);
    }

    fn ends_well(&mut self, dir: &Path) {
        let mut child = self.mounts.remove(dir).expect("mounted by this farm");
        self.watchdog.remove(&child);
        let status = wait(&mut child, STOP);
        if status.is_none() {
            let _ = child.kill();
        }
        let log = self.log(&format!("{}.log", mount_name(dir)));
        assert!(status.is_some_and(|s| s.success()), "the client of {} ended with {status:?}\n{log}", dir.display());
        assert!(!is_mounted(dir), "{} is still mounted\n{log}", dir.display());
    }

    /// Kills the client and clears its mount away, as somebody has to after a crash.
    pub fn kill9(&mut self, dir: &Path) {
        let mut child = self.mounts.remove(dir).expect("mounted by this farm");
        self.watchdog.remove(&child);
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        detach(dir);
    }

    // ---- the command line

    /// The agfs binary with these arguments, isolated.
    pub fn agfs<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agfs"));
        command.args(args);
        self.isolate(&mut command);
        command
    }

    /// Runs agfs, whatever it answers.
    pub fn cli_any<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Done {
        run(&mut self.agfs(args), b"", CALL)
    }

    /// Runs agfs, which must succeed.
    pub fn cli<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Done {
        self.cli_input(args, b"")
    }

    /// Runs agfs with `input`, which must succeed.
    pub fn cli_input<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Done {
        let mut command = self.agfs(args);
        let done = run(&mut command, input, CALL);
        assert!(done.status.success(), "{}: {}\n{}", line(&command), done.status, done.tail());
        done
    }

    /// Runs agfs with `--json`, which must succeed and print one JSON value.
    pub fn json(&self, args: &[&str]) -> Value {
        // What follows `--` are paths.
        let end = args.iter().position(|a| *a == "--").unwrap_or(args.len());
        let done = self.cli(args[..end].iter().chain(&["--json"]).chain(&args[end..]));
        serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("agfs {args:?} --json: {e}: {}", done.out()))
    }

    /// Runs agfs, which must fail with this exit code, say something on standard error, and not panic.
    pub fn fails<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, code: i32) -> Done {
        let mut command = self.agfs(args);
        let done = run(&mut command, b"", CALL);
        assert_eq!(done.code(), code, "{}\n{}", line(&command), done.tail());
        let err = done.err();
        assert!(err.trim().len() > 10 && !err.contains("panicked"), "{}: standard error: {err:?}", line(&command));
        done
    }

    /// A new space.
    pub fn space(&mut self) -> String {
        self.made += 1;
        let name = format!("s{}", self.made);
        let made = self.json(&["space", "create", &name, "--type", "project"]);
        assert_eq!(made["name"], name.as_str(), "{made}");
        name
    }

    // ---- programs

    /// Runs a bash script in `dir`, which must succeed; returns what it printed.
    pub fn sh(&self, dir: &Path, script: &str) -> String {
        self.script(dir, script, false, SCRIPT)
    }

    /// The same for a script that may take this long.
    pub fn sh_within(&self, dir: &Path, script: &str, limit: Duration) -> String {
        self.script(dir, script, false, limit)
    }

    /// The same for a script that fetches packages: with the user's own settings and caches for npm and pip.
    pub fn sh_online(&self, dir: &Path, script: &str) -> String {
        self.script(dir, script, true, SCRIPT)
    }

    fn script(&self, dir: &Path, script: &str, online: bool, limit: Duration) -> String {
        let mut command = Command::new("bash");
        self.isolate(&mut command);
        if online {
            for key in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
                match std::env::var_os(key) {
                    Some(value) => command.env(key, value),
                    None => command.env_remove(key),
                };
            }
        }
        command.args(["-euo", "pipefail", "-c", script]).current_dir(dir);
        let done = run(&mut command, b"", limit);
        assert!(done.status.success(), "{}: in {}: {script}\n{}", done.status, dir.display(), done.tail());
        done.out()
    }

    fn log(&self, name: &str) -> String {
        let text = std::fs::read(self.path(name)).unwrap_or_default();
        format!("--- {name}\n{}", last(&String::from_utf8_lossy(&text), 3000))
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        for (dir, mut child) in std::mem::take(&mut self.mounts) {
            self.watchdog.remove(&child);
            // Detached first: nothing that still works in the mount can keep the client from ending.
            detach(&dir);
            end(&mut child);
        }
        // Mounts in the background, too: their clients end with them.
        for dir in mounts_below(&self.work) {
            detach(&dir);
        }
        if let Some(mut server) = self.server.take() {
            end(&mut server);
        }
        let eio = if failed || self.eio.is_some() { Vec::new() } else { self.eio_answers() };
        if failed || !eio.is_empty() {
            self.tell();
        } else {
            let _ = std::fs::remove_dir_all(&self.work);
        }
        assert!(eio.is_empty(), "clients answered EIO:\n{}", eio.join("\n"));
    }
}

impl Farm {
    /// What the clients' logs say of requests that were answered with EIO, and of handlers that panicked.
    fn eio_answers(&self) -> Vec<String> {
        let kinds = ["unavailable", "outcome_unknown", "timed_out", "io", "internal"].map(|k| format!("kind=\"{k}\""));
        let logs = std::fs::read_dir(&self.work).into_iter().flatten().flatten();
        let logs = logs.filter(|e| e.file_name().to_string_lossy().starts_with("mount"));
        let text: String = logs
            .filter_map(|e| std::fs::read(e.path()).ok())
            .map(|b| String::from_utf8_lossy(&b).into_owned())
            .collect();
        let is_eio = |line: &&str| {
            line.contains("request=") && kinds.iter().any(|k| line.contains(k))
                || line.contains("damaged content")
                || line.contains("panicked")
        };
        text.lines().filter(is_eio).map(str::to_owned).collect()
    }

    /// What a failed test leaves to read.
    fn tell(&self) {
        if self.watchdog.barked() {
            eprintln!("the test took more than {TEST:?}: its clients were killed");
        }
        let logs = std::fs::read_dir(&self.work).into_iter().flatten().flatten();
        for name in logs.filter_map(|e| e.file_name().into_string().ok()).filter(|n| n.ends_with(".log")) {
            eprintln!("{}", self.log(&name));
        }
        eprintln!("kept: {}", self.work.display());
    }
}

/// Ends a child, politely at first.
fn end(child: &mut Child) {
    signal(child, Signal::TERM);
    if wait(child, Duration::from_secs(10)).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The name under which a mount's client logs.
fn mount_name(dir: &Path) -> String {
    format!("mount{}", dir.file_name().unwrap_or_default().to_string_lossy())
}

/// Fails the test where nothing can be mounted. It is never skipped: a run without mounts proves nothing.
fn require_fuse() {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        panic!(
            "/dev/fuse: {error}: load the module (modprobe fuse), or start the container with \
             --device /dev/fuse --cap-add SYS_ADMIN"
        );
    }
}
