//! The model, behind the kernel's walk, does what a real directory does.

use crate::accepted::{Accepted, SAME_XATTR};
use crate::posix::{Limits, Posix, is_privileged};
use crate::{Kernel, Model, Profile, Side, Trial};

/// Where a directory of this machine's temporary disk may differ from the model.
const ACCEPTED: &[Accepted] = &[SAME_XATTR];

#[test]
fn the_model_does_what_a_real_directory_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = 0;
    let mut trial = Trial::new(ACCEPTED, || {
        made += 1;
        let dir = dir.path().join(made.to_string());
        std::fs::create_dir(&dir).unwrap();
        (Side::new(move || Posix::new(&dir, Limits::default())), Side::new(|| Kernel::new(Model::new())))
    });
    let profile = Profile { dotdot: is_privileged(), ..Profile::requests() };
    for seed in 0..60 {
        let passed = trial.seed(seed, 2_000, profile).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        assert!(passed.report.successes() > 600, "{:?}", passed.report);
    }
}
