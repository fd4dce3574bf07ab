//! `agfs server run` and `agfs server init`.

use crate::cli::{Server, ServerInit, ServerRun};
use crate::config::wrong;
use crate::context::Context;
use crate::exit::{Failure, Result, local};
use crate::mountd::Signals;
use crate::paths;
use agfs_core::{Error, Result as CoreResult};
use agfs_server::ServerConfig;
use figment::Figment;
use figment::providers::{Env, Format, Toml};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The machine's settings of the server.
const SYSTEM_FILE: &str = "/etc/agfs/server.toml";

/// Runs `agfs server …`.
pub async fn run(ctx: &mut Context, command: Server) -> Result<()> {
    match command {
        Server::Run(args) => {
            let config = load(ctx.config_file.as_deref(), &args)?;
            let mut signals = Signals::new()?;
            Ok(agfs_server::run(config, async move { signals.next().await }).await?)
        }
        Server::Init(args) => init(ctx, &args),
    }
}

fn init(ctx: &mut Context, args: &ServerInit) -> Result<()> {
    let text = ServerConfig::default_toml();
    if args.file.as_os_str() == "-" {
        return ctx.out.bytes(text.as_bytes());
    }
    let mut file = paths::create_new(&args.file, false)?;
    file.write_all(text.as_bytes()).map_err(|e| Failure::from(local(format!("writing {}", args.file.display()), &e)))
}

/// The settings of a server: flag > environment (`AGFS_SERVER_` and the key) > file > default. The file is the one named, or
/// else the user's `server.toml` over the one in /etc.
pub fn load(named: Option<&Path>, args: &ServerRun) -> CoreResult<ServerConfig> {
    let files: Vec<(PathBuf, bool)> = match named {
        Some(file) => vec![(file.to_path_buf(), true)],
        None => {
            let user = paths::config_dir().map(|d| (d.join("server.toml"), false));
            [Some((PathBuf::from(SYSTEM_FILE), false)), user].into_iter().flatten().collect()
        }
    };
    let mut figment = Figment::from(Toml::string(ServerConfig::default_toml()));
    if args.data.is_none() {
        figment = figment.merge(("data_dir", paths::state_dir()?.join("server")));
    }
    for (file, required) in files {
        if let Some(text) = read(&file, required)? {
            figment = figment.merge(Toml::string(&text));
        }
    }
    figment = figment.merge(Env::prefixed("AGFS_SERVER_"));
    if let Some(data) = &args.data {
        figment = figment.merge(("data_dir", paths::lexical(data)?));
    }
    if let Some(listen) = &args.listen {
        figment = figment.merge(("listen", listen));
    }
    if let Some(store) = &args.store {
        figment = figment.merge(("store_url", store));
    }
    figment.extract().map_err(|e| Error::invalid(format!("the server's configuration is wrong: {e}")))
}

/// The text of a file of the server's settings, checked for itself so that an error names the file, the line and the key.
fn read(file: &Path, required: bool) -> CoreResult<Option<String>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !required => return Ok(None),
        Err(e) => return Err(local(format!("reading the server's configuration {}", file.display()), &e)),
    };
    // Over the defaults, so that a file may leave out what a server must have.
    let defaults: Figment = Figment::from(Toml::string(ServerConfig::default_toml())).merge(("data_dir", "/"));
    match toml::from_str::<toml::Table>(&text) {
        Err(error) => Err(wrong(file, &text, &error)),
        Ok(_) => match defaults.merge(Toml::string(&text)).extract::<ServerConfig>() {
            Ok(_) => Ok(Some(text)),
            Err(error) => Err(Error::invalid(format!("{}: {error}", file.display()))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_hide_the_file_and_an_unknown_key_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server.toml");
        std::fs::write(&file, "listen = \"127.0.0.1:1\"\n").unwrap();
        let config = load(Some(&file), &ServerRun::default()).unwrap();
        assert_eq!(config.listen.port(), 1);
        let args = ServerRun { listen: Some("127.0.0.1:2".into()), data: Some("/d".into()), ..ServerRun::default() };
        let config = load(Some(&file), &args).unwrap();
        assert_eq!((config.listen.port(), config.data_dir), (2, PathBuf::from("/d")));
        std::fs::write(&file, "listn = \"127.0.0.1:1\"\n").unwrap();
        let error = load(Some(&file), &ServerRun::default()).unwrap_err();
        assert!(error.message().contains("listn") && error.message().contains("server.toml"), "{error}");
        assert!(load(Some(Path::new("/nonexistent.toml")), &args).is_err());
    }

    #[test]
    fn the_default_configuration_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server.toml");
        std::fs::write(&file, ServerConfig::default_toml()).unwrap();
        assert!(load(Some(&file), &ServerRun::default()).is_ok());
    }
}
