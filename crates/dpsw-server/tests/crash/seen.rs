//! Everything that was ever seen of a stream, which is never seen otherwise.

use std::collections::BTreeMap;

use dpsw::WindowView;

/// What was seen of a stream.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The counters of each sealed range of each substream.
    ranges: BTreeMap<(u64, usize), Vec<i32>>,
    /// The view at each position or time, as bytes: answers, found keys and all.
    views: BTreeMap<(u64, usize), Vec<u8>>,
    /// How often it was looked at.
    pub(crate) looks: u64,
}

/// Of so many views the bytes are kept: those that a restart can show again.
const VIEWS_MAX: usize = 16;

impl Seen {
    /// Holds that a view, as it was downloaded, shows what was seen before, byte for byte, and all of it that is kept.
    #[track_caller]
    pub(crate) fn look(&mut self, stream: &str, bytes: &[u8]) -> WindowView {
        let view = WindowView::from_bytes(bytes).expect("a view");
        let mut oldest = None;
        for sealed in view.sealed() {
            let place = (sealed.substream(), sealed.range());
            let cells = sealed.sketch().cells();
            oldest = oldest.or(Some(sealed.substream()));
            let first = self.ranges.entry(place).or_insert_with(|| cells.clone());
            assert_eq!(
                *first, cells,
                "{stream}: substream {}, range {}, was seen otherwise",
                place.0, place.1
            );
        }
        let kept = oldest.map_or(0, |oldest| self.ranges.range((oldest, 0)..).count());
        assert_eq!(kept, view.sealed().count(), "{stream}: something that was seen is gone");
        self.compare(stream, &view, bytes);
        self.looks += 1;
        view
    }

    /// Where nothing came between two views, they are the same.
    #[track_caller]
    fn compare(&mut self, stream: &str, view: &WindowView, bytes: &[u8]) {
        let place = (view.window().end, self.ranges.len());
        let first = self.views.entry(place).or_insert_with(|| bytes.to_vec());
        assert!(first == bytes, "{stream}: the view as of {} was seen otherwise", place.0);
        while VIEWS_MAX < self.views.len() {
            self.views.pop_first();
        }
    }

    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }
}
