//! Coverage as panels of a figure.

use super::case::{Case, LONG_LIST, SCARCE};
use super::chosen::{Asked, Cells, Ends};
use super::listed::Listed;
use super::made::Made;
use super::outcome::Outcome;
use super::run::{Measured, Row};
use crate::chart::{Curve, Dash, Mark, Panel, Scale, ScaleKind, Series, Style};
use crate::draw::{Parts, shifted, spot};
use crate::results::distinct;
use crate::sweep::Summary;

/// Shares of fewer rows of a seed say too little to be drawn.
const ROWS_MIN: u64 = 20;

/// What intervals promise.
const PROMISED: f64 = 0.95;

/// Cases that are drawn alike.
struct Kind {
    name: &'static str,
    epsilon: f64,
    keys: Option<usize>,
    bytes: Option<u64>,
    style: Style,
}

const fn kind(name: &'static str, epsilon: f64, colour: usize, mark: Mark) -> Kind {
    Kind { name, epsilon, keys: None, bytes: None, style: Style { colour, mark, dash: Dash::Solid } }
}

const KINDS: [Kind; 7] = [
    kind("ε = 1, own counters", 1.0, 0, Mark::Disc),
    Kind { bytes: Some(SCARCE), ..kind("ε = 1, 100 KB", 1.0, 1, Mark::Square) },
    Kind { keys: Some(LONG_LIST), ..kind("ε = 1, 100,000 keys listed", 1.0, 3, Mark::Up) },
    kind("ε = 0.1, own counters", 0.1, 5, Mark::Ring),
    Kind { bytes: Some(SCARCE), ..kind("ε = 0.1, 100 KB", 0.1, 2, Mark::Diamond) },
    Kind { keys: Some(LONG_LIST), ..kind("ε = 0.1, 100,000 keys listed", 0.1, 6, Mark::Down) },
    kind("ε = 5, own counters", 5.0, 7, Mark::Plus),
];

impl Kind {
    fn is_of(&self, case: &Case) -> bool {
        case.epsilon == self.epsilon
            && case.keys == self.keys
            && case.bytes == self.bytes
            && case.retention == 1
    }
}

/// Windows that are drawn in one panel: above the first length and up to the second.
const CLASSES: [(u64, u64, &str); 3] = [
    (30_000, u64::MAX, "top 20, windows above 30,000"),
    (6_000, 30_000, "top 20, windows of 10,000 to 30,000"),
    (0, 6_000, "top 20, windows up to 6,000"),
];

/// Listed rows and ghosts by stream, chosen keys by the window that is asked about, and streams that are made to break
/// intervals.
pub(crate) fn parts(rows: &[Row]) -> Parts {
    let measured: Vec<(&Case, &Measured)> =
        rows.iter().filter_map(|row| Some((&row.case, row.result.as_ref().ok()?))).collect();
    let (made, real): (Vec<_>, Vec<_>) =
        measured.iter().partition(|(case, _)| Made::named(&case.stream).is_some());
    let mut panels = Vec::new();
    panels.extend(by_class(&real, "covered", Some(PROMISED), Listed::coverage));
    panels.extend(by_class(&real, "unmarked ghosts", None, Listed::ghost_share));
    panels.push(by_window(&real, "chosen keys, windows up to now", Ends::Now));
    panels.push(by_window(&real, "chosen keys, past windows", Ends::Before));
    panels.push(by_stream(&made, "chosen keys, made streams", "covered", Some(PROMISED), |outcome| {
        outcome.chosen.coverage(|_| true)
    }));
    let columns = CLASSES.len().min(panels.len() / 2);
    let legend = |kind: &Kind| Series { name: kind.name.to_owned(), style: kind.style };
    (panels, columns, KINDS.iter().map(legend).collect())
}

type Rows<'a> = [(&'a Case, &'a Measured)];

fn by_class(
    rows: &Rows<'_>,
    label: &str,
    guide: Option<f64>,
    number: impl Fn(&Listed) -> Option<f64>,
) -> Vec<Panel> {
    let number = |outcome: &Outcome| number(&outcome.listed).filter(|_| ROWS_MIN <= outcome.listed.rows);
    let mut panels = Vec::new();
    for (above, up_to, title) in CLASSES {
        let is_of = |(case, _): &&(&Case, &Measured)| above < case.window && case.window <= up_to;
        let own: Vec<_> = rows.iter().filter(is_of).copied().collect();
        if !own.is_empty() {
            panels.push(by_stream(&own, title, label, guide, number));
        }
    }
    panels
}

fn by_stream(
    rows: &Rows<'_>,
    title: &str,
    label: &str,
    guide: Option<f64>,
    number: impl Fn(&Outcome) -> Option<f64>,
) -> Panel {
    let names: Vec<String> = distinct(rows.iter().map(|(case, _)| case.stream.clone()));
    let at = |kind: &Kind, name: &str| {
        let (_, measured) = rows.iter().find(|(case, _)| case.stream == name && kind.is_of(case))?;
        Summary::of(&measured.outcomes.iter().filter_map(&number).collect::<Vec<f64>>())
    };
    panel(title, label, guide, names, at)
}

fn by_window(rows: &Rows<'_>, title: &str, ends: Ends) -> Panel {
    let names = Asked::ALL.map(|asked| asked.to_string()).to_vec();
    let at = |kind: &Kind, name: &str| {
        let seeds = seeds(rows, kind);
        let of_seed =
            |cells: &Cells| cells.coverage(|cell| cell.ends == ends && cell.asked.to_string() == name);
        Summary::of(&seeds.iter().filter_map(of_seed).collect::<Vec<f64>>())
    };
    panel(title, "covered", Some(PROMISED), names, at)
}

/// The cells of all streams together, for each seed.
fn seeds(rows: &Rows<'_>, kind: &Kind) -> Vec<Cells> {
    let mut seeds: Vec<Cells> = Vec::new();
    for (_, measured) in rows.iter().filter(|(case, _)| kind.is_of(case)) {
        seeds.resize(seeds.len().max(measured.outcomes.len()), Cells::default());
        seeds.iter_mut().zip(&measured.outcomes).for_each(|(cells, outcome)| cells.add(&outcome.chosen));
    }
    seeds
}

fn panel(
    title: &str,
    label: &str,
    guide: Option<f64>,
    names: Vec<String>,
    at: impl Fn(&Kind, &str) -> Option<Summary>,
) -> Panel {
    let curve = |(index, kind): (usize, &Kind)| {
        let spot =
            |(place, name): (usize, &String)| Some(spot(shifted(place, index, KINDS.len()), at(kind, name)?));
        Curve {
            style: kind.style,
            points: names.iter().enumerate().filter_map(spot).collect(),
            is_joined: false,
        }
    };
    Panel {
        title: title.to_owned(),
        curves: KINDS.iter().enumerate().map(curve).collect(),
        guides: guide.map(|y| [(-0.5, y), (names.len() as f64 - 0.5, y)]).into_iter().collect(),
        x: Scale { label: String::new(), kind: ScaleKind::Names(names) },
        y: Scale { label: label.to_owned(), kind: ScaleKind::Linear(Some((0.0, 1.03))) },
    }
}
