//! Who keeps a mount from being taken away: processes whose current directory or open files are below it. Reads links in
//! /proc only, so nothing can hang.

use std::fs;
use std::path::Path;

/// The most processes that are named.
const NAMED: usize = 5;

/// A sentence that names (up to five of) the processes that use something below `mountpoint`; empty when none is seen.
pub fn users(mountpoint: &Path) -> String {
    let own = std::process::id();
    let Ok(all) = fs::read_dir("/proc") else { return String::new() };
    let pids = all.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()).filter(|&p| p != own);
    let using: Vec<String> = pids.filter(|&pid| uses(pid, mountpoint)).map(named).take(NAMED + 1).collect();
    match using.len() {
        0 => String::new(),
        n if n > NAMED => format!("in use by {} and others", using[..NAMED].join(", ")),
        _ => format!("in use by {}", using.join(", ")),
    }
}

fn uses(pid: u32, mountpoint: &Path) -> bool {
    let below = |link: &Path| fs::read_link(link).is_ok_and(|target| target.starts_with(mountpoint));
    let dir = Path::new("/proc").join(pid.to_string());
    if ["cwd", "root", "exe"].iter().any(|l| below(&dir.join(l))) {
        return true;
    }
    fs::read_dir(dir.join("fd")).is_ok_and(|fds| fds.flatten().any(|fd| below(&fd.path())))
}

fn named(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} (pid {pid})", name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_its_directory_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("30").current_dir(dir.path()).spawn().unwrap();
        let said = users(dir.path());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(said.contains(&format!("pid {}", child.id())), "{said}");
        assert_eq!(users(Path::new("/nonexistent/dir")), "");
    }
}
