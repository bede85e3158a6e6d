//! How fast `dpsw top` reads, as ratios to bare programs in the same run: `cargo bench -p dpsw-cli --bench speed`.
//!
//! The bare programs are this one with another task: they read, split and hash or parse, and keep nothing.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memchr::memchr_iter;
use xxhash_rust::xxh3::xxh3_64;

const RECORDS: u64 = 10_000_000;
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bare-lines", path] => bare_lines(Path::new(path)),
        ["bare-csv", path] => bare_csv(Path::new(path)),
        _ => compare(),
    }
}

fn bare_lines(path: &Path) {
    let mut file = File::open(path).expect("a file");
    let (mut buffer, mut kept, mut sum) = (vec![0; 256 * 1024], 0, 0_u64);
    loop {
        let len = file.read(&mut buffer[kept..]).expect("read");
        if len == 0 {
            break;
        }
        let filled = kept + len;
        let mut start = 0;
        for end in memchr_iter(b'\n', &buffer[..filled]) {
            sum = sum.wrapping_add(xxh3_64(&buffer[start..end]));
            start = end + 1;
        }
        buffer.copy_within(start..filled, 0);
        kept = filled - start;
    }
    black_box(sum);
}

fn bare_csv(path: &Path) {
    let mut reader = csv::Reader::from_path(path).expect("a file");
    let (mut record, mut fields) = (csv::ByteRecord::new(), 0);
    while reader.read_byte_record(&mut record).expect("a record") {
        fields += record.len();
    }
    black_box(fields);
}

fn compare() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    println!("{:<44} {:>8} {:>8} {:>7} {:>7}", "", "dpsw", "other", "ratio", "asked");
    line_rows(&at("lines.txt"), &at("keys.txt"));
    many_keys_row(&at("lines.txt"), &at("keys.txt"));
    csv_rows(&at("t.csv"), &at("keys.txt"));
    memory(&at("lines.txt"), &at("keys.txt"));
}

fn line_rows(lines: &str, domain: &str) {
    write_keys(domain, 25_000);
    write_lines(lines, 25_000, |item| format!("{item}\n"));
    let bare = time(|| ours(&["bare-lines", lines]));
    let listed = time(|| top(&[lines, "--domain", domain]));
    row("lines, 25,000 keys, against memchr and a hash", listed, bare, 0.8);
    row("lines, 25,000 keys, against awk", listed, once(&mut awk(lines)), 10.0);
    // Of a file, what lies before the last window is passed over.
    let all = RECORDS.to_string();
    let whole = time(|| dpsw(&[&["top", lines, "--domain", domain, "--window", &all], &COMMON[..]].concat()));
    row("the same in a window of all lines", whole, bare, 0.0);
    // Nobody knows before how long a pipe is, so all of it is counted.
    let piped = time(|| {
        let mut command = top(&["-", "--domain", domain]);
        command.stdin(File::open(lines).expect("a file"));
        command
    });
    row("the same through a pipe", piped, bare, 0.0);
    row("lines, keys found, against memchr and a hash", time(|| top(&[lines])), bare, 0.3);
}

fn many_keys_row(lines: &str, domain: &str) {
    write_keys(domain, 1_000_000);
    write_lines(lines, 1_000_000, |item| format!("{item}\n"));
    let listed = time(|| top(&[lines, "--domain", domain]));
    row("lines, 10^6 keys, against awk", listed, once(&mut awk(lines)), 20.0);
}

fn csv_rows(table: &str, domain: &str) {
    write_keys(domain, 25_000);
    let mut number = 0;
    write_lines(table, 25_000, |item| {
        number += 1;
        if number == 1 {
            "time,user,item,price\n".to_owned()
        } else {
            format!("{number},u{},{item},{}.99\n", number % 7919, number % 100)
        }
    });
    let bare = time(|| ours(&["bare-csv", table]));
    let items = [table, "--column", "item", "--domain", domain];
    row("csv, 4 columns, against the csv crate", time(|| top(&items)), bare, 1.5);
    let times = ["--time-column", "time", "--window", "12d"];
    let timed = time(|| dpsw(&[&["top"], &items[..], &times, &COMMON].concat()));
    row("csv with times, against the csv crate", timed, bare, 0.8);
}

const COMMON: [&str; 3] = ["--epsilon", "1", "-q"];

/// The last million items.
fn top(arguments: &[&str]) -> Command {
    dpsw(&[&["top"], arguments, &["--window", "1000000"], &COMMON].concat())
}

fn awk(lines: &str) -> Command {
    let mut command = Command::new("awk");
    command.args(["{c[$1]++} END {for (k in c) n++; print n}", lines]);
    command
}

/// Peak memory for a tenth of the lines and for all of them.
fn memory(lines: &str, domain: &str) {
    let peaks = [RECORDS / 10, RECORDS].map(|records| {
        write_keys(domain, 25_000);
        write_some(lines, records, 25_000, &mut |item| format!("{item}\n"));
        peak(&mut dpsw(&["top", lines, "--window", "100000", "--epsilon", "1", "--domain", domain, "-q"]))
    });
    println!("peak memory: {} KB for {} lines, {} KB for {RECORDS}", peaks[0], RECORDS / 10, peaks[1]);
}

fn row(name: &str, dpsw: Duration, other: Duration, asked: f64) {
    let ratio = other.as_secs_f64() / dpsw.as_secs_f64();
    let asked = if asked == 0.0 { String::new() } else { format!("{asked}") };
    println!(
        "{name:<44} {:>6.0}ms {:>6.0}ms {ratio:>7.2} {asked:>7}",
        1e3 * dpsw.as_secs_f64(),
        1e3 * other.as_secs_f64()
    );
}

fn dpsw(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw"));
    command.args(arguments);
    command
}

fn ours(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(arguments);
    command
}

/// The best of some rounds.
fn time(command: impl Fn() -> Command) -> Duration {
    (0..ROUNDS).map(|_| once(&mut command())).min().expect("at least one round")
}

fn once(command: &mut Command) -> Duration {
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).status().expect("it runs");
    assert!(status.success(), "{command:?}");
    started.elapsed()
}

/// The most memory in kilobytes, looked at while it runs.
fn peak(command: &mut Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).spawn().expect("it runs");
    let mut peak = 0;
    while child.try_wait().expect("a process").is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(peak).max(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    peak
}

fn item(number: u64) -> String {
    format!("/page/{number:06}")
}

fn write_keys(path: &str, keys: u64) {
    let text: String = (0..keys).map(|number| item(number) + "\n").collect();
    std::fs::write(path, text).expect("written");
}

fn write_lines(path: &str, keys: u64, mut line: impl FnMut(&str) -> String) {
    write_some(path, RECORDS, keys, &mut line);
}

/// Ranks with a density like 1/x, so that each power of ten is as frequent as the others.
fn write_some(path: &str, records: u64, keys: u64, line: &mut dyn FnMut(&str) -> String) {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    let mut state = 1_u64;
    for number in 0..records {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / 2_f64.powi(53);
        // Half of the items are spread evenly, so that every key occurs.
        let rank =
            if number % 2 == 0 { (keys as f64).powf(uniform) as u64 } else { number / 2 * 7919 % keys };
        file.write_all(line(&item(rank % keys)).as_bytes()).expect("written");
    }
    file.flush().expect("written");
}
