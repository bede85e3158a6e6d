//! Figures of the catalogue from results, as charts and as CSV.

use anyhow::Result;

use crate::baseline::Kind;
use crate::chart::{Chart, Curve, Dash, Mark, Panel, Scale, ScaleKind, Series, Spot, Style};
use crate::coverage;
use crate::discovery;
use crate::figure::{Axis, Figure, Shows, Streams, Sweep};
use crate::method::MethodName;
use crate::metric::Metric;
use crate::results::{Distribution, Results, distinct};
use crate::sweep::{Row, Summary};

/// Streams have a column each, up to this many; more panels in a row are too small to read.
const COLUMNS_MAX: usize = 4;

/// The name and the style of a method, the same in every figure: a family shares its colour, and members differ in
/// mark or line.
pub fn series(method: MethodName) -> Series {
    use Dash::{Dashed, Dotted, Solid};
    let (name, colour, mark, dash) = match method {
        MethodName::Tuned => ("tuned (ours)", 0, Mark::Disc, Solid),
        MethodName::TunedPlain => ("tuned, one level", 0, Mark::Square, Dotted),
        MethodName::TunedHashed => ("tuned, hashed", 0, Mark::Ring, Dotted),
        MethodName::TunedDiscovered => ("tuned, keys found", 3, Mark::Square, Dashed),
        MethodName::TunedUser => ("tuned, users", 5, Mark::Diamond, Dashed),
        MethodName::Paper => ("DPSW, printed budgets", 1, Mark::Square, Solid),
        MethodName::PaperBalanced => ("DPSW, balanced budgets", 2, Mark::Diamond, Solid),
        MethodName::Baseline(Kind::Tumbling) => ("tumbling buckets", 3, Mark::Up, Solid),
        MethodName::Baseline(Kind::TumblingGauss) => ("tumbling buckets, Gaussian", 3, Mark::Down, Dashed),
        MethodName::Baseline(Kind::Blmz) => ("BLMZ-Sketch", 4, Mark::Down, Solid),
        MethodName::Baseline(Kind::USketch) => ("U-Sketch", 5, Mark::Plus, Solid),
        MethodName::Baseline(Kind::PccMg) => ("PCC-MG", 6, Mark::Cross, Solid),
        MethodName::Baseline(Kind::PccMgReduced) => ("PCC-MG, reduced counts", 6, Mark::Ring, Dashed),
        MethodName::Baseline(Kind::PccMgAllKeys) => ("PCC-MG, all keys listed", 6, Mark::Star, Dotted),
        MethodName::Baseline(Kind::Microscope) => ("Microscope (not private)", 7, Mark::Ring, Dashed),
        MethodName::Baseline(Kind::MicroscopeCu) => ("Microscope, CU", 0, Mark::Diamond, Dashed),
        MethodName::Baseline(Kind::MicroscopeCount) => ("Microscope, CountSketch", 1, Mark::Plus, Dotted),
    };
    Series { name: name.to_owned(), style: Style { colour, mark, dash } }
}

/// The chart of a figure; `None` if there is nothing to show.
pub fn chart(figure: &Figure, results: &Results) -> Option<Chart> {
    let parts = match (&figure.shows, &figure.sweep) {
        (Shows::Curves(metrics), Some(sweep)) => curves(sweep, metrics, results),
        (Shows::Thresholds(x), Some(sweep)) => thresholds(sweep, *x, results),
        (Shows::Predictions, _) => predictions(results),
        (Shows::Distribution(streams), _) => distribution(&shown(streams, results)),
        (Shows::Coverage, _) => coverage::draw::parts(&results.coverage),
        (Shows::Discovery, _) => discovery::draw::parts(&results.discovery),
        (_, None) => return None,
    };
    filled(&figure.title, parts)
}

/// The chart of the frequencies of streams; `None` if there are none.
pub fn distributions(title: &str, distributions: &[Distribution]) -> Option<Chart> {
    filled(title, distribution(&distributions.iter().collect::<Vec<_>>()))
}

fn filled(title: &str, (panels, columns, legend): Parts) -> Option<Chart> {
    let is_empty = panels.iter().all(|panel| panel.curves.iter().all(|curve| curve.points.is_empty()));
    (!is_empty).then(|| Chart { title: title.to_owned(), panels, columns, legend })
}

/// Panels, panels in a row, and the legend.
pub(crate) type Parts = (Vec<Panel>, usize, Vec<Series>);

fn curves(sweep: &Sweep, metrics: &[Metric], results: &Results) -> Parts {
    let legend = legend(sweep);
    let streams = results.streams(&sweep.name);
    if sweep.axis == Axis::Stream {
        let panels = metrics.iter().map(|&metric| by_stream(sweep, &streams, metric, results)).collect();
        return (panels, metrics.len().min(3), legend);
    }
    let panel = |metric, stream: &String| Panel {
        title: stream.clone(),
        x: axis(sweep.axis),
        y: scale(metric),
        curves: joined(sweep, |method| results.curve(&sweep.name, stream, method, metric)),
        guides: guides(metric, &results.values(&sweep.name)),
    };
    let columns = streams.len().clamp(1, COLUMNS_MAX);
    let panels = metrics.iter().flat_map(|&metric| streams.iter().map(move |stream| panel(metric, stream)));
    (panels.collect(), columns, legend)
}

fn legend(sweep: &Sweep) -> Vec<Series> {
    sweep.methods.iter().map(|&method| series(method)).collect()
}

/// One curve per method, the first one on top.
fn joined(sweep: &Sweep, points: impl Fn(MethodName) -> Vec<(f64, Summary)>) -> Vec<Curve> {
    let curve = |&method: &MethodName| Curve {
        style: series(method).style,
        points: points(method).into_iter().map(|(x, summary)| spot(x, summary)).collect(),
        is_joined: true,
    };
    sweep.methods.iter().rev().map(curve).collect()
}

fn by_stream(sweep: &Sweep, streams: &[String], metric: Metric, results: &Results) -> Panel {
    let curve = |(index, &method): (usize, &MethodName)| {
        let at = |(place, stream): (usize, &String)| {
            let summary = results.summary(&sweep.name, stream, 0.0, method, metric)?;
            Some(spot(shifted(place, index, sweep.methods.len()), summary))
        };
        let points = streams.iter().enumerate().filter_map(at).collect();
        Curve { style: series(method).style, points, is_joined: false }
    };
    Panel {
        title: metric.label(),
        x: Scale { label: String::new(), kind: ScaleKind::Names(streams.to_vec()) },
        y: Scale { label: String::new(), ..scale(metric) },
        curves: sweep.methods.iter().enumerate().map(curve).collect(),
        guides: Vec::new(),
    }
}

fn thresholds(sweep: &Sweep, x: f64, results: &Results) -> Parts {
    let streams = results.streams(&sweep.name);
    let measured =
        |stream: &str| sweep.methods.iter().find_map(|&m| results.measured(&sweep.name, stream, x, m));
    let heavy = streams.iter().find_map(|stream| measured(stream)?.outcomes.first()).map(|o| o.heavy.clone());
    let gammas: Vec<f64> = heavy.unwrap_or_default().iter().map(|heavy| heavy.gamma).collect();
    let panel = |(index, name): (usize, &'static str), stream: &String| Panel {
        title: stream.clone(),
        x: Scale { label: "threshold γ".to_owned(), kind: ScaleKind::Linear(None) },
        y: Scale { label: name.to_owned(), kind: ScaleKind::Linear(Some((0.0, 1.03))) },
        curves: joined(sweep, |method| {
            let at = |&gamma: &f64| {
                Some((gamma, results.summary(&sweep.name, stream, x, method, Metric::scores(gamma)[index])?))
            };
            gammas.iter().filter_map(at).collect()
        }),
        guides: Vec::new(),
    };
    let rows = ["F1", "precision", "recall"].into_iter().enumerate();
    let panels = rows.flat_map(|row| streams.iter().map(move |stream| panel(row, stream))).collect();
    (panels, streams.len().clamp(1, COLUMNS_MAX), legend(sweep))
}

/// Every point of the tuned method, with the diagonal and a quarter off it.
fn predictions(results: &Results) -> Parts {
    let styles = [
        (0, Mark::Disc),
        (1, Mark::Square),
        (3, Mark::Up),
        (4, Mark::Down),
        (5, Mark::Plus),
        (6, Mark::Cross),
    ];
    let streams = distinct(results.rows.iter().filter(|row| is_predicted(row)).map(|row| &row.stream));
    let style = |index: usize| {
        let (colour, mark) = styles[index % styles.len()];
        Style { colour, mark, dash: Dash::Solid }
    };
    let panel = |group: usize, title: &str| {
        let curve = |(index, stream): (usize, &&String)| {
            let points = pairs(results, stream, group).into_iter().map(|(x, y)| Spot { x, y, band: (y, y) });
            Curve { style: style(index), points: points.collect(), is_joined: false }
        };
        let curves: Vec<Curve> = streams.iter().enumerate().map(curve).collect();
        let xs = || curves.iter().flat_map(|curve| curve.points.iter().map(|spot| spot.x));
        let ends = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
        let line = |factor: f64| [(ends.0, ends.0 * factor), (ends.1, ends.1 * factor)];
        let scale = |label: &str| Scale { label: label.to_owned(), kind: ScaleKind::Log };
        Panel {
            title: title.to_owned(),
            x: scale("measured MAE"),
            y: scale("predicted MAE"),
            guides: if ends.0 < ends.1 { vec![line(1.0), line(1.25), line(0.75)] } else { Vec::new() },
            curves,
        }
    };
    let panels = vec![panel(0, "frequent items (dotted: equal, ±25 %)"), panel(1, "other items")];
    let legend = streams
        .iter()
        .enumerate()
        .map(|(i, name)| Series { name: (*name).clone(), style: style(i) })
        .collect();
    (panels, 2, legend)
}

/// Whether predictions are held against a row: one of the tuned method, in any sweep but that of the real streams.
fn is_predicted(row: &Row) -> bool {
    row.method == MethodName::Tuned && row.sweep != "real"
}

/// Measured and predicted errors of frequent (0) or rare (1) items: a pair for each row of the stream that predictions
/// are held against.
pub fn pairs(results: &Results, stream: &str, group: usize) -> Vec<(f64, f64)> {
    let metric = if group == 0 { Metric::MaeHigh } else { Metric::MaeLow };
    let is_mine = |row: &&Row| is_predicted(row) && row.stream == stream;
    let pair = |row: &Row| {
        let measured = row.result.as_ref().ok()?;
        let predicted: Vec<f64> =
            measured.outcomes.iter().filter_map(|outcome| Some(outcome.predicted?[group])).collect();
        Some((measured.summary(metric)?.mean, Summary::of(&predicted)?.mean))
    };
    results.rows.iter().filter(is_mine).filter_map(pair).collect()
}

fn shown<'r>(streams: &[Streams], results: &'r Results) -> Vec<&'r Distribution> {
    let names = Streams::names(streams);
    results.distributions.iter().filter(|here| names.contains(&here.stream.as_str())).collect()
}

fn distribution(distributions: &[&Distribution]) -> Parts {
    let dashes = [Dash::Solid, Dash::Dashed, Dash::Dotted];
    let style = |index: usize| Style { colour: index % 8, mark: Mark::Blank, dash: dashes[index / 8 % 3] };
    let curve = |(index, distribution): (usize, &&Distribution)| Curve {
        style: style(index),
        points: distribution.points.iter().map(|&(x, y)| Spot { x, y, band: (y, y) }).collect(),
        is_joined: true,
    };
    let panel = Panel {
        title: "each stream".to_owned(),
        x: Scale { label: "frequency x".to_owned(), kind: ScaleKind::Log },
        y: Scale { label: "share of items ≥ x".to_owned(), kind: ScaleKind::Log },
        curves: distributions.iter().enumerate().map(curve).collect(),
        guides: Vec::new(),
    };
    let name = |(index, distribution): (usize, &&Distribution)| Series {
        name: distribution.stream.clone(),
        style: style(index),
    };
    (vec![panel], 1, distributions.iter().enumerate().map(name).collect())
}

/// Where the marks of a series stand beside the others of the same name.
pub(crate) fn shifted(place: usize, index: usize, series: usize) -> f64 {
    place as f64 + ((index as f64 + 0.5) / series as f64 - 0.5) * 0.75
}

pub(crate) fn spot(x: f64, summary: Summary) -> Spot {
    Spot { x, y: summary.mean, band: (summary.low, summary.high) }
}

fn axis(axis: Axis) -> Scale {
    let linear = || ScaleKind::Linear(None);
    let (label, kind) = match axis {
        Axis::Epsilon => ("ε", ScaleKind::Log),
        Axis::Window => ("window w", linear()),
        Axis::Bytes => ("bytes of the sketches", ScaleKind::Log),
        Axis::Domain => ("items of the domain", ScaleKind::Log),
        Axis::Checkpoints => ("checkpoints |I|", linear()),
        Axis::Substreams => ("substreams of a window", ScaleKind::Log),
        Axis::Rows => ("hash functions a", linear()),
        Axis::Stream => ("", linear()),
    };
    Scale { label: label.to_owned(), kind }
}

fn scale(metric: Metric) -> Scale {
    let kind = match metric {
        _ if metric.is_score() => ScaleKind::Linear(Some((0.0, 1.03))),
        Metric::MreHigh | Metric::MreLow => ScaleKind::Percent,
        _ => ScaleKind::Log,
    };
    Scale { label: metric.label(), kind }
}

/// Equal to Microscope-Sketch, in a chart of prices.
fn guides(metric: Metric, values: &[f64]) -> Vec<[(f64, f64); 2]> {
    match values {
        [first, .., last] if metric.is_price() => vec![[(*first, 1.0), (*last, 1.0)]],
        _ => Vec::new(),
    }
}

/// The numbers of a figure, one line per mark.
pub fn csv(figure: &Figure, chart: &Chart) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["figure", "panel", "y_axis", "series", "x", "mean", "low", "high"])?;
    for panel in &chart.panels {
        for curve in &panel.curves {
            let series = chart.legend.iter().find(|series| series.style == curve.style);
            let series = series.map_or("", |series| series.name.as_str());
            for spot in &curve.points {
                let x = match &panel.x.kind {
                    ScaleKind::Names(names) => names[spot.x.round() as usize].clone(),
                    _ => spot.x.to_string(),
                };
                let [mean, low, high] = [spot.y, spot.band.0, spot.band.1].map(|number| number.to_string());
                let numbers = [x, mean, low, high];
                let start = [&figure.name, &panel.title, &panel.y.label, series];
                writer.write_record(start.into_iter().chain(numbers.iter().map(String::as_str)))?;
            }
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_methods_look_alike() {
        let all = MethodName::ALL.map(series);
        for (index, one) in all.iter().enumerate() {
            assert!(
                all[..index].iter().all(|other| other.style != one.style && other.name != one.name),
                "{one:?}"
            );
        }
    }
}
