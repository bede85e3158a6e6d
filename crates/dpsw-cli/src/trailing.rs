//! Which arguments of `dpsw count` are files.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::arguments::Count;
use crate::remark;

/// The items and the files of a command. Without `--`, the last arguments that are files are read; the first argument is
/// always an item.
pub(crate) fn split(command: &Count) -> (Vec<String>, Vec<PathBuf>) {
    let Count { items, files, .. } = command;
    if !files.is_empty() || command.source.stream.view.is_some() || has_dashes() {
        return (items.clone(), files.clone());
    }
    let trailing = items.iter().skip(1).rev().take_while(|item| is_file(item)).count();
    let (items, files) = items.split_at(items.len() - trailing);
    say(items, files);
    (items.to_vec(), files.iter().map(PathBuf::from).collect())
}

fn has_dashes() -> bool {
    std::env::args_os().any(|argument| argument == "--")
}

/// Directories are items: `/` is a page of every site.
fn is_file(name: &str) -> bool {
    std::fs::metadata(Path::new(name)).is_ok_and(|metadata| !metadata.is_dir())
}

fn say(items: &[String], files: &[String]) {
    if !files.is_empty() {
        let files = files.join(", ");
        remark::note(format!(
            "read as files: {files}; to count such a name as an item, write the files after --"
        ));
    } else if matches!(items, [item] if is_file(item)) || std::io::stdin().is_terminal() {
        let items = items.join(", ");
        remark::note(format!("counting {items} in standard input: no file is named after the items"));
    }
}
