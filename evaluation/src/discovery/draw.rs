//! Discovery as panels of a figure.

use super::run::{Measured, Row};
use super::surge::SHARES;
use crate::chart::{Curve, Dash, Mark, Panel, Scale, ScaleKind, Series, Spot, Style, short};
use crate::draw::{Parts, shifted, spot};
use crate::sweep::Summary;

const fn style(colour: usize, mark: Mark) -> Style {
    Style { colour, mark, dash: Dash::Solid }
}

const TOP: Style = style(0, Mark::Disc);
const FIRST: Style = style(1, Mark::Square);
const ANSWER: Style = style(3, Mark::Up);
const NEW: [Style; SHARES.len()] = [style(5, Mark::Ring), style(2, Mark::Diamond), style(6, Mark::Down)];

/// What is found, and how soon, by stream and window.
pub(crate) fn parts(rows: &[Row]) -> Parts {
    let rows: Vec<(String, u64, &Measured)> = rows
        .iter()
        .filter_map(|row| {
            let name = format!("{} {}", row.case.stream, short(row.case.window as f64));
            Some((name, row.case.window, row.result.as_ref().ok()?))
        })
        .collect();
    let new = SHARES.map(|share| format!("a new key of {} %", short(100.0 * share)));
    let legend = [("the true top 20", TOP), ("the true first", FIRST), ("anything", ANSWER)];
    let legend =
        legend.into_iter().map(|(name, style)| (name.to_owned(), style)).chain(new.into_iter().zip(NEW));
    let legend = legend.map(|(name, style)| Series { name, style }).collect();
    (vec![found(&rows), delays(&rows)], 1, legend)
}

type Rows<'a> = [(String, u64, &'a Measured)];

fn found(rows: &Rows<'_>) -> Panel {
    let recall = |measured: &Measured, _| measured.summary(|outcome| outcome.recall);
    let first = |measured: &Measured, _| measured.summary(|outcome| 1.0 - outcome.first_missing);
    panel(
        "found after the first window",
        Scale { label: "share".to_owned(), kind: ScaleKind::Linear(Some((0.0, 1.03))) },
        rows,
        &[(TOP, &recall), (FIRST, &first)],
    )
}

fn delays(rows: &Rows<'_>) -> Panel {
    let answer = |measured: &Measured, window| median(measured.first_answer()?, window);
    let new = SHARES.map(|share| move |measured: &Measured, window| median(measured.delay(share)?, window));
    let mut curves: Vec<(Style, Number<'_>)> = vec![(ANSWER, &answer)];
    curves.extend(NEW.into_iter().zip(new.iter().map(|number| number as Number<'_>)));
    let y = Scale { label: "windows, median".to_owned(), kind: ScaleKind::Log };
    panel("how long until it is listed (at the upper edge: never)", y, rows, &curves)
}

fn median(items: f64, window: u64) -> Option<Summary> {
    Summary::of(&[items / window as f64])
}

/// A number of a row, whose window is given.
type Number<'a> = &'a dyn Fn(&Measured, u64) -> Option<Summary>;

fn panel(title: &str, y: Scale, rows: &Rows<'_>, numbers: &[(Style, Number<'_>)]) -> Panel {
    let curve = |(index, (style, number)): (usize, &(Style, Number<'_>))| {
        let at = |(place, (_, window, measured)): (usize, &(String, u64, &Measured))| -> Option<Spot> {
            Some(spot(shifted(place, index, numbers.len()), number(measured, *window)?))
        };
        Curve { style: *style, points: rows.iter().enumerate().filter_map(at).collect(), is_joined: false }
    };
    Panel {
        title: title.to_owned(),
        x: Scale {
            label: String::new(),
            kind: ScaleKind::Names(rows.iter().map(|(name, ..)| name.clone()).collect()),
        },
        y,
        curves: numbers.iter().enumerate().map(curve).collect(),
        guides: Vec::new(),
    }
}
