//! Shadow rules: which new directories stay on the local disk. Pure matching; making the directory is the mount's work.

use crate::error::{Error, Result};

/// A rule: a pattern of the last names of a path, and optionally a sibling that must exist.
///
/// Written `PATTERN` or `PATTERN if SIBLING[,SIBLING]…`, for instance `target if Cargo.toml,pom.xml`. A pattern is a name
/// or several joined by `/`; `*` stands for any run of bytes within one name. A leading `!` takes a directory out again;
/// the last rule that matches decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    negative: bool,
    parts: Vec<String>,
    siblings: Vec<String>,
}

/// The rules of a space that has none of its own.
pub const DEFAULT_RULES: &[&str] = &[
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    ".cache",
    ".next",
    ".turbo",
    ".gradle",
    "target if Cargo.toml,pom.xml",
    "vendor if composer.json",
    "vendor/bundle if Gemfile",
];

impl Rule {
    /// Reads a rule. Fails with `InvalidArgument` when it names nothing, or names `.`, `..` or an absolute path.
    pub fn parse(text: &str) -> Result<Rule> {
        let bad = || Error::invalid(format!("{text:?} is not a shadow rule: write NAME, or NAME if SIBLING[,SIBLING]"));
        let trimmed = text.trim();
        let (negative, rest) = trimmed.strip_prefix('!').map_or((false, trimmed), |r| (true, r));
        let (pattern, condition) = rest.split_once(" if ").map_or((rest, None), |(p, c)| (p, Some(c)));
        let parts: Vec<String> = pattern.trim().trim_end_matches('/').split('/').map(str::to_owned).collect();
        let siblings: Vec<String> =
            condition.map_or(Vec::new(), |c| c.split(',').map(|s| s.trim().to_owned()).collect());
        let wrong = |s: &String| s.is_empty() || s == "." || s == ".." || s.contains('\0');
        if trimmed.ends_with(" if") || parts.iter().any(wrong) || siblings.iter().any(|s| wrong(s) || s.contains('/')) {
            return Err(bad());
        }
        Ok(Rule { negative, parts, siblings })
    }

    /// How many names the pattern has.
    fn depth(&self) -> usize {
        self.parts.len()
    }
}

/// An ordered list of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Reads rules, one an item; the single item `none` means no rule at all. Fails as [`Rule::parse`] does.
    pub fn parse<S: AsRef<str>>(lines: &[S]) -> Result<Rules> {
        if lines.len() == 1 && lines[0].as_ref().trim() == "none" {
            return Ok(Rules::default());
        }
        lines.iter().map(|l| Rule::parse(l.as_ref())).collect::<Result<Vec<_>>>().map(Rules)
    }

    /// Whether a new directory is a shadow. `path` has the names from the root of the space to the directory itself, which
    /// is last. `exists(up, name)` says whether `name` exists in the directory `up` levels above the new one's parent
    /// (0: beside the new directory).
    pub fn matches(&self, path: &[&[u8]], exists: impl Fn(usize, &str) -> bool) -> bool {
        let hit = |rule: &Rule| {
            let depth = rule.depth();
            path.len() >= depth
                && rule
                    .parts
                    .iter()
                    .zip(&path[path.len() - depth..])
                    .all(|(pattern, name)| glob(pattern.as_bytes(), name))
                && (rule.siblings.is_empty() || rule.siblings.iter().any(|s| exists(depth - 1, s)))
        };
        self.0.iter().rev().find(|rule| hit(rule)).is_some_and(|rule| !rule.negative)
    }
}

/// Matches one name against a pattern in which `*` is any run of bytes; linear backtracking to the last star only.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((sp, sn)) = star {
            p = sp + 1;
            n = sn + 1;
            star = Some((sp, sn + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&b| b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(path: &str, siblings: &[(usize, &str)]) -> bool {
        let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        Rules::parse(DEFAULT_RULES).unwrap().matches(&names, |up, name| siblings.contains(&(up, name)))
    }

    #[test]
    fn the_default_rules_ask_for_siblings_where_the_name_alone_says_little() {
        assert!(defaults("app/node_modules", &[]));
        assert!(defaults("a/b/.venv", &[]));
        assert!(!defaults("linux/drivers/target", &[]));
        assert!(defaults("crate/target", &[(0, "Cargo.toml")]));
        assert!(defaults("site/vendor/bundle", &[(1, "Gemfile")]));
        assert!(!defaults("site/vendor", &[(0, "Gemfile")]));
        assert!(!defaults("node_modules2", &[]));
    }

    #[test]
    fn the_last_matching_rule_decides() {
        let rules = Rules::parse(&["build*", "!build-docs"]).unwrap();
        assert!(rules.matches(&[b"build-x"], |_, _| false));
        assert!(!rules.matches(&[b"build-docs"], |_, _| false));
        assert!(Rules::parse(&["none"]).unwrap() == Rules::default());
        for bad in ["", "!", "a//b", "x if ", "..", "a if b/c"] {
            assert!(Rule::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn stars_match_runs() {
        assert!(
            glob(b"*.egg-info", b"a.egg-info") && glob(b"a*b*c", b"aXbYbc") && !glob(b"a*b", b"abc") && glob(b"*", b"")
        );
    }
}
