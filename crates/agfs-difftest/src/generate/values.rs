//! Operations on contents and attributes: places at the borders of pages, chunks and limits, times before 1970 and after
//! 2038, values of all lengths.

use super::{Generator, Guess};
use crate::op::{Count, Falloc, Flags, On, Op, Owner, Stamp, Whence, XHow, XName, XValue};

/// Where something begins or ends in the file systems under test: pages, blocks, what is kept in memory, chunks.
const BORDERS: [u64; 7] = [4_096, 65_536, 131_072, 262_144, 524_288, 1 << 20, 2 << 20];

impl Generator {
    /// A place in a file.
    pub(super) fn place_in(&mut self) -> Count {
        let near = |rng: &mut fastrand::Rng, n: u64| (n + rng.u64(..10)).saturating_sub(5);
        Count(match self.rng.u32(..100) {
            0..15 => 0,
            15..60 => self.rng.u64(..6_000),
            60..72 => self.rng.u64(..40) * 4_096,
            72..86 => {
                let border = self.pick(&BORDERS);
                near(&mut self.rng, border)
            }
            86..96 => self.rng.u64(..1_500_000),
            96..98 => {
                let far = self.pick(&[1 << 31, 1 << 32, 1 << 33, 1 << 40]).min(self.profile.largest);
                near(&mut self.rng, far)
            }
            _ => self.rng.u64(..100),
        })
    }

    fn len(&mut self) -> Count {
        Count(match self.rng.u32(..100) {
            0..3 => 0,
            3..60 => 1 + self.rng.u64(..3_000),
            60..75 => 4_096 * (1 + self.rng.u64(..8)),
            75..88 => 1 + self.rng.u64(..70_000),
            88..96 => {
                let border = self.pick(&BORDERS[2..6]);
                border + self.rng.u64(..5) - 2
            }
            _ => 1 + self.rng.u64(..900_000),
        })
    }

    fn fill(&mut self) -> u8 {
        if self.chance(10) { 0 } else { self.rng.u8(1..) }
    }

    pub(super) fn reopen(&mut self) -> Op {
        let flags = self.pick(&[libc::O_RDONLY, libc::O_RDWR, libc::O_RDWR, libc::O_WRONLY | libc::O_TRUNC]);
        let append = if self.chance(20) { libc::O_APPEND } else { 0 };
        let (from, slot, flags) = (self.opened(), self.free(), Flags(flags | append));
        let dir = self.slots[usize::from(from.0)] == Guess::Dir;
        self.note(slot, flags, dir);
        Op::Reopen { slot, from, flags }
    }

    pub(super) fn close(&mut self) -> Op {
        let slot = self.opened();
        self.slots[usize::from(slot.0)] = Guess::Nothing;
        Op::Close { slot }
    }

    pub(super) fn pwrite(&mut self) -> Op {
        Op::Pwrite { slot: self.writable(), at: self.place_in(), len: self.len(), fill: self.fill() }
    }

    pub(super) fn write(&mut self) -> Op {
        Op::Write { slot: self.writable(), len: self.len(), fill: self.fill() }
    }

    pub(super) fn pread(&mut self) -> Op {
        Op::Pread { slot: self.readable(), at: self.place_in(), len: self.len() }
    }

    pub(super) fn read(&mut self) -> Op {
        Op::Read { slot: self.readable(), len: self.len() }
    }

    pub(super) fn map_write(&mut self) -> Op {
        if !self.profile.mappings {
            return self.pwrite();
        }
        let slot = self.slot(|g| g == Guess::File { reads: true, writes: true });
        Op::MapWrite { slot, at: self.place_in(), len: self.len(), fill: self.fill(), sync: self.switch(50) }
    }

    pub(super) fn map_read(&mut self) -> Op {
        if !self.profile.mappings {
            return self.pread();
        }
        Op::MapRead { slot: self.readable(), at: self.place_in(), len: self.len() }
    }

    pub(super) fn seek(&mut self) -> Op {
        let whence = self.pick(&[Whence::Set, Whence::End, Whence::Data, Whence::Data, Whence::Hole, Whence::Hole]);
        Op::Seek { slot: self.readable(), whence, at: self.place_in() }
    }

    pub(super) fn truncate(&mut self) -> Op {
        let on = if self.chance(60) { On::Slot(self.writable()) } else { On::Path(self.old_file()) };
        let size = match self.rng.u32(..60) {
            // Negative sizes. What is too large, and not negative, differs from one plain file system to another.
            0 => Count(self.pick(&[u64::MAX, 1 << 63])),
            1..6 => Count(0),
            _ => self.place_in(),
        };
        Op::Truncate { on, size }
    }

    pub(super) fn fallocate(&mut self) -> Op {
        use libc::{FALLOC_FL_KEEP_SIZE as KEEP, FALLOC_FL_PUNCH_HOLE as PUNCH, FALLOC_FL_ZERO_RANGE as ZERO};
        let how =
            self.pick(&[0, 0, KEEP, KEEP, PUNCH | KEEP, PUNCH | KEEP, PUNCH | KEEP, ZERO, ZERO, ZERO | KEEP, PUNCH]);
        Op::Fallocate { slot: self.writable(), how: Falloc(how), at: self.place_in(), len: self.len() }
    }

    pub(super) fn copy(&mut self) -> Op {
        let (from, mut to) = (self.readable(), self.writable());
        if self.chance(25) {
            to = from;
        }
        Op::Copy { from, from_at: self.place_in(), to, to_at: self.place_in(), len: self.len() }
    }

    pub(super) fn sync(&mut self) -> Op {
        Op::Sync { slot: self.opened(), data_only: self.switch(50) }
    }

    pub(super) fn chown(&mut self) -> Op {
        let ids = [None, None, Some(0), Some(1_000), Some(2_000)];
        let ids = if self.profile.privileged { &ids[..] } else { &ids[..1] };
        Op::Chown { on: self.on(), uid: Owner(self.pick(ids)), gid: Owner(self.pick(ids)) }
    }

    fn stamp(&mut self) -> Stamp {
        let nanos = if self.chance(70) { self.rng.u32(..1_000_000_000) } else { self.pick(&[0, 1, 999_999_999]) };
        let seconds = match self.rng.u32(..10) {
            0 | 1 => return Stamp::Omit,
            2 => return Stamp::Now,
            3 | 4 => self.rng.i64(-2_000_000_000..0),
            // Not the very first second that ext4 knows: it has no fractions there.
            5 => self.pick(&[0, -1, 1, i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::from(i32::MIN) + 1]),
            6 | 7 => self.rng.i64(2_200_000_000..9_000_000_000),
            _ => self.rng.i64(0..1_500_000_000),
        };
        Stamp::At(seconds, nanos)
    }

    pub(super) fn utimens(&mut self) -> Op {
        Op::Utimens { on: self.on(), atime: self.stamp(), mtime: self.stamp() }
    }

    fn xname(&mut self) -> XName {
        match self.rng.u32(..40) {
            0 => XName::Long,
            1 => XName::TooLong,
            2 => XName::None,
            3 => XName::Empty,
            4 => XName::System,
            5..9 if self.profile.privileged => XName::Trusted,
            n => [XName::A, XName::B, XName::C][n as usize % 3],
        }
    }

    /// A name that is set somewhere, mostly.
    fn xname_set(&mut self) -> XName {
        if self.chance(80) { XName::A } else { self.xname() }
    }

    pub(super) fn setxattr(&mut self) -> Op {
        // No more in all than fits into a block of the strictest file system.
        // A value that is set again does not count as a change on ext4, and as one elsewhere: hardly ever the same.
        let len = if self.chance(3) { 0 } else { self.pick(&[2, 5, 30, 100, 250, 400]) };
        self.xvalue = self.xvalue.wrapping_add(1);
        let value = XValue { len, fill: self.xvalue };
        let how = self.pick(&[XHow::Set, XHow::Set, XHow::Create, XHow::Replace]);
        let name = if self.chance(40) { XName::A } else { self.xname() };
        Op::Setxattr { on: self.on(), name, value, how }
    }

    pub(super) fn getxattr(&mut self) -> Op {
        Op::Getxattr { on: self.on(), name: self.xname_set() }
    }

    pub(super) fn listxattr(&mut self) -> Op {
        Op::Listxattr { on: self.on() }
    }

    pub(super) fn removexattr(&mut self) -> Op {
        Op::Removexattr { on: self.on(), name: self.xname_set() }
    }
}
