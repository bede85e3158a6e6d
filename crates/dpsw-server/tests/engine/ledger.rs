//! The ledger of a source: charges before a stream starts, refuses what does not fit, and outlives streams and crashes.

use dpsw_server::{ChangeError, Engine};

use crate::support::{Rig, frequency, id, pages, sealed_span, send, source_config, stream_config, view};

const SOURCE: &str =
    "name = 'web'\nprotects = 'event'\nepsilon = 2.0\ndelta = 1e-9\ncolumns = { page = 'text' }";

fn stream(name: &str, epsilon: f64) -> String {
    format!(
        "name = '{name}'\nitem = 'page'\nwindow = 10_000\nepsilon = {epsilon}\nkeys = {{ list = ['a', 'b'] }}"
    )
}

fn add(engine: &Engine, name: &str, epsilon: f64) -> Result<(), ChangeError> {
    engine.create_stream("web", stream_config(&stream(name, epsilon)))
}

#[test]
fn what_does_not_fit_is_refused_before_it_starts() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[&stream("one", 1.25)]);
    let error = add(&engine, "two", 1.0).expect_err("over budget");
    assert!(matches!(error, ChangeError::OverBudget(_)), "{error}");
    assert!(error.to_string().contains("epsilon = 2.25"), "{error}");
    assert!(engine.view("two").is_err(), "it never started");
    assert_eq!(engine.source("web").expect("a source").ledger.charges.len(), 1, "and was not charged");
    add(&engine, "two", 0.75).expect("it fits");
    let ledger = engine.source("web").expect("a source").ledger;
    assert_eq!((ledger.spent, ledger.budget.to_string().as_str()), ((2.0, 0.0), "epsilon = 2, delta = 1e-9"));
    let contract = engine.contract("two").expect("a stream");
    assert!(contract.sentence.contains("epsilon = 0.75, delta = 0"), "{}", contract.sentence);
    assert_eq!(contract.ledger, Some(ledger));
}

#[test]
fn charges_outlive_their_streams_and_a_crash() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[&stream("one", 2.0)]);
    send(&engine, None, pages(["a"]));
    engine.delete_stream("one").expect("a stream");
    drop(engine);
    let engine = rig.open();
    assert!(engine.view("one").is_err());
    let charges = engine.source("web").expect("a source").ledger.charges;
    assert_eq!((charges[0].stream.as_str(), charges[0].until_ms.is_some()), ("one", true));
    // Its events are none of those to come.
    add(&engine, "one", 2.0).expect("it fits");
    send(&engine, None, pages(["a"]));
    assert!(add(&engine, "two", 0.1).is_err());
    engine.delete_stream("one").expect("a stream");
    let ledger = engine.source("web").expect("a source").ledger;
    assert_eq!((ledger.spent, ledger.charges.len()), ((2.0, 0.0), 2));
}

#[test]
fn what_users_lose_adds_up_also_over_streams_that_are_gone() {
    let rig = Rig::new();
    let source = "name = 'web'\nprotects = 'users'\nitems_per_user = 1\nuser_column = 'user'\nepsilon = 2.0
        columns = { page = 'text' }";
    let engine = rig.with(source, &[&stream("one", 1.5)]);
    engine.delete_stream("one").expect("a stream");
    assert!(matches!(add(&engine, "two", 1.0), Err(ChangeError::OverBudget(_))));
    add(&engine, "two", 0.5).expect("it fits");
}

#[test]
fn a_source_has_one_name_and_one_ledger_for_ever() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[&stream("one", 1.0)]);
    let error = engine.delete_source("web").expect_err("it has a stream").to_string();
    assert_eq!(error, "source \"web\" has streams: one; delete them first");
    engine.delete_stream("one").expect("a stream");
    engine.delete_source("web").expect("it is empty");
    assert!(engine.source("web").is_err() && engine.ingest("web", None, pages(["a"])).is_err());
    let refused = |engine: &Engine| {
        matches!(engine.create_source(source_config(SOURCE)), Err(ChangeError::Exists { .. }))
    };
    assert!(refused(&engine), "its budget was spent");
    drop(engine);
    assert!(refused(&rig.open()));
}

#[test]
fn a_settings_file_is_applied_once_and_never_changes_what_is_there() {
    let rig = Rig::new();
    let file = |epsilon: f64, window: u64| {
        let stream = stream("one", epsilon).replace("10_000", &window.to_string());
        source_config(&format!("{SOURCE}\n[[stream]]\n{stream}"))
    };
    let engine = rig.open();
    assert_eq!(engine.ensure(&file(1.0, 10_000)).len(), 0, "a source and a stream");
    drop(engine);
    let engine = rig.open();
    assert_eq!(engine.ensure(&file(1.0, 10_000)).len(), 0, "nothing new");
    assert_eq!(engine.source("web").expect("a source").ledger.charges.len(), 1);
    for changed in [file(0.5, 10_000), file(1.0, 20_000)] {
        let [(name, ChangeError::Differs { what: "stream" })] = &engine.ensure(&changed)[..] else {
            panic!()
        };
        assert_eq!(name, "stream \"one\"");
    }
    let changed = dpsw_server::SourceConfig { epsilon: 3.0, ..file(1.0, 10_000) };
    assert!(matches!(engine.ensure(&changed)[..], [(_, ChangeError::Differs { what: "source" })]));
    assert_eq!(engine.source("web").expect("a source").ledger.charges.len(), 1);
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_what_to_do() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[]);
    for (stream, wanted) in [
        (
            "name = 'x'\nitem = 'page'\nwindow = '1h'\nepsilon = 1",
            "say about how many items it holds with expected",
        ),
        ("name = 'x'\nitem = 'path'\nwindow = 100\nepsilon = 1", "the source has page"),
        (
            "name = 'x'\nitem = 'page'\nwindow = 100\nexpected = 5\nepsilon = 1",
            "leave out expected and lateness",
        ),
        (
            "name = 'x/y'\nitem = 'page'\nwindow = 100\nepsilon = 1",
            "begins with a letter or digit; got \"x/y\"",
        ),
        (
            "name = 'x'\nitem = 'page'\nwindow = 100\nepsilon = 0",
            "epsilon must lie between 1e-6 and 1e6, got 0",
        ),
        (
            "name = 'x'\nitem = 'page'\nwindow = 100\nepsilon = 1\nkeys = { below = 5 }",
            "but its column has bytes or text",
        ),
        ("name = 'x'\nitem = 'page'\nwindow = 5\nepsilon = 0.001\nkeys = { list = ['a'] }", "raise epsilon"),
    ] {
        let error = engine.create_stream("web", stream_config(stream)).expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    for (source, wanted) in [
        ("name = 'x'\nprotects = 'users'\nepsilon = 1\ncolumns = { page = 'text' }", "with user_column"),
        ("name = 'x'\nprotects = 'event'\nepsilon = 1\ncolumns = {}", "name at least one"),
        (
            "name = 'x'\nprotects = 'presence'\ntime_column = 't'\nepsilon = 1\ncolumns = { page = 'text' }",
            "leave out time_column",
        ),
    ] {
        let error = engine.create_source(source_config(source)).expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let error = toml::from_str::<dpsw_server::StreamConfig>(
        "name = 'x'\nitem = 'p'\nwindow = 5\nepsilon = 1\nwindows = 6",
    );
    assert!(error.expect_err("a field too many").to_string().contains("unknown field `windows`"));
    assert!(engine.streams().is_empty());
}

/// Half of each batch is one item. What came before the change is in no window of the new settings, and what comes after it in
/// none of the old ones, also after a crash.
#[test]
fn a_stream_with_other_settings_begins_anew_and_no_event_is_charged_twice() {
    let rig = Rig::new();
    let exact = |window: u64| {
        format!(
            "name = 'one'\nitem = 'page'\nwindow = {window}\nepsilon = 100_000.0\nkeys = {{ list = ['a', 'b'] }}"
        )
    };
    let source = SOURCE.replace("2.0", "100_000.0");
    let mut engine = rig.with(&source, &[&exact(1000)]);
    let batch = |key| pages(["a", key].repeat(500));
    for number in 0..3 {
        send(&engine, id(number), batch("b"));
    }
    let old = view(&engine, "one");
    assert_eq!(frequency(&old, "b", sealed_span(&old, 2)), sealed_span(&old, 2).count() as f64 / 2.0);
    engine.replace_stream(stream_config(&exact(4000))).expect("the same budget again");
    assert_eq!(view(&engine, "one").sealed_until, 0);
    for number in 3..7 {
        send(&engine, id(number), batch("a"));
    }
    for _ in 0..2 {
        let new = view(&engine, "one");
        assert!(4000 - new.view.plan().substream_len() < new.sealed_until, "{}", new.sealed_until);
        let span = 0..sealed_span(&new, 1).end;
        assert_eq!(
            (frequency(&new, "a", span.clone()), frequency(&new, "b", span.clone())),
            (span.end as f64, 0.0)
        );
        let ledger = engine.source("web").expect("a source").ledger;
        assert_eq!((ledger.spent.0, ledger.charges.len()), (100_000.0, 2));
        assert_eq!(ledger.charges.iter().filter(|charge| charge.until_ms.is_none()).count(), 1);
        drop(engine);
        engine = rig.open();
    }
}

#[test]
fn a_stream_that_cannot_have_other_settings_goes_on_as_it_was() {
    let rig = Rig::new();
    let source = SOURCE.replace("page = 'text'", "page = 'text', other = 'text'");
    let engine = rig.with(&source, &[&stream("one", 1.0), &stream("two", 0.5)]);
    let config = || engine.stream("one").expect("a stream").counted.expect("it is counted here").config;
    let before = config();
    let replaced = |change: &dyn Fn(String) -> String| {
        engine.replace_stream(stream_config(&change(stream("one", 1.0)))).expect_err("refused").to_string()
    };
    for (change, reason) in [
        (
            &(|text: String| text.replace("epsilon = 1", "epsilon = 1.6")) as &dyn Fn(String) -> String,
            "epsilon = 2.1",
        ),
        (
            &|text: String| text.replace("'page'", "'other'"),
            "keeps its column \"page\" and its keys, which are listed",
        ),
        (&|text: String| text.replace("{ list = ['a', 'b'] }", "'found'"), "make another stream"),
        (&|text: String| text.replace("'one'", "'three'"), "there is no stream \"three\""),
    ] {
        let error = replaced(change);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(config(), before);
    assert_eq!(engine.source("web").expect("a source").ledger.charges.len(), 2);
    engine.replace_stream(stream_config(&stream("one", 1.5))).expect("it fits beside the other one");
}
