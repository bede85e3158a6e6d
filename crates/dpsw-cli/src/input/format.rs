//! Which format a file has, and how it is packed, by its name.

use std::path::Path;

use crate::arguments::Format;
use crate::input::packing::Packing;

/// The packing that the name of a file promises.
pub(crate) fn packing(path: &Path) -> Packing {
    match extension(path).as_deref() {
        Some("gz") => Packing::Gzip,
        Some("zst" | "zstd") => Packing::Zstd,
        _ => Packing::Plain,
    }
}

/// The format of a file of this name, if the name tells.
pub(crate) fn of_name(path: &Path) -> Option<Format> {
    let plain = match packing(path) {
        Packing::Plain => path.to_owned(),
        _ => path.with_extension(""),
    };
    let name = plain.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    match extension(&plain).as_deref() {
        Some("csv") => Some(Format::Csv),
        Some("tsv" | "tab") => Some(Format::Tsv),
        Some("ndjson" | "jsonl" | "json") => Some(Format::Ndjson),
        Some("parquet" | "pq") => Some(Format::Parquet),
        Some("arrow" | "arrows" | "ipc" | "feather") => Some(Format::Arrow),
        // Rotated logs end in a number.
        _ if name.starts_with("access") && (name.contains(".log") || name.contains("_log")) => {
            Some(Format::AccessLog)
        }
        _ => None,
    }
}

fn extension(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format() {
        for (name, format, packed) in [
            ("a.csv", Some(Format::Csv), Packing::Plain),
            ("a.TSV.gz", Some(Format::Tsv), Packing::Gzip),
            ("a.txt.zst", None, Packing::Zstd),
            ("a.jsonl", Some(Format::Ndjson), Packing::Plain),
            ("access.log", Some(Format::AccessLog), Packing::Plain),
            ("access_log.3.gz", Some(Format::AccessLog), Packing::Gzip),
            ("error.log", None, Packing::Plain),
            ("t.parquet", Some(Format::Parquet), Packing::Plain),
            ("t.feather", Some(Format::Arrow), Packing::Plain),
            ("-", None, Packing::Plain),
        ] {
            assert_eq!((of_name(Path::new(name)), packing(Path::new(name))), (format, packed), "{name}");
        }
    }
}
