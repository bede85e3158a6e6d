//! The folders are the privacy boundary: what answers cannot reach what counts. These tests read the `use` lines of the
//! library.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module of the library and the modules that it names, tests left out.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the library") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `view/fit.rs` is the module `view::fit`; `view/mod.rs` is `view`.
fn module(path: &Path) -> String {
    let relative = path.strip_prefix(source()).expect("inside the library").with_extension("");
    let parts: Vec<_> = relative.iter().map(|part| part.to_str().expect("a name in UTF-8")).collect();
    parts.join("::").trim_end_matches("::mod").to_owned()
}

/// The text without comments, and without what only tests compile.
fn shipped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut lines = Vec::new();
    let mut skips = false;
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with("//");
        if !skips && !is_comment {
            lines.push(line);
        }
        skips = line.trim() == "#[cfg(test)]";
    }
    lines.join("\n")
}

/// The longest known module at the beginning of each `crate::…` path, those in braces included.
fn named(text: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let paths = text.match_indices("crate::").map(|(at, word)| &text[at + word.len()..]);
    let known = |path: String| {
        let parts: Vec<&str> = path.split("::").collect();
        (1..=parts.len()).rev().map(|len| parts[..len].join("::")).find(|path| modules.contains(path))
    };
    paths.flat_map(spelled_out).filter_map(known).collect()
}

/// `a::{b, c}` as `a::b` and `a::c`.
fn spelled_out(text: &str) -> Vec<String> {
    let path: String = text.chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
    match text[path.len()..].strip_prefix('{').and_then(|group| group.split_once('}')) {
        Some((group, _)) => group.split(',').map(|name| format!("{path}{}", name.trim())).collect(),
        None => vec![path],
    }
}

fn uses() -> Uses {
    let mut paths = Vec::new();
    files(&source(), &mut paths);
    paths.retain(|path| !path.ends_with("tests.rs"));
    let modules: BTreeSet<String> = paths.iter().map(|path| module(path)).collect();
    let of = |path: &PathBuf| {
        let text = shipped(&fs::read_to_string(path).expect("a file of the library"));
        assert!(!text.contains("super::"), "{path:?} names a module by where it lies");
        (module(path), named(&text, &modules))
    };
    paths.iter().map(of).collect()
}

fn is_in(module: &str, folder: &str) -> bool {
    module == folder || module.starts_with(&format!("{folder}::"))
}

/// Everything that a module reaches through the modules that it names.
fn reached(from: &str, uses: &Uses) -> BTreeSet<String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = open.pop() {
        for named in uses.get(&module).into_iter().flatten() {
            if reached.insert(named.clone()) {
                open.push(named.clone());
            }
        }
    }
    reached
}

#[test]
fn nothing_that_answers_reaches_what_counts() {
    let uses = uses();
    let mut looked_at = 0;
    for module in uses.keys() {
        let answers = ["sealed", "decide", "view", "bytes"].iter().any(|folder| is_in(module, folder));
        if !answers {
            continue;
        }
        looked_at += 1;
        for reached in reached(module, &uses) {
            let is_secret = ["secret", "stream"].iter().any(|folder| is_in(&reached, folder));
            assert!(!is_secret, "{module} reaches {reached}");
        }
    }
    assert!(15 < looked_at, "{looked_at} modules answer");
}

/// Rules 32 and 33 of PRIVACY.md: a decision is a function of the plan and of what is sealed.
#[test]
fn what_decides_reaches_what_is_sealed_and_nothing_that_asks() {
    let uses = uses();
    let deciding: Vec<&String> = uses.keys().filter(|module| is_in(module, "decide")).collect();
    assert!(5 < deciding.len(), "{deciding:?}");
    for module in deciding {
        for reached in reached(module, &uses) {
            let may_be = ["decide", "sealed", "plan", "item", "noise", "privacy", "error", "ratio", "words"];
            assert!(may_be.iter().any(|folder| is_in(&reached, folder)), "{module} reaches {reached}");
        }
    }
}

/// The names of doors around the noise: counters that were released before, and a sampler that says nothing of whom it served.
const DOORS: [&str; 2] = ["of_released", "add_to("];

#[test]
fn what_counts_is_sealed_by_the_sampler_and_by_no_other_door() {
    let mut paths = Vec::new();
    ["secret", "stream"].iter().for_each(|folder| files(&source().join(folder), &mut paths));
    assert!(12 < paths.len(), "{} files count and seal", paths.len());
    for path in paths {
        let text = shipped(&fs::read_to_string(&path).expect("a file of the library"));
        let door = DOORS.iter().find(|door| text.contains(**door));
        assert_eq!(door, None, "{path:?} makes sealed counters without drawing their noise");
    }
}

#[test]
fn no_module_reaches_itself() {
    let uses = uses();
    for module in uses.keys().filter(|module| *module != "lib") {
        assert!(!reached(module, &uses).contains(module), "{module} is in a cycle: {:?}", uses[module]);
    }
}

#[test]
fn modules_name_files_and_not_folders() {
    let uses = uses();
    let folders: BTreeSet<&str> =
        uses.keys().filter_map(|module| module.rsplit_once("::")).map(|(folder, _)| folder).collect();
    for (module, named) in uses.iter().filter(|(module, _)| *module != "lib") {
        // `use crate::plan::Plan` would hide which file is meant.
        let hidden = named.iter().find(|named| folders.contains(named.as_str()));
        assert_eq!(hidden, None, "{module} names a folder");
    }
}

/// Types of the folders that count which may be shown whole: ids, answers to callers, and what hides its own secrets.
const SHOWN: [&str; 9] = [
    "PartialId",
    "Origin",
    "Absorbed",
    "FinishError",
    "StateId",
    "HashKeys",
    "Taken",
    "SavedState",
    "Worker",
];

/// The types of a text that derive `Debug`.
fn deriving_debug(text: &str) -> Vec<String> {
    let derives = text.match_indices("#[derive(").map(|(at, _)| &text[at..]);
    let shows = |rest: &&str| rest.split(")]").next().is_some_and(|list| list.contains("Debug"));
    let name = |rest: &str| {
        let words = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
        let mut after = words.skip_while(|word| !["struct", "enum"].contains(word)).skip(1);
        after.next().unwrap_or_default().to_owned()
    };
    derives.filter(shows).map(name).collect()
}

/// What counts has a `Debug` of its own that shows nothing, or none: a derived one prints whatever is added later.
#[test]
fn nothing_that_counts_derives_debug() {
    let mut paths = Vec::new();
    ["secret", "stream"].iter().for_each(|folder| files(&source().join(folder), &mut paths));
    let mut known = BTreeSet::new();
    for path in paths {
        for name in deriving_debug(&shipped(&fs::read_to_string(&path).expect("a file of the library"))) {
            assert!(SHOWN.contains(&name.as_str()), "{name} in {path:?} prints all that it holds");
            known.insert(name);
        }
    }
    assert_eq!(known.len(), SHOWN.len(), "{known:?}: the list names no others");
    let text = "#[derive(Clone, Debug)]\n#[x]\npub struct A {}\n#[derive(Clone)]\nenum B {}\n#[derive(Debug)]\nenum C {}";
    assert_eq!(deriving_debug(text), ["A", "C"]);
}

/// Vectors that hold what is secret grow through `wipe`, which leaves nothing behind.
#[test]
fn what_grows_in_a_search_or_in_secret_bytes_is_wiped_where_it_was() {
    for name in ["secret/key_counts.rs", "bytes/codec.rs"] {
        let text = shipped(&fs::read_to_string(source().join(name)).expect("a file of the library"));
        let grows = [".push(", ".extend_from_slice(", ".insert_unique(", ".append(", ".reserve("];
        let found: Vec<&&str> = grows.iter().filter(|call| text.contains(**call)).collect();
        assert!(found.is_empty() && text.contains("wipe::"), "{name}: {found:?}");
    }
}

#[test]
fn groups_are_read_and_comments_and_tests_are_not() {
    let modules = ["a", "a::b", "a::d", "c"].map(str::to_owned).into();
    let text =
        "/// crate::c\nuse crate::a::{b::X, d};\n#[cfg(test)]\nuse crate::c::Z;\nlet x = crate::a::f();";
    assert_eq!(named(&shipped(text), &modules), ["a", "a::b", "a::d"].map(str::to_owned).into());
    assert_eq!(shipped("use crate::a;\n#[cfg(test)]\nmod tests {\n use crate::c;\n}"), "use crate::a;");
}

/// One word, one idea: a reader who meets a type knows which one it is. What tests alone compile does not count.
#[test]
fn no_type_name_stands_twice() {
    let mut paths = Vec::new();
    files(&source(), &mut paths);
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in paths {
        if path.ends_with("tests.rs") || path.starts_with(source().join("testing")) {
            continue;
        }
        let text = shipped(&fs::read_to_string(&path).expect("a file of the library"));
        for line in text.lines() {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let mut words = words.filter(|word| !["", "pub", "crate", "super"].contains(word));
            if !words.next().is_some_and(|word| ["struct", "enum", "trait"].contains(&word)) {
                continue;
            }
            let name = words.next().expect("a type has a name").to_owned();
            if let Some(other) = named.insert(name.clone(), path.clone()) {
                panic!("{name} stands in {} and {}", other.display(), path.display());
            }
        }
    }
    assert!(150 < named.len(), "{} types", named.len());
}
