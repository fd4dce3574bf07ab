//! The settings of the command line: flag > environment > the user's file > /etc > default. The server's own settings are
//! not here; they have a file of their own and a type in the server.

use crate::cli::{Attribution, Global};
use crate::exit::local;
use crate::paths;
use agfs_core::op::Author;
use agfs_core::{Error, Result};
use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where the machine's settings are.
const SYSTEM_FILE: &str = "/etc/agfs/config.toml";
/// The server that is asked when none is named.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:7420";

/// What a file of settings may hold; every key may be left out.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The server's address, `http://HOST:PORT`.
    pub server: String,
    /// The space meant where none is named and no mount is entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Where contents are cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_dir: Option<PathBuf>,
    /// How much is cached on disk, such as `10G`.
    pub cache_size: String,
    /// How much is cached in memory, such as `256M`.
    pub memory_limit: String,
    /// `cto` or `relaxed`.
    pub consistency: String,
    /// `auto`, `close` or `object`.
    pub durability: String,
    /// What is logged to standard error, as a tracing filter.
    pub log: String,
    /// The agent that changes are recorded for.
    pub agent: String,
    /// The task that changes are recorded for.
    pub task: String,
    /// The step of the task.
    pub step: String,
}

/// The keys that a variable of the environment sets: `AGFS_` and the key in capitals.
const VARIABLES: &[&str] = &[
    "server",
    "space",
    "cache_dir",
    "cache_size",
    "memory_limit",
    "consistency",
    "durability",
    "log",
    "agent",
    "task",
    "step",
];

fn defaults() -> Config {
    Config {
        server: DEFAULT_SERVER.into(),
        cache_size: "10G".into(),
        memory_limit: "256M".into(),
        consistency: "cto".into(),
        durability: "auto".into(),
        log: "warn".into(),
        ..Config::default()
    }
}

impl Config {
    /// Reads the settings of this run. Fails with `InvalidArgument` that names the file and the key, `NotFound` when a file
    /// named by `--config` or AGFS_CONFIG does not exist.
    pub fn load(global: &Global) -> Result<Config> {
        let named = global.config.clone().or_else(|| std::env::var_os("AGFS_CONFIG").map(PathBuf::from));
        let user = named.clone().or_else(|| paths::config_dir().map(|d| d.join("config.toml")));
        let config =
            Config::merge(Some(Path::new(SYSTEM_FILE)), user.as_deref(), named.is_some(), |v| std::env::var(v).ok())?;
        Ok(config.with_flags(global))
    }

    fn merge(
        system: Option<&Path>,
        user: Option<&Path>,
        must_exist: bool,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Config> {
        let mut figment = Figment::from(Serialized::defaults(defaults()));
        for (file, required) in [(system, false), (user, must_exist)] {
            if let Some(text) = file.map(|f| read(f, required)).transpose()?.flatten() {
                figment = figment.merge(Toml::string(&text));
            }
        }
        // A variable is text, whatever it looks like: an agent may be called 7.
        for key in VARIABLES {
            if let Some(value) = env(&format!("AGFS_{}", key.to_ascii_uppercase())).filter(|v| !v.is_empty()) {
                figment = figment.merge((key, value));
            }
        }
        figment.extract().map_err(|e| Error::invalid(format!("the configuration is wrong: {e}")))
    }

    fn with_flags(mut self, global: &Global) -> Config {
        if let Some(server) = &global.server {
            self.server.clone_from(server);
        }
        if let Some(log) = &global.log {
            self.log.clone_from(log);
        }
        self
    }

    /// Who changes are recorded for: the flags, else the settings.
    pub fn author(&self, by: &Attribution) -> Author {
        let pick = |flag: &Option<String>, setting: &String| flag.as_ref().unwrap_or(setting).as_str().into();
        Author {
            agent: pick(&by.agent, &self.agent),
            task: pick(&by.task, &self.task),
            step: pick(&by.step, &self.step),
            ..Author::default()
        }
    }
}

/// The text of a file of settings, checked for itself so that an error names the file.
fn read(file: &Path, required: bool) -> Result<Option<String>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !required => return Ok(None),
        Err(e) => return Err(local(format!("reading the configuration {}", file.display()), &e)),
    };
    match toml::from_str::<Config>(&text) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(wrong(file, &text, &error)),
    }
}

/// An error of a file of settings: which file, which line, which key.
pub fn wrong(file: &Path, text: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map(|s| text.get(..s.start).map_or(1, |before| before.matches('\n').count() + 1));
    let place = line.map(|l| format!(":{l}")).unwrap_or_default();
    Error::invalid(format!("{}{place}: {}", file.display(), error.message().replace('\n', " ")))
}

/// Reads a size such as `10G`, `512MiB` or `4096` (powers of 1,024). Fails with `InvalidArgument`.
pub fn parse_size(text: &str, what: &str) -> Result<u64> {
    let bad = || Error::invalid(format!("{what} {text:?} is no size: write a number with K, M, G or T, such as 10G"));
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let shift = match unit.trim().to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(bad()),
    };
    let number: f64 = number.parse().map_err(|_| bad())?;
    let bytes = number * (1u64 << shift) as f64;
    if !(1.0..=9.0e18).contains(&bytes) {
        return Err(bad());
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name)
    }

    #[test]
    fn each_layer_hides_the_one_below() {
        let dir = tempfile::tempdir().unwrap();
        let etc =
            file(dir.path(), "etc.toml", "server = 'http://etc:1'\nlog = 'info'\nagent = 'etc'\ncache_size = '1G'");
        let user = file(dir.path(), "user.toml", "server = 'http://user:1'\nagent = 'user'");
        let env = |name: &str| (name == "AGFS_TASK").then(|| "7".to_owned());
        let config = Config::merge(Some(&etc), Some(&user), true, env).unwrap();
        assert_eq!((config.server.as_str(), config.agent.as_str()), ("http://user:1", "user"));
        assert_eq!(
            (config.log.as_str(), config.cache_size.as_str(), config.durability.as_str()),
            ("info", "1G", "auto")
        );
        let global = Global { server: Some("http://flag:1".into()), ..Global::default() };
        let config = config.with_flags(&global);
        assert_eq!(config.server, "http://flag:1");
        assert_eq!(config.task, "7", "a variable is text");
        let by = Attribution { task: Some("t".into()), ..Attribution::default() };
        let author = config.author(&by);
        assert_eq!((&*author.agent, &*author.task, &*author.step), ("user", "t", ""));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let user = file(dir.path(), "user.toml", "agent = 'a'\nserverr = 'x'\n");
        let error = Config::merge(None, Some(&user), true, |_| None).unwrap_err();
        assert!(error.message().contains("user.toml:2") && error.message().contains("serverr"), "{error}");
        let user = file(dir.path(), "user.toml", "agent = 7\n");
        assert!(Config::merge(None, Some(&user), true, |_| None).unwrap_err().message().contains("user.toml:1"));
    }

    #[test]
    fn a_file_that_was_named_must_exist() {
        let none = Path::new("/nonexistent/agfs.toml");
        assert_eq!(Config::merge(None, Some(none), true, |_| None).unwrap_err().kind(), agfs_core::ErrorKind::NotFound);
        assert_eq!(Config::merge(None, Some(none), false, |_| None).unwrap().server, DEFAULT_SERVER);
    }

    #[test]
    fn sizes() {
        for (text, want) in
            [("10G", 10 << 30), ("512MiB", 512 << 20), ("4096", 4096), ("1.5k", 1536), ("2 TB", 2 << 40)]
        {
            assert_eq!(parse_size(text, "--cache-size").unwrap(), want, "{text}");
        }
        for bad in ["", "G", "-1", "1X", "0", "1e9", "99999999T"] {
            assert!(parse_size(bad, "--cache-size").is_err(), "{bad}");
        }
    }
}
