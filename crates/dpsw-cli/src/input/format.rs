//! Which format a file has, and how it is packed, by its name.

use std::path::Path;

use crate::arguments::Format;

/// How the bytes of a file are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// The packing of a file of this name.
pub(crate) fn packing(path: &Path) -> Packing {
    match extension(path).as_deref() {
        Some("gz") => Packing::Gzip,
        Some("zst" | "zstd") => Packing::Zstd,
        _ => Packing::Plain,
    }
}

/// The format of a file of this name; lines if the name does not tell.
pub(crate) fn guess(path: &Path) -> Format {
    let plain = match packing(path) {
        Packing::Plain => path.to_owned(),
        _ => path.with_extension(""),
    };
    let name = plain.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    match extension(&plain).as_deref() {
        Some("csv") => Format::Csv,
        Some("tsv" | "tab") => Format::Tsv,
        Some("ndjson" | "jsonl" | "json") => Format::Ndjson,
        Some("parquet" | "pq") => Format::Parquet,
        Some("arrow" | "arrows" | "ipc" | "feather") => Format::Arrow,
        // Rotated logs end in a number.
        _ if name.starts_with("access") && (name.contains(".log") || name.contains("_log")) => {
            Format::AccessLog
        }
        _ => Format::Lines,
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
            ("a.csv", Format::Csv, Packing::Plain),
            ("a.TSV.gz", Format::Tsv, Packing::Gzip),
            ("a.txt.zst", Format::Lines, Packing::Zstd),
            ("a.jsonl", Format::Ndjson, Packing::Plain),
            ("access.log", Format::AccessLog, Packing::Plain),
            ("access_log.3.gz", Format::AccessLog, Packing::Gzip),
            ("error.log", Format::Lines, Packing::Plain),
            ("t.parquet", Format::Parquet, Packing::Plain),
            ("t.feather", Format::Arrow, Packing::Plain),
            ("-", Format::Lines, Packing::Plain),
        ] {
            assert_eq!((guess(Path::new(name)), packing(Path::new(name))), (format, packed), "{name}");
        }
    }
}
