//! Big real work, each done on the mount and on a plain directory, and the two trees compared: paths, kinds, modes, sizes,
//! contents, link targets. Not times.

use crate::common::Farm;
use crate::common::tree::{Look, look, same};
use std::path::{Path, PathBuf};

/// Packages whose trees together have well over 5,000 files.
const PACKAGES: &str = "typescript@5 lodash@4 date-fns@4 rxjs@7 core-js@3 express@5";

/// Makes a repository out of an installed npm tree; returns its path.
fn repository(farm: &mut Farm) -> PathBuf {
    let dir = farm.plain();
    farm.sh_online(
        &dir,
        &format!(
            r#"mkdir install && cd install && npm init -y > /dev/null
               npm install --no-audit --no-fund --silent --ignore-scripts {PACKAGES}
               cd .. && git init -q -b main repo && mv install/node_modules repo/packages && cd repo
               git config core.autocrlf false && git add -A -f && git commit -qm one
               for f in $(git ls-files 'packages/*/package.json' | head -200); do echo >> "$f"; done
               git rm -rq packages/rxjs/dist/esm && git commit -qam two
               git checkout -q -b old HEAD~1 && git checkout -q main"#
        ),
    );
    let files: usize = farm.sh(&dir, "git -C repo ls-tree -r HEAD~1 | wc -l").trim().parse().unwrap();
    assert!(files > 5_000, "only {files} files");
    dir.join("repo")
}

#[test]
fn a_clone_of_a_large_repository() {
    let mut farm = Farm::new();
    let source = repository(&mut farm);
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &["--shadow", "none"]), farm.plain());
    let script = format!(
        r#"git clone -q --no-local 'file://{}' clone && cd clone && [ -z "$(git status --porcelain)" ]
           git checkout -q -b old origin/old && [ -z "$(git status --porcelain)" ] && git checkout -q main
           grep -rl export packages/rxjs | LC_ALL=C sort > ../found && git gc -q && git fsck --full
           [ -z "$(git status --porcelain)" ] && git rev-parse HEAD"#,
        source.display()
    );
    let heads: Vec<String> = [&plain, &m].map(|dir| farm.sh(dir, &script)).into();
    assert_eq!(heads[0], heads[1]);
    // Below .git are times, inode numbers and packs whose making depends on threads.
    let what = Look { skip: &[".git"], ..Look::default() };
    let want = look(&plain, &what);
    assert!(want.len() > 5_000);
    same(&want, &look(&m, &what), "the clone");
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    same(&want, &look(&m, &what), "the clone after a remount with an empty cache");
    farm.sh(&m, r#"cd clone && git fsck --full && [ -z "$(git status --porcelain)" ]"#);
}

const PACKAGE_JSON: &str = r#"{
  "name": "shop", "version": "1.0.0", "private": true, "type": "commonjs",
  "scripts": { "build": "tsc -p .", "test": "node --test out/cart.test.js" },
  "dependencies": { "express": "5", "lodash": "4", "zod": "3" },
  "devDependencies": { "typescript": "5", "esbuild": "0.25", "@types/node": "22", "prettier": "3" }
}"#;
const TS_CONFIG: &str = r#"{ "compilerOptions": { "outDir": "out", "strict": true, "module": "commonjs", "types": ["node"] }, "include": ["src"] }"#;
const CART: &str = "export const total = (prices: number[]): number => prices.reduce((a, b) => a + b, 0);\n";
const CART_TEST: &str = r#"import { test } from "node:test";
import assert from "node:assert";
import { total } from "./cart";
test("adds up", () => assert.equal(total([1, 2, 3]), 6));
"#;

/// Installs, builds, tests and formats a small project in `dir`.
fn build_project(farm: &Farm, dir: &Path) {
    std::fs::create_dir_all(dir.join("shop/src")).unwrap();
    for (name, text) in [
        ("package.json", PACKAGE_JSON),
        ("tsconfig.json", TS_CONFIG),
        ("src/cart.ts", CART),
        ("src/cart.test.ts", CART_TEST),
    ] {
        std::fs::write(dir.join("shop").join(name), text).unwrap();
    }
    farm.sh_online(
        dir,
        r#"cd shop && npm install --no-audit --no-fund --silent && npm run --silent build && npm test > /dev/null
           npx esbuild src/cart.ts --bundle --platform=node --outfile=out/bundle.js --log-level=error
           npx prettier --write src > /dev/null
           node -e "if (require('./out/cart.js').total([1, 2]) !== 3 || !require('express')) process.exit(1)"
           npm ci --no-audit --no-fund --silent && npm ls > /dev/null"#,
    );
}

#[test]
fn npm_install_of_a_project() {
    let mut farm = Farm::new();
    let plain = farm.plain();
    build_project(&farm, &plain);
    let want = look(&plain, &Look::default());
    assert!(want.len() > 500, "{} paths", want.len());
    // In a shadow directory, and with every file in the tree.
    for options in [&[][..], &["--shadow", "none"]] {
        let space = farm.space();
        let m = farm.mount(&space, options);
        build_project(&farm, &m);
        same(&want, &look(&m, &Look::default()), &format!("npm on a mount with {options:?}"));
        if !options.is_empty() {
            farm.umount(&m);
            let m = farm.mount(&space, options);
            same(&want, &look(&m, &Look::default()), "after a remount with an empty cache");
        }
    }
}

#[test]
fn venv_and_pip_install_of_wheels() {
    let mut farm = Farm::new();
    let wheels = farm.plain();
    farm.sh_online(
        &wheels,
        "python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d . packaging markupsafe idna",
    );
    assert_eq!(std::fs::read_dir(&wheels).unwrap().count(), 3);
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &["--shadow", "none"]), farm.plain());
    // An environment has its own path written into it: both are made at the same one, through a link.
    let here = farm.path("here");
    let script = format!(
        r#"export SOURCE_DATE_EPOCH=1700000000
           python3 -m venv '{here}/env'
           '{here}/env/bin/pip' install -q --disable-pip-version-check --no-index --find-links '{wheels}' packaging markupsafe idna
           '{here}/env/bin/python' -c 'import idna, markupsafe._speedups, packaging.version; print(idna.encode("ä.x"))'
           '{here}/env/bin/pip' list --format=freeze --disable-pip-version-check | LC_ALL=C sort > '{here}/list'
           '{here}/env/bin/pip' uninstall -q -y idna && '{here}/env/bin/pip' check --disable-pip-version-check"#,
        here = here.display(),
        wheels = wheels.display()
    );
    for dir in [&plain, &m] {
        let _ = std::fs::remove_file(&here);
        std::os::unix::fs::symlink(dir, &here).unwrap();
        farm.sh_online(&wheels, &script);
    }
    // Compiled modules depend on the order in which objects came to be, not on the file system.
    let what = Look { only_present: &[".pyc"], ..Look::default() };
    let want = look(&plain, &what);
    assert!(want.len() > 300, "{} paths", want.len());
    same(&want, &look(&m, &what), "the environment");
    farm.umount(&m);
    let m = farm.mount(&space, &["--shadow", "none"]);
    same(&want, &look(&m, &what), "after a remount with an empty cache");
}
