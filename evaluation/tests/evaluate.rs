//! The whole evaluation on tiny streams: everything is written, nothing is run twice, a changed parameter runs again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dpsw_eval::catalog::{FIGURES, figure};
use dpsw_eval::evaluate::{self, Evaluation};
use dpsw_eval::figure::Figure;
use dpsw_eval::manifest::Manifest;
use dpsw_eval::preset::Preset;
use dpsw_eval::results::Results;

use folder::Folder;
use process::Process;

mod folder;
mod process;

impl Folder {
    fn name(&self) -> &str {
        self.path().to_str().expect("a name")
    }

    fn name_of(&self, file: &str) -> String {
        self.path().join(file).to_str().expect("a name").to_owned()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path().join(file)).expect(file)
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
    let folder = Folder::new();
    let preset = Preset::tiny();
    let (manifest, first) = run(&preset, &["drift"], folder.path());
    let before = points(folder.path());
    let (_, second) = run(&preset, &["drift"], folder.path());
    assert_eq!(points(folder.path()), before, "nothing is written again");
    assert_eq!(errors(&first), errors(&second));

    // A run that was cut off: what is missing or broken is run again, and comes out the same.
    std::fs::remove_file(&before[0].0).expect("removed");
    std::fs::write(&before[1].0, "{\"identity\":").expect("cut off");
    let (_, third) = run(&preset, &["drift"], folder.path());
    assert_eq!(errors(&first), errors(&third));
    let after = points(folder.path());
    assert_eq!(after.len(), before.len());
    assert_eq!(after[2..], before[2..], "the rest is kept");

    let more = Preset { queries: preset.queries + 1, ..preset };
    let (_, fourth) = run(&more, &["drift"], folder.path());
    assert!(before.len() < points(folder.path()).len() && errors(&first) != errors(&fourth));

    // From the manifest alone, elsewhere.
    let elsewhere = Folder::new();
    let names: Vec<&str> = manifest.figures.iter().map(String::as_str).collect();
    let (again, fifth) = run(&manifest.preset, &names, elsewhere.path());
    assert_eq!(errors(&first), errors(&fifth));
    assert_eq!(again.streams, manifest.streams);
    assert_eq!(manifest.streams.len(), 9, "pilots and two seeds of three streams: {:?}", manifest.streams);
}

/// A command without any data.
fn in_nowhere(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(std::env::temp_dir());
    command.env("DPSW_DATA", "no-data").env("RUST_BACKTRACE", "1");
    command
}

fn command(arguments: &[&str]) -> Command {
    in_nowhere(env!("CARGO_BIN_EXE_dpsw-eval"), arguments)
}

fn binary(arguments: &[&str]) -> Output {
    Process::start(&mut command(arguments)).output()
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
    let folder = Folder::new();
    let out = folder.name();
    let output = binary(&["all", "--preset", "tiny", "--out", out]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains(['\u{1b}', '\r']), "no progress where stderr is no terminal: {errors}");
    assert!(errors.contains("MovieLens is absent and left out"), "{errors}");
    assert!(errors.contains("retail is absent and left out"), "{errors}");
    let page = folder.read("report.html");
    for figure in FIGURES.iter().filter(|figure| figure.name != "real-streams") {
        let file = |ending: &str| folder.read(&format!("figures/{}.{ending}", figure.name));
        assert!(file("svg").ends_with("</svg>\n"), "{}", figure.name);
        let csv = file("csv");
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

    let rows = folder.read("results.csv");
    for (method, claim) in
        [("tuned", "eps"), ("paper", "\"(eps, delta)\""), ("microscope", "none"), ("blmz", "eps")]
    {
        assert!(rows.contains(&format!(",{method},{claim},")), "{method}");
    }

    // The page can be written again from the results.
    let paths = evaluate::rewrite(folder.path()).expect("results");
    assert_eq!(paths.last(), Some(&folder.path().join("report.html")));
    assert_eq!(folder.read("report.html"), page);
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
fn the_data_folder_is_the_one_given_or_that_of_the_variable_or_the_one_here() {
    let here = Folder::new();
    let compare = ["compare", "--dataset", "movielens", "--epsilon", "1"];
    for (more, variable, place) in [
        (&["--data", "given"][..], Some("named"), "into given/movielens"),
        (&[], Some("named"), "into named/movielens"),
        (&[], Some(""), "into data/movielens"),
        (&[], None, "into data/movielens"),
    ] {
        let mut command = command(&[&compare, more].concat());
        command.current_dir(here.path()).env_remove("DPSW_DATA");
        let command = command.envs(variable.map(|folder| ("DPSW_DATA", folder)));
        let errors = String::from_utf8(Process::start(command).output().stderr).expect("text");
        assert!(errors.contains(place), "{errors}");
    }
    let help = String::from_utf8(check_runs(&["all", "--help"]).stdout).expect("text");
    assert!(help.contains("DPSW_DATA, else ./data"), "{help}");
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
    let folder = Folder::new();
    let out = folder.name();
    let report = ["report", "--out", out];
    check_refused(&["compare", "--dataset", "none.csv", "--epsilon", "1"], "no file and no stream none.csv");
    folder.write("empty.csv", "");
    check_refused(
        &["compare", "--dataset", &folder.name_of("empty.csv"), "--epsilon", "1"],
        "empty.csv: no items",
    );
    check_refused(&report, "manifest.json: dpsw-eval all writes it");
    folder.write("manifest.json", "{\"version\":");
    check_refused(&report, "manifest.json is no manifest");
    let preset = Preset { seeds: 0, ..Preset::tiny() };
    let manifest = Manifest::new(&preset, &[figure("drift").expect("a figure")]);
    folder.write("manifest.json", serde_json::to_string(&manifest).expect("json"));
    check_refused(&report, "results.json: dpsw-eval all writes it");
    folder.write("results.json", "[]");
    check_refused(&report, "results.json holds no results");
    let again = ["all", "--manifest", &folder.name_of("manifest.json"), "--out", out];
    check_refused(&again, "preset tiny: seeds must be at least 1, got 0");
}

/// What a figure was made of and every number.
fn json(folder: &Folder, name: &str) -> (Manifest, Results) {
    let text = folder.read(&format!("figures/{name}.json"));
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("json");
    let mut part = |name: &str| json[name].take();
    let manifest = serde_json::from_value(part("manifest")).expect("a manifest");
    (manifest, serde_json::from_value(part("results")).expect("results"))
}

#[test]
fn a_figure_of_ones_own_starts_from_one_that_is_there_and_can_be_made_again() {
    let folder = Folder::new();
    let out = folder.name();
    let shown = String::from_utf8(check_runs(&["figure", "--show", "drift"]).stdout).expect("text");
    let own = shown.replace("[\"zipf\", \"drift\", \"swap\"]", "[\"swap\"]").replace("\"blmz\", ", "");
    assert_ne!(own, shown);
    folder.write("mine.toml", &own);
    check_runs(&["figure", &folder.name_of("mine.toml"), "--preset", "tiny", "--out", out]);
    let (manifest, results) = json(&folder, "mine");
    assert_eq!(manifest.own_figures.get("mine"), Some(&own));
    assert_eq!(results.rows.len(), 8, "eight methods on one stream");

    let again = Folder::new();
    let made_of = folder.name_of("figures/mine.json");
    check_runs(&["all", "--manifest", &made_of, "--out", again.name()]);
    let text = again.read("results.json");
    assert_eq!(errors(&serde_json::from_str(&text).expect("results")), errors(&results));
    let page = again.read("report.html");
    assert!(page.contains("dpsw-eval figure mine.toml --preset tiny"));

    let run = |name: &str, message: &str| {
        check_refused(&["figure", &folder.name_of(name), "--preset", "tiny", "--out", out], message);
    };
    folder.write("drift.toml", &own);
    run("drift.toml", "drift.toml: there is a figure drift already");
    folder.write("gamma.toml", own.replace("f1_0.005", "f1_0.5"));
    run("gamma.toml", "f1_0.5: the threshold must be one of [0.002");
    folder.write("bytes.toml", own.replace("1_120_000", "0"));
    run("bytes.toml", "bytes.toml: bytes must be at least 1, got 0");
    run("none.toml", "none.toml: No such file");
}

#[test]
fn tables_are_printed_and_come_out_the_same_again() {
    for (name, part) in [("coverage", "Keys chosen beforehand"), ("discovery", "first missing")] {
        let (first, second) = (Folder::new(), Folder::new());
        let run = |folder: &Folder, more: &[&str]| {
            let arguments = [&[name, "--preset", "tiny", "--out", folder.name()], more].concat();
            String::from_utf8(check_runs(&arguments).stdout).expect("text")
        };
        let table = run(&first, &[]);
        assert!(table.contains(part) && table.contains("zipf"), "{table}");
        let before = points(first.path());
        let rows: Vec<serde_json::Value> = serde_json::from_str(&run(&first, &["--json"])).expect("rows");
        assert!(!rows.is_empty() && !before.is_empty());
        assert_eq!(points(first.path()), before, "nothing is measured again");
        assert_eq!(run(&second, &[]), table);
        assert!(second.read(&format!("figures/{name}.svg")).ends_with("</svg>\n"));
    }
}

#[test]
fn different_sweeps_of_one_name_are_refused_and_equal_ones_of_two_names_share_their_points() {
    let folder = Folder::new();
    let drift = figure("drift").expect("a figure");
    let own = |text: String| Figure::parse("mine", &text).expect("a figure");
    let other = own(drift.text.replace("1_120_000", "560_000"));
    let preset = Preset::tiny();
    let run =
        |figures: &[&Figure]| Evaluation { preset: &preset, figures, data: None, out: folder.path() }.run();
    let error = run(&[drift, &other]).expect_err("two sweeps of one name");
    assert!(error.to_string().contains("two different sweeps are called drift"), "{error}");
    let renamed = own(drift.text.replace("name = \"drift\"", "name = \"mine\""));
    run(&[drift]).expect("it runs");
    let before = points(folder.path());
    let (_, results) = run(&[drift, &renamed]).expect("it runs");
    assert_eq!(points(folder.path()), before, "nothing more is run");
    assert_eq!(results.streams("mine"), results.streams("drift"));
}

/// Ends a run by Ctrl-C when some of its points are finished. The signal is ignored when the program starts, as in the
/// background of a script, however the test itself was started; the program must catch it all the same.
#[cfg(unix)]
fn interrupt(arguments: &[&str], out: &Path) -> Output {
    let ignoring = ["-c", "trap '' INT; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dpsw-eval")];
    let mut run = Process::start(&mut in_nowhere("sh", &[&ignoring, arguments].concat()));
    run.wait_until(|| 3 <= points(out).len());
    run.interrupt();
    run.output()
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_says_how_to_go_on_and_goes_on_where_it_stopped() {
    let (cut, whole) = (Folder::new(), Folder::new());
    fn arguments(folder: &Folder) -> [&str; 6] {
        ["figure", "drift", "--preset", "tiny", "--out", folder.name()]
    }
    let output = interrupt(&arguments(&cut), cut.path());
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("the same command goes on from there"), "{text}");
    let before = points(cut.path());

    check_runs(&arguments(&cut));
    check_runs(&arguments(&whole));
    let after = points(cut.path());
    assert!(
        before.len() < after.len() && before.iter().all(|point| after.contains(point)),
        "kept as they were"
    );
    assert_eq!(after.len(), points(whole.path()).len());
    let [(cut_manifest, cut_results), (manifest, results)] =
        [&cut, &whole].map(|folder| json(folder, "drift"));
    assert_eq!(errors(&cut_results), errors(&results));
    assert_eq!(cut_manifest.streams, manifest.streams, "those of points that were kept are in it");
}
