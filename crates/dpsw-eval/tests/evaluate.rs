//! The whole evaluation on tiny streams: everything is written, nothing is run twice, a changed parameter runs again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dpsw_eval::catalog::{FIGURES, figure};
use dpsw_eval::evaluate::{self, Evaluation};
use dpsw_eval::figure::Figure;
use dpsw_eval::manifest::Manifest;
use dpsw_eval::preset::Preset;
use dpsw_eval::results::Results;

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dpsw-eval-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(preset: &Preset, names: &[&str], out: &Path) -> (Manifest, Results) {
    let figures: Vec<&Figure> = names.iter().map(|name| figure(name).expect("a figure")).collect();
    Evaluation { preset, figures: &figures, data: None, out }.run().expect("it runs")
}

fn points(out: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        (path.clone(), std::fs::metadata(&path).and_then(|meta| meta.modified()).expect("a time"))
    };
    let mut points: Vec<_> = std::fs::read_dir(out.join("points")).expect("points").map(entry).collect();
    points.sort();
    points
}

/// Without the times, which differ from run to run.
fn errors(results: &Results) -> Vec<String> {
    let text = |row: &dpsw_eval::sweep::Row| {
        let outcomes = row.result.as_ref().map(|measured| &measured.outcomes);
        let outcomes =
            outcomes.map(|all| all.iter().map(|o| (o.high, o.low, o.heavy.clone())).collect::<Vec<_>>());
        format!("{} {} {} {} {outcomes:?}", row.sweep, row.stream, row.x, row.method.name())
    };
    results.rows.iter().map(text).collect()
}

#[test]
fn finished_points_are_kept_and_a_changed_parameter_runs_again() {
    let folder = Folder::new("resume");
    let preset = Preset::tiny();
    let (manifest, first) = run(&preset, &["drift"], &folder.0);
    let before = points(&folder.0);
    let (_, second) = run(&preset, &["drift"], &folder.0);
    assert_eq!(points(&folder.0), before, "nothing is written again");
    assert_eq!(errors(&first), errors(&second));

    // A run that was cut off: what is missing or broken is run again, and comes out the same.
    std::fs::remove_file(&before[0].0).expect("removed");
    std::fs::write(&before[1].0, "{\"identity\":").expect("cut off");
    let (_, third) = run(&preset, &["drift"], &folder.0);
    assert_eq!(errors(&first), errors(&third));
    let after = points(&folder.0);
    assert_eq!(after.len(), before.len());
    assert_eq!(after[2..], before[2..], "the rest is kept");

    let more = Preset { queries: preset.queries + 1, ..preset };
    let (_, fourth) = run(&more, &["drift"], &folder.0);
    assert!(before.len() < points(&folder.0).len() && errors(&first) != errors(&fourth));

    // From the manifest alone, elsewhere.
    let elsewhere = Folder::new("again");
    let names: Vec<&str> = manifest.figures.iter().map(String::as_str).collect();
    let (again, fifth) = run(&manifest.preset, &names, &elsewhere.0);
    assert_eq!(errors(&first), errors(&fifth));
    assert_eq!(again.streams, manifest.streams);
    assert_eq!(manifest.streams.len(), 9, "pilots and two seeds of three streams: {:?}", manifest.streams);
}

fn binary(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw-eval"));
    let output = command.args(arguments).current_dir(std::env::temp_dir()).env_remove("DPSW_DATA").output();
    output.expect("it starts")
}

#[test]
fn all_writes_figures_tables_and_one_page() {
    let folder = Folder::new("all");
    let out = folder.0.to_str().expect("a name");
    let output = binary(&["all", "--preset", "tiny", "--out", out]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("MovieLens is absent and left out"), "{errors}");
    assert!(errors.contains("retail is absent and left out"), "{errors}");
    let page = std::fs::read_to_string(folder.0.join("report.html")).expect("a page");
    for figure in FIGURES.iter().filter(|figure| figure.name != "real-streams") {
        let svg = folder.0.join("figures").join(&figure.name).with_extension("svg");
        assert!(std::fs::read_to_string(&svg).expect(&figure.name).ends_with("</svg>\n"));
        let csv = std::fs::read_to_string(svg.with_extension("csv")).expect(&figure.name);
        assert!(2 < csv.lines().count() && !csv.contains("NaN"), "{}", figure.name);
        assert!(page.contains(&format!("id=\"{}\"", figure.name)), "{}", figure.name);
    }
    for part in [
        "The paper says",
        "Holds?",
        "does not hold",
        "not even the smallest sketch fits",
        "&quot;seeds&quot;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("src=\"") && !page.contains("NaN"), "the page needs nothing else");

    let rows = std::fs::read_to_string(folder.0.join("results.csv")).expect("rows");
    for (method, claim) in
        [("tuned", "eps"), ("paper", "\"(eps, delta)\""), ("microscope", "none"), ("blmz", "eps")]
    {
        assert!(rows.contains(&format!(",{method},{claim},")), "{method}");
    }

    // The page can be written again from the results.
    let paths = evaluate::rewrite(&folder.0).expect("results");
    assert_eq!(paths.last(), Some(&folder.0.join("report.html")));
    assert_eq!(std::fs::read_to_string(folder.0.join("report.html")).expect("a page"), page);
}

#[test]
fn figures_are_listed_and_wrong_names_are_refused() {
    let listed = String::from_utf8(binary(&["figure"]).stdout).expect("text");
    assert!(FIGURES.iter().all(|figure| listed.contains(&figure.name)));
    let refused = binary(&["figure", "no-such"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no figure no-such"));
    let refused = binary(&["compare", "--dataset", "movielens", "--epsilon", "1", "--data", "/nowhere"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("grouplens.org"), "{refused:?}");
}
