//! The settings of the service: a TOML file, in which everything has a default.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::broker::access::BrokerAccess;
use crate::config::{ConfigError, KeysConfig, SourceConfig};
use crate::engine::Engine;
use crate::limits::Limits;
use crate::tls::TlsFiles;

/// The settings of the service. Unknown ones are refused. Paths are meant from the folder of the file.
///
/// ```toml
/// address = "127.0.0.1:7878"
/// data = "dpsw-data"
///
/// [[source]]
/// name = "web"
/// protects = "event"
/// epsilon = 2.0
/// columns = { page = "text" }
///
/// [[source.stream]]
/// name = "pages"
/// item = "page"
/// window = 100_000
/// epsilon = 1.0
/// keys = "found"
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Settings {
    /// Where it listens.
    pub address: SocketAddr,
    /// The folder of everything that is kept.
    pub data: PathBuf,
    /// The folder of the marker; by default beside the data folder. It must not be in backups of the data folder.
    pub marker: Option<PathBuf>,
    /// The file of the key that the data is encrypted with; by default beside the data folder. The variable `DPSW_KEY` is
    /// taken instead, if it is set.
    pub key_file: Option<PathBuf>,
    /// The certificate; needed unless only this machine can reach the address.
    pub tls: Option<TlsFiles>,
    /// Listens without TLS where others can reach it: only behind something that encrypts.
    pub cleartext_public: bool,
    /// The streams whose private top items may be read as Prometheus metrics.
    pub prometheus: BTreeSet<String>,
    /// How the log is written.
    pub log: LogFormat,
    /// Also writes what is only of interest to those who look for a mistake.
    pub debug: bool,
    /// How much is taken from strangers.
    pub limits: Limits,
    /// How brokers are reached that want a password or TLS.
    #[serde(rename = "broker")]
    pub brokers: Vec<BrokerAccess>,
    /// Sources and their streams, which are made if they are not there.
    #[serde(rename = "source")]
    pub sources: Vec<SourceConfig>,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON document per line.
    Json,
}

/// The address if nobody names one.
pub const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7878);
/// The data folder if nobody names one.
pub const DATA: &str = "dpsw-data";

/// Settings that the service cannot start with.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{path}: {reason}")]
    Toml {
        /// The file.
        path: String,
        /// Where and why.
        reason: String,
    },
    /// Something cannot be meant.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The key would be in every copy of the data.
    #[error(
        "the key file {key} lies in the data folder {data}, so that every copy of the data has its key; name a file elsewhere with \
        key_file, or --key-file FILE"
    )]
    KeyInData {
        /// The file.
        key: String,
        /// The folder.
        data: String,
    },
    /// Others could read along.
    #[error(
        "others can reach {0}, so tokens and items must be encrypted: name a certificate in [tls], or listen on 127.0.0.1. \
        Behind something that encrypts, set cleartext_public = true"
    )]
    Cleartext(SocketAddr),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: ADDRESS,
            data: DATA.into(),
            marker: None,
            key_file: None,
            tls: None,
            cleartext_public: false,
            prometheus: BTreeSet::new(),
            log: LogFormat::Text,
            debug: false,
            limits: Limits::default(),
            brokers: Vec::new(),
            sources: Vec::new(),
        }
    }
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or something in it cannot be meant.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| SettingsError::File { path: shown.clone(), source })?;
        let settings: Self = toml::from_str(&text)
            .map_err(|error| SettingsError::Toml { path: shown, reason: error.to_string() })?;
        let settings = settings.in_folder(path.parent().unwrap_or(Path::new("")));
        settings.limits.check()?;
        settings.brokers.iter().try_for_each(BrokerAccess::check)?;
        settings.check_brokers()?;
        settings.sources.iter().try_for_each(SourceConfig::check)?;
        Ok(settings)
    }

    /// The same with paths that are meant from a folder.
    fn in_folder(mut self, folder: &Path) -> Self {
        let place = |path: &mut PathBuf| *path = folder.join(&*path);
        place(&mut self.data);
        self.marker.iter_mut().chain(&mut self.key_file).for_each(place);
        self.tls.iter_mut().flat_map(|tls| [&mut tls.certificate, &mut tls.key]).for_each(place);
        self.brokers.iter_mut().flat_map(BrokerAccess::paths).for_each(place);
        for stream in self.sources.iter_mut().flat_map(|source| &mut source.streams) {
            if let KeysConfig::File(path) = &mut stream.keys {
                place(path);
            }
        }
        self
    }

    /// An address says once how it is reached.
    fn check_brokers(&self) -> Result<(), ConfigError> {
        let mut known = BTreeSet::new();
        match self.brokers.iter().find(|broker| !known.insert(&broker.address)) {
            None => Ok(()),
            Some(BrokerAccess { address, .. }) => Err(ConfigError::Contradiction(format!(
                "[[broker]] {address:?} is there twice; leave out one of the two"
            ))),
        }
    }

    /// # Errors
    /// Others can reach the address, and nothing would be encrypted.
    pub fn check_address(&self) -> Result<(), SettingsError> {
        let is_safe = self.address.ip().is_loopback() || self.tls.is_some() || self.cleartext_public;
        if is_safe { Ok(()) } else { Err(SettingsError::Cleartext(self.address)) }
    }

    /// The folder of the marker.
    #[must_use]
    pub fn marker_folder(&self) -> PathBuf {
        self.marker.clone().unwrap_or_else(|| beside(&self.data, ".marker"))
    }

    /// The file of the key.
    #[must_use]
    pub fn key_path(&self) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| beside(&self.data, ".key"))
    }

    /// # Errors
    /// The key would lie in the data folder, whose copies are to be worth nothing without it.
    pub fn check_key(&self) -> Result<(), SettingsError> {
        let key = self.key_path();
        let real_key = resolved(&key);
        let real_data = resolved(&self.data);
        match (real_key, real_data) {
            (Ok(real_key), Ok(real_data)) if !real_key.starts_with(&real_data) => Ok(()),
            _ => Err(SettingsError::KeyInData {
                key: key.display().to_string(),
                data: self.data.display().to_string(),
            }),
        }
    }

    /// Makes the sources and streams that are not there. A notice says which of them cannot be made, or run with other settings:
    /// somebody may have changed or deleted them over HTTP, and all others go on.
    pub fn make_sources(&self, engine: &Engine) {
        for (name, error) in self.sources.iter().flat_map(|source| engine.ensure(source)) {
            engine.notice(&format!("{name} of the settings file: {error}"));
        }
    }
}

/// A path beside a folder, with this at the end of its name, however the folder is spelled: `data/` is `data`.
pub(crate) fn beside(folder: &Path, end: &str) -> PathBuf {
    let plain: PathBuf = folder.components().collect();
    let named = match plain.file_name() {
        Some(_) => plain,
        // `.` and `..` have names elsewhere.
        None => fs::canonicalize(&plain).unwrap_or(plain),
    };
    let mut name = named.into_os_string();
    name.push(end);
    name.into()
}

/// Where a path leads, also if its last parts are not there yet.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let there = path.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    let Some((part, real)) = there else { return Ok(path) };
    Ok(path.strip_prefix(part).map_or_else(|_| path.clone(), |rest| real.join(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Settings, SettingsError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("dpsw.toml");
        fs::write(&path, text).expect("a file");
        Settings::load(&path)
    }

    #[test]
    fn how_a_broker_is_reached_is_said_once_and_its_files_are_meant_from_the_folder() {
        let page = include_str!("../../../docs/guide/operate.md");
        let block = page.split("```toml\n").find(|block| block.starts_with("[[broker]]")).expect("a sample");
        let sample = block.split("```").next().expect("a sample");
        let mut settings = load(sample).expect("the sample is right");
        assert_eq!(settings.brokers[0].paths().count(), 2);
        assert!(settings.brokers[0].paths().all(|path| path.is_absolute()));
        let twice = load(&sample.repeat(2)).expect_err("twice").to_string();
        assert!(twice.contains("\"127.0.0.1:6380\" is there twice"), "{twice}");
    }

    #[test]
    fn an_empty_file_means_the_defaults_and_paths_are_meant_from_its_folder() {
        let settings = load("").expect("nothing is needed");
        assert_eq!((settings.address, settings.limits.clone()), (ADDRESS, Limits::default()));
        assert!(settings.data.is_absolute() && settings.data.ends_with(DATA));
        assert!(settings.key_path().ends_with("dpsw-data.key"));
        assert!(settings.marker_folder().ends_with("dpsw-data.marker"));
        let text = "[tls]\ncertificate = 'c.pem'\nkey = '/k.pem'\n[[source]]\nname = 'web'\nprotects = 'event'\n\
                    epsilon = 1\ncolumns = { page = 'text' }\n[[source.stream]]\nname = 'pages'\nitem = 'page'\n\
                    window = 5\nepsilon = 1.0\nkeys = { file = 'pages.txt' }";
        let settings = load(text).expect("a file");
        let tls = settings.tls.expect("named");
        assert!(tls.certificate.is_absolute() && tls.key == Path::new("/k.pem"));
        assert!(matches!(&settings.sources[0].streams[0].keys, KeysConfig::File(path) if path.is_absolute()));
    }

    #[test]
    fn the_sample_shows_every_default_and_its_streams_can_be_planned() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/dpsw-server.toml");
        let sample = Settings::load(&path).expect("the sample");
        let shown = Settings { data: DATA.into(), sources: Vec::new(), ..sample.clone() };
        assert_eq!(shown, Settings::default());
        let text = fs::read_to_string(&path).expect("the sample");
        let table: toml::Table = toml::from_str(&text).expect("TOML");
        let limits = format!("{:?}", Limits::default());
        assert_eq!(
            table["limits"].as_table().map(toml::Table::len),
            Some(limits.matches(": ").count()),
            "{limits}"
        );
        for source in &sample.sources {
            for stream in &source.streams {
                stream.settings(source).expect("settings").plan().expect("a plan");
            }
        }
    }

    #[test]
    fn the_key_lies_beside_the_data_folder_and_never_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a folder");
        let settings = |data: &str, key_file: Option<&str>| Settings {
            data: root.join(data),
            key_file: key_file.map(|name| root.join(name)),
            marker: Some(root.join("marker")),
            ..Settings::default()
        };
        for is_there in [false, true] {
            for data in ["data", "data/", "data//", "data/."] {
                let settings = settings(data, None);
                assert_eq!(settings.key_path(), root.join("data.key"), "{data}");
                assert_eq!(beside(&settings.data, ".marker"), root.join("data.marker"), "{data}");
                settings.check_key().expect(data);
            }
            for inside in ["data/key", "data/.key", "data/../data/key", "data/more/key"] {
                let error = settings("data/", Some(inside)).check_key().expect_err(inside).to_string();
                assert!(error.contains("--key-file"), "{error}");
            }
            settings("data", Some("data-key")).check_key().expect("it begins alike");
            assert!(is_there || fs::create_dir(root.join("data")).is_ok());
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("data"), root.join("link")).expect("a link");
            settings("data", Some("link/key")).check_key().expect_err("by another way");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_place() {
        for (text, wanted) in [
            ("adress = '127.0.0.1:1'", "unknown field `adress`"),
            ("address = 'localhost'", "address"),
            ("[limits]\nbody = 0", "body must be from 1"),
            (
                "[[source]]\nname = '/'\nprotects = 'event'\nepsilon = 1\ncolumns = { a = 'text' }",
                "a name has",
            ),
        ] {
            let error = load(text).expect_err(text).to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn an_address_that_others_can_reach_needs_a_certificate() {
        let check = |text: &str| load(text).expect("a file").check_address();
        for address in ["127.0.0.1:7878", "[::1]:7878"] {
            check(&format!("address = '{address}'")).expect(address);
        }
        for address in ["0.0.0.0:7878", "[::]:7878", "192.168.0.1:80"] {
            let error = check(&format!("address = '{address}'")).expect_err(address).to_string();
            assert!(error.contains(address) && error.contains("[tls]"), "{error}");
            let tls = "tls = { certificate = 'c', key = 'k' }";
            check(&format!("address = '{address}'\n{tls}")).expect(address);
            check(&format!("address = '{address}'\ncleartext_public = true")).expect(address);
        }
    }
}
