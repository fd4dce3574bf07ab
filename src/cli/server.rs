//! The server and what concerns this machine, as typed.

use super::MountOptions;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `agfs up`
#[derive(Args, Debug)]
pub struct Up {
    /// Where to mount; made when it does not exist
    #[arg(default_value = "./workspace")]
    pub dir: PathBuf,
    /// The data directory of a server that is started here
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// How the mount behaves
    #[command(flatten)]
    pub options: Box<MountOptions>,
}

/// `agfs server …`
#[derive(Debug, Subcommand)]
pub enum Server {
    /// Run the server in the foreground
    Run(ServerRun),
    /// Write a commented default configuration (TOML)
    Init(ServerInit),
}

/// `agfs server run`
#[derive(Args, Debug, Default)]
pub struct ServerRun {
    /// The data directory [env: AGFS_SERVER_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The address to listen on [env: AGFS_SERVER_LISTEN] [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where contents go: file:///… or s3://bucket/prefix [env: AGFS_SERVER_STORE_URL] [default: the data directory]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// `agfs server init`
#[derive(Args, Debug)]
pub struct ServerInit {
    /// A file that does not exist yet, or `-` for standard output
    pub file: PathBuf,
}

/// `agfs completion`
#[derive(Args, Debug)]
pub struct Completion {
    /// The shell
    pub shell: clap_complete::Shell,
}
