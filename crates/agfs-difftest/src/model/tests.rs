//! The model, behind the kernel's walk, does what a real directory does.

use crate::accepted::{Accepted, SAME_XATTR};
use crate::found::FOUND;
use crate::posix::{Limits, Posix, is_privileged};
use crate::run::Watch;
use crate::{Kernel, Model, Profile, Script, Side, Trial};

/// Where a directory of this machine's temporary disk may differ from the model.
const ACCEPTED: &[Accepted] = &[SAME_XATTR];

fn on_a_real_directory<T>(act: impl FnOnce(&mut Trial<'_>) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let mut made = 0;
    act(&mut Trial::new(ACCEPTED, || {
        made += 1;
        let dir = dir.path().join(made.to_string());
        std::fs::create_dir(&dir).unwrap();
        (Side::new(move || Posix::new(&dir, Limits::default())), Side::new(|| Kernel::new(Model::new())))
    }))
}

#[test]
fn the_model_does_what_a_real_directory_does() {
    let profile = Profile { dotdot: is_privileged(), ..Profile::requests() };
    let seeds = 0..40;
    let successes = on_a_real_directory(|trial| {
        let passed = |seed| trial.seed(seed, 2_000, profile).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        seeds.clone().map(passed).map(|p| p.report.successes()).sum::<usize>()
    });
    assert!(successes > 600 * seeds.count(), "only {successes} succeeded");
}

#[test]
fn the_model_does_what_was_found_as_a_real_directory_does() {
    on_a_real_directory(|trial| {
        let found = FOUND.iter().map(|(name, script)| (name, Script::of(script)));
        for (name, script) in found.filter(|(_, script)| script.is_of_requests()) {
            trial.script(&script, Watch::CLOSE).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        }
    });
}
