//! `agfs space …` and `agfs fork`.

use crate::cli::{Fork, SpaceCommand, SpaceCreate, SpaceDelete};
use crate::context::Context;
use crate::exit::Result;
use crate::output::json::SpaceShape;
use crate::output::table::Table;
use crate::output::{confirmed, text};
use crate::when;
use agfs_client::{NewSpace, SpaceInfo};
use agfs_core::space::{SpaceType, check_space_name};

/// The permission bits of a new space's root directory.
const ROOT_MODE: u32 = 0o755;

/// Runs `agfs space …`.
pub async fn run(ctx: &mut Context, command: SpaceCommand) -> Result<()> {
    match command {
        SpaceCommand::Create(args) => create(ctx, args).await,
        SpaceCommand::List => list(ctx).await,
        SpaceCommand::Show(args) => {
            let space = ctx.here().optional_space(args.name)?;
            let info = ctx.connect()?.get_space(&space).await?;
            show(ctx, &info)
        }
        SpaceCommand::Delete(args) => delete(ctx, args).await,
    }
}

/// What a new space of this name is to be, owned by the user of this process.
pub fn new_space(name: &str, space_type: SpaceType) -> NewSpace {
    NewSpace {
        name: name.to_owned(),
        space_type,
        tenant_code: String::new(),
        owner: String::new(),
        shadow_rules: None,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        mode: ROOT_MODE,
    }
}

async fn create(ctx: &mut Context, args: SpaceCreate) -> Result<()> {
    check_space_name(&args.name)?;
    let space_type = SpaceType::from_code(&args.space_type).map_err(|e| e.context("--type"))?;
    if !args.shadow.is_empty() {
        agfs_core::shadow::Rules::parse(&args.shadow).map_err(|e| e.context("--shadow"))?;
    }
    let new = NewSpace {
        tenant_code: args.tenant,
        owner: args.owner,
        shadow_rules: (!args.shadow.is_empty()).then_some(args.shadow),
        ..new_space(&args.name, space_type)
    };
    let info = ctx.connect()?.create_space(new).await?;
    ctx.out.show(&SpaceShape::from(&info), |out| out.line(&format!("{} ({}) made", info.space.name, info.space.id)))
}

async fn list(ctx: &mut Context) -> Result<()> {
    let spaces = ctx.connect()?.list_spaces().await?;
    let shapes: Vec<SpaceShape> = spaces.iter().map(SpaceShape::from).collect();
    ctx.out.show(&shapes, |out| {
        let mut table = Table::new(&["NAME", "ID", "TYPE", ">HEAD", "TIMELINE", "CREATED"]);
        for SpaceInfo { space, head } in &spaces {
            table.row([
                text(space.name.as_bytes()),
                space.id.to_string(),
                space.space_type.code().into(),
                head.0.to_string(),
                space.head.to_string(),
                when::short(space.created),
            ]);
        }
        out.table(&table)
    })
}

fn show(ctx: &mut Context, info: &SpaceInfo) -> Result<()> {
    let space = &info.space;
    ctx.out.show(&SpaceShape::from(info), |out| {
        let mut table = Table::new(&["SPACE", "VALUE"]);
        table.row(["name".into(), text(space.name.as_bytes())]);
        table.row(["id".into(), space.id.to_string()]);
        table.row(["type".into(), space.space_type.code().into()]);
        table.row(["head".into(), info.head.to_string()]);
        table.row(["timeline".into(), space.head.to_string()]);
        table.row(["tenant".into(), text(space.tenant_code.as_bytes())]);
        table.row(["owner".into(), text(space.owner.as_bytes())]);
        table.row(["created".into(), when::rfc3339(space.created)]);
        let rules = space.shadow_rules.as_ref().map_or("the defaults".to_owned(), |r| r.join(", "));
        table.row(["shadow rules".into(), text(rules.as_bytes())]);
        out.table(&table)
    })
}

async fn delete(ctx: &mut Context, args: SpaceDelete) -> Result<()> {
    let conn = ctx.connect()?;
    let info = conn.get_space(&args.name).await?;
    let name = text(info.space.name.as_bytes());
    if args.care.dry_run {
        return ctx
            .out
            .show(&SpaceShape::from(&info), |out| out.line(&format!("{name} ({}) would be deleted", info.space.id)));
    }
    if !confirmed(&format!("Delete the space {name} with {} changes?", info.head.0), args.care.yes, ctx.json()) {
        return ctx.out.line("nothing deleted");
    }
    let info = conn.delete_space(&args.name).await?;
    ctx.out.show(&SpaceShape::from(&info), |out| out.line(&format!("{name} ({}) deleted", info.space.id)))
}

/// Runs `agfs fork`.
pub async fn fork(ctx: &mut Context, args: Fork) -> Result<()> {
    let (space, at, new) = ctx.here().fork(args.args)?;
    check_space_name(&new)?;
    let author = ctx.config.author(&args.by);
    let info = ctx.connect()?.fork_space(&space, &at, &new, &author).await?;
    let from = if at.is_empty() { space } else { format!("{space}@{at}") };
    ctx.out.show(&SpaceShape::from(&info), |out| {
        out.line(&format!("{} ({}) begins as {from}", info.space.name, info.space.id))
    })
}
