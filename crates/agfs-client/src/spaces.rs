//! Calls about spaces, live mounts and the server itself.

use crate::connection::Connection;
use crate::retry::{Effort, malformed};
use agfs_core::op::Author;
use agfs_core::space::{Mount, Space, SpaceType};
use agfs_core::{Result, Seq, Timestamp};
use agfs_proto::convert::required;
use agfs_proto::{FromWire, ToWire, v1};

/// What a new space is to be.
#[derive(Clone, Debug)]
pub struct NewSpace {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub space_type: SpaceType,
    /// The tenant, empty when there is none.
    pub tenant_code: String,
    /// The owner, empty when there is none.
    pub owner: String,
    /// Shadow rules in place of the defaults; `None` for the defaults.
    pub shadow_rules: Option<Vec<String>>,
    /// Owner of the root directory.
    pub uid: u32,
    /// Group of the root directory.
    pub gid: u32,
    /// Permission bits of the root directory.
    pub mode: u32,
}

/// A space and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceInfo {
    /// The space.
    pub space: Space,
    /// Its last change.
    pub head: Seq,
}

/// A live mount as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountState {
    /// The mount.
    pub mount: Mount,
    /// The name of its space.
    pub space_name: String,
    /// `exclusive`, `shared` or `none`.
    pub lease: String,
    /// Bytes that the mount says it has not sent.
    pub pending: u64,
    /// The last change of its space.
    pub head: Seq,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its version.
    pub version: String,
    /// Where it keeps contents.
    pub store_url: String,
    /// Where it keeps metadata.
    pub data_dir: String,
    /// Its time.
    pub time: Timestamp,
    /// Bytes of the disk that contents and metadata are on, and those free; `None` when there is no such limit.
    pub capacity: Option<(u64, u64)>,
}

fn space_info(reply: v1::SpaceReply) -> Result<SpaceInfo> {
    let convert =
        || Ok(SpaceInfo { space: Space::from_wire(required(reply.space, "space")?)?, head: Seq(reply.head_seq) });
    convert().map_err(malformed)
}

fn mount_state(state: v1::MountState) -> Result<MountState> {
    let mount = required(state.mount, "mount").and_then(Mount::from_wire).map_err(malformed)?;
    Ok(MountState {
        mount,
        space_name: state.space_name,
        lease: state.lease,
        pending: state.pending,
        head: Seq(state.head_seq),
    })
}

impl Connection {
    /// Makes a space. Fails with `AlreadyExists` when the name is taken.
    pub async fn create_space(&self, new: NewSpace) -> Result<SpaceInfo> {
        let request = v1::CreateSpaceRequest {
            op_id: self.next_op_id().to_wire(),
            name: new.name,
            r#type: new.space_type.code().to_owned(),
            tenant_code: new.tenant_code,
            owner: new.owner,
            shadow_rules: new.shadow_rules.map(|rules| v1::ShadowRules { rules }),
            uid: new.uid,
            gid: new.gid,
            mode: new.mode,
        };
        let send = || {
            let (mut client, request) = (self.spaces(), request.clone());
            async move { client.create_space(request).await }
        };
        space_info(self.call("creating a space", Effort::Short, send).await?.into_inner())
    }

    /// A space by name or id. Fails with `NotFound`.
    pub async fn get_space(&self, space: &str) -> Result<SpaceInfo> {
        let send = || {
            let (mut client, request) = (self.spaces(), v1::SpaceRequest { space: space.to_owned() });
            async move { client.get_space(request).await }
        };
        space_info(self.call("looking up a space", Effort::Short, send).await?.into_inner())
    }

    /// All spaces.
    pub async fn list_spaces(&self) -> Result<Vec<SpaceInfo>> {
        let send = || {
            let mut client = self.spaces();
            async move { client.list_spaces(v1::ListSpacesRequest {}).await }
        };
        let reply = self.call("listing the spaces", Effort::Short, send).await?.into_inner();
        reply.spaces.into_iter().map(space_info).collect()
    }

    /// Deletes a space; its history stays until it is collected. Fails with `NotFound`.
    pub async fn delete_space(&self, space: &str) -> Result<SpaceInfo> {
        let request = v1::DeleteSpaceRequest { op_id: self.next_op_id().to_wire(), space: space.to_owned() };
        let send = || {
            let (mut client, request) = (self.spaces(), request.clone());
            async move { client.delete_space(request).await }
        };
        space_info(self.call("deleting a space", Effort::Short, send).await?.into_inner())
    }

    /// A new space that begins as `space` was at the reference `at` (empty: now). Fails with `NotFound`, `AlreadyExists`.
    pub async fn fork_space(&self, space: &str, at: &str, new_name: &str, author: &Author) -> Result<SpaceInfo> {
        let request = v1::ForkSpaceRequest {
            op_id: self.next_op_id().to_wire(),
            space: space.to_owned(),
            at: at.to_owned(),
            new_name: new_name.to_owned(),
            author: Some(author.to_wire()),
        };
        let send = || {
            let (mut client, request) = (self.spaces(), request.clone());
            async move { client.fork_space(request).await }
        };
        space_info(self.call("forking a space", Effort::Short, send).await?.into_inner())
    }

    /// The live mounts of the server.
    pub async fn list_mounts(&self) -> Result<Vec<MountState>> {
        let send = || {
            let mut client = self.spaces();
            async move { client.list_mounts(v1::ListMountsRequest {}).await }
        };
        let reply = self.call("listing the mounts", Effort::Short, send).await?.into_inner();
        reply.mounts.into_iter().map(mount_state).collect()
    }

    /// What the server says of itself; also the way to find out whether one answers.
    pub async fn server_info(&self) -> Result<ServerInfo> {
        let send = || {
            let mut client = self.spaces();
            async move { client.server_info(v1::ServerInfoRequest {}).await }
        };
        let reply = self.call("asking the server about itself", Effort::Short, send).await?.into_inner();
        Ok(ServerInfo {
            version: reply.version,
            store_url: reply.store_url,
            data_dir: reply.data_dir,
            time: Timestamp(reply.time_ns),
            capacity: Some((reply.capacity_total, reply.capacity_free)).filter(|(total, _)| *total > 0),
        })
    }
}
