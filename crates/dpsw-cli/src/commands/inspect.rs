//! `dpsw inspect`: what a saved view holds and promises.

use std::collections::BTreeSet;

use anyhow::Result;
use dpsw::WindowView;
use dpsw_frontend::quantity::{grouped, size};
use serde::Serialize;

use crate::args::Inspect;
use crate::commands::plan::PlanDocument;
use crate::read::view_file;
use crate::show::answer::{self, Positions};
use crate::show::harmless;
use crate::show::output;
use crate::show::words;

/// A view in the words of the outside.
#[derive(Debug, Serialize)]
struct Document {
    file: String,
    bytes: u64,
    /// `null` if nothing is promised.
    epsilon: Option<f64>,
    delta: Option<f64>,
    window: Positions,
    covered: Positions,
    retained: Positions,
    /// Where the stream is over, if it was finished.
    finished: Option<u64>,
    sites: Vec<u64>,
    sealed_substreams: usize,
    keys: Option<usize>,
    found: Option<Found>,
    plan: PlanDocument,
}

/// Keys that were found in the stream. They are released, so they may be shown.
#[derive(Debug, Serialize)]
struct Found {
    keys: usize,
    /// The most frequent of them.
    first: Vec<String>,
}

/// How many found keys are named.
const NAMED: usize = 20;
/// How many columns of a name are shown.
const NAME_LEN: usize = 48;

impl Found {
    fn new(view: &WindowView) -> Result<Option<Self>> {
        if view.plan().search_plan().is_none() {
            return Ok(None);
        }
        let named = view.top(NAMED)?;
        let first = named.all().map(|ranked| ranked.item.to_string()).collect();
        Ok(Some(Self { keys: view.keys()?.len(), first }))
    }
}

/// Runs `dpsw inspect`.
pub(crate) fn run(command: &Inspect) -> Result<()> {
    let view = view_file::load(&command.view)?;
    let bytes = std::fs::metadata(&command.view)?.len();
    let document = document(&view, command.view.display().to_string(), bytes)?;
    if command.json { output::print_json(&document) } else { output::print(&page(&document, &view)) }
}

fn document(view: &WindowView, file: String, bytes: u64) -> Result<Document> {
    let positions = |range| Positions::of(view, &range);
    let (epsilon, delta) = answer::promised(view.claim());
    Ok(Document {
        file,
        bytes,
        epsilon,
        delta,
        window: positions(view.window()),
        covered: positions(view.covered()),
        retained: positions(view.retained()),
        finished: view.finished().map(|end| positions(end..end).end),
        sites: view.sites().to_vec(),
        sealed_substreams: sealed_substreams(view),
        keys: view.plan().settings().domain.keys().map(dpsw::Keys::len),
        found: Found::new(view)?,
        plan: PlanDocument::new(view.plan(), None),
    })
}

/// Each one once, also where several sites have sealed it.
fn sealed_substreams(view: &WindowView) -> usize {
    let whole = view.sealed().filter(|sealed| sealed.range() == 0);
    whole.map(|sealed| sealed.substream()).collect::<BTreeSet<u64>>().len()
}

fn page(document: &Document, view: &WindowView) -> String {
    let sealed = words::count(document.sealed_substreams as u64, "substream");
    let sites = match document.sites.len() {
        1 => String::new(),
        sites => format!(" of {sites} sites"),
    };
    let mut lines = vec![
        format!("view       {}, {}", document.file, size(document.bytes)),
        format!("about      {}", range(&document.window)),
        format!("sealed     {}, in {sealed}{sites}", range(&document.covered)),
        format!("kept       {}: a shorter --window can be asked inside", range(&document.retained)),
    ];
    if document.finished.is_some() {
        lines.push("over       the stream was read to its end".to_owned());
    }
    lines.push(format!("keys       {}", keys(document)));
    if document.epsilon.is_none() {
        lines.push(format!("claim      {}: nothing is promised", view.claim()));
    }
    let lines: Vec<String> = lines.iter().map(|line| words::hanging(line)).collect();
    format!("{}\n\nIt was made by this plan:\n{}\n", lines.join("\n"), words::plan(view.plan()))
}

fn range(positions: &Positions) -> String {
    if positions.is_time() {
        words::span(positions.start, positions.end)
    } else {
        format!("items {} to {}", grouped(positions.start as f64), grouped(positions.end as f64))
    }
}

/// Which keys are listed.
fn keys(document: &Document) -> String {
    match (document.keys, &document.found) {
        (Some(public), _) => format!("{} in the public list", grouped(public as f64)),
        (None, None) => "no list: items are asked for by name".to_owned(),
        (None, Some(Found { keys: 0, .. })) => "none found yet".to_owned(),
        (None, Some(Found { keys, first })) => {
            let names: Vec<String> = first.iter().map(|name| harmless::fitted(name, NAME_LEN)).collect();
            let more = if names.len() < *keys { ", ..." } else { "" };
            format!("{} found in the stream: {}{more}", grouped(*keys as f64), names.join(", "))
        }
    }
}
