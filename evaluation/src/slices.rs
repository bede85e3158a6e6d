//! A picture of levels: time from left to right, keys from top to bottom, and each key's slices as boxes.

use std::fmt::Write;

use anyhow::Result;
use dpsw::plan::{CounterLayout, TunedMethod};
use dpsw::{Batch, DpswSketch, Noise, Plan, Settings, WindowView};

use crate::chart::{escape, style_sheet};
use crate::dataset::Synthetic;

const WINDOW: u64 = 100_000;
const SUBSTREAMS: u64 = 6;
const ITEMS: usize = 243_000;
const KEYS: usize = 2_000;
/// The ranks of the keys that are shown.
const RANKS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 256, 1024];

const LEFT: f64 = 150.0;
const WIDTH: f64 = 600.0;
const TOP: f64 = 74.0;
const LINE: f64 = 26.0;
const BOX: f64 = 18.0;

/// The document: a stream that drifts, whose ranks are swapped now and then.
pub fn svg() -> Result<String> {
    let stream = Synthetic::Swap.generate_over(KEYS, ITEMS, WINDOW, 1);
    let method = TunedMethod {
        substreams: SUBSTREAMS,
        counters: CounterLayout::Identity,
        levels: 5,
        ..TunedMethod::default()
    };
    let settings = Settings::last_items(WINDOW, 1.0)?.with_keys(0..KEYS as u64).with_method(method);
    let mut sketch = DpswSketch::with_noise(Plan::new(settings)?, Noise::seeded(1))?;
    sketch.extend(Batch::integers(&stream.items))?;
    let mut counts = vec![0_u64; KEYS];
    stream.items[ITEMS - WINDOW as usize..].iter().for_each(|&item| counts[item as usize] += 1);
    let mut ranked: Vec<usize> = (0..KEYS).collect();
    ranked.sort_unstable_by_key(|&key| std::cmp::Reverse(counts[key]));
    let rows: Vec<(usize, usize, u64)> =
        RANKS.map(|rank| (rank, ranked[rank - 1], counts[ranked[rank - 1]])).to_vec();
    Ok(draw(&sketch.view(), &rows))
}

/// Where a position lies in the picture.
fn x(view: &WindowView, position: u64) -> f64 {
    let window = view.window();
    LEFT + WIDTH * (position.saturating_sub(window.start)) as f64 / (window.end - window.start) as f64
}

fn draw(view: &WindowView, rows: &[(usize, usize, u64)]) -> String {
    let (width, bottom) = (LEFT + WIDTH + 30.0, TOP + rows.len() as f64 * LINE);
    let height = bottom + 46.0;
    let title = "Each key has slices of its own";
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" class=\"chart\"><title>{0}</title><style>{1}</style>\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/><text class=\"head\" x=\"10\" y=\"26\">{0}</text>\
         <text x=\"10\" y=\"48\">A box is one noisy counter: what a key counted while it was open. Darker: a larger share of the key's items.</text>",
        escape(title),
        style_sheet()
    );
    let len = view.plan().substream_len();
    let window = view.window();
    for start in (window.start.next_multiple_of(len)..=window.end).step_by(len as usize) {
        let x = x(view, start);
        let _ = write!(svg, "<path class=\"guide\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>", TOP - 8.0);
    }
    for (line, &(rank, key, count)) in rows.iter().enumerate() {
        let y = TOP + line as f64 * LINE;
        let _ = write!(svg, "<text x=\"10\" y=\"{:.1}\">rank {rank}: {count} items</text>", y + BOX - 5.0);
        boxes(&mut svg, view, key as u64, y);
    }
    let _ = write!(
        svg,
        "<text x=\"{LEFT}\" y=\"{0:.1}\">{1} items ago</text><text x=\"{2:.1}\" y=\"{0:.1}\" text-anchor=\"end\">now</text>\
         <text x=\"{LEFT}\" y=\"{3:.1}\">Dotted lines: substreams. Empty at the right: not sealed yet, predicted from the boxes before it.</text></svg>",
        bottom + 16.0,
        window.end - window.start,
        LEFT + WIDTH,
        bottom + 36.0
    );
    svg + "\n"
}

/// The sealed slices of a key that reach into the window.
fn boxes(svg: &mut String, view: &WindowView, key: u64, y: f64) {
    let window = view.window();
    let mut slices = Vec::new();
    for sealed in view.sealed() {
        let origin = sealed.substream() * view.plan().substream_len();
        let offsets = view.plan().ranges()[sealed.range()].offsets();
        let span = (origin + offsets.start).max(window.start)..origin + offsets.end;
        let count = sealed.cells(key).first().map(|&cell| f64::from(sealed.sketch().cell(cell)));
        if let Some(count) = count.filter(|_| !span.is_empty()) {
            slices.push((span, count / (offsets.end - offsets.start) as f64));
        }
    }
    let most = slices.iter().map(|(_, rate)| *rate).fold(f64::MIN_POSITIVE, f64::max);
    for (span, rate) in slices {
        let (start, end) = (x(view, span.start), x(view, span.end));
        let shade = 0.08 + 0.72 * (rate / most).clamp(0.0, 1.0);
        let _ = write!(
            svg,
            "<rect class=\"c0\" x=\"{start:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BOX}\" fill-opacity=\"{shade:.2}\" stroke-width=\".6\"/>",
            end - start
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frequent keys are cut more finely than rare ones, and what is drawn covers the window.
    #[test]
    fn frequent_keys_have_more_boxes_than_rare_ones() {
        let svg = svg().expect("a picture");
        let y = |line: usize| format!("y=\"{:.1}\" width", TOP + line as f64 * LINE);
        let boxes = |line: usize| svg.matches(&y(line)).count();
        assert!(40 < boxes(0) && boxes(RANKS.len() - 1) <= SUBSTREAMS as usize + 1);
        assert!((0..RANKS.len()).all(|line| SUBSTREAMS as usize <= boxes(line)));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
