//! Every format gives the same answer for the same records.

use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, Int64Array, RecordBatch, StringArray};

use crate::sandbox::{EXACT, Sandbox, check_shares, errors, fails, json, records, timed};

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
    sandbox.write("1 again.txt", &half);
    let answer = sandbox.top(&["1.txt", "1 again.txt"]);
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
fn columns_may_stand_between_other_characters() {
    let sandbox = Sandbox::new();
    let csv = format!("n;\"the;key\"\r\n{}", records(1000, |n, item| format!("{n};\"{item}\"\r\n")));
    sandbox.write("t.csv", &csv);
    sandbox.write("t.txt", &csv);
    sandbox.write("bars.tsv", records(1000, |n, item| format!("{n}|{item}\n")));
    sandbox.write("tabs.txt", records(1000, |n, item| format!("{n}\t{item}\t\"\n")));
    for arguments in [
        &["t.csv", "--delimiter", ";", "--column", "the;key"][..],
        &["t.txt", "--delimiter", ";", "--column", "2"],
        &["bars.tsv", "--delimiter", "|", "--column", "2"],
        &["tabs.txt", "--delimiter", r"\t", "--column", "2"],
        &["tabs.txt", "--delimiter", "\t", "--column", "2"],
    ] {
        check_shares(&sandbox.top(arguments), SHARES);
    }
    let fixed = [&["top", "t.csv", "--window", "1000", "--column", "1"][..], &EXACT].concat();
    for text in ["", "::", "é", "\"", "\n", r"\n"] {
        let output = sandbox.run(&[&fixed[..], &["--delimiter", text]].concat());
        fails(&output, 2, &[&format!("{text:?} is not one ASCII character such as ',', ';', '|' or '\\t'")]);
    }
    let output = sandbox.run(&[&fixed[..], &["--delimiter", ";", "--format", "ndjson"]].concat());
    fails(&output, 2, &["t.csv: --delimiter is for --format csv and tsv"]);
}

/// A line of an access log.
fn logged(item: &str) -> String {
    format!("h - - [10/Oct/2000:13:55:36 -0700] \"GET {item}?q=1 HTTP/1.1\" 200 5 \"-\" \"-\"\n")
}

const JSON: [&str; 2] = ["--column", "/k"];

#[test]
fn content_tells_formats_and_packings_whatever_the_name() {
    let sandbox = Sandbox::new();
    let items: Vec<&str> = (0..1000).map(|n| crate::sandbox::PATTERN[n % 10]).collect();
    let column: ArrayRef = Arc::new(StringArray::from(items));
    let batch = RecordBatch::try_from_iter([("k", column)]).expect("a batch");
    let log = records(1000, |_, item| logged(item)).into_bytes();
    let documents = records(1000, |_, item| format!("{{\"k\":\"{item}\"}}\n")).into_bytes();
    let lines = records(1000, |_, item| format!("{item}\n")).into_bytes();
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("packed");
    let as_log = "looks like an access log and is read as one";
    let as_json = "looks like JSON documents and is read as such";
    let of_gzip = "is packed with gzip and is unpacked";
    let of_zstd = "is packed with zstd and is unpacked";
    for (bytes, more, remarks, is_piped) in [
        (lines.clone(), &[][..], &[][..], true),
        (gzip(&lines), &[], &[of_gzip], true),
        (zstd(&lines), &[], &[of_zstd], true),
        (log.clone(), &[], &[as_log], true),
        (gzip(&log), &[], &[of_gzip, as_log], true),
        (documents.clone(), &JSON, &[as_json], true),
        ([b"\xef\xbb\xbf\r\n", &documents[..]].concat(), &JSON, &[as_json], true),
        (zstd(&documents), &JSON, &[of_zstd, as_json], true),
        (parquet_bytes(&batch), &[], &["looks like Parquet and is read as such"], false),
        (arrow_bytes(&batch, true), &[], &["looks like Arrow and is read as such"], false),
        (arrow_bytes(&batch, false), &[], &["looks like Arrow and is read as such"], true),
        (gzip(&arrow_bytes(&batch, false)), &[], &[of_gzip], true),
    ] {
        let fixed =
            [&["top", "--window", "1000", "--domain", "keys.txt", "--json"][..], &EXACT, more].concat();
        sandbox.write("odd name", &bytes);
        let mut outputs = vec![sandbox.run(&[&fixed[..], &["odd name"]].concat())];
        if is_piped {
            outputs.push(sandbox.pipe(&fixed, &bytes));
        }
        for output in outputs {
            check_shares(&json(&output), SHARES);
            let said = errors(&output);
            assert!(remarks.iter().all(|remark| said.contains(remark)), "{remarks:?} in {said}");
            assert_eq!(
                remarks.is_empty(),
                !said.contains("looks like") && !said.contains("packed"),
                "{said}"
            );
        }
    }
}

#[test]
fn lines_stay_lines_and_a_format_that_is_told_wins() {
    let sandbox = Sandbox::new();
    sandbox.write("keys.txt", "{\n{\"k\":1}\n");
    // One document among other lines is an item; where all lines are documents, it must be told that they are items.
    for (first, other, more) in [("{\"k\":1}", "{", &[][..]), ("{", "{\"k\":1}", &["--format", "lines"])] {
        sandbox.write("t.txt", format!("{first}\n{}", format!("{other}\n").repeat(999)));
        let answer = sandbox.top(&[&["t.txt"], more].concat());
        assert_eq!(answer["items"][0]["item"], other, "{answer}");
        assert_eq!(answer["items"][0]["estimate"], 999.0, "{answer}");
    }
    // The name of a table is meant, whatever its lines look like.
    sandbox.write("t.tsv", records(1000, |_, item| logged(item)));
    sandbox.write("keys.txt", logged("a").trim_end());
    let answer = sandbox.top(&["t.tsv", "--column", "1"]);
    assert_eq!(answer["items"][0]["estimate"], 500.0, "{answer}");
}

#[test]
fn what_cannot_be_read_as_it_is_packed_is_refused_in_words() {
    let sandbox = Sandbox::new();
    let column: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let batch = RecordBatch::try_from_iter([("k", column)]).expect("a batch");
    sandbox.write("t.parquet.gz", gzip(&parquet_bytes(&batch)));
    sandbox.write("t.arrow.gz", gzip(&arrow_bytes(&batch, true)));
    sandbox.write("t.txt.xz", b"\xfd7zXZ\0\0\x04");
    sandbox.write("plain.txt.gz", "a\nb\n");
    sandbox.write("empty.txt.gz", "");
    sandbox.write("wide.txt", b"\xff\xfea\0\n\0");
    let fixed = [&["top", "--window", "1000", "--domain", "keys.txt"][..], &EXACT].concat();
    for (name, wanted) in [
        ("t.parquet.gz", "Parquet cannot be read inside gzip; unpack it first"),
        ("t.arrow.gz", "an Arrow file cannot be read inside gzip; unpack it first"),
        ("t.txt.xz", "it is packed with xz, which is not read here; unpack it into a pipe: xz -dc FILE"),
        ("plain.txt.gz", "its name says that it is packed, but its bytes are not"),
        ("empty.txt.gz", "its name says that it is packed, but its bytes are not"),
        ("wide.txt", "it is UTF-16"),
    ] {
        let output = sandbox.run(&[&fixed[..], &[name]].concat());
        fails(&output, 4, &[&format!("{name} cannot be read: {wanted}")]);
        assert!(!errors(&output).contains("spends"), "{}", errors(&output));
    }
    for bytes in [parquet_bytes(&batch), arrow_bytes(&batch, true)] {
        let output = sandbox.pipe(&fixed, &bytes);
        fails(&output, 2, &["is read from its end and cannot come from a pipe; name the file"]);
    }
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

pub(crate) fn arrow_bytes(batch: &RecordBatch, is_file: bool) -> Vec<u8> {
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
