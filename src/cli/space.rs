//! Spaces and checkpoints, as typed.

use super::{Attribution, Care};
use clap::{Args, Subcommand};

/// `agfs space …`
#[derive(Debug, Subcommand)]
pub enum SpaceCommand {
    /// Make a space
    Create(SpaceCreate),
    /// List the spaces
    List,
    /// Show one space
    Show(SpaceName),
    /// Delete a space; its history stays until it is collected
    Delete(SpaceDelete),
}

/// `agfs space create`
#[derive(Args, Debug)]
pub struct SpaceCreate {
    /// The name: letters, digits, '.', '_' and '-'
    pub name: String,
    /// What it is for: user, project, conversation, task or team
    #[arg(long = "type", value_name = "TYPE", default_value = "project")]
    pub space_type: String,
    /// The tenant
    #[arg(long, value_name = "TENANT", default_value = "", hide_default_value = true)]
    pub tenant: String,
    /// The owner
    #[arg(long, value_name = "OWNER", default_value = "", hide_default_value = true)]
    pub owner: String,
    /// A shadow rule in place of the defaults, once for each; `none` for no shadow directories
    #[arg(long, value_name = "RULE")]
    pub shadow: Vec<String>,
}

/// A space by name or id.
#[derive(Args, Debug)]
pub struct SpaceName {
    /// The space; left out inside a mount
    #[arg(value_name = "SPACE")]
    pub name: Option<String>,
}

/// `agfs space delete`
#[derive(Args, Debug)]
pub struct SpaceDelete {
    /// The space
    #[arg(value_name = "SPACE")]
    pub name: String,
    /// How careful to be
    #[command(flatten)]
    pub care: Care,
}

/// `agfs checkpoint …`
#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// Name the present state
    Create(CheckpointCreate),
    /// List checkpoints, newest first
    List(SpaceName),
    /// Show one checkpoint
    Show(CheckpointRef),
    /// Delete a checkpoint; the state stays in history
    Delete(CheckpointDelete),
    /// Keep a checkpoint from expiry
    Pin(CheckpointPin),
}

/// `agfs checkpoint create`
#[derive(Args, Debug)]
pub struct CheckpointCreate {
    /// The space; left out inside a mount
    #[arg(value_name = "SPACE")]
    pub space_name: Option<String>,
    /// A name, unique in the space
    #[arg(long, default_value = "", hide_default_value = true)]
    pub name: String,
    /// A remark
    #[arg(long, default_value = "", hide_default_value = true)]
    pub note: String,
    /// Why: manual, before-task, before-subtask, before-rollback or policy
    #[arg(long, default_value = "manual")]
    pub cause: String,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// A checkpoint.
#[derive(Args, Debug)]
#[command(override_usage = "agfs checkpoint show [OPTIONS] [SPACE] REF")]
pub struct CheckpointRef {
    /// The space (left out inside a mount), and the checkpoint's name or id
    #[arg(value_name = "[SPACE] REF", required = true, num_args = 1..=2)]
    pub args: Vec<String>,
}

/// `agfs checkpoint delete`
#[derive(Args, Debug)]
#[command(override_usage = "agfs checkpoint delete [OPTIONS] [SPACE] REF")]
pub struct CheckpointDelete {
    /// The space (left out inside a mount), and the checkpoint's name or id
    #[arg(value_name = "[SPACE] REF", required = true, num_args = 1..=2)]
    pub args: Vec<String>,
    /// How careful to be
    #[command(flatten)]
    pub care: Care,
}

/// `agfs checkpoint pin`
#[derive(Args, Debug)]
#[command(override_usage = "agfs checkpoint pin [OPTIONS] [SPACE] REF")]
pub struct CheckpointPin {
    /// The space (left out inside a mount), and the checkpoint's name or id
    #[arg(value_name = "[SPACE] REF", required = true, num_args = 1..=2)]
    pub args: Vec<String>,
    /// Let it expire again
    #[arg(long)]
    pub off: bool,
}
