//! The readers of raw data sets, on made-up files in every layout and on real streams put into those layouts.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use dpsw_eval::source::table::{self, State};
use dpsw_eval::source::{Loaded, PaperDataset, Statistics, data_folder};
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use folder::Folder;

mod folder;

const AOL_HEADER: &str = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n";
const CSV_HEADER: &str = "userId,movieId,rating,timestamp\n";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00 and so on, for long enough to fill a record";

/// A data folder.
impl Folder {
    fn with(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        Self::new().and(name, bytes)
    }

    fn and(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.write(name, bytes);
        self
    }

    #[track_caller]
    fn load(&self, dataset: PaperDataset) -> Loaded {
        dataset.load(self.path(), None).expect("a right file")
    }

    #[track_caller]
    fn error(&self, dataset: PaperDataset) -> String {
        format!("{:#}", dataset.load(self.path(), None).expect_err("a wrong file"))
    }
}

fn gz(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes.as_ref()).expect("memory");
    encoder.finish().expect("memory")
}

fn zst(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    compress_to_vec(bytes.as_ref(), CompressionLevel::Fastest)
}

/// The stream by name.
fn stream(loaded: &Loaded) -> Vec<&str> {
    loaded.dataset.items.iter().map(|&item| loaded.names[item as usize].as_str()).collect()
}

fn request(time: u32, client: u32, object: u32) -> Vec<u8> {
    let fields = [time, client, object, 1_024];
    fields.iter().flat_map(|field| field.to_be_bytes()).chain([0, 0x42, 1, 0x63]).collect()
}

fn click(user: usize, query: &str, time: &str) -> String {
    format!("{user}\t{query}\t{time}\t1\thttp://www.example.com\n")
}

#[test]
fn every_layout_of_movielens_gives_the_same_stream() {
    let csv = format!("{CSV_HEADER}1,296,5.0,1147880003\n1,7,0.5,1147880001\n2,296,3.0,1147880002\n");
    let dat = "1::296::5::1147880003\n1::7::3.5::1147880001\n2::296::3::1147880002\n";
    let tab = "1\t296\t5\t1147880003\n1\t7\t1\t1147880001\n2\t296\t3\t1147880002\n";
    for (name, bytes) in [
        ("movielens/ratings.csv", csv.clone().into_bytes()),
        ("ml-25m/ratings.csv", csv.replace('\n', "\r\n").into_bytes()),
        ("ml-latest-small/ratings.csv", csv.trim_end().into()),
        ("ml-latest/ratings.csv", format!("\u{feff}{csv}").into_bytes()),
        ("ml-20m/ratings.csv.gz", gz(&csv)),
        ("ml-32m/ratings.csv.zst", zst(&csv)),
        ("ml-1m/ratings.dat", dat.into()),
        ("ml-10M100K/ratings.dat", dat.replace('\n', "\r\n").into_bytes()),
        ("ml-100k/u.data", tab.into()),
        ("ml-100k/u.data.gz", gz(tab)),
        ("u.data", tab.into()),
    ] {
        let loaded = Folder::with(name, bytes).load(PaperDataset::MovieLens);
        assert_eq!(stream(&loaded), ["movie 7", "movie 296", "movie 296"], "{name}");
        assert_eq!((loaded.dataset.items, loaded.report.bad), (vec![0, 1, 1], 0), "{name}");
    }
}

#[test]
fn the_list_of_movies_gives_titles_and_the_domain() {
    let csv = "movieId,title,genres\n7,\"Seven, The\",Drama\n8,Unrated,Drama\n";
    let dat = "7::Seven, The::Drama\n8::Unrated::Drama\n";
    let item = "7|Seven, The|1995\n8|Unrated|1995\n";
    for (ratings, line, list, text) in [
        ("ratings.csv", &*format!("{CSV_HEADER}1,7,5.0,10\n"), "movies.csv", csv),
        ("ratings.dat", "1::7::5::10\n", "movies.dat", dat),
        ("u.data", "1\t7\t5\t10\n", "u.item", item),
    ] {
        let folder =
            Folder::with(&format!("movielens/{ratings}"), line).and(&format!("movielens/{list}"), text);
        let loaded = folder.load(PaperDataset::MovieLens);
        assert_eq!(loaded.names, ["Seven, The", "Unrated"], "{list}");
        assert_eq!(loaded.dataset.domain_len, 2);
    }
}

#[test]
fn bad_records_are_counted_and_the_first_are_shown() {
    let good = "1,7,5.0,10\n".repeat(20);
    let text = format!("{CSV_HEADER}{good}1,7,5.0\n1,seven,5.0,10\n{good}1,7,5.0,99999999999\n\n\n\n");
    let loaded = Folder::with("movielens/ratings.csv", text).load(PaperDataset::MovieLens);
    assert_eq!((loaded.report.records, loaded.report.bad), (46, 6));
    let examples: Vec<(u64, &str)> =
        loaded.report.examples.iter().map(|bad| (bad.number, bad.reason.as_str())).collect();
    assert_eq!(examples[0], (22, "it has 3 columns, not 4"));
    assert_eq!(examples[1], (23, "the movie is \"seven\", not a number"));
    assert_eq!(examples[2], (44, "the timestamp is \"99999999999\", not a number"));
    assert_eq!(examples.len(), 5);
    assert!(loaded.report.to_string().ends_with("and 1 more"));
}

#[track_caller]
fn check_wrong(dataset: PaperDataset, name: &str, bytes: &[u8], expected: &str) {
    let message = Folder::with(name, bytes).error(dataset);
    assert!(message.contains(expected), "{message}");
    assert!(message.contains("hold no") || message.contains(name), "{message}");
}

fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 9);
    bytes
}

#[test]
fn a_file_that_is_no_aol_log_is_refused() {
    let lines = format!("{AOL_HEADER}{}", click(1, "cat", "2006-03-01 00:00:00").repeat(2_000));
    let unclicked = format!("{AOL_HEADER}1\tcat\t2006-03-01 00:00:00\n");
    for (bytes, expected) in [
        (JPEG, "line 1 is \"\\xff\\xd8"),
        (JPEG, "it looks like a JPEG image"),
        (&gz("id,query,time\n1,cat,2006\n"), "begins with \"AnonID\\tQuery"),
        (b"", "line 1 is \"\""),
        (&cut(gz(&lines)), "cannot be read; the file is cut off or damaged: get it again"),
        (
            format!("{AOL_HEADER}a\nb\n").as_bytes(),
            "such as line 2: it has 1 columns, not 3 or 5; this is not an AOL",
        ),
        (unclicked.as_bytes(), "hold no keywords; records: 1 (bad 0, incomplete 1, "),
    ] {
        check_wrong(PaperDataset::Aol, "aol/user-ct-test-collection-01.txt.gz", bytes, expected);
    }
}

#[test]
fn a_file_that_is_no_ratings_file_is_refused() {
    for (bytes, expected) in [
        (JPEG, "it looks like a JPEG image"),
        (b"<!DOCTYPE html>\n", "web page: the download went wrong"),
        (b"PK\x03\x04", "zip archive: unpack it first"),
        (b"movieId,title,genres,rating\n", "put ratings.csv, ratings.dat or u.data of MovieLens there"),
        (&[b'x'; 100_000], "line 1 is longer than 65536 bytes: this is no text log"),
        (&cut(zst(CSV_HEADER.repeat(99))), "cut off or damaged: get it again"),
        (format!("{CSV_HEADER}1,2\n").as_bytes(), "such as line 2: it has 2 columns, not 4"),
        (CSV_HEADER.as_bytes(), "hold no ratings"),
    ] {
        check_wrong(PaperDataset::MovieLens, "movielens/ratings.csv", bytes, expected);
    }
}

#[test]
fn a_file_that_is_no_worldcup_log_is_refused() {
    let requests: Vec<u8> = (0..50).flat_map(|client| request(894_000_000, client, 1)).collect();
    for (bytes, expected) in [
        (JPEG, "it looks like a JPEG image"),
        (
            &[0; 40_000],
            "100 of the first 100 records are bad, such as record 1: the timestamp 0 is not in the days",
        ),
        (&cut(gz(&requests)), "cut off or damaged: get it again"),
        (&cut(requests), "record 50 is cut off after 11 bytes: get the file again"),
        (&gz(""), "hold no requests"),
    ] {
        check_wrong(PaperDataset::WorldCup, "worldcup/wc_day38_1.gz", bytes, expected);
    }
}

#[test]
fn aol_keywords_come_in_time_order_over_all_files() {
    let query = click(1, "the cats of springfield", "2006-03-05 00:00:00");
    let first =
        format!("{AOL_HEADER}{query}{query}1\tx\t2006-03-05 00:00:01\t\t\n1\tx\t2006-03-05 00:00:02\n");
    let cat = click(2, "cat", "2006-03-04 00:00:00");
    let second = format!("{AOL_HEADER}{cat}nonsense\n2\t-\t2006-03-04 00:00:00\t\t");
    let second_name = "aol/user-ct-test-collection-02.txt.gz";
    for (first, second) in [
        (first.clone().into_bytes(), second.clone().into_bytes()),
        (gz(&first), gz(&second)),
        (zst(&first), second.replace('\n', "\r\n").into_bytes()),
    ] {
        let folder = Folder::with("aol/user-ct-test-collection-01.txt.gz", first)
            .and(second_name, second)
            .and("aol/U500k_README.txt", "read me");
        let loaded = folder.load(PaperDataset::Aol);
        assert_eq!(stream(&loaded), ["cat", "cat", "springfield"]);
        let report = &loaded.report;
        assert_eq!((report.records, report.bad, report.incomplete, report.duplicate), (7, 1, 3, 1));
        assert_eq!(
            (&report.examples[0].file, report.examples[0].number),
            (&folder.path().join(second_name), 3)
        );
    }
}

#[test]
fn a_dictionary_tells_typos() {
    let log = format!("{AOL_HEADER}{}", click(1, "britney speers spears", "2006-03-01 00:00:00"));
    let folder = Folder::with("aol/user-ct-test-collection-01.txt", log);
    assert_eq!(stream(&folder.load(PaperDataset::Aol)), ["britney", "speers", "spears"]);
    let folder = folder.and("aol/words.txt", "Britney\r\nspears\n");
    assert_eq!(stream(&folder.load(PaperDataset::Aol)), ["britney", "spears"]);
}

#[test]
fn worldcup_requests_are_sorted_and_each_counts_once() {
    let t = 894_000_000;
    let first = [(t + 9, 1, 30), (t + 1, 1, 10), (t + 1, 1, 10), (t + 1, 2, 10)];
    let next = [(t + 9, 1, 30), (t + 9, 2, 20), (t, 5, 50), (t + 10, 1, 10)];
    let log =
        |requests: [(u32, u32, u32); 4]| requests.map(|(time, client, object)| request(time, client, object));
    let mut bad = request(t + 9, 3, 99);
    bad[16] = 77;
    let folder = Folder::with("worldcup/wc_day9_1.gz", gz(log(first).concat()))
        .and("worldcup/wc_day10_1", [bad, log(next).concat()].concat())
        .and("worldcup/wc_day1_1.gz", gz(""))
        .and("worldcup/object_mappings.sort", "    10 /index.html\n    30 /a b.gif\n");
    let loaded = folder.load(PaperDataset::WorldCup);
    assert_eq!(stream(&loaded), ["/index.html", "/index.html", "/a b.gif", "object 20", "/index.html"]);
    let report = &loaded.report;
    assert_eq!((report.records, report.bad, report.duplicate), (9, 2, 2));
    assert_eq!(report.examples[0].reason, "the method 77 is more than 8");
    assert_eq!(report.examples[1].number, 4);
    assert_eq!(report.examples[1].reason, "it is 9 s earlier than the records before");
    let counted = PaperDataset::WorldCup.count(folder.path()).expect("right");
    assert_eq!(counted.by_rank, Statistics::of(&loaded).by_rank);
    let start = PaperDataset::WorldCup.load(folder.path(), Some(3)).expect("right");
    assert_eq!((start.dataset.items, start.dataset.domain_len), (vec![0, 0, 1], 2));
}

#[test]
fn a_file_that_is_there_packed_and_unpacked_counts_once() {
    let record = request(894_000_000, 1, 1);
    let folder = Folder::with("worldcup/wc_day10_1.gz", gz(&record)).and("worldcup/wc_day10_1", &record);
    assert_eq!(folder.load(PaperDataset::WorldCup).report.records, 1);
}

#[test]
fn the_table_shows_what_is_here_and_where_to_get_the_rest() {
    let ratings = format!("{CSV_HEADER}1,7,5.0,10\n1,8,5.0,11\n2,8,5.0,12\n");
    let folder = Folder::with("ml-25m/ratings.csv", ratings).and("worldcup/wc_day38_1.gz", JPEG);
    let entries: Vec<table::Entry> =
        PaperDataset::ALL[..3].iter().map(|&dataset| table::entry(dataset, folder.path())).collect();
    assert!(matches!(&entries[0].state, State::Absent { .. }));
    assert!(matches!(&entries[1].state, State::Present { statistics, .. } if statistics.len == 3));
    assert!(matches!(&entries[2].state, State::Wrong { .. }));
    let text = table::render(&entries);
    for expected in [
        "AOL               absent    10,710,880                38,411  Web search query logs",
        "MovieLens              3    25,000,095          2     62,423  Movie ratings",
        "https://www.cim.mcgill.ca/~dudek/206/Logs/AOL-user-ct-collection/",
        &format!("into {}", folder.path().join("aol").display()),
        "most frequent: movie 8 2, movie 7 1",
        "ratings.csv, 1 of 1\n  without movies.csv, m counts the rated movies alone\n  records: 3 (bad 0,",
        "it looks like a JPEG image",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    let absent = folder.error(PaperDataset::Aol);
    assert!(absent.starts_with("AOL is absent: get it from https://"), "{absent}");
    let json = serde_json::to_string(&entries).expect("plain data");
    assert!(json.contains("\"domain_len\":62423"), "{json}");
}

#[test]
fn synthetic_sets_are_generated() {
    let zipf = PaperDataset::named("zipf").expect("known");
    let loaded = zipf.load(Path::new("nowhere"), Some(1_000)).expect("generated");
    assert_eq!((loaded.dataset.items.len(), loaded.dataset.domain_len), (1_000, 25_600));
    assert_eq!((loaded.names.len(), loaded.names[0].as_str()), (25_600, "1"));
}

/// A real stream of times and items, or `None` with a message where the folder of streams is absent.
fn real(name: &str) -> Option<Vec<(u32, String)>> {
    let path = data_folder(None).join(name);
    let Ok(file) = fs::File::open(&path) else {
        eprintln!("skipped: {} is absent; DPSW_DATA names the folder of streams", path.display());
        return None;
    };
    let mut text = String::new();
    StreamingDecoder::new(file).expect("zstd").read_to_string(&mut text).expect("text");
    let event = |line: &str| {
        let (time, item) = line.split_once('\t').expect("two columns");
        (time.parse().expect("a time"), item.to_owned())
    };
    Some(text.lines().map(event).collect())
}

#[test]
fn real_ratings_sorted_by_movie_come_back_in_time_order() {
    let Some(mut events) = real("movielens-small/movielens-small.tsv.zst") else { return };
    events.sort_by_key(|(_, movie)| movie.parse::<u32>().expect("a number"));
    let lines: String = events.iter().map(|(time, movie)| format!("1,{movie},4.0,{time}\n")).collect();
    let folder = Folder::with("ml-latest-small/ratings.csv.gz", gz(format!("{CSV_HEADER}{lines}")));
    events.sort_by_key(|&(time, _)| time);
    let loaded = folder.load(PaperDataset::MovieLens);
    let expected: Vec<String> = events.iter().map(|(_, movie)| format!("movie {movie}")).collect();
    assert!(stream(&loaded) == expected, "another order");
    let statistics = Statistics::of(&loaded);
    assert_eq!((statistics.len, statistics.domain_len), (100_836, 9_724));
    let top = ["movie 356", "movie 318", "movie 296"].map(str::to_owned).into_iter().zip([329, 317, 307]);
    assert!(statistics.top[..3].iter().cloned().eq(top), "{:?}", statistics.top);
    assert_eq!(statistics.by_rank.iter().filter(|&&count| count == 1).count(), 3_446);
}

#[test]
fn real_words_as_queries_lose_stop_words_and_plurals() {
    let Some(events) = real("sotu-words/sotu-words.tsv.zst") else { return };
    let clicks = events.chunks(4).take(50_000).enumerate().map(|(user, words)| {
        let words: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
        click(user, &words.join(" "), "2006-03-01 00:00:00")
    });
    let log = format!("{AOL_HEADER}{}", clicks.collect::<String>());
    let loaded = Folder::with("aol/user-ct-test-collection-01.txt.gz", gz(log)).load(PaperDataset::Aol);
    assert_eq!((loaded.report.records, loaded.report.bad, loaded.report.duplicate), (50_000, 0, 0));
    let statistics = Statistics::of(&loaded);
    assert!((60_000..140_000).contains(&statistics.len), "{}", statistics.len);
    let has = |word: &str| loaded.names.iter().any(|name| name == word);
    assert!(has("state") && has("congress") && has("country"), "{:?}", statistics.top);
    assert!(!has("the") && !has("states") && !has("countries"), "{:?}", statistics.top);
}

#[test]
fn real_requests_as_a_worldcup_log_keep_their_order() {
    let Some(events) = real("web-http/nasa-1995-08-01.tsv.zst") else { return };
    let start = events[0].0;
    let mut objects: Vec<&str> = events.iter().map(|(_, url)| url.as_str()).collect();
    objects.sort_unstable();
    objects.dedup();
    let object = |url: &str| objects.binary_search(&url).expect("listed") as u32;
    let record = |(client, (time, url)): (u32, &(u32, String))| {
        request(894_000_000 + time - start, client, object(url))
    };
    let log: Vec<u8> = (0..).zip(&events).flat_map(record).collect();
    let mappings: String = objects.iter().enumerate().map(|(id, url)| format!("{id:>8} {url}\n")).collect();
    let folder =
        Folder::with("worldcup/wc_day38_1.gz", gz(log)).and("worldcup/object_mappings.sort", mappings);
    let loaded = folder.load(PaperDataset::WorldCup);
    let expected: Vec<&str> = events.iter().map(|(_, url)| url.trim()).collect();
    assert!(stream(&loaded) == expected, "another order");
    assert_eq!((loaded.report.records, loaded.dataset.domain_len), (30_969, 2_088));
}
