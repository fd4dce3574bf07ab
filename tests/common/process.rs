//! Long-running children of a test, and the mount table: what has to be gone when the test ends, however it ends.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Starts a program that goes on, with its output in a log file. It ends when the thread that started it does.
pub fn start(command: &mut Command, log: &Path) -> Child {
    let out = File::options().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?));
    }
    command.spawn().unwrap_or_else(|e| panic!("cannot start {}: {e}", super::run::line(command)))
}

/// Sends a signal to a child that has not been waited for.
pub fn signal(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}

/// Waits for a child; `None` when it has not ended within `limit`.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if begin.elapsed() > limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether something is mounted exactly at `dir`, by the kernel's table: asks no file system, so it cannot hang.
pub fn is_mounted(dir: &Path) -> bool {
    mountpoints().iter().any(|m| m == dir)
}

/// What is mounted below `dir`, the innermost first.
pub fn mounts_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = mountpoints();
    found.retain(|m| m.starts_with(dir) && m != dir);
    found.reverse();
    found
}

fn mountpoints() -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter_map(|l| l.split(' ').nth(4)).map(unescape).collect()
}

/// The table writes space, tab, newline and backslash as octal.
fn unescape(field: &str) -> PathBuf {
    let mut text = field.to_owned();
    for (code, c) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        text = text.replace(code, c);
    }
    PathBuf::from(text)
}

/// Takes a mount away at once, whatever uses it and whether or not its client lives.
pub fn detach(dir: &Path) {
    let quiet = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).arg(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = command.status();
    };
    for _ in 0..4 {
        if !is_mounted(dir) {
            return;
        }
        quiet("umount", &["-l"]);
        if is_mounted(dir) {
            quiet("fusermount3", &["-u", "-z"]);
        }
    }
}

/// Ends a test that hangs in a system call on a mount: after a while it kills the clients, whereupon the kernel fails the
/// calls and the test with them.
pub struct Watchdog {
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    over: bool,
    barked: bool,
    clients: Vec<Pid>,
}

impl Watchdog {
    /// Kills the registered clients after `limit`.
    pub fn new(limit: Duration) -> Watchdog {
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let (state, changed) = &*shared;
            let guard = state.lock().unwrap();
            let (mut guard, timeout) = changed.wait_timeout_while(guard, limit, |s| !s.over).unwrap();
            if timeout.timed_out() {
                guard.barked = true;
                for &pid in &guard.clients {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        });
        Watchdog { state }
    }

    /// Puts a client under watch.
    pub fn add(&self, child: &Child) {
        self.state.0.lock().unwrap().clients.push(Pid::from_child(child));
    }

    /// Takes a client off the watch; before it is waited for, so that its number still means it.
    pub fn remove(&self, child: &Child) {
        let pid = Pid::from_child(child);
        self.state.0.lock().unwrap().clients.retain(|&p| p != pid);
    }

    /// Whether it had to act.
    pub fn barked(&self) -> bool {
        self.state.0.lock().unwrap().barked
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.0.lock() {
            state.over = true;
        }
        self.state.1.notify_all();
    }
}
