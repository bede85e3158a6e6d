//! One page that holds everything: claims, figures, tables, manifest.

use std::fmt::Write;
use std::path::Path;

use crate::chart::{escape, short};
use crate::claims::{Finding, Judged, Verdict, judge, judge_ours};
use crate::draw::series;
use crate::evaluate::Drawn;
use crate::manifest::Manifest;
use crate::method::MethodName;
use crate::metric::Metric;
use crate::results::Results;
use crate::source::PaperDataset;
use crate::source::table::grouped;
use crate::sweep::{Measured, Summary};

/// The page; it needs nothing from anywhere else.
pub fn html(manifest: &Manifest, results: &Results, figures: &[Drawn]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>DPSW-Sketch, measured</title><style>{STYLE}</style></head><body><main>"
    );
    page += &introduction(manifest);
    page += &section("standing", "Every method at ε = 1", &standing(results));
    page += &section("claims", "The paper says, we measured", &claims(&judge(results)));
    page += &section("ours", "What this project says of its own method", &claims(&judge_ours(results)));
    page += &section("figures", "Figures", &drawn(manifest, figures));
    page += &section("streams", "Streams", &streams(results));
    page += &section("absent", "What could not be run", &absent(results));
    page += &section("manifest", "Manifest", &manifest_text(manifest));
    page + "</main></body></html>\n"
}

const STYLE: &str = "
:root{color-scheme:light dark;--ink:#222;--page:#fff;--line:#d5d5d5;--soft:#f4f4f4;--yes:#00694b;--part:#855a00;--no:#a83200}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--page:#14171a;--line:#3a4046;--soft:#1e2327;--yes:#4fd8ab;--part:#f0c052;--no:#ff9a63}}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 20px 80px}h1{font-size:30px;margin:8px 0}h2{font-size:23px;margin:44px 0 10px}
h3{font-size:18px;margin:34px 0 4px}p{max-width:76ch}a{color:inherit}code,pre{font:13px/1.45 ui-monospace,Consolas,'Liberation Mono',monospace}
pre{background:var(--soft);padding:12px;overflow:auto;border-radius:6px;max-height:420px}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:14px;line-height:1.35}th,td{padding:5px 7px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{border-bottom-width:2px}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.v{white-space:nowrap;font-weight:600}td.name{white-space:nowrap}td.long{min-width:24ch}.holds{color:var(--yes)}.in-part{color:var(--part)}.fails{color:var(--no)}.quiet{opacity:.75}
figure{margin:34px 0}figure svg{max-width:100%;height:auto}nav a{margin-right:14px}
@media print{main{max-width:none;padding:0}figure,tr{break-inside:avoid}pre{max-height:none}}
";

fn section(id: &str, title: &str, body: &str) -> String {
    format!("<section id=\"{id}\"><h2>{title}</h2>{body}</section>")
}

fn introduction(manifest: &Manifest) -> String {
    let preset = &manifest.preset;
    format!(
        "<h1>DPSW-Sketch, measured</h1>\
         <p>Every figure, table and statement of the experiments of “DPSW-Sketch: A Differentially Private Sketch \
         Framework for Frequency Estimation over Sliding Windows”, run again: the paper's method (“DPSW”) with its \
         printed and with balanced budgets, one sketch a substream (“tuned”), the paper's baselines in a form that keeps \
         its promise, and tumbling buckets.</p>\
         <p>Preset <b>{}</b>: window {}, streams of {} items, {} seeds, {} query times a seed, at each the 50 most \
         frequent items, 50 other items with a count of at least 100, and heavy hitters. All methods get the same bytes. \
         The parameters of each are the best of its published grid on a shorter run with the first seed. Marks are \
         means over seeds; bands and whiskers go from the smallest to the largest seed. Commit <code>{}</code>, {}; \
         this run took {}.</p>\
         <nav><a href=\"#standing\">All methods</a><a href=\"#claims\">Claims</a><a href=\"#ours\">Ours</a>\
         <a href=\"#figures\">Figures</a><a href=\"#streams\">Streams</a><a href=\"#manifest\">Manifest</a></nav>",
        escape(&preset.name),
        grouped(preset.window),
        grouped(preset.items),
        preset.seeds,
        preset.queries,
        escape(&manifest.commit),
        escape(&manifest.machine),
        duration(manifest.seconds)
    )
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

/// One table per stream: what each method promises, holds and reaches.
fn standing(results: &Results) -> String {
    let mut text = String::new();
    for stream in results.streams("epsilon") {
        let _ = write!(
            text,
            "<h3>{stream}</h3><div class=\"wide\"><table><tr><th>method<th>claim<th class=\"n\">sketch<th \
             class=\"n\">resident<th class=\"n\">MAE high<th class=\"n\">MAE low<th class=\"n\">MRE high<th \
             class=\"n\">MRE low<th class=\"n\">F1 0.005<th class=\"n\">F1 0.01<th class=\"n\">covered<th \
             class=\"n\">items/s</tr>"
        );
        for method in results.methods("epsilon") {
            if let Some(measured) = results.measured("epsilon", &stream, 1.0, method) {
                let speed = results.mean("speed", &stream, 0.0, method, Metric::Throughput);
                text += &standing_row(method, measured, speed);
            }
        }
        text += "</table></div>";
    }
    if text.is_empty() {
        return "<p>The sweep over ε was not run.</p>".to_owned();
    }
    let key = "<p>High: the 50 most frequent items; low: others. Sketch: bytes that are compared, as the paper counts \
        them; resident: bytes in memory. Covered: errors of frequent items inside the 95 % interval, where there is one.</p>";
    format!("{key}{text}")
}

fn standing_row(method: MethodName, measured: &Measured, speed: Option<f64>) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), short);
    let percent =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{} %", short(100.0 * v)));
    let mean = |metric| measured.summary(metric).map(|summary| summary.mean);
    let bytes = |bytes: f64| format!("{} KB", grouped((bytes / 1000.0).round() as u64));
    let resident: Vec<f64> = measured.outcomes.iter().map(|o| o.resident_bytes as f64).collect();
    let resident = Summary::of(&resident).map_or(f64::NAN, |summary| summary.mean);
    let claim = match (measured.epsilon, measured.delta) {
        (Some(epsilon), Some(delta)) => format!("({epsilon}, {delta:.0e})"),
        (Some(epsilon), None) => format!("{epsilon}, δ = 0"),
        _ => "none".to_owned(),
    };
    let best_of = match measured.tried.len() {
        0 => String::new(),
        tried => format!(" (best of {tried})"),
    };
    let covered: Vec<f64> = measured.outcomes.iter().filter_map(|outcome| outcome.high.covered).collect();
    let covered = Summary::of(&covered).map(|summary| summary.mean);
    let score = |gamma| mean(Metric::F1(gamma)).map_or_else(|| "–".to_owned(), |f1| format!("{f1:.3}"));
    let cells = [
        bytes(measured.bytes as f64),
        bytes(resident),
        number(mean(Metric::MaeHigh)),
        number(mean(Metric::MaeLow)),
        percent(mean(Metric::MreHigh)),
        percent(mean(Metric::MreLow)),
        score(0.005),
        score(0.01),
        percent(covered),
        number(speed),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td class=\"n\">{cell}")).collect();
    format!(
        "<tr><td class=\"long\">{}<br><small class=\"quiet\">{}{best_of}</small><td class=\"name\">{claim}{cells}</tr>",
        escape(&series(method).name),
        escape(&measured.parameters)
    )
}

fn claims(judged: &[Judged]) -> String {
    let mut text = String::from(
        "<p>A case is a stream, a value of the axis, a metric and a rival. “Always” needs all cases, “mostly” and “almost \
         all” four of five; fewer than that but half is “in part”. Limits in brackets are ours where the text names none. \
         Numbers are measured; a likely reason is an explanation that this run does not test.</p>\
         <div class=\"wide\"><table><tr><th>The paper says<th>We measured<th>Holds?<th>Likely reason</tr>",
    );
    let mut section = "";
    for claim in judged {
        if claim.section != section {
            section = claim.section;
            let _ = write!(text, "<tr><th colspan=\"4\">{section}</th></tr>");
        }
        text += &claim_rows(claim);
    }
    text += "</table></div>";
    if judged.iter().any(|claim| claim.findings.len() == 3) {
        text
    } else {
        text.replace("The paper says", "We say")
    }
}

fn claim_rows(claim: &Judged) -> String {
    let span = claim.findings.len();
    let mut text = String::new();
    for (index, Finding { of, measured, verdict }) in claim.findings.iter().enumerate() {
        let of = of.map_or_else(String::new, |method| format!("<b>{}</b>: ", escape(&series(method).name)));
        let (class, word) = match verdict {
            Verdict::Holds => ("holds", "holds"),
            Verdict::InPart => ("in-part", "in part"),
            Verdict::Fails => ("fails", "does not hold"),
            Verdict::NotMeasured => ("quiet", "not measured"),
        };
        let says =
            if index == 0 { format!("<td rowspan=\"{span}\">{}", escape(claim.says)) } else { String::new() };
        let why = match (index, claim.reason) {
            (0, reason) => format!("<td rowspan=\"{span}\">{}", escape(reason.unwrap_or_default())),
            _ => String::new(),
        };
        let _ =
            write!(text, "<tr>{says}<td>{of}{}<td class=\"v {class}\">{word}{why}</tr>", escape(measured));
    }
    text
}

fn drawn(manifest: &Manifest, figures: &[Drawn]) -> String {
    let mut text = String::new();
    for Drawn { figure, svg, .. } in figures {
        let paper = match &figure.paper {
            Some(paper) => format!("{} of the paper.", escape(paper)),
            None => "Not in the paper.".to_owned(),
        };
        let about =
            figure.about.as_deref().map(|about| format!("<p>{}</p>", escape(about))).unwrap_or_default();
        let ending = if manifest.own_figures.contains_key(&figure.name) { ".toml" } else { "" };
        let _ = write!(
            text,
            "<figure id=\"{0}\">{svg}{about}<figcaption class=\"quiet\">{paper} \
             <code>dpsw-eval figure {0}{ending} --preset {1}</code>, data: <a href=\"figures/{0}.csv\">figures/{0}.csv</a>\
             </figcaption></figure>",
            figure.name,
            escape(&manifest.preset.name)
        );
    }
    text
}

/// The paper's table of data sets, and the streams of this run.
fn streams(results: &Results) -> String {
    let mut text = String::from(
        "<p>The paper's data sets (its Table 2):</p><div class=\"wide\"><table><tr><th>data set<th class=\"n\">n of the \
         paper<th class=\"n\">m of the paper<th class=\"n\">n here<th class=\"n\">m here<th>description<th>remark</tr>",
    );
    for paper in PaperDataset::ALL {
        let printed = paper.printed();
        let here = results.distributions.iter().find(|here| here.stream == paper.stream_name());
        let [items, domain] = match here {
            Some(here) => [grouped(here.items as u64), grouped(here.domain as u64)],
            None => ["–".to_owned(), "–".to_owned()],
        };
        let remark = match (here, paper.url()) {
            (_, None) => "generated, the start of it".to_owned(),
            (Some(_), _) => "from its files, the start of it".to_owned(),
            (None, Some(_)) => format!("absent: {}", paper.instructions(Path::new("DATA"))),
        };
        let _ = write!(
            text,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{items}<td class=\"n\">{domain}<td>{}<td>{}</tr>",
            paper.name(),
            grouped(printed.len),
            grouped(printed.domain_len as u64),
            printed.description,
            escape(&remark)
        );
    }
    text += "</table></div>";
    let is_extra = |name: &str| PaperDataset::ALL.iter().all(|paper| paper.stream_name() != name);
    let extra: Vec<String> = results
        .distributions
        .iter()
        .filter(|here| is_extra(&here.stream))
        .map(|here| {
            format!(
                "{} (n = {}, m = {})",
                here.stream,
                grouped(here.items as u64),
                grouped(here.domain as u64)
            )
        })
        .collect();
    if extra.is_empty() {
        text
    } else {
        format!("{text}<p>Real streams beside them: {}.</p>", extra.join(", "))
    }
}

/// Methods that do not fit, by sweep and reason.
fn absent(results: &Results) -> String {
    let mut text = String::new();
    for (row, reason) in results.rows.iter().filter_map(|row| Some((row, row.result.as_ref().err()?))) {
        let _ = write!(
            text,
            "<tr><td>{}<td>{}<td class=\"n\">{}<td>{}<td>{}</tr>",
            escape(&row.sweep),
            escape(&row.stream),
            short(row.x),
            escape(&series(row.method).name),
            escape(reason)
        );
    }
    if text.is_empty() {
        return "<p>Nothing.</p>".to_owned();
    }
    format!(
        "<details><summary>Points without a mark in the figures</summary><div class=\"wide\"><table><tr><th>sweep<th>stream<th class=\"n\">x<th>method<th>reason</tr>{text}\
         </table></div></details>"
    )
}

fn manifest_text(manifest: &Manifest) -> String {
    let json = serde_json::to_string_pretty(manifest).expect("a manifest is JSON");
    format!(
        "<p><code>dpsw-eval all --manifest manifest.json</code> runs it again; <code>results.csv</code> and \
         <code>results.json</code> beside this page hold every number, with the grids that were tried.</p><pre>{}</pre>",
        escape(&json)
    )
}
