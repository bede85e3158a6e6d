//! Every document that a command prints is described by its schema, to the last field.

use dpsw::{Batch, Clock, DpswSketch, Settings, TimeWindow, Unit, Window};
use jsonschema::Validator;
use serde_json::Value;

use crate::sandbox::{EXACT, Sandbox, json, records, text, timed};

/// The schema of a kind of document, as the program writes it.
pub(crate) fn schema(kind: &str) -> Validator {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["completions", "schema", "--out", "schemas"]).status.success());
    let text = std::fs::read_to_string(sandbox.path(&format!("schemas/{kind}.json"))).expect("a schema");
    let schema = serde_json::from_str(&text).expect("JSON");
    assert!(jsonschema::meta::is_valid(&schema), "{kind} is no schema of draft 2020-12");
    jsonschema::draft202012::new(&schema).expect("a schema")
}

#[track_caller]
pub(crate) fn check(schema: &Validator, document: &Value) {
    let errors: Vec<String> =
        schema.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?} in {document:#}");
}

/// A stream of items, and one with times and users.
fn streams() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(5000, |_, item| format!("{item}\n")));
    let record = |n: usize, item: &str| format!("{n},{},{item}\n", if n.is_multiple_of(2) { 0 } else { n });
    sandbox.write("t.csv", format!("t,u,k\n{}", records(5000, record)));
    sandbox.write("few.txt", "a\nb\n");
    sandbox.write("bytes.txt", b"\xff\xfe\n".repeat(3000));
    sandbox
}

#[test]
fn answers_are_as_their_schema_says() {
    let (sandbox, schema) = (streams(), schema("answer"));
    let found = ["top", "t.txt", "--window", "1000", "--epsilon", "1"];
    let listed = ["top", "t.txt", "--window", "1000", "--domain", "keys.txt", "--epsilon", "1"];
    let users = ["top", "t.csv", "--column", "k", "--user-column", "u", "--window", "1000"];
    let with = |fixed: &[&'static str], more: &[&'static str]| [fixed, more].concat();
    for arguments in [
        with(&found, &[]),
        with(&found, &["--all"]),
        with(&found, &["--save", "found.view"]),
        with(&listed, &["--threshold", "0.1"]),
        with(&listed, &["--strict", "--save", "listed.view"]),
        with(&listed, &["--retention", "2"]),
        with(&listed, &["--method", "paper"]),
        with(&users, &["--domain", "keys.txt", "--epsilon", "1"]),
        with(&timed("t.csv", "k", "t", "1000s"), &EXACT),
        with(&["top", "few.txt", "--window", "1000"], &["--epsilon", "1"]),
        with(&["top", "few.txt", "--window", "1000"], &["--epsilon", "1", "--save", "few.view"]),
        with(&["top", "bytes.txt", "--window", "1000"], &["--epsilon", "1"]),
        with(&["top", "--view", "found.view"], &[]),
        with(&["top", "--view", "listed.view"], &["--window", "500"]),
        with(&["top", "--view", "few.view"], &[]),
        with(&["count", "a", "never"], &["--window", "1000", "--epsilon", "1", "--", "t.txt"]),
        with(&["count", "a"], &["--view", "listed.view"]),
    ] {
        let (command, rest) = arguments.split_at(1);
        check(&schema, &json(&sandbox.run(&[command, &["--json"], rest].concat())));
        let lines = text(&sandbox.run(&[command, &["--ndjson"], rest].concat()));
        for line in lines.lines() {
            check(&schema, &serde_json::from_str(line).expect("a document per line"));
        }
    }
}

/// Columns are the fields of the document; only why there are no rows has no row to stand in.
#[test]
fn csv_has_every_field_of_the_document() {
    let sandbox = streams();
    let top = ["top", "bytes.txt", "--window", "1000", "--epsilon", "1", "--save", "t.view"];
    json(&sandbox.run(&[&top[..], &["--json"]].concat()));
    let answer = json(&sandbox.run(&["top", "--view", "t.view", "--json"]));
    let rows = text(&sandbox.run(&["top", "--view", "t.view", "--csv"]));
    let names: Vec<&str> = rows.lines().next().expect("a header").split(',').collect();
    let of_answer = leaves("", &answer, &["items", "why", "read"]);
    let of_row = leaves("", &answer["items"][0], &["any_order"]);
    let others = ["records", "skipped", "late", "early", "capped"].map(|name| format!("read_{name}"));
    let ends = ["any_order_lower", "any_order_upper", "capped", "position"].map(str::to_owned);
    let mut wanted = [of_answer, of_row, others.into(), ends.into()].concat();
    let mut got: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    wanted.retain(|name| name != "covered_unit");
    wanted.sort();
    got.sort();
    assert_eq!(got, wanted);
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let row = reader.records().next().expect("a row").expect("a record");
    let value = |name: &str| &row[names.iter().position(|column| *column == name).expect("a column")];
    assert_eq!(value("claim"), answer["claim"].as_str().expect("a claim"));
    assert_eq!(value("below_noise"), answer["below_noise"].to_string());
    assert_eq!((value("read_records"), value("item_base64")), ("", "//4="));
}

fn leaves(path: &str, value: &Value, without: &[&str]) -> Vec<String> {
    let Value::Object(fields) = value else { return vec![path.to_owned()] };
    let fields = fields.iter().filter(|(name, _)| !without.contains(&name.as_str()));
    let path_of = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}_{name}") };
    fields.flat_map(|(name, value)| leaves(&path_of(name), value, without)).collect()
}

#[test]
fn dropped_records_are_in_the_document_also_when_it_is_quiet() {
    let sandbox = Sandbox::new();
    // Every tenth record has no item, every other tenth is 30 seconds late.
    let record = |n: usize, item: &str| match n % 10 {
        8 => format!("{{\"t\":{n}}}\n"),
        9 => format!("{{\"t\":{},\"k\":\"{item}\"}}\n", n.max(30) - 30),
        _ => format!("{{\"t\":{n},\"k\":\"{item}\"}}\n"),
    };
    sandbox.write("t.ndjson", records(1000, record));
    let fixed = [&timed("t.ndjson", "/k", "/t", "100s")[..], &EXACT, &["--on-error", "skip"]].concat();
    let read = &json(&sandbox.run(&[&fixed[..], &["-q", "--json"]].concat()))["read"];
    assert_eq!((&read["records"], &read["skipped"]), (&1000.into(), &100.into()), "{read}");
    assert!(80 <= read["late"].as_u64().expect("a number"), "{read}");
    let rows = text(&sandbox.run(&[&fixed[..], &["-q", "--csv"]].concat()));
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let place = reader.headers().expect("names").iter().position(|name| name == "read_skipped");
    let row = reader.records().next().expect("a row").expect("a record");
    assert_eq!(&row[place.expect("a column")], "100");
}

/// A view under add/remove: how many events there are is private.
fn add_remove() -> Vec<u8> {
    let time = TimeWindow { len: 1000, lateness: 0, clock: Clock::Caller, expected_items: 1000 };
    let settings = Settings::new(Window::Time(time), 1.0).expect("settings");
    let settings = Settings { unit: Unit::AddRemove, ..settings }.with_keys(["a", "b"]);
    let mut sketch = DpswSketch::new(settings.plan().expect("a plan")).expect("a sketch");
    for now in 0..3000 {
        sketch.advance(now).expect("a clock");
        sketch.extend(Batch::text(&["a"]).at(&[now])).expect("taken");
    }
    sketch.view().to_bytes()
}

#[test]
fn where_presence_is_private_nothing_is_said_of_records() {
    let sandbox = Sandbox::new();
    sandbox.write("t.view", add_remove());
    let answer = json(&sandbox.run(&["top", "--view", "t.view", "--json"]));
    check(&schema("answer"), &answer);
    assert_eq!((&answer["unit"], &answer["read"]), (&"add-remove".into(), &Value::Null), "{answer}");
}

#[test]
fn plans_views_audits_and_the_demo_are_as_their_schemas_say() {
    let sandbox = streams();
    let plan = schema("plan");
    let fixed = ["plan", "--epsilon", "1", "--json"];
    for more in [
        &["--window", "1000000", "--keys", "25000"][..],
        &["--window", "1000000"],
        &["--window", "1000000", "--keys", "25000", "--method", "paper"],
        &["--window", "15m", "--keys", "100", "--unit", "users", "--per-user", "2", "--delta", "1e-8"],
        &["--window", "15m", "--keys", "100", "--unit", "add-remove"],
    ] {
        check(&plan, &json(&sandbox.run(&[&fixed[..], more].concat())));
    }
    let dry = ["top", "t.txt", "--window", "1000", "--epsilon", "1", "--dry-run", "--json"];
    for more in [&[][..], &["--save", "t.view"]] {
        let document = json(&sandbox.run(&[&dry[..], more].concat()));
        check(&schema("dry-run"), &document);
        check(&plan, &document["plan"]);
    }
    let inspect = schema("inspect");
    let top = ["top", "t.txt", "--window", "1000", "--epsilon", "1", "--quiet", "--save", "t.view"];
    for more in [&[][..], &["--domain", "keys.txt"]] {
        assert!(sandbox.run(&[&top[..], more].concat()).status.success());
        let document = json(&sandbox.run(&["inspect", "t.view", "--json"]));
        check(&inspect, &document);
        check(&plan, &document["plan"]);
    }
    let audit = ["audit", "--epsilon", "1", "--runs", "2000", "--seals", "36000", "--json"];
    check(&schema("audit"), &serde_json::from_str(&text(&sandbox.run(&audit))).expect("a document"));
    check(&schema("demo"), &json(&sandbox.run(&["demo", "--json"])));
}

#[test]
fn the_schema_of_answers_is_printed() {
    let printed: Value = json(&Sandbox::new().run(&["completions", "schema"]));
    assert_eq!(printed["$id"], "urn:dpsw:answer");
}
