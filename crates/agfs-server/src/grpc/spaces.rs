//! Spaces, and what is live.

use super::{NO_MOUNT, Service, author, caller, checked, fail, outside};
use crate::capacity;
use crate::ops::{NewSpace, SpaceInfo};
use agfs_core::id::OpId;
use agfs_core::space::SpaceType;
use agfs_proto::v1::spaces_server::Spaces;
use agfs_proto::{ToWire, v1};
use tonic::{Request, Response, Status};

type Reply<T> = Result<Response<T>, Status>;

fn reply(info: &SpaceInfo) -> v1::SpaceReply {
    v1::SpaceReply { space: Some(info.space.to_wire()), head_seq: info.head.0 }
}

#[tonic::async_trait]
impl Spaces for Service {
    async fn create_space(&self, request: Request<v1::CreateSpaceRequest>) -> Reply<v1::SpaceReply> {
        let r = request.into_inner();
        let space_type = if r.r#type.is_empty() { Ok(SpaceType::Project) } else { SpaceType::from_code(&r.r#type) };
        let new = NewSpace {
            op_id: checked::<_, OpId>(r.op_id)?,
            name: r.name,
            space_type: space_type.map_err(fail)?,
            tenant_code: r.tenant_code,
            owner: r.owner,
            shadow_rules: r.shadow_rules.map(|s| s.rules),
            mode: r.mode,
            uid: r.uid,
            gid: r.gid,
        };
        let info = self.blocking(move |engine| engine.create_space(new)).await?;
        self.engine.make_durable(crate::ops::Durable::Disk).await.map_err(fail)?;
        Ok(Response::new(reply(&info)))
    }

    async fn get_space(&self, request: Request<v1::SpaceRequest>) -> Reply<v1::SpaceReply> {
        let by = caller(&request);
        Ok(Response::new(reply(&self.space_now(&request.into_inner().space, by).await?.info())))
    }

    async fn list_spaces(&self, _: Request<v1::ListSpacesRequest>) -> Reply<v1::ListSpacesReply> {
        let spaces = self.engine.all_spaces().iter().map(|cell| reply(&cell.info())).collect();
        Ok(Response::new(v1::ListSpacesReply { spaces }))
    }

    async fn delete_space(&self, request: Request<v1::DeleteSpaceRequest>) -> Reply<v1::SpaceReply> {
        let r = request.into_inner();
        let op_id = checked::<_, OpId>(r.op_id)?;
        let _alone = self.space_alone(&r.space, NO_MOUNT).await?;
        let info = self.blocking(move |engine| engine.delete_space(&r.space, op_id)).await?;
        self.engine.make_durable(crate::ops::Durable::Disk).await.map_err(fail)?;
        Ok(Response::new(reply(&info)))
    }

    async fn fork_space(&self, request: Request<v1::ForkSpaceRequest>) -> Reply<v1::SpaceReply> {
        let r = request.into_inner();
        let op_id = checked::<_, OpId>(r.op_id)?;
        let author = outside(author(r.author)?);
        let (cell, _alone) = self.space_alone(&r.space, NO_MOUNT).await?;
        let info = self.blocking(move |engine| engine.fork_space(&cell, &r.at, &r.new_name, op_id, author)).await?;
        self.engine.make_durable(crate::ops::Durable::Disk).await.map_err(fail)?;
        Ok(Response::new(reply(&info)))
    }

    async fn list_mounts(&self, _: Request<v1::ListMountsRequest>) -> Reply<v1::ListMountsReply> {
        let mut mounts = Vec::new();
        for cell in self.engine.all_spaces() {
            let info = cell.info();
            let holder = cell.lease.holder();
            for listener in cell.hub.mounts() {
                let mut mount: v1::Mount = listener.mount.to_wire();
                mount.seen = listener.acked().0;
                mounts.push(v1::MountState {
                    mount: Some(mount),
                    space_name: info.space.name.clone(),
                    lease: if holder == Some(listener.mount.id) { "exclusive" } else { "shared" }.to_owned(),
                    pending: listener.pending(),
                    head_seq: info.head.0,
                });
            }
        }
        Ok(Response::new(v1::ListMountsReply { mounts }))
    }

    async fn server_info(&self, _: Request<v1::ServerInfoRequest>) -> Reply<v1::ServerInfoReply> {
        let about = self.about.clone();
        // A disk that does not answer must not hold up other calls.
        let capacity = tokio::task::spawn_blocking(move || capacity::of(&about.store_url, about.data_dir.as_ref()))
            .await
            .unwrap_or_default();
        Ok(Response::new(v1::ServerInfoReply {
            version: self.about.version.clone(),
            store_url: self.about.store_url.clone(),
            data_dir: self.about.data_dir.clone(),
            time_ns: self.engine.clock.now().0,
            capacity_total: capacity.total,
            capacity_free: capacity.free,
        }))
    }
}
