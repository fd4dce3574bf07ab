//! What every command starts from: settings, output, the connection, and where one is. No command's logic.

use crate::args::{Here, NO_SPACE};
use crate::config::Config;
use crate::exit::{Failure, Result};
use crate::location::{self, Location, Target};
use crate::mounts::{self, Found};
use crate::output::Out;
use crate::paths;
use agfs_client::{ConnectOptions, Connection, SystemClock};
use agfs_core::Error;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a command tries to reach a server.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a command works with.
pub struct Context {
    /// The settings.
    pub config: Config,
    /// The configuration file that was named by `--config`.
    pub config_file: Option<PathBuf>,
    /// Standard output.
    pub out: Out,
    forced: Option<String>,
    inside: OnceLock<Option<Found>>,
}

/// A place in a space, looked up from what was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The space by name or id.
    pub space: String,
    /// The reference; empty for the present.
    pub at: String,
    /// The absolute path.
    pub path: Vec<u8>,
}

impl Place {
    /// As it would be typed.
    pub fn display(&self) -> String {
        let location = Location { space: Some(self.space.clone()), at: self.at.clone(), path: Some(self.path.clone()) };
        location.to_string()
    }
}

impl Context {
    /// A context with these settings.
    pub fn new(config: Config, config_file: Option<PathBuf>, forced: Option<String>, json: bool) -> Self {
        Context { config, config_file, out: Out::new(json), forced, inside: OnceLock::new() }
    }

    /// Whether JSON is wanted.
    pub const fn json(&self) -> bool {
        self.out.is_json()
    }

    /// A connection to the server; nothing is sent yet. Calls fail after ten seconds without a server.
    pub fn connect(&self) -> Result<Connection> {
        self.connect_for(PATIENCE)
    }

    /// The same with another patience.
    pub fn connect_for(&self, io_timeout: Duration) -> Result<Connection> {
        let server = self.config.server.clone();
        Ok(Connection::new(ConnectOptions { server, io_timeout, clock: Arc::new(SystemClock) })?)
    }

    /// The mount that the current directory is in, if it is one of ours.
    pub fn inside(&self) -> Option<&Found> {
        let look = || paths::current_dir().and_then(|dir| mounts::find(&dir)).ok().flatten();
        self.inside.get_or_init(look).as_ref()
    }

    /// What is known of the space without looking at arguments: `--space`, then the mount one is in, then AGFS_SPACE.
    pub fn here(&self) -> Here {
        let current = self.inside().and_then(|m| m.space.clone()).or_else(|| self.config.space.clone());
        Here { forced: self.forced.clone(), current }
    }

    /// The place that an argument names; without one, where one is inside a mount, or else the root of the current space.
    pub fn place(&self, arg: Option<&OsStr>) -> Result<Place> {
        let Some(arg) = arg else { return self.place_here() };
        if self.is_bare_path(arg) {
            return self.relative(location::bytes(arg));
        }
        match location::parse_target(location::bytes(arg))? {
            Target::Location(Location { space, at, path }) => {
                let space = space.map_or_else(|| self.here().required(), Ok)?;
                Ok(Place { space, at, path: path.unwrap_or_else(|| b"/".to_vec()) })
            }
            Target::Absolute(path) => self.absolute(path),
            Target::Relative(path) => self.relative(&path),
        }
    }

    /// Whether an argument that has no mark of a location is a path from where one is: it has a slash, or it is there.
    fn is_bare_path(&self, arg: &OsStr) -> bool {
        let bytes = location::bytes(arg);
        let marked = bytes.starts_with(b"/") || bytes.contains(&b'@') || location::names_a_space(bytes);
        !marked
            && self.forced.is_none()
            && self.inside().is_some()
            && (bytes.contains(&b'/') || std::path::Path::new(arg).symlink_metadata().is_ok())
    }

    fn place_here(&self) -> Result<Place> {
        match self.inside().filter(|_| self.forced.is_none()) {
            Some(_) => self.relative(b"."),
            None => Ok(Place { space: self.here().required()?, at: String::new(), path: b"/".to_vec() }),
        }
    }

    /// A path from the root of the current space. Without one, a path of this machine that leads into a mount.
    fn absolute(&self, path: Vec<u8>) -> Result<Place> {
        if let Some(space) = self.here().space() {
            return Ok(Place { space: space.to_owned(), at: self.at_here(), path });
        }
        use std::os::unix::ffi::OsStringExt;
        match mounts::find(&PathBuf::from(OsString::from_vec(path)))? {
            Some(found) => place_in(&found, found.space_path()?),
            None => Err(Failure::usage(NO_SPACE)),
        }
    }

    fn relative(&self, path: &[u8]) -> Result<Place> {
        let Some(found) = self.inside().filter(|_| self.forced.is_none()) else {
            let shown = crate::output::text(path);
            return Err(Failure::usage(format!(
                "{shown:?} is relative, and that has a meaning only inside a mount: give /PATH"
            )));
        };
        place_in(found, location::absolute(&found.space_path()?, path)?)
    }

    /// The reference of the mount one is in, when the current space is that of the mount.
    fn at_here(&self) -> String {
        match self.inside().and_then(|m| m.entry.as_ref()) {
            Some(entry) if self.forced.is_none() => entry.at.clone(),
            _ => String::new(),
        }
    }

    /// The path in `space` that a path argument means.
    pub fn path_in(&self, space: &str, target: Target) -> Result<Vec<u8>> {
        match target {
            Target::Absolute(path) => Ok(path),
            Target::Relative(path) => {
                let place = self.relative(&path)?;
                if place.space != space {
                    return Err(Failure::usage(format!(
                        "{:?} is relative to a mount of {:?}, not of {space:?}: give it as /PATH",
                        crate::output::text(&path),
                        place.space
                    )));
                }
                Ok(place.path)
            }
            Target::Location(location) => {
                Err(Failure::usage(format!("{:?} names a space where a path is due", location.to_string())))
            }
        }
    }

    /// The paths in `space` that path arguments mean.
    pub fn paths_in(&self, space: &str, args: &[OsString]) -> Result<Vec<Vec<u8>>> {
        args.iter().map(|arg| self.path_in(space, location::parse_path(location::bytes(arg))?)).collect()
    }

    /// The mount that holds a directory; where one is, without one. Fails with `NotFound` when none does.
    pub fn mount_at(&self, dir: Option<&std::path::Path>) -> Result<Found> {
        let dir = match dir {
            Some(dir) => dir.to_path_buf(),
            None => paths::current_dir()?,
        };
        let none =
            || Error::not_found(format!("{} is in no agfs mount; `agfs mounts` lists those there are", dir.display()));
        Ok(mounts::find(&dir)?.ok_or_else(none)?)
    }
}

fn place_in(found: &Found, path: Vec<u8>) -> Result<Place> {
    let space = found.space.clone().ok_or_else(|| {
        Error::not_found(format!("the mount at {} does not tell its space: name it", found.mountpoint.display()))
    })?;
    Ok(Place { space, at: found.entry.as_ref().map(|e| e.at.clone()).unwrap_or_default(), path })
}
