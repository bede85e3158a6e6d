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

/// Finished points and when they were written.
fn points(out: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let names = std::fs::read_dir(out.join("points")).into_iter().flatten();
    let paths = names.map(|entry| entry.expect("an entry").path());
    let time = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).expect("a time");
    let is_whole = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let mut points: Vec<_> = paths.filter(is_whole).map(|path| (path.clone(), time(&path))).collect();
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

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw-eval"));
    command.args(arguments).current_dir(std::env::temp_dir());
    command.env_remove("DPSW_DATA").env("RUST_BACKTRACE", "1");
    command
}

fn binary(arguments: &[&str]) -> Output {
    command(arguments).output().expect("it starts")
}

#[track_caller]
fn check_runs(arguments: &[&str]) -> Output {
    let output = binary(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[track_caller]
fn check_refused(arguments: &[&str], message: &str) {
    let refused = binary(arguments);
    let errors = String::from_utf8(refused.stderr).expect("text");
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("error: ") && errors.contains(message), "{errors}");
    assert!(!errors.contains("backtrace"), "{errors}");
}

#[test]
fn all_writes_figures_tables_and_one_page() {
    let folder = Folder::new("all");
    let out = folder.0.to_str().expect("a name");
    let output = binary(&["all", "--preset", "tiny", "--out", out]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains(['\u{1b}', '\r']), "no progress where stderr is no terminal: {errors}");
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
        "Web search query logs",
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
    check_refused(&["figure", "no-such"], "there is no figure no-such");
    check_refused(
        &["compare", "--dataset", "movielens", "--epsilon", "1", "--data", "/nowhere"],
        "grouplens.org",
    );
}

#[test]
fn a_bad_value_is_named_with_its_range() {
    let zipf = |more: &[&'static str]| [&["compare", "--dataset", "zipf", "--items", "900"], more].concat();
    for (more, message) in [
        (&["--epsilon", "0"][..], "epsilon must lie between 1e-6 and 1e6, got 0"),
        (&["--epsilon", "NaN"], "got NaN"),
        (&["--epsilon", "1", "--window", "0"], "--window must be at least 1, got 0"),
        (&["--epsilon", "1", "--window", "900"], "--window must be below the 900 items of zipf, got 900"),
        (&["--epsilon", "1", "--bytes", "0"], "--bytes must be at least 1, got 0"),
        (&["--epsilon", "1", "--gamma", "2"], "threshold must lie between 0 (exclusive) and 1, got 2"),
        (&["--epsilon", "1", "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (&["--epsilon", "1", "--queries", "0"], "--queries must be at least 1, got 0"),
    ] {
        check_refused(&zipf(more), message);
    }
    let unknown = binary(&zipf(&["--epsilon", "1", "--methods", "none"]));
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

#[test]
fn files_that_are_absent_empty_or_broken_are_named() {
    let folder = Folder::new("broken");
    let path = |name: &str| folder.0.join(name).to_str().expect("a name").to_owned();
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).expect("written");
    let out = path("");
    let report = ["report", "--out", &out];
    check_refused(&["compare", "--dataset", "none.csv", "--epsilon", "1"], "no file and no stream none.csv");
    write("empty.csv", "");
    check_refused(&["compare", "--dataset", &path("empty.csv"), "--epsilon", "1"], "empty.csv: no items");
    check_refused(&report, "manifest.json: dpsw-eval all writes it");
    write("manifest.json", "{\"version\":");
    check_refused(&report, "manifest.json is no manifest");
    let preset = Preset { seeds: 0, ..Preset::tiny() };
    let manifest = Manifest::new(&preset, &[figure("drift").expect("a figure")]);
    write("manifest.json", &serde_json::to_string(&manifest).expect("json"));
    check_refused(&report, "results.json: dpsw-eval all writes it");
    write("results.json", "[]");
    check_refused(&report, "results.json holds no results");
    let again = ["all", "--manifest", &path("manifest.json"), "--out", &out];
    check_refused(&again, "preset tiny: seeds must be at least 1, got 0");
}

/// What a figure was made of and every number.
fn json(out: &Path, name: &str) -> (Manifest, Results) {
    let path = out.join("figures").join(name).with_extension("json");
    let mut json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("json");
    let mut part = |name: &str| json[name].take();
    let manifest = serde_json::from_value(part("manifest")).expect("a manifest");
    (manifest, serde_json::from_value(part("results")).expect("results"))
}

#[test]
fn a_figure_of_ones_own_starts_from_one_that_is_there_and_can_be_made_again() {
    let folder = Folder::new("own");
    let out = folder.0.to_str().expect("a name");
    let shown = String::from_utf8(check_runs(&["figure", "--show", "drift"]).stdout).expect("text");
    let path = folder.0.join("mine.toml");
    let own = shown.replace("[\"zipf\", \"drift\", \"swap\"]", "[\"swap\"]").replace("\"blmz\", ", "");
    assert_ne!(own, shown);
    std::fs::write(&path, &own).expect("written");
    let path = path.to_str().expect("a name");
    check_runs(&["figure", path, "--preset", "tiny", "--out", out]);
    let (manifest, results) = json(&folder.0, "mine");
    assert_eq!(manifest.own_figures.get("mine"), Some(&own));
    assert_eq!(results.rows.len(), 8, "eight methods on one stream");

    let again = Folder::new("own-again");
    let made_of = folder.0.join("figures/mine.json");
    let made_of = made_of.to_str().expect("a name");
    check_runs(&["all", "--manifest", made_of, "--out", again.0.to_str().expect("a name")]);
    let text = std::fs::read_to_string(again.0.join("results.json")).expect("results");
    assert_eq!(errors(&serde_json::from_str(&text).expect("results")), errors(&results));
    let page = std::fs::read_to_string(again.0.join("report.html")).expect("a page");
    assert!(page.contains("dpsw-eval figure mine.toml --preset tiny"));

    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).expect("written");
    let run = |name: &str, message: &str| {
        let path = folder.0.join(name);
        check_refused(&["figure", path.to_str().expect("a name"), "--preset", "tiny", "--out", out], message);
    };
    write("drift.toml", &own);
    run("drift.toml", "drift.toml: there is a figure drift already");
    write("gamma.toml", &own.replace("f1_0.005", "f1_0.5"));
    run("gamma.toml", "f1_0.5: the threshold must be one of [0.002");
    write("bytes.toml", &own.replace("1_120_000", "0"));
    run("bytes.toml", "bytes.toml: bytes must be at least 1, got 0");
    run("none.toml", "none.toml: No such file");
}

#[test]
fn different_sweeps_of_one_name_are_refused_and_equal_ones_of_two_names_share_their_points() {
    let folder = Folder::new("sweeps");
    let drift = figure("drift").expect("a figure");
    let own = |text: String| Figure::parse("mine", &text).expect("a figure");
    let other = own(drift.text.replace("1_120_000", "560_000"));
    let preset = Preset::tiny();
    let run = |figures: &[&Figure]| Evaluation { preset: &preset, figures, data: None, out: &folder.0 }.run();
    let error = run(&[drift, &other]).expect_err("two sweeps of one name");
    assert!(error.to_string().contains("two different sweeps are called drift"), "{error}");
    let renamed = own(drift.text.replace("name = \"drift\"", "name = \"mine\""));
    run(&[drift]).expect("it runs");
    let before = points(&folder.0);
    let (_, results) = run(&[drift, &renamed]).expect("it runs");
    assert_eq!(points(&folder.0), before, "nothing more is run");
    assert_eq!(results.streams("mine"), results.streams("drift"));
}

/// Ends a run by Ctrl-C when some of its points are finished.
#[cfg(unix)]
fn interrupt(arguments: &[&str], out: &Path) -> Output {
    let mut run = command(arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    while points(out).len() < 3 && run.try_wait().expect("a process").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let kill = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(kill.expect("a signal").success());
    run.wait_with_output().expect("it ends")
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_says_how_to_go_on_and_goes_on_where_it_stopped() {
    let (cut, whole) = (Folder::new("cut"), Folder::new("whole"));
    fn arguments(folder: &Folder) -> [&str; 6] {
        ["figure", "drift", "--preset", "tiny", "--out", folder.0.to_str().expect("a name")]
    }
    let output = interrupt(&arguments(&cut), &cut.0);
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("the same command goes on from there"), "{text}");
    let before = points(&cut.0);

    check_runs(&arguments(&cut));
    check_runs(&arguments(&whole));
    let after = points(&cut.0);
    assert!(
        before.len() < after.len() && before.iter().all(|point| after.contains(point)),
        "kept as they were"
    );
    assert_eq!(after.len(), points(&whole.0).len());
    let [(cut_manifest, cut_results), (manifest, results)] =
        [&cut, &whole].map(|folder| json(&folder.0, "drift"));
    assert_eq!(errors(&cut_results), errors(&results));
    assert_eq!(cut_manifest.streams, manifest.streams, "those of points that were kept are in it");
}
