//! The lines added and removed by a difference, path by path, as `git diff --stat` prints them.

use super::{count, patch::Side, text};

/// The width of the longest bar of plus and minus signs.
const BAR: u64 = 40;

/// What changed in one file, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStat {
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Whether it is not text, so that lines say nothing.
    pub binary: bool,
    /// Size before, in bytes.
    pub old_size: u64,
    /// Size after, in bytes.
    pub new_size: u64,
}

impl FileStat {
    /// Nothing counted yet, but the sizes.
    pub fn of(before: Option<&Side>, after: Option<&Side>) -> Self {
        FileStat {
            old_size: before.map_or(0, |s| s.size),
            new_size: after.map_or(0, |s| s.size),
            ..FileStat::default()
        }
    }

    /// Both together: a deletion and a creation at one path.
    #[must_use]
    pub fn and(&self, other: &FileStat) -> FileStat {
        FileStat {
            insertions: self.insertions + other.insertions,
            deletions: self.deletions + other.deletions,
            binary: self.binary || other.binary,
            old_size: self.old_size.max(other.old_size),
            new_size: self.new_size.max(other.new_size),
        }
    }
}

/// A file that changed: its path, its path before (for a rename), and what changed.
pub type Changed<'a> = (&'a [u8], Option<&'a [u8]>, FileStat);

/// The lines of a table of what changed, by path (and the path before, for a rename), with the sum at the end.
pub fn diffstat(files: &[Changed<'_>], color: bool) -> String {
    let name = |(path, from, _): &Changed<'_>| match from {
        Some(from) => format!("{} => {}", text(from), text(path)),
        None => text(path),
    };
    let names: Vec<String> = files.iter().map(name).collect();
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let most = files.iter().map(|(_, _, s)| s.insertions + s.deletions).max().unwrap_or(0);
    let digits = most.to_string().len().max(3);
    let mut out = String::new();
    for (name, (_, _, stat)) in names.iter().zip(files) {
        let pad = " ".repeat(width - name.chars().count());
        let total = stat.insertions + stat.deletions;
        out.push_str(&match stat.binary {
            true => format!(" {name}{pad} | {:>digits$} {} -> {} bytes\n", "Bin", stat.old_size, stat.new_size),
            false => format!(" {name}{pad} | {total:>digits$} {}\n", bar(stat, most, color)).replace(" \n", "\n"),
        });
    }
    let (plus, minus) = files.iter().fold((0, 0), |(p, m), (_, _, s)| (p + s.insertions, m + s.deletions));
    out.push_str(&format!(" {} changed", count(files.len() as u64, "file", "files")));
    if plus > 0 || minus == 0 {
        out.push_str(&format!(", {}", count(plus, "insertion(+)", "insertions(+)")));
    }
    if minus > 0 || plus == 0 {
        out.push_str(&format!(", {}", count(minus, "deletion(-)", "deletions(-)")));
    }
    out.push('\n');
    out
}

fn bar(stat: &FileStat, most: u64, color: bool) -> String {
    // At least one sign for anything that is not zero.
    let scale = |n: u64| if most <= BAR { n } else { (n * BAR).div_ceil(most).max(u64::from(n > 0)) };
    let signs = |sign: &str, n: u64| sign.repeat(usize::try_from(scale(n)).unwrap_or(0));
    let (plus, minus) = (signs("+", stat.insertions), signs("-", stat.deletions));
    if color { format!("\x1b[32m{plus}\x1b[31m{minus}\x1b[0m") } else { plus + &minus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_git_prints_it() {
        let stat = |insertions, deletions| FileStat { insertions, deletions, ..FileStat::default() };
        let files: Vec<Changed<'_>> = vec![
            (b"/a", None, stat(2, 1)),
            (b"/long", Some(b"/b"), stat(0, 0)),
            (b"/bin", None, FileStat { binary: true, old_size: 1, new_size: 9, ..FileStat::default() }),
        ];
        let want = " /a          |   3 ++-\n /b => /long |   0\n /bin        | Bin 1 -> 9 bytes\n 3 files changed, 2 insertions(+), 1 deletion(-)\n";
        assert_eq!(diffstat(&files, false), want);
    }

    #[test]
    fn a_large_change_fits_its_bar() {
        let stat = FileStat { insertions: 1_000_000, deletions: 1, ..FileStat::default() };
        assert!(bar(&stat, 1_000_001, false).len() as u64 <= BAR + 1);
        assert!(bar(&stat, 1_000_001, false).ends_with('-'));
    }
}
