//! A plan in words.

use std::fmt;
use std::ops::Range;

use crate::plan::checkpoint::Role;
use crate::plan::discovery::PlannedDiscovery;
use crate::plan::paper_bounds::PaperBounds;
use crate::plan::release::Release;
use crate::plan::settings::Unit;
use crate::plan::structure::Plan;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings();
        let name = self.method().name();
        writeln!(
            f,
            "method     {name}, {}",
            if self.is_identity() { "identity counters" } else { "hashed counters" }
        )?;
        let unit = if settings.window.time().is_some() { "ticks" } else { "items" };
        writeln!(
            f,
            "window     {} {unit}, kept for {} window(s)",
            settings.window.len(),
            settings.retention
        )?;
        writeln!(f, "substreams {} {unit} each, {} kept", self.substream_len(), self.substreams_kept())?;
        writeln!(f, "sketch     {} x {} counters", self.shape().rows, self.shape().columns)?;
        if let (Unit::Users { per_substream }, Some(room)) = (settings.unit, self.user_room()) {
            writeln!(
                f,
                "users      {per_substream} item(s) of each count per substream, of the first {room} users to send in it"
            )?;
        }
        for range in self.ranges().iter().filter(|range| range.role() != Role::Node) {
            let Range { start, end } = range.offsets();
            writeln!(f, "  {:<8} [{start}, {end})  {}", format!("{:?}", range.role()), range.law())?;
        }
        if 0 < self.tracked() {
            writeln!(
                f,
                "tracked    up to {} frequent keys have counters of their own, {}",
                self.tracked(),
                self.own_law()
            )?;
        }
        if 1 < self.rungs().count() {
            let nodes = 1 << (self.rungs().count() - 1);
            let first = self.rungs().first();
            writeln!(
                f,
                "rungs      keys above {first:.0} items are cut more finely, into up to {nodes} nodes"
            )?;
        }
        writeln!(f, "bytes      {} in sketches, {} resident", self.sketch_bytes(), self.resident_bytes())?;
        let (epsilon, delta) = self.ledger().spent();
        let one = if settings.unit.per_substream().is_some() { "a user's window" } else { "one event" };
        writeln!(f, "ledger     {one} costs epsilon {epsilon:.6}, delta {delta:e}; budget {}", self.claim())?;
        if let Some(bounds) = self.paper_bounds() {
            let PaperBounds { sketch, sketch_failure, frequency, frequency_failure, main } = bounds;
            writeln!(
                f,
                "bounds     a whole sketch errs by at most {sketch:.0} (but for probability {sketch_failure:.3})"
            )?;
            writeln!(f, "           a frequency by at most {frequency:.0} (but for {frequency_failure:.3})")?;
            if let Some(main) = main {
                writeln!(f, "           main theorem, up to a constant: {main:.0}")?;
            }
        }
        if let Some(discovery) = self.discovery() {
            self.write_keys(discovery, f)?;
        }
        write!(f, "contract   {}", self.contract())
    }
}

/// Shares of the items for which a plan says how soon a key is listed.
const SHARES: [f64; 4] = [0.6, 0.1, 0.03, 0.01];

impl Plan {
    fn write_keys(&self, discovery: &PlannedDiscovery, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (checks, search_len) = (discovery.checks(), discovery.search_len());
        let Release { lasting, fresh, threshold, .. } = discovery.release();
        writeln!(
            f,
            "keys       counted over {search_len} substreams, looked at {checks} time(s), with {:.3} of epsilon",
            discovery.share()
        )?;
        writeln!(
            f,
            "           noise of scale {lasting:.2} for each, {fresh:.2} each time; listed from {threshold} on; {} bytes at most",
            self.search_bytes()
        )?;
        writeln!(
            f,
            "           {:.4} % of {search_len} substreams is found with 99 %",
            100.0 * discovery.share_found(0.99)
        )?;
        for share in SHARES {
            let until = |probability| match discovery.items_until_listed(share, probability) {
                Some(items) => format!("{items:.0}"),
                None => "never".to_owned(),
            };
            writeln!(
                f,
                "           a key that comes up and takes {} % is listed after {} items with 50 %, {} with 99 %",
                100.0 * share,
                until(0.5),
                until(0.99)
            )?;
        }
        Ok(())
    }

    /// What is promised, in one sentence.
    #[must_use]
    pub fn contract(&self) -> String {
        let claim = self.claim();
        match self.settings().unit {
            Unit::ReplaceOne => {
                format!("everything released, forever, together: {claim} for one event replaced by another")
            }
            Unit::AddRemove => {
                format!("everything released, forever, together: {claim} for one event added or removed")
            }
            Unit::Users { per_substream } => format!(
                "everything released, together: {claim} for all items of one user inside any one window, of which \
                {per_substream} per substream count; who sends when is public, and what a user loses adds up over \
                windows: epsilon n-fold over n of them, delta faster"
            ),
        }
    }
}
