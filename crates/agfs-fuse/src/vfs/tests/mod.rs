//! The file system over a server in memory, with no mount.

mod commits;
mod differential;
mod holes;
mod orphans;
mod outage;
mod policy;
mod shadows;
mod two_mounts;
mod verbs;
