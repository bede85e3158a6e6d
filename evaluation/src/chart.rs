//! Figures as SVG: panels in a grid, one legend, error bands, and colours for light and dark.

use std::fmt::Write;

/// A figure: panels in rows, all with the same series.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Its heading, also for those who cannot see it.
    pub title: String,
    /// Row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// The series of the legend, in order.
    pub legend: Vec<Series>,
}

/// A name and how it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    pub name: String,
    pub style: Style,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// An index into [`COLOURS`].
    pub colour: usize,
    pub mark: Mark,
    pub dash: Dash,
}

/// The shape of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Disc,
    Ring,
    Square,
    Diamond,
    Up,
    Down,
    Plus,
    Cross,
    Star,
    Blank,
}

/// The pattern of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Dashed,
    Dotted,
}

/// One plot.
#[derive(Debug, Clone)]
pub struct Panel {
    pub title: String,
    pub x: Scale,
    pub y: Scale,
    /// What is drawn, later ones above.
    pub curves: Vec<Curve>,
    /// Lines to compare with, from point to point.
    pub guides: Vec<[(f64, f64); 2]>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    pub label: String,
    pub kind: ScaleKind,
}

/// How numbers become places.
#[derive(Debug, Clone, PartialEq)]
pub enum ScaleKind {
    /// Equal steps, between these ends or those of the data.
    Linear(Option<(f64, f64)>),
    /// Equal factors.
    Log,
    /// Equal factors, written as percent.
    Percent,
    /// Names at 0, 1, 2 and so on; curves are not connected.
    Names(Vec<String>),
}

/// The points of one series.
#[derive(Debug, Clone)]
pub struct Curve {
    pub style: Style,
    /// In the order of x.
    pub points: Vec<Spot>,
    pub is_joined: bool,
}

/// A point with the range of its seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    pub x: f64,
    pub y: f64,
    pub band: (f64, f64),
}

/// Colours on light and on dark, chosen to differ for the colour-blind as well (after Okabe and Ito).
pub const COLOURS: [(&str, &str); 8] = [
    ("#0067b1", "#5db4f5"),
    ("#d04a00", "#ff8c4a"),
    ("#c98a00", "#f2c14e"),
    ("#008a63", "#3fd6a8"),
    ("#c2569b", "#f09ccb"),
    ("#6a3fa0", "#b99cf2"),
    ("#7a4a21", "#cf9d6d"),
    ("#555555", "#c8c8c8"),
];

const PLOT_HEIGHT: f64 = 176.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 14.0;
const ABOVE: f64 = 26.0;
const BELOW: f64 = 44.0;
/// Room for names at a slant, at least, and what it takes beside the height of the longest one.
const BELOW_NAMES: f64 = 70.0;
const BELOW_SLANT: f64 = 20.0;
/// By how much a letter at that slant goes down: 32 degrees.
const SLANT: f64 = 0.53 * LETTER;
const MARGIN: f64 = 10.0;
/// Of all panels of a row, so that figures of one or two panels are equally wide.
const ROW_WIDTH: f64 = 760.0;
const PLOT_WIDTH_MIN: f64 = 260.0;
const LEGEND_LINE: f64 = 20.0;
/// The width of a letter of 12 pixels, for lack of a font to measure.
const LETTER: f64 = 6.4;

impl Chart {
    /// The whole SVG document, which can also be put into a page.
    pub fn svg(&self) -> String {
        let columns = self.columns.max(1);
        let plot = (ROW_WIDTH / columns as f64 - LEFT - RIGHT).max(PLOT_WIDTH_MIN);
        let below = self.panels.iter().map(Panel::below).fold(BELOW, f64::max);
        let cell = (LEFT + plot + RIGHT, ABOVE + PLOT_HEIGHT + below);
        let width = 2.0 * MARGIN + columns as f64 * cell.0;
        let legend = self.legend_lines(width - 2.0 * MARGIN);
        let top = MARGIN + 24.0 + legend.len() as f64 * LEGEND_LINE + 6.0;
        let height = top + self.panels.len().div_ceil(columns) as f64 * cell.1 + MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" class=\"chart\"><title>{0}</title><style>{1}</style>\
             <rect class=\"page\" width=\"100%\" height=\"100%\"/><text class=\"head\" x=\"{MARGIN}\" y=\"26\">{0}</text>",
            escape(&self.title),
            style_sheet()
        );
        for (line, entries) in legend.iter().enumerate() {
            let y = MARGIN + 36.0 + line as f64 * LEGEND_LINE;
            entries.iter().for_each(|(x, series)| draw_key(&mut svg, MARGIN + x, y, series));
        }
        for (index, panel) in self.panels.iter().enumerate() {
            let x = MARGIN + (index % columns) as f64 * cell.0 + LEFT;
            let y = top + (index / columns) as f64 * cell.1 + ABOVE;
            panel.draw(&mut svg, (x, y), plot);
        }
        svg + "</svg>\n"
    }

    /// The series of each line, and where they start.
    fn legend_lines(&self, width: f64) -> Vec<Vec<(f64, &Series)>> {
        let mut lines = vec![Vec::new()];
        let mut x = 0.0;
        for series in &self.legend {
            let len = 34.0 + series.name.chars().count() as f64 * LETTER + 16.0;
            if width < x + len && 0.0 < x {
                lines.push(Vec::new());
                x = 0.0;
            }
            lines.last_mut().expect("there is a line").push((x, series));
            x += len;
        }
        lines
    }
}

fn draw_key(svg: &mut String, x: f64, y: f64, series: &Series) {
    let style = series.style;
    let _ = write!(
        svg,
        "<g class=\"c{}\"><path class=\"line{}\" d=\"M{x:.1} {y:.1}h26\"/>{}</g>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        style.colour,
        style.dash.class(),
        style.mark.svg(x + 13.0, y),
        x + 32.0,
        y + 4.0,
        escape(&series.name)
    );
}

pub(crate) fn style_sheet() -> String {
    let mut sheet = String::from(
        ".chart text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif;fill:#222}\
         .chart .head{font-size:15px;font-weight:600}.chart .sub{font-weight:600}.chart .page{fill:#fff}\
         .chart .frame{fill:none;stroke:#999}.chart .grid{fill:none;stroke:#e4e4e4}\
         .chart .guide{fill:none;stroke:#888;stroke-dasharray:2 3}\
         .chart .line{fill:none;stroke-width:1.8;stroke-linejoin:round}.chart .band{stroke:none;opacity:.16}\
         .chart .whisker{fill:none;stroke-width:1.4}\
         .chart .dashed{stroke-dasharray:6 3}.chart .dotted{stroke-dasharray:1.5 3}\
         .chart .ring{fill:#fff;stroke-width:1.6}.chart .strokes{fill:none;stroke-width:1.8}",
    );
    for (index, (light, _)) in COLOURS.iter().enumerate() {
        let _ = write!(sheet, ".chart .c{index}{{stroke:{light};fill:{light}}}");
    }
    sheet += "@media(prefers-color-scheme:dark){.chart text{fill:#e6e6e6}.chart .page,.chart .ring{fill:#14171a}\
              .chart .frame{stroke:#777}.chart .grid{stroke:#2c3136}.chart .guide{stroke:#999}.chart .band{opacity:.22}";
    for (index, (_, dark)) in COLOURS.iter().enumerate() {
        let _ = write!(sheet, ".chart .c{index}{{stroke:{dark};fill:{dark}}}");
    }
    sheet + "}"
}

impl Dash {
    fn class(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => " dashed",
            Self::Dotted => " dotted",
        }
    }
}

impl Mark {
    fn svg(self, x: f64, y: f64) -> String {
        let path = |class: &str, d: String| format!("<path{class} d=\"M{x:.1} {y:.1}{d}\"/>");
        let strokes = " class=\"strokes\"";
        match self {
            Self::Disc => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\"/>"),
            Self::Ring => format!("<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\"/>"),
            Self::Square => path("", "m-3.2-3.2h6.4v6.4h-6.4z".to_owned()),
            Self::Diamond => path("", "m0-4.6l4.2 4.6l-4.2 4.6l-4.2-4.6z".to_owned()),
            Self::Up => path("", "m0-4.4l4.2 7.4h-8.4z".to_owned()),
            Self::Down => path("", "m0 4.4l4.2-7.4h-8.4z".to_owned()),
            Self::Plus => path(strokes, "m-4.2 0h8.4m-4.2-4.2v8.4".to_owned()),
            Self::Cross => path(strokes, "m-3.4-3.4l6.8 6.8m0-6.8l-6.8 6.8".to_owned()),
            Self::Star => path(strokes, "m0-4.4v8.8m-3.8-6.6l7.6 4.4m0-4.4l-7.6 4.4".to_owned()),
            Self::Blank => String::new(),
        }
    }
}

impl Panel {
    fn below(&self) -> f64 {
        let ScaleKind::Names(names) = &self.x.kind else { return BELOW };
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        BELOW_NAMES.max(BELOW_SLANT + SLANT * longest as f64)
    }

    fn has_names(&self) -> bool {
        matches!(self.x.kind, ScaleKind::Names(_))
    }

    fn draw(&self, svg: &mut String, (left, top): (f64, f64), width: f64) {
        let spots = || self.curves.iter().flat_map(|curve| &curve.points);
        let x = Ruler::new(&self.x.kind, spots().map(|spot| spot.x), width);
        let ends = spots().flat_map(|spot| [spot.y, spot.band.0, spot.band.1]);
        let y = Ruler::new(&self.y.kind, ends, PLOT_HEIGHT);
        let place = Place { x, y, left, top };
        place.draw_axes(svg, self);
        let _ = write!(svg, "<g>");
        for &[from, to] in &self.guides {
            let _ = write!(svg, "<path class=\"guide\" d=\"{}\"/>", place.path(&[from, to]));
        }
        for curve in &self.curves {
            curve.draw(svg, &place, self.has_names());
        }
        let _ = write!(svg, "</g>");
    }
}

impl Curve {
    fn draw(&self, svg: &mut String, place: &Place, has_names: bool) {
        let Style { colour, mark, dash } = self.style;
        let _ = write!(svg, "<g class=\"c{colour}\">");
        let line: Vec<(f64, f64)> = self.points.iter().map(|spot| (spot.x, spot.y)).collect();
        if self.is_joined && !has_names {
            let there = self.points.iter().map(|spot| (spot.x, spot.band.1));
            let back = self.points.iter().rev().map(|spot| (spot.x, spot.band.0));
            let band: Vec<(f64, f64)> = there.chain(back).collect();
            if self.points.iter().any(|spot| spot.band.0 < spot.band.1) {
                let _ = write!(svg, "<path class=\"band\" d=\"{}z\"/>", place.path(&band));
            }
            let _ = write!(svg, "<path class=\"line{}\" d=\"{}\"/>", dash.class(), place.path(&line));
        } else {
            for spot in self.points.iter().filter(|spot| spot.band.0 < spot.band.1) {
                let whisker = [(spot.x, spot.band.0), (spot.x, spot.band.1)];
                let _ = write!(svg, "<path class=\"whisker\" d=\"{}\"/>", place.path(&whisker));
            }
        }
        for &(x, y) in &line {
            let (x, y) = place.at(x, y);
            *svg += &mark.svg(x, y);
        }
        *svg += "</g>";
    }
}

/// Where a panel lies.
struct Place {
    x: Ruler,
    y: Ruler,
    left: f64,
    top: f64,
}

impl Place {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + self.x.at(x), self.top + PLOT_HEIGHT - self.y.at(y))
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let (x, y) = self.at(x, y);
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
        }
        path
    }

    fn draw_axes(&self, svg: &mut String, panel: &Panel) {
        let (left, top, bottom) = (self.left, self.top, self.top + PLOT_HEIGHT);
        for (place, text) in self.y.ticks() {
            let y = bottom - place;
            let _ = write!(svg, "<path class=\"grid\" d=\"M{left:.1} {y:.1}h{}\"/>", self.x.len);
            let x = left - 6.0;
            let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", y + 4.0);
        }
        let ticks = self.x.ticks();
        let is_crowded =
            ticks.iter().map(|(_, text)| text.chars().count() as f64 * LETTER + 8.0).sum::<f64>()
                > self.x.len;
        for (place, text) in ticks {
            let (x, y) = (left + place, bottom + 16.0);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{x:.1} {bottom:.1}v-{PLOT_HEIGHT}\"/>");
            let (text, turn) = (escape(&text), format!(" transform=\"rotate(-32 {x:.1} {y:.1})\""));
            let (anchor, turn) = if is_crowded { ("end", turn.as_str()) } else { ("middle", "") };
            let _ =
                write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{turn}>{text}</text>");
        }
        let middle = (left + self.x.len / 2.0, top + PLOT_HEIGHT / 2.0);
        let _ = write!(
            svg,
            "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{}\" height=\"{}\"/>\
             <text class=\"sub\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text text-anchor=\"middle\" transform=\"translate({:.1} {:.1}) rotate(-90)\">{}</text>",
            self.x.len,
            PLOT_HEIGHT,
            middle.0,
            top - 8.0,
            escape(&panel.title),
            middle.0,
            bottom + 35.0,
            escape(&panel.x.label),
            left - 60.0,
            middle.1,
            escape(&panel.y.label)
        );
    }
}

/// Numbers to pixels along one axis.
struct Ruler {
    kind: ScaleKind,
    /// The ends, as logarithms where factors are equal.
    ends: (f64, f64),
    len: f64,
}

impl Ruler {
    fn new(kind: &ScaleKind, values: impl Iterator<Item = f64>, len: f64) -> Self {
        let ends = match kind {
            ScaleKind::Linear(Some(ends)) => *ends,
            ScaleKind::Linear(None) => widened(values.filter(|value| value.is_finite()), 0.04, 1e-9),
            ScaleKind::Log | ScaleKind::Percent => {
                let logs = values.filter(|value| 0.0 < *value && value.is_finite()).map(f64::log10);
                widened(logs, 0.05, 0.7)
            }
            ScaleKind::Names(names) => (-0.5, names.len() as f64 - 0.5),
        };
        Self { kind: kind.clone(), ends, len }
    }

    fn is_log(&self) -> bool {
        matches!(self.kind, ScaleKind::Log | ScaleKind::Percent)
    }

    /// Outside values go to the edge.
    fn at(&self, value: f64) -> f64 {
        let (low, high) = self.ends;
        let value = if self.is_log() { value.max(f64::MIN_POSITIVE).log10() } else { value };
        ((value - low) / (high - low)).clamp(0.0, 1.0) * self.len
    }

    /// Places and texts.
    fn ticks(&self) -> Vec<(f64, String)> {
        if let ScaleKind::Names(names) = &self.kind {
            return names.iter().enumerate().map(|(i, name)| (self.at(i as f64), name.clone())).collect();
        }
        let values = if self.is_log() { log_ticks(self.ends) } else { linear_ticks(self.ends) };
        let text = |value: f64| match self.kind {
            ScaleKind::Percent => format!("{} %", short(value * 100.0)),
            _ => short(value),
        };
        values.into_iter().map(|value| (self.at(value), text(value))).collect()
    }
}

/// The ends of some values with a margin, and at least `least` apart.
fn widened(values: impl Iterator<Item = f64>, margin: f64, least: f64) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if high < low {
        return (0.0, 1.0);
    }
    let more = ((high - low) * margin).max((least - (high - low)) / 2.0);
    (low - more, high + more)
}

fn log_ticks((low, high): (f64, f64)) -> Vec<f64> {
    let steps: &[f64] = match high - low {
        span if span < 1.2 => &[1.0, 2.0, 3.0, 5.0],
        span if span < 1.7 => &[1.0, 2.0, 5.0],
        span if span < 2.4 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let every = if high - low < 7.0 { 1 } else { 2 };
    let decades = (low.floor() as i32..=high.ceil() as i32).filter(|decade| decade % every == 0);
    let values = decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
    values.filter(|value| (low..=high).contains(&value.log10())).collect()
}

fn linear_ticks((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / 5.5;
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| rough <= *step);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|index| index as f64 * step).collect()
}

/// A number in few letters: 0.02, 5, 300, 20k, 4M.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        large if 1e9 <= large => (value / 1e9, "G"),
        large if 1e6 <= large => (value / 1e6, "M"),
        large if 1e4 <= large => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = (2 - scaled.abs().max(1e-12).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { colour: 1, mark: Mark::Square, dash: Dash::Dashed };

    fn panel(kind: ScaleKind) -> Panel {
        let spot = |x: f64| Spot { x, y: x * x, band: (x * x * 0.9, x * x * 1.2) };
        Panel {
            title: "a < b".to_owned(),
            x: Scale { label: "x".to_owned(), kind: ScaleKind::Linear(None) },
            y: Scale { label: "y".to_owned(), kind },
            curves: vec![Curve {
                style: STYLE,
                points: [1.0, 2.0, 10.0].map(spot).to_vec(),
                is_joined: true,
            }],
            guides: Vec::new(),
        }
    }

    fn chart(panels: Vec<Panel>) -> Chart {
        let series = |name: &str| Series { name: name.to_owned(), style: STYLE };
        let legend = ["one", "two", "three", "four", "five", "six", "seven"].map(series).to_vec();
        Chart { title: "T".to_owned(), panels, columns: 2, legend }
    }

    #[test]
    fn every_tag_is_closed_and_texts_are_escaped() {
        let svg =
            chart(vec![panel(ScaleKind::Log), panel(ScaleKind::Percent), panel(ScaleKind::Linear(None))])
                .svg();
        for tag in ["svg", "g", "text", "style", "title"] {
            let opened = svg.matches(&format!("<{tag}>")).count() + svg.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(svg.contains("a &lt; b") && !svg.contains("a < b"));
        assert!(svg.contains("prefers-color-scheme:dark"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg.matches("class=\"frame\"").count(), 3);
        assert_eq!(svg.matches("class=\"band\"").count(), 3);
    }

    #[test]
    fn points_lie_where_their_scale_says() {
        let log = Ruler::new(&ScaleKind::Log, [1.0, 10.0, 100.0].into_iter(), 100.0);
        let place = |value| log.at(value);
        assert!((place(10.0) - 50.0).abs() < 1e-9 && place(1.0) < 5.0 && 95.0 < place(100.0));
        assert_eq!((place(0.0), place(1e9)), (0.0, 100.0));
        let score = Ruler::new(&ScaleKind::Linear(Some((0.0, 1.0))), [0.3].into_iter(), 10.0);
        assert_eq!(score.at(0.25), 2.5);
        let names = ScaleKind::Names(vec!["a".to_owned(), "b".to_owned()]);
        let names = Ruler::new(&names, std::iter::empty(), 10.0);
        assert_eq!(names.ticks(), [(2.5, "a".to_owned()), (7.5, "b".to_owned())]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(linear_ticks((0.0, 2.0)), [0.0, 0.5, 1.0, 1.5, 2.0]);
        for (ends, len) in [((0.0, 1.0), 6), ((0.0015, 0.013), 5), ((1.5, 15.5), 3), ((0.0, 1.03), 6)] {
            assert_eq!(linear_ticks(ends).len(), len, "{ends:?}");
        }
        assert_eq!(log_ticks((0.0, 3.0)), [1.0, 10.0, 100.0, 1000.0]);
        for ends in [(0.1, 0.9), (-3.0, 4.0), (2.0, 2.9), (-1.0, 7.7)] {
            assert!((2..=9).contains(&log_ticks(ends).len()), "{ends:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.02, "0.02"),
            (5.0, "5"),
            (300.0, "300"),
            (25_600.0, "25.6k"),
            (4e6, "4M"),
            (1.5, "1.5"),
            (0.0, "0"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn long_names_get_the_room_that_they_need() {
        let below = |len: usize| {
            let x = Scale { label: String::new(), kind: ScaleKind::Names(vec!["a".repeat(len)]) };
            Panel { x, ..panel(ScaleKind::Log) }.below()
        };
        assert_eq!((panel(ScaleKind::Log).below(), below(5)), (BELOW, BELOW_NAMES));
        // The end of a name of 128 pixels at 32 degrees lies 68 pixels down.
        assert!(68.0 + 16.0 <= below(20) && below(20) < 100.0);
    }

    #[test]
    fn one_point_and_no_point_can_be_drawn() {
        let mut one = panel(ScaleKind::Log);
        one.curves[0].points.truncate(1);
        let mut none = panel(ScaleKind::Log);
        none.curves.clear();
        let svg = chart(vec![one, none]).svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
