//! One method for each request of the kernel: unpack, call, reply. The trait wants them all in one place.

use super::{Adapter, GENERATION, bytes, caller, convert, errno_of, init, run};
use crate::counters::Verb;
use crate::vfs::{DirItem, Opened, Removal, Vfs};
use agfs_core::{FileId, Result};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

/// Runs an async call of the file system and packs its result.
macro_rules! serve {
    ($self:ident, $verb:ident, $ino:expr, $reply:ident, |$vfs:ident| $call:expr, |$value:pat_param| $ok:expr) => {{
        $self.count(Verb::$verb);
        let ($vfs, ino) = ($self.vfs.clone(), $ino.0);
        run::run(&$self.runtime, async move {
            match $call.await {
                Ok($value) => $ok,
                Err(e) => $reply.error(errno_of(Verb::$verb, ino, &e)),
            }
        });
    }};
}

/// As `serve`, for answers that carry attributes of what others may be changing: noted as on their way until sent.
macro_rules! serve_attributes {
    ($self:ident, $verb:ident, $ino:expr, $reply:ident, |$vfs:ident| $call:expr, |$value:pat_param| $ok:expr) => {{
        $self.count(Verb::$verb);
        let ($vfs, ino) = ($self.vfs.clone(), $ino.0);
        run::run(&$self.runtime, async move {
            let world = $vfs.world().clone();
            let _answering = world.known.answering();
            match $call.await {
                Ok($value) => $ok,
                Err(e) => $reply.error(errno_of(Verb::$verb, ino, &e)),
            }
        });
    }};
}

fn open_flags(opened: Opened) -> FopenFlags {
    let mut flags = FopenFlags::empty();
    flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.keep_cache);
    flags.set(FopenFlags::FOPEN_NOFLUSH, opened.no_flush);
    flags
}

fn answer_removal(removal: Option<Removal>, thread: u32, reply: ReplyEmpty) {
    if let Some(removal) = &removal {
        removal.answer(thread);
    }
    reply.ok();
}

/// Waits until the kernel may take up attributes of `ino`: see [`crate::kernel::Known::hold_back`].
async fn hold_back(vfs: &Vfs, ino: u64, thread: u32) {
    while let Some(wait) = vfs.world().known.hold_back(FileId(ino), thread) {
        tokio::time::sleep(wait).await;
    }
}

/// A value for a caller who gives its room in bytes: 0 asks for the size.
fn reply_sized(reply: ReplyXattr, size: u32, value: &[u8]) {
    match u32::try_from(value.len()) {
        Ok(len) if size == 0 => reply.size(len),
        Ok(len) if len <= size => reply.data(value),
        _ => reply.error(Errno::ERANGE),
    }
}

async fn list(
    vfs: &Vfs,
    fh: u64,
    offset: u64,
    plus: bool,
    take: &mut (dyn FnMut(DirItem<'_>) -> bool + Send),
) -> Result<()> {
    vfs.readdir(fh, offset, plus, take).await
}

impl Filesystem for Adapter {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        init::negotiate(config);
        Ok(())
    }

    fn destroy(&mut self) {
        self.ended.send_replace(true);
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (n, parent, name) = (self.numbers, INodeNo(self.numbers.inner(parent)), bytes(name));
        let thread = req.pid();
        serve_attributes!(self, Lookup, parent, reply, |vfs| vfs.lookup(parent.0, &name), |entry| {
            hold_back(&vfs, entry.stat.ino, thread).await;
            n.reply_entry(reply, &entry)
        });
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.count(Verb::Forget);
        run::now(|| self.vfs.forget(self.numbers.inner(ino), nlookup));
    }

    fn getattr(&self, req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        let (n, ino, thread) = (self.numbers, INodeNo(self.numbers.inner(ino)), req.pid());
        serve_attributes!(self, Getattr, ino, reply, |vfs| vfs.getattr(ino.0), |a| {
            hold_back(&vfs, a.stat.ino, thread).await;
            reply.attr(&a.ttl, &n.attr(&a.stat))
        });
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (n, ino, who) = (self.numbers, INodeNo(self.numbers.inner(ino)), caller(req));
        let set = convert::set_attr((mode, uid, gid, size), atime, mtime);
        let fh = fh.map(|fh| fh.0);
        serve!(self, Setattr, ino, reply, |vfs| vfs.setattr(ino.0, fh, set, who), |a| {
            reply.attr(&a.ttl, &n.attr(&a.stat))
        });
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        serve!(self, Readlink, ino, reply, |vfs| vfs.readlink(ino.0), |target| reply.data(&target));
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let (n, parent, name) = (self.numbers, INodeNo(self.numbers.inner(parent)), bytes(name));
        let who = caller(req);
        serve!(self, Mknod, parent, reply, |vfs| vfs.mknod(parent.0, &name, mode, rdev, who), |entry| {
            n.reply_entry(reply, &entry)
        });
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let (n, parent, name) = (self.numbers, INodeNo(self.numbers.inner(parent)), bytes(name));
        let who = caller(req);
        serve!(self, Mkdir, parent, reply, |vfs| vfs.mkdir(parent.0, &name, mode, who), |entry| {
            n.reply_entry(reply, &entry)
        });
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (parent, name, thread) = (INodeNo(self.numbers.inner(parent)), bytes(name), req.pid());
        serve!(self, Unlink, parent, reply, |vfs| vfs.unlink(parent.0, &name), |removal| answer_removal(
            removal, thread, reply
        ));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (parent, name) = (INodeNo(self.numbers.inner(parent)), bytes(name));
        serve!(self, Rmdir, parent, reply, |vfs| vfs.rmdir(parent.0, &name), |()| reply.ok());
    }

    fn symlink(&self, req: &Request, parent: INodeNo, link_name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (n, parent, name) = (self.numbers, INodeNo(self.numbers.inner(parent)), bytes(link_name));
        let (target, who) = (bytes(target.as_os_str()), caller(req));
        serve!(self, Symlink, parent, reply, |vfs| vfs.symlink(parent.0, &name, &target, who), |entry| {
            n.reply_entry(reply, &entry)
        });
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (INodeNo(self.numbers.inner(parent)), self.numbers.inner(newparent));
        let (name, newname, thread) = (bytes(name), bytes(newname), req.pid());
        serve!(self, Rename, from, reply, |vfs| vfs.rename((from.0, &name), (to, &newname), flags.bits()), |removal| {
            answer_removal(removal, thread, reply)
        });
    }

    fn link(&self, _req: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let (n, parent, name) = (self.numbers, self.numbers.inner(newparent), bytes(newname));
        serve!(self, Link, ino, reply, |vfs| vfs.link(ino.0, parent, &name), |entry| n.reply_entry(reply, &entry));
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let who = caller(req);
        serve!(self, Open, ino, reply, |vfs| vfs.open(ino.0, flags.0, who), |opened| {
            reply.opened(FileHandle(opened.fh), open_flags(opened))
        });
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        serve!(self, Read, ino, reply, |vfs| vfs.read(fh.0, offset, size), |data| reply.data(&data));
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if write_flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            let data = data.to_vec();
            return serve!(self, Write, ino, reply, |vfs| vfs.write_page(fh.0, offset, &data), |written| {
                reply.written(written)
            });
        }
        let drop_ids = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let written = {
            let _context = self.runtime.enter();
            self.vfs.set_flags(fh.0, flags.0);
            run::now(|| self.vfs.try_write(fh.0, offset, data, drop_ids))
        };
        match written {
            Some(Some(result)) => {
                self.count(Verb::Write);
                match result {
                    Ok(written) => reply.written(written),
                    Err(e) => reply.error(errno_of(Verb::Write, ino.0, &e)),
                }
            }
            Some(None) => {
                let data = data.to_vec();
                serve!(self, Write, ino, reply, |vfs| vfs.write(fh.0, offset, &data, drop_ids), |written| {
                    reply.written(written)
                });
            }
            None => reply.error(Errno::EIO),
        }
    }

    fn flush(&self, _req: &Request, ino: INodeNo, fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        serve!(self, Flush, ino, reply, |vfs| vfs.flush(fh.0), |()| reply.ok());
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        serve!(self, Release, ino, reply, |vfs| vfs.release(fh.0), |()| reply.ok());
    }

    fn fsync(&self, _req: &Request, ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        serve!(self, Fsync, ino, reply, |vfs| vfs.fsync(fh.0, datasync), |()| reply.ok());
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let ino = INodeNo(self.numbers.inner(ino));
        serve!(self, Opendir, ino, reply, |vfs| vfs.opendir(ino.0), |fh| {
            reply.opened(FileHandle(fh), FopenFlags::empty())
        });
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let n = self.numbers;
        let take = move |reply: &mut ReplyDirectory, item: DirItem<'_>| {
            let kind = convert::file_type(item.kind);
            !reply.add(n.outer(item.ino), item.next, kind, OsStr::from_bytes(item.name))
        };
        serve!(
            self,
            Readdir,
            ino,
            reply,
            |vfs| list(&vfs, fh.0, offset, false, &mut |item| take(&mut reply, item)),
            |()| reply.ok()
        );
    }

    fn readdirplus(&self, _req: &Request, ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let n = self.numbers;
        let take = move |reply: &mut ReplyDirectoryPlus, item: DirItem<'_>| {
            let name = OsStr::from_bytes(item.name);
            !match &item.entry {
                Some(e) => {
                    let attr = n.attr(&e.stat);
                    reply.add(attr.ino, item.next, name, &e.entry_ttl.min(e.attr_ttl), &attr, GENERATION)
                }
                // A number of 0 tells the kernel that nothing was looked up.
                None => reply.add(INodeNo(0), item.next, name, &Default::default(), &n.dot(&item), GENERATION),
            }
        };
        serve_attributes!(
            self,
            Readdirplus,
            ino,
            reply,
            |vfs| list(&vfs, fh.0, offset, true, &mut |item| take(&mut reply, item)),
            |()| reply.ok()
        );
    }

    fn releasedir(&self, _req: &Request, ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        serve!(self, Releasedir, ino, reply, |vfs| async { vfs.releasedir(fh.0) }, |()| reply.ok());
    }

    fn fsyncdir(&self, _req: &Request, ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        serve!(self, Fsyncdir, ino, reply, |vfs| vfs.fsyncdir(fh.0, datasync), |()| reply.ok());
    }

    fn statfs(&self, _req: &Request, ino: INodeNo, reply: ReplyStatfs) {
        serve!(self, Statfs, ino, reply, |vfs| vfs.statfs(ino.0), |s| {
            reply.statfs(s.blocks, s.free, s.available, s.files, s.files_free, s.block, 255, s.block)
        });
    }

    fn setxattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (ino, name, value) = (INodeNo(self.numbers.inner(ino)), bytes(name), value.to_vec());
        serve!(self, Setxattr, ino, reply, |vfs| vfs.setxattr(ino.0, &name, &value, flags), |()| reply.ok());
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let (ino, name) = (INodeNo(self.numbers.inner(ino)), bytes(name));
        serve!(self, Getxattr, ino, reply, |vfs| vfs.getxattr(ino.0, &name), |value| reply_sized(reply, size, &value));
    }

    fn listxattr(&self, req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let (ino, who) = (INodeNo(self.numbers.inner(ino)), caller(req));
        serve!(self, Listxattr, ino, reply, |vfs| vfs.listxattr(ino.0, who), |names| reply_sized(reply, size, &names));
    }

    fn removexattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (ino, name) = (INodeNo(self.numbers.inner(ino)), bytes(name));
        serve!(self, Removexattr, ino, reply, |vfs| vfs.removexattr(ino.0, &name), |()| reply.ok());
    }

    fn access(&self, _req: &Request, _ino: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        // The kernel checks permissions itself and does not ask.
        self.count(Verb::Access);
        reply.ok();
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (n, parent, name) = (self.numbers, INodeNo(self.numbers.inner(parent)), bytes(name));
        let who = caller(req);
        serve!(self, Create, parent, reply, |vfs| vfs.create(parent.0, &name, mode, flags, who), |(e, opened)| {
            let ttl = e.entry_ttl.min(e.attr_ttl);
            reply.created(&ttl, &n.attr(&e.stat), GENERATION, FileHandle(opened.fh), open_flags(opened))
        });
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let drop_ids = caller(req).uid != 0;
        serve!(self, Fallocate, ino, reply, |vfs| vfs.fallocate(fh.0, offset, length, mode, drop_ids), |()| reply.ok());
    }

    fn ioctl(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _flags: IoctlFlags,
        _cmd: u32,
        _in_data: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        self.count(Verb::Ioctl);
        reply.error(Errno::ENOTTY);
    }

    fn lseek(&self, _req: &Request, ino: INodeNo, fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        serve!(self, Lseek, ino, reply, |vfs| vfs.lseek(fh.0, offset, whence), |to| {
            match to.and_then(|to| i64::try_from(to).ok()) {
                Some(to) => reply.offset(to),
                None => reply.error(Errno::ENXIO),
            }
        });
    }

    fn copy_file_range(
        &self,
        req: &Request,
        ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        _ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let (from, to) = ((fh_in.0, offset_in), (fh_out.0, offset_out));
        let drop_ids = caller(req).uid != 0;
        serve!(self, CopyFileRange, ino_in, reply, |vfs| vfs.copy_file_range(from, to, len, drop_ids), |copied| {
            reply.written(copied)
        });
    }
}
