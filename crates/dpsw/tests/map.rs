//! The map in docs/design/architecture.md: every source file of the workspace is in it, and nothing else. And what
//! CONTRIBUTING.md names is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that every crate may have: their names say what they are.
const USUAL: [&str; 4] = ["lib", "main", "mod", "tests"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The source files below a folder, without their ending.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.with_extension(""));
        }
    }
    found
}

/// The words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What the map says is in the sources of a crate: `view/list` for the file view/list.rs.
fn mapped(crate_folder: &str, map: &str) -> BTreeSet<String> {
    let heading = format!("\n### `{crate_folder}`\n");
    let (_, section) = map.split_once(&heading).unwrap_or_else(|| panic!("{crate_folder} has no section"));
    let section =
        section.split("\n## ").next().unwrap_or_default().split("\n### ").next().unwrap_or_default();
    let mut files = BTreeSet::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.split(" | ");
        let folder = cells.next().and_then(|cell| quoted(cell).next()).expect("a folder");
        let folder = if folder == "src/" { "" } else { folder };
        // Types and paths are there to explain; the names of files are plain words.
        let is_file =
            |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
        let listed = without_remarks(cells.nth(1).expect("a list of files"));
        files.extend(quoted(&listed).filter(is_file).map(|file| format!("{folder}{file}")));
    }
    files
}

/// The text without what stands in parentheses.
fn without_remarks(text: &str) -> String {
    let mut depth = 0;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

#[test]
fn the_map_has_every_source_file_and_nothing_else() {
    let map = read("docs/design/architecture.md");
    let mut crates: Vec<String> = vec!["evaluation".to_owned()];
    for entry in fs::read_dir(root().join("crates")).expect("the crates") {
        crates.push(format!("crates/{}", entry.expect("a crate").file_name().display()));
    }
    for crate_folder in crates {
        let source = root().join(&crate_folder).join("src");
        let mut there = BTreeSet::new();
        for path in source_files(&source) {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
            if !USUAL.contains(&name) {
                let inside = path.strip_prefix(&source).expect("inside the crate");
                there.insert(inside.display().to_string());
            }
        }
        let mapped = mapped(&crate_folder, &map);
        let missing: Vec<&String> = there.difference(&mapped).collect();
        let gone: Vec<&String> = mapped.difference(&there).collect();
        assert!(
            missing.is_empty() && gone.is_empty(),
            "{crate_folder}: not in the map {missing:?}; gone {gone:?}"
        );
    }
}

/// Paths are meant from the root of the project or from the sources of the library.
#[test]
fn every_path_and_type_that_contributing_names_is_there() {
    let text = read("CONTRIBUTING.md");
    let library = root().join("crates/dpsw");
    let mut sources = String::new();
    for path in source_files(&library.join("src")) {
        sources += &fs::read_to_string(path.with_extension("rs")).expect("a source file");
    }
    for word in text.split("```").step_by(2).flat_map(quoted) {
        let is_command = word.contains(' ') || word.starts_with("--");
        let name = word.rsplit("::").next().unwrap_or(word);
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_command || word == "dpsw" {
            continue;
        }
        if word.contains('/') || word.ends_with(".rs") {
            let places = [root(), library.clone(), library.join("src"), library.join("src/testing/replay")];
            assert!(places.iter().any(|place| place.join(word).exists()), "CONTRIBUTING.md names {word}");
        } else if is_name {
            let is_module = source_files(&library.join("src")).iter().any(|path| path.ends_with(name));
            assert!(is_module || sources.contains(name), "CONTRIBUTING.md names {word}");
        }
    }
}
