//! The `agfs` program: starts [`app`] and ends with its exit code. Nothing else may live here.

mod app;
mod args;
mod cli;
mod cmd;
mod config;
mod context;
mod exit;
mod location;
mod mountd;
mod mounts;
mod output;
mod paths;
mod when;

fn main() -> std::process::ExitCode {
    app::main()
}
