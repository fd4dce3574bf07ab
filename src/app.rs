//! The program from start to exit code: command line, settings, logging, runtime, and how a failure is printed.

use crate::cli::{Cli, Command, Server};
use crate::cmd;
use crate::config::Config;
use crate::context::Context;
use crate::exit::{Failure, Result, USAGE};
use crate::output::json::ErrorShape;
use agfs_core::Error;
use clap::Parser;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::EnvFilter;

/// How long tasks that are left may take when the program ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs the program.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(bug));
    // A panic was reported by the hook; its own exit code would say nothing that 1 does not.
    std::panic::catch_unwind(start).unwrap_or(ExitCode::FAILURE)
}

fn bug(info: &std::panic::PanicHookInfo<'_>) {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
    let line = format!("agfs: this is a bug in agfs{place}: {}; please report it\n", what.replace('\n', " "));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn start() -> ExitCode {
    let typed_json = std::env::args_os().skip(1).any(|a| a == "--json");
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error, typed_json),
    };
    cli.global.json |= cmd::json_after_dashes(&mut cli.command);
    let json = cli.global.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure, json);
            ExitCode::from(failure.code())
        }
    }
}

/// Help and versions are answers; everything else that clap says is a usage error.
fn not_parsed(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() {
        // Help that nobody reads any more is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(message) if json => {
            print_json(&ErrorShape::usage(message.split("\n\nUsage:").next().unwrap_or(message).trim()))
        }
        Some(message) => crate::output::remark(message.trim_end()),
        // The help, where the command is missing.
        None => crate::output::remark(&format!("a command is missing\n\n{}", text.trim_end())),
    }
    ExitCode::from(USAGE)
}

fn report(failure: &Failure, json: bool) {
    match failure {
        Failure::Error(error) if json => print_json(&ErrorShape::new(error)),
        Failure::Usage(message) if json => print_json(&ErrorShape::usage(message)),
        Failure::Error(error) => crate::output::remark(error.message()),
        Failure::Usage(message) => {
            crate::output::remark(&format!("{message}\n      `agfs help` shows how it is called"))
        }
        Failure::Code(_) | Failure::PipeClosed => {}
    }
}

fn print_json(value: &ErrorShape<'_>) {
    if let Ok(text) = serde_json::to_string(value) {
        let _ = writeln!(std::io::stdout(), "{text}");
    }
}

fn run(cli: Cli) -> Result<()> {
    let config = Config::load(&cli.global_for_client())?;
    let log = match (&cli.global.log, &cli.command) {
        // A server or mount is run to be watched.
        (None, Command::Server(Server::Run(_))) if config.log == "warn" => "info",
        _ => config.log.as_str(),
    };
    log_to_stderr(log)?;
    let mut context = Context::new(config, cli.global.config.clone(), cli.global.space.clone(), cli.global.json);
    let runtime = runtime(&cli.command)?;
    let result = runtime.block_on(cmd::run(&mut context, cli.command));
    runtime.shutdown_timeout(LAST_WORDS);
    let flushed = context.out.flush();
    result.and(flushed)
}

impl Cli {
    /// The options that the client's settings are read with: `server run --config` names a file of the server's.
    fn global_for_client(&self) -> crate::cli::Global {
        let mut global = self.global.clone();
        if matches!(self.command, Command::Server(Server::Run(_))) {
            global.config = None;
        }
        global
    }
}

fn log_to_stderr(filter: &str) -> Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(|e| {
        Error::invalid(format!(
            "the log filter {filter:?} is wrong ({e}): write for instance info or agfs_fuse=debug,warn"
        ))
    })?;
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    // A second subscriber cannot be there: this runs once.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(color).try_init();
    Ok(())
}

/// Commands that serve get a thread a processor; one that only asks needs one, and starts faster.
fn runtime(command: &Command) -> Result<Runtime> {
    let serves = matches!(command, Command::Up(_) | Command::Mount(_) | Command::Server(Server::Run(_)));
    let mut builder = if serves { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.enable_all().build().map_err(|e| Error::io(format!("starting the runtime: {e}")).into())
}
