//! Tells the program which commit it is built from.

use std::process::Command;

fn main() {
    println!("cargo::rustc-env=DPSW_COMMIT={}", commit());
    // What a commit or an edit changes.
    for path in [
        "../.git/logs/HEAD",
        "../.git/index",
        "../crates/dpsw/src",
        "src",
        "figures",
        "Cargo.toml",
        "build.rs",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// With "-dirty" where files differ from it; "unknown" without a repository.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let sources =
        ["status", "--porcelain", "--untracked-files=no", "--", ".", "../crates/dpsw", "../Cargo.lock"];
    let is_clean = git(&sources).is_some_and(|text| text.is_empty());
    if is_clean { commit } else { format!("{commit}-dirty") }
}
