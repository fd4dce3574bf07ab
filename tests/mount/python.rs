//! Python on one mount: virtual environments and what is installed into them, shared mappings.

use crate::common::{Farm, program};
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_virtual_environment_runs() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"python3 -m venv env && env/bin/python -c 'import json, sqlite3, ssl, ctypes'
           env/bin/python -m pip --version && printf 'import sys\nprint(sys.prefix)\n' > where.py
           [ "$(env/bin/python where.py)" = "$PWD/env" ]"#,
    );
}

#[test]
fn a_shared_mapping_reaches_the_file() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"python3 - <<'PY'
import mmap, os
fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644); os.ftruncate(fd, 1 << 20)
with mmap.mmap(fd, 1 << 20) as view:
    for at in range(0, 1 << 20, 4096): view[at:at + 8] = at.to_bytes(8, "big")
    view.flush()
    for at in range(0, 1 << 20, 4096): assert os.pread(fd, 8, at) == at.to_bytes(8, "big")
    os.close(fd)
    view[100:105] = b"after"
PY
           [ "$(dd if=f bs=1 skip=100 count=5 status=none)" = after ]"#,
    );
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert_eq!(&std::fs::read(m.join("f")).unwrap()[100..105], b"after", "written through a mapping after the close");
}

/// Forty packages of one module and one command each, made on the spot.
#[test]
fn forty_wheels_in_a_virtual_environment() {
    let mut farm = Farm::new();
    let wheels = farm.plain();
    farm.sh(&wheels, &format!("python3 -B '{}' . 40", program("make_wheels.py")));
    for (options, env) in [(&["--shadow", "none"][..], "env"), (&[], ".venv")] {
        let space = farm.space();
        let m = farm.mount(&space, options);
        let install = format!(
            r#"python3 -m venv {env}
               {env}/bin/pip install -q --disable-pip-version-check --no-index --find-links '{}' $(printf 'small%s ' $(seq 40))
               {env}/bin/pip check --disable-pip-version-check
               [ "$({env}/bin/pip list --disable-pip-version-check | grep -c ^small)" = 40 ]"#,
            wheels.display()
        );
        let commands = format!(r#"for i in $(seq 40); do [ "$({env}/bin/small$i)" = "small$i in $PWD/{env}" ]; done"#);
        farm.sh(&m, &install);
        farm.sh(&m, &commands);
        for name in ["small1", "small40", "pip"] {
            let mode = std::fs::metadata(m.join(env).join("bin").join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o755, "{name} with {options:?}");
        }
        if !options.is_empty() {
            farm.remount(&space, options, &m);
            farm.sh(&m, &commands);
        }
    }
}
