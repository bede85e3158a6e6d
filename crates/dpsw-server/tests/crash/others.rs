//! Others who use the service while something breaks: what they were told is durable must be counted, once.

use std::time::{Duration, Instant};

use dpsw::WindowView;

use crate::bodies::{Body, KINDS};
use crate::client::{Client, Reply, Request};

/// Their source, with a stream whose every draw of noise is zero: the chance of another one is below e^-10000.
pub(crate) const SOURCE: &str = "
[[source]]
name = 'others'
protects = 'event'
epsilon = 1e6
columns = { page = 'text' }
[[source.stream]]
name = 'counted'
item = 'page'
window = 100_000
epsilon = 100_000.0
keys = { list = ['a', 'b'] }
";
/// How long they wait for what should come soon, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// What they know.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// Batches of one event that were acknowledged.
    pub(crate) acknowledged: u64,
    /// Batches that were refused for now.
    pub(crate) refused: u64,
    /// Whether nobody knows what became of the batch that was sent last.
    is_unknown: bool,
}

impl Others {
    /// Sends one event, which is taken or refused for now.
    pub(crate) fn send(&mut self, client: &mut Client) {
        let body = Body::new(self.acknowledged % KINDS, &[Some("a")]);
        let reply = send(client, &self.next_id(), &body).expect("it runs");
        let may_be_known = self.is_unknown && reply.status == 200;
        assert!(may_be_known || matches!(reply.status, 202 | 500 | 503), "{} {}", reply.head, reply.text());
        let is_taken = reply.status < 500;
        self.is_unknown = !is_taken && (self.is_unknown || reply.status == 500);
        self.acknowledged += u64::from(is_taken);
        self.refused += u64::from(!is_taken);
    }

    /// Sends one event again and again until it is taken, with a new connection each time, which may be sent away unheard.
    pub(crate) fn insist(&mut self, connect: impl Fn() -> Client) {
        let (id, body) = (self.next_id(), Body::new(self.acknowledged % KINDS, &[Some("a")]));
        until(|| {
            let status = send(&mut connect(), &id, &body).map_or(503, |reply| reply.status);
            // One whose reply was lost may have been taken.
            assert!(matches!(status, 200 | 202 | 500 | 503), "{status}");
            self.refused += u64::from(500 <= status);
            (status < 500).then_some(())
        });
        self.acknowledged += 1;
        self.is_unknown = false;
    }

    /// A sender for each batch: what is known of them is all that makes a database grow.
    fn next_id(&self) -> String {
        format!("others-{}/1", self.acknowledged)
    }

    /// Fills up the last substream, and holds what is counted against what was acknowledged.
    pub(crate) fn check(&self, connect: impl Fn() -> Client) {
        let len = view(&connect).plan().substream_len();
        let events = (self.acknowledged + len).next_multiple_of(len);
        let rest = Body::new(0, &vec![Some("b"); (events - self.acknowledged) as usize]);
        until(|| {
            send(&mut connect(), "rest/1", &rest).ok().filter(|reply| matches!(reply.status, 200 | 202))
        });
        let view = until(|| Some(view(&connect)).filter(|view| events <= view.covered().end));
        assert_eq!(view.window().end, events, "{self:?}");
        let shown = view.last(events).and_then(|all| all.frequency("a")).expect("all is kept");
        assert_eq!(shown.value, self.acknowledged as f64, "{self:?}");
    }
}

/// What comes sooner or later.
#[track_caller]
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(there) = ask() {
            return there;
        }
        assert!(Instant::now() < end, "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(client: &mut Client, id: &str, body: &Body) -> std::io::Result<Reply> {
    let path = "/v1/sources/others/events";
    let request = Request { method: "POST", path, headers: &body.headers(id), body: &body.bytes };
    client.ask(request)
}

fn view(connect: impl Fn() -> Client) -> WindowView {
    let ask = || connect().ask(Request::get("/v1/streams/counted/view")).ok();
    let reply = until(|| ask().filter(|reply| reply.status == 200));
    WindowView::from_bytes(&reply.body).expect("a view")
}
