//! `agfs doctor`: what works on this machine, each thing with a remedy where it does not.

use crate::context::Context;
use crate::exit::{FOUND, Failure, Result};
use crate::output::size;
use crate::output::table::Table;
use crate::paths;
use agfs_core::ErrorKind;
use rustix::fs::{Access, access, statvfs};
use rustix::thread::CapabilitySet;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Below this much free space, in bytes, a disk is reported.
const LOW_SPACE: u64 = 1 << 30;
/// How long the server may take to answer.
const SERVER: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    /// It works.
    Ok,
    /// Everything works without it, only slower or not for everybody.
    Note,
    /// Something does not work.
    Problem,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: Health,
    detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

fn ok(name: &'static str, detail: impl Into<String>) -> Check {
    Check { name, status: Health::Ok, detail: detail.into(), remedy: String::new() }
}

fn note(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { name, status: Health::Note, detail: detail.into(), remedy: remedy.into() }
}

fn problem(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { name, status: Health::Problem, detail: detail.into(), remedy: remedy.into() }
}

/// Runs `agfs doctor`; ends with 3 when there is a problem.
pub async fn run(ctx: &mut Context) -> Result<()> {
    let mut checks = vec![fuse_device(), fusermount()];
    checks.extend(kernel(&rustix::system::uname().release().to_string_lossy()));
    checks.push(capability());
    let cache = ctx.config.cache_dir.clone().map_or_else(paths::cache_dir, Ok);
    for (name, dir) in [
        ("cache directory", cache),
        ("runtime directory", Ok(paths::runtime_dir())),
        ("state directory", paths::state_dir()),
    ] {
        match dir {
            Ok(dir) => checks.extend(directory(name, &dir)),
            Err(error) => checks.push(problem(name, error.message(), "set HOME or the XDG variables")),
        }
    }
    checks.extend(server(ctx).await);
    ctx.out.show(&checks, |out| {
        let mut table = Table::new(&["STATUS", "CHECK", "DETAIL", "REMEDY"]);
        for check in &checks {
            let status = match check.status {
                Health::Ok => "ok",
                Health::Note => "note",
                Health::Problem => "PROBLEM",
            };
            table.row([status.into(), check.name.into(), check.detail.clone(), check.remedy.clone()]);
        }
        out.table(&table)
    })?;
    if checks.iter().any(|c| c.status == Health::Problem) {
        ctx.out.flush()?;
        return Err(Failure::Code(FOUND));
    }
    Ok(())
}

fn fuse_device() -> Check {
    const DEVICE: &str = "/dev/fuse";
    if !Path::new(DEVICE).exists() {
        return problem(
            "fuse device",
            "there is no /dev/fuse",
            "modprobe fuse; in a container start it with --device /dev/fuse",
        );
    }
    match std::fs::File::options().read(true).write(true).open(DEVICE) {
        Ok(_) => ok("fuse device", DEVICE),
        Err(error) => problem(
            "fuse device",
            format!("{DEVICE}: {error}"),
            "let this user read and write /dev/fuse (mode 666 is usual)",
        ),
    }
}

fn fusermount() -> Check {
    let dirs = std::env::var_os("PATH").map(|p| std::env::split_paths(&p).collect::<Vec<_>>()).unwrap_or_default();
    match dirs.iter().map(|d| d.join("fusermount3")).find(|f| access(f, Access::EXEC_OK).is_ok()) {
        Some(file) => ok("fusermount3", file.display().to_string()),
        None if rustix::process::geteuid().is_root() => {
            note("fusermount3", "not found; root does not need it", "install fuse3 for other users")
        }
        None => problem("fusermount3", "not found, and only root can mount without it", "install fuse3"),
    }
}

/// Major and minor number of a kernel's release.
fn release_numbers(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn kernel(release: &str) -> Vec<Check> {
    let Some(version) = release_numbers(release) else {
        return vec![note("kernel", format!("{release:?} is no release that is understood"), "use Linux 6.9 or newer")];
    };
    let passthrough = match version >= (6, 9) {
        true => ok("passthrough", format!("kernel {release} has it (6.9)")),
        false => {
            note("passthrough", format!("kernel {release} has none: large files are slower"), "use Linux 6.9 or newer")
        }
    };
    let epoch = match version >= (6, 16) {
        true => ok("dentry epoch", format!("kernel {release} has it (6.16)")),
        false => note(
            "dentry epoch",
            format!("kernel {release} has none: missing names are asked for each time"),
            "use Linux 6.16 or newer",
        ),
    };
    vec![passthrough, epoch]
}

fn capability() -> Check {
    match rustix::thread::capabilities(None) {
        Ok(sets) if sets.effective.contains(CapabilitySet::SYS_ADMIN) => {
            ok("CAP_SYS_ADMIN", "held: passthrough can be used")
        }
        Ok(_) => note(
            "CAP_SYS_ADMIN",
            "not held: no passthrough, large files are slower",
            "run the mount as root, or with this capability",
        ),
        Err(error) => note("CAP_SYS_ADMIN", format!("cannot be told: {error}"), ""),
    }
}

/// Whether a directory, or the nearest one above it that exists, can be written, and how much room its disk has.
fn directory(name: &'static str, dir: &Path) -> Vec<Check> {
    let mut there: PathBuf = dir.to_path_buf();
    while !there.exists() && there.pop() {}
    let shown = dir.display();
    if access(&there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return vec![problem(
            name,
            format!("{shown} cannot be written"),
            "set the XDG variables to directories of your own",
        )];
    }
    let Ok(disk) = statvfs(&there) else { return vec![ok(name, shown.to_string())] };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    vec![match free < LOW_SPACE {
        true => problem(name, format!("{shown}: only {} free", size(free)), "make room, or put it on another disk"),
        false => ok(name, format!("{shown}: {} free", size(free))),
    }]
}

async fn server(ctx: &Context) -> Vec<Check> {
    let address = &ctx.config.server;
    let conn = match ctx.connect_for(SERVER) {
        Ok(conn) => conn,
        Err(failure) => {
            return vec![problem("server", failure.to_string(), "give an address such as http://127.0.0.1:7420")];
        }
    };
    let info = match conn.server_info().await {
        Ok(info) => info,
        Err(error) => {
            return vec![problem(
                "server",
                if error.kind() == ErrorKind::Unavailable {
                    format!("none answers at {address}")
                } else {
                    error.to_string()
                },
                "start one with `agfs server run`, or set AGFS_SERVER",
            )];
        }
    };
    let mut checks = vec![match info.version == env!("CARGO_PKG_VERSION") {
        true => ok("server", format!("{address}, version {}", info.version)),
        false => note(
            "server",
            format!("{address}, version {}, this is {}", info.version, env!("CARGO_PKG_VERSION")),
            "use the same version",
        ),
    }];
    checks.push(ok("store", info.store_url));
    let data = Path::new(&info.data_dir);
    if data.is_dir() {
        checks.extend(directory("server's disk", data));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(release_numbers("6.18.44-fc-v857"), Some((6, 18)));
        assert_eq!(release_numbers("6.9.0"), Some((6, 9)));
        assert_eq!(release_numbers("nonsense"), None);
        let of = |r: &str| kernel(r).iter().map(|c| c.status).collect::<Vec<_>>();
        assert_eq!(of("6.18.1"), [Health::Ok, Health::Ok]);
        assert_eq!(of("6.9.1"), [Health::Ok, Health::Note]);
        assert_eq!(of("5.15.0"), [Health::Note, Health::Note]);
    }

    #[test]
    fn every_fault_has_a_remedy() {
        for check in directory("d", Path::new("/proc/none")).into_iter().chain(kernel("4.0.1")) {
            assert!(check.status == Health::Ok || !check.remedy.is_empty(), "{check:?}");
        }
    }
}
