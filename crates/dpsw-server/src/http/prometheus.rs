//! The private top items of a stream as metrics, where the operator offers them: so that Grafana shows them.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use dpsw::WindowView;

use crate::http::ask::Effort;
use crate::http::caller::Asker;
use crate::http::lists::{Rows, read_count, top_of};
use crate::http::operate::PROMETHEUS;
use crate::http::params::{Name, Params, Scope};
use crate::http::problem::{Problem, RawReply};
use crate::metrics::Page;
use crate::wire::answer::{Answer, Row};
use crate::wire::item::ItemShape;
use crate::wire::problem::Code;

/// The most frequent items with their intervals, as Prometheus reads them.
///
/// Offered for streams that the settings name under `prometheus`.
#[utoipa::path(get, path = "/v1/streams/{stream}/prometheus", tag = "questions",
    params(("stream" = String, Path, description = "The stream"),
           ("count" = Option<usize>, Query, description = "How many items; 10 if nobody says", minimum = 1), Scope),
    responses((status = 200, description = "In the text format of Prometheus", content_type = "text/plain", body = String),
              Problem))]
pub(crate) async fn prometheus(asker: Asker, Name(stream): Name, mut params: Params) -> RawReply {
    let count = read_count(&asker.app, &mut params)?;
    let scope = Scope::read(&mut params)?;
    params.done()?;
    if !asker.app.prometheus.contains(&stream) {
        let detail = "the settings do not name this stream under prometheus";
        return Err(Problem::new(Code::NotOffered, detail));
    }
    let top = move |view: &WindowView| top_of(view, count, Rows::default());
    let answer = asker.ask(&stream, scope, Effort::of(count, false), top).await?;
    Ok(([(CONTENT_TYPE, PROMETHEUS)], page(&stream, &answer)).into_response())
}

/// The value of a metric in a row.
type Value = fn(&Row) -> Option<f64>;

fn page(stream: &str, answer: &Answer) -> String {
    let mut page = Page::default();
    let metrics: [(&str, &str, Value); 3] = [
        ("dpsw_item_estimate", "What an item probably counts in the window.", |row| Some(row.count.estimate)),
        ("dpsw_item_lower", "The lower end of its 95 % interval.", |row| row.count.lower),
        ("dpsw_item_upper", "The upper end of its 95 % interval.", |row| row.count.upper),
    ];
    for (name, help, value) in metrics {
        page.begin(name, "gauge", help);
        for row in &answer.items {
            let item = match &row.item {
                ItemShape::Integer(integer) => integer.to_string(),
                ItemShape::Text(text) => text.clone(),
            };
            let mut labels = vec![("stream", stream), ("item", &item)];
            labels.extend(row.item_base64.as_deref().map(|bytes| ("item_base64", bytes)));
            page.line(name, &labels, value(row).unwrap_or(f64::NAN));
        }
    }
    let name = "dpsw_window_end";
    page.begin(name, "gauge", "Where the covered part of the window ends, in items or milliseconds.");
    page.line(name, &[("stream", stream)], answer.about.covered.end);
    page.0
}
