//! `agfs version` and `agfs completion`.

use crate::cli::{Cli, Completion};
use crate::context::Context;
use crate::exit::Result;
use clap::CommandFactory;
use serde::Serialize;

#[derive(Serialize)]
struct Version {
    version: &'static str,
    os: &'static str,
    arch: &'static str,
    kernel: String,
}

/// Runs `agfs version`.
pub fn version(ctx: &mut Context) -> Result<()> {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let version = Version { version: env!("CARGO_PKG_VERSION"), os, arch, kernel };
    ctx.out
        .show(&version, |out| out.line(&format!("agfs {} ({os} {arch}, kernel {})", version.version, version.kernel)))
}

/// Runs `agfs completion`.
pub fn completion(ctx: &mut Context, args: &Completion) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "agfs", &mut script);
    ctx.out.bytes(&script)
}
