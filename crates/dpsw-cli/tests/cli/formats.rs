//! Every format gives the same answer for the same records.

use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, Int64Array, RecordBatch, StringArray};

use crate::sandbox::{EXACT, Sandbox, check_shares, fails, json, records, timed};

const SHARES: [f64; 3] = [0.5, 0.3, 0.2];

#[test]
fn lines_in_every_dress_count_alike() {
    let sandbox = Sandbox::new();
    let plain = records(1000, |_, item| format!("{item}\n"));
    let returns = plain.replace('\n', "\r\n");
    for (name, bytes) in [
        ("plain.txt", plain.clone().into_bytes()),
        ("returns.txt", returns.into_bytes()),
        ("bom.txt", [b"\xef\xbb\xbf", plain.as_bytes()].concat()),
        ("endless.txt", plain.trim_end().into()),
        ("packed.txt.gz", gzip(plain.as_bytes())),
        ("packed.txt.zst", zstd::encode_all(plain.as_bytes(), 1).expect("packed")),
    ] {
        sandbox.write(name, bytes);
        check_shares(&sandbox.top(&[name]), SHARES);
    }
    // Two members, and two frames, one after the other.
    let (first, second) = plain.as_bytes().split_at(1000);
    sandbox.write("two.txt.gz", [gzip(first), gzip(second)].concat());
    sandbox.write(
        "two.txt.zst",
        [first, second].map(|half| zstd::encode_all(half, 1).expect("packed")).concat(),
    );
    for name in ["two.txt.gz", "two.txt.zst"] {
        check_shares(&sandbox.top(&[name]), SHARES);
    }
}

#[test]
fn several_files_are_one_stream_and_dashes_are_pipes() {
    let sandbox = Sandbox::new();
    let half = records(500, |_, item| format!("{item}\n"));
    sandbox.write("1.txt", &half);
    sandbox.write("2.csv", format!("x,k\n{}", records(500, |_, item| format!("1,{item}\n"))));
    let answer = sandbox.top(&["1.txt", "1.txt"]);
    check_shares(&answer, SHARES);
    assert_eq!(answer["window"]["end"], 1000);
    let fixed = ["top", "--window", "1000", "--domain", "keys.txt", "--json"];
    for files in [&["-", "1.txt"][..], &["1.txt", "-"]] {
        let output = sandbox.pipe(&[&fixed[..], &EXACT, files].concat(), half.as_bytes());
        check_shares(&json(&output), SHARES);
    }
    let whole = half.repeat(2);
    check_shares(&json(&sandbox.pipe(&[&fixed[..], &EXACT].concat(), whole.as_bytes())), SHARES);
}

#[test]
fn columns_are_found_by_name_and_by_number() {
    let sandbox = Sandbox::new();
    let csv =
        format!("n,\"the key\",x\r\n{}", records(1000, |n, item| format!("{n},\"{item}\",\"x\ny\"\r\n")));
    sandbox.write("t.csv", &csv);
    sandbox.write("t.tsv", records(1000, |n, item| format!("{n}\t{item}\tx\n")));
    sandbox.write("named.tsv", format!("n\tkey\n{}", records(1000, |n, item| format!("{n}\t{item}\n"))));
    for arguments in [
        &["t.csv", "--column", "the key"][..],
        &["t.csv", "--column", "2"],
        &["t.tsv", "--column", "2"],
        &["named.tsv", "--column", "key"],
        &["named.tsv", "--column", "2", "--header"],
    ] {
        check_shares(&sandbox.top(arguments), SHARES);
    }
    sandbox.write("bare.csv", records(1000, |_, item| format!("{item}\n")));
    check_shares(&sandbox.top(&["bare.csv", "--column", "1", "--no-header"]), SHARES);
}

#[test]
fn documents_and_logs_are_understood() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "t.ndjson",
        records(1000, |n, item| format!("{{\"n\":{n},\"user\":{{\"names\":[\"{item}\"]}}}}\n")),
    );
    check_shares(&sandbox.top(&["t.ndjson", "--column", "/user/names/0"]), SHARES);
    let log = |item: &str| {
        format!(
            "h - - [10/Oct/2000:13:55:36 -0700] \"GET {item}?q=1 HTTP/1.1\" 200 5 \"{item}\" \"{item}\"\n"
        )
    };
    sandbox.write("access.log", records(1000, |_, item| log(item)));
    for column in [None, Some("path"), Some("referrer"), Some("agent")] {
        let column = column.map_or(vec![], |column| vec!["--column", column]);
        check_shares(&sandbox.top(&[&["access.log"], &column[..]].concat()), SHARES);
    }
    sandbox.write("keys.txt", "200\n404\n");
    let answer = sandbox.top(&["access.log", "--column", "status"]);
    assert_eq!(answer["items"][0]["item"], "200");
    assert!((answer["items"][0]["share"].as_f64().expect("a share") - 1.0).abs() < 0.01);
}

#[test]
fn columnar_files_are_understood_whatever_the_type() {
    let sandbox = Sandbox::new();
    let items: Vec<&str> = (0..1000).map(|n| crate::sandbox::PATTERN[n % 10]).collect();
    let numbers: Vec<i64> = items.iter().map(|item| i64::from(item.as_bytes()[0])).collect();
    let columns: [(&str, ArrayRef); 4] = [
        ("n", Arc::new(Int64Array::from(numbers))),
        ("text", Arc::new(StringArray::from(items.clone()))),
        ("bytes", Arc::new(BinaryArray::from_iter_values(items.iter().map(|item| item.as_bytes())))),
        ("dictionary", Arc::new(items.iter().copied().collect::<DictionaryArray<Int32Type>>())),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    sandbox.write("t.parquet", parquet_bytes(&batch));
    sandbox.write("t.arrow", arrow_bytes(&batch, true));
    sandbox.write("t.arrows", arrow_bytes(&batch, false));
    for file in ["t.parquet", "t.arrow", "t.arrows"] {
        for column in ["text", "bytes", "dictionary", "2"] {
            check_shares(&sandbox.top(&[file, "--column", column]), SHARES);
        }
    }
    sandbox.write("keys.txt", "97\n98\n99\n");
    let answer = sandbox.top(&["t.parquet", "--column", "n"]);
    assert_eq!(answer["items"][0]["item"], "97");
}

/// Where the windows of these records begin: at 2000-10-10T20:00:00Z, with one record a second.
const START: i64 = 971_208_000;

fn last_1000_seconds(sandbox: &Sandbox, file: &str, unit: &[&str]) -> serde_json::Value {
    let arguments = [&timed(file, "k", "t", "1000s")[..], &["--json"], &EXACT, unit].concat();
    json(&sandbox.run(&arguments))
}

#[test]
fn numbers_of_every_size_and_column_are_times() {
    let sandbox = Sandbox::new();
    // What is older than the window is c.
    let item = |n: usize| if n < 400 { "c" } else { crate::sandbox::PATTERN[n % 10] };
    for factor in [1, 1_000, 1_000_000, 1_000_000_000] {
        let numbers: Vec<i64> = (0..1500).map(|n| (START + n) * factor).collect();
        let rows = || numbers.iter().enumerate().map(|(n, time)| (time, item(n)));
        sandbox.write("t.csv", rows().fold("t,k\n".to_owned(), |all, (t, k)| all + &format!("{t},{k}\n")));
        let documents = rows().map(|(t, k)| format!("{{\"t\":{t},\"k\":\"{k}\"}}\n"));
        sandbox.write("t.ndjson", documents.collect::<String>());
        let columns: [(&str, ArrayRef); 2] = [
            ("t", Arc::new(Int64Array::from(numbers.clone()))),
            ("k", Arc::new(StringArray::from_iter_values((0..1500).map(item)))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        sandbox.write("t.parquet", parquet_bytes(&batch));
        sandbox.write("t.arrow", arrow_bytes(&batch, true));
        for file in ["t.csv", "t.ndjson", "t.parquet", "t.arrow"] {
            let answer = last_1000_seconds(&sandbox, file, &[]);
            assert_eq!(answer["window"]["end"], (START + 1499) * 1000 + 1, "{file} {factor}");
            check_shares(&answer, SHARES);
        }
    }
}

#[test]
fn a_unit_that_is_told_wins_over_the_size_of_numbers() {
    let sandbox = Sandbox::new();
    // Milliseconds of the first hour of 1970 look like seconds.
    let body = records(1500, |n, item| format!("{},{item}\n", 1000 * n));
    sandbox.write("t.csv", format!("t,k\n{body}"));
    let answer = last_1000_seconds(&sandbox, "t.csv", &["--time-unit", "ms"]);
    assert_eq!(answer["window"]["end"], 1_499_001);
    check_shares(&answer, SHARES);
    let seconds = last_1000_seconds(&sandbox, "t.csv", &[]);
    assert_eq!(seconds["window"]["end"], 1_499_000_001_u64);
    let unknown = sandbox.run(&[&timed("t.csv", "k", "t", "1000s")[..], &["--time-unit", "h"]].concat());
    fails(&unknown, 2, &["[possible values: s, ms, us, ns]"]);
    let untimed = ["top", "t.csv", "--column", "k", "--window", "9", "--time-unit", "s"];
    fails(&sandbox.run(&[&untimed[..], &EXACT].concat()), 2, &["--time-column"]);
}

#[test]
fn dates_are_the_starts_of_their_days() {
    let sandbox = Sandbox::new();
    let date = |n: usize| format!("2026-{:02}-{:02}", 1 + n / 500, 1 + n / 50 % 10);
    sandbox.write("t.csv", format!("t,k\n{}", records(1000, |n, item| format!("{},{item}\n", date(n)))));
    let arguments = [&timed("t.csv", "k", "t", "10d")[..], &["--json"], &EXACT].concat();
    let answer = json(&sandbox.run(&arguments));
    // The records of February: half of five hundred are a.
    assert_eq!(answer["items"][0]["estimate"], 250.0, "{answer}");
}

pub(crate) fn parquet_bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
    bytes
}

fn arrow_bytes(batch: &RecordBatch, is_file: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if is_file {
        let mut writer =
            arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).expect("a writer");
        writer.write(batch).expect("written");
        writer.finish().expect("finished");
    } else {
        let mut writer =
            arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).expect("a writer");
        writer.write(batch).expect("written");
        writer.finish().expect("finished");
    }
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}
