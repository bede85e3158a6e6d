//! Keeps tokens, as hashes, in a file that only the owner may read. The service and `dpsw-server token` may both change it.
//!
//! Which tokens were deleted is kept beside the marker, which is in no backup: a restored data folder has the tokens of its day, and
//! those that were deleted since stay deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant, SystemTime};

use dpsw_durable::disk::{owner_only, replace_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::auth::rate::Bucket;
use crate::auth::token::{NewToken, TokenHash, id_of};
use crate::auth::{Grant, Role};
use crate::limits::Limits;
use crate::sync::{LockAnyway, ShareAnyway};

/// The name of the file, in the data folder.
pub const TOKENS_FILE: &str = "tokens.json";
/// The name of the file of the ids of deleted tokens, in the marker folder.
const DELETED_FILE: &str = "deleted-tokens.json";

pub(crate) const TOKEN_NAME_LEN_MAX: usize = 100;

/// Tokens that cannot be read, made or deleted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The file cannot be used.
    #[error("the tokens in {path} cannot be read or changed: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{path} does not hold tokens: {reason}; restore it, or remove it to begin anew")]
    Damaged {
        /// The file.
        path: String,
        /// How that shows.
        reason: String,
    },
    /// There are as many as the service takes.
    #[error("there are {0} tokens, which is the most; delete one first")]
    Many(usize),
    /// No such token.
    #[error("there is no token with the id {0:?}")]
    Unknown(String),
    /// A name that cannot be kept.
    #[error("the name of a token has at most {TOKEN_NAME_LEN_MAX} bytes, got {0}")]
    Name(usize),
    /// A token that may do nothing.
    #[error("a token needs at least one role: ingest, query or admin")]
    NoRole,
    /// The system gives no randomness.
    #[error("no token can be made: the system gives no randomness: {0}")]
    Entropy(String),
}

/// A token as it is listed, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenReport {
    /// Its public id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub grant: Grant,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
}

/// A token that has shown itself: who asks.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) id: String,
    pub(crate) grant: Grant,
    /// Whose batch ids it uses: those of its name, so that a token can be replaced by another; without a name its own.
    pub(crate) batch_owner: String,
    hash: TokenHash,
    bucket: Mutex<Bucket>,
    /// The numbers of the streams that it names, once they are there.
    bound: RwLock<BTreeMap<String, u64>>,
}

/// The tokens.
#[derive(Debug)]
pub struct Keeper {
    path: PathBuf,
    deleted_path: PathBuf,
    most: usize,
    per_second: u32,
    burst: u32,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    file: TokensFile,
    stamp: Option<Stamp>,
    callers: BTreeMap<String, Arc<Caller>>,
}

/// The time and the length of a file, which tell that it changed without reading it.
type Stamp = (SystemTime, u64);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    tokens: Vec<KeptToken>,
}

/// The ids of all tokens that were ever deleted.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deleted {
    ids: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptToken {
    id: String,
    name: String,
    /// SHA-256 in hexadecimal digits.
    hash: String,
    grant: Grant,
    made_ms: u64,
    /// The numbers of the streams that the grant names, once they are there: a later stream of the same name is another one.
    bound: BTreeMap<String, u64>,
}

impl KeptToken {
    /// No name can be taken for an id.
    fn batch_owner(&self) -> String {
        if self.name.is_empty() { format!("id {}", self.id) } else { format!("name {}", self.name) }
    }

    /// The streams that it names and is not tied to yet.
    fn loose(&self) -> impl Iterator<Item = &String> {
        self.grant.streams.iter().flatten().filter(|name| !self.bound.contains_key(*name))
    }
}

impl Keeper {
    /// The tokens of a data folder, without those that were deleted; none if there is no file yet. Both folders must exist.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn open(data_folder: &Path, marker_folder: &Path, limits: &Limits) -> Result<Self, TokensError> {
        let keeper = Self {
            path: data_folder.join(TOKENS_FILE),
            deleted_path: marker_folder.join(DELETED_FILE),
            most: limits.tokens,
            per_second: limits.requests_per_second,
            burst: limits.requests_burst,
            known: RwLock::default(),
        };
        keeper.reload()?;
        Ok(keeper)
    }

    /// Takes out the tokens that had been deleted before and are in the file all the same, which is then an older copy. Their ids.
    ///
    /// # Errors
    /// A file cannot be read or written. They are known to nobody all the same.
    pub fn take_out_deleted(&self) -> Result<Vec<String>, TokensError> {
        let (file, deleted): (TokensFile, Deleted) = (read(&self.path)?, read(&self.deleted_path)?);
        let revived = file.tokens.into_iter().map(|token| token.id).filter(|id| deleted.ids.contains(id));
        let revived: Vec<String> = revived.collect();
        if !revived.is_empty() {
            // Whoever changes the file reads it without them.
            self.change(|_| Ok(()))?;
        }
        Ok(revived)
    }

    /// Makes a token.
    ///
    /// # Errors
    /// There are too many, the file cannot be written, or there is no randomness.
    pub fn create(&self, name: &str, grant: Grant, now_ms: u64) -> Result<NewToken, TokensError> {
        if TOKEN_NAME_LEN_MAX < name.len() {
            return Err(TokensError::Name(name.len()));
        }
        if grant.roles.is_empty() {
            return Err(TokensError::NoRole);
        }
        let token = NewToken::make().map_err(|error| TokensError::Entropy(error.to_string()))?;
        let id = token.id.clone();
        let hash = token.hash().to_text();
        let bound = BTreeMap::new();
        let kept = KeptToken { id, name: name.to_owned(), hash, grant, made_ms: now_ms, bound };
        self.change(|file| {
            if self.most <= file.tokens.len() {
                return Err(TokensError::Many(self.most));
            }
            file.tokens.push(kept);
            Ok(())
        })?;
        Ok(token)
    }

    /// Deletes a token; from then on it is unknown.
    ///
    /// # Errors
    /// There is no such token, or the file cannot be written.
    pub fn delete(&self, id: &str) -> Result<(), TokensError> {
        self.change(|file| {
            let place = file.tokens.iter().position(|token| token.id == id);
            file.tokens.remove(place.ok_or_else(|| TokensError::Unknown(id.to_owned()))?);
            let mut deleted: Deleted = read(&self.deleted_path)?;
            deleted.ids.insert(id.to_owned());
            write(&self.deleted_path, &deleted)
        })
    }

    /// Ties the tokens that name streams to those that are there now, of which `number` is the own number. From then on such a token
    /// is for that stream, and for no later one of the same name.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn bind(&self, number: impl Fn(&str) -> Option<u64>) -> Result<(), TokensError> {
        self.reload()?;
        let is_loose = |token: &KeptToken| token.loose().any(|name| number(name).is_some());
        let known = self.known.read_anyway();
        let has_loose = known.file.tokens.iter().any(is_loose);
        drop(known);
        if !has_loose {
            return Ok(());
        }
        self.change(|file| {
            for token in &mut file.tokens {
                let found: Vec<_> =
                    token.loose().filter_map(|name| Some((name.clone(), number(name)?))).collect();
                token.bound.extend(found);
            }
            Ok(())
        })
    }

    /// All tokens, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<TokenReport> {
        let known = self.known.read_anyway();
        let report =
            |KeptToken { id, name, grant, made_ms, .. }: KeptToken| TokenReport { id, name, grant, made_ms };
        known.file.tokens.iter().cloned().map(report).collect()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.read_anyway().callers.is_empty()
    }

    /// Who shows this token, if anyone. One that is not known may have been made by another process a moment ago.
    pub(crate) fn caller(&self, token: &str) -> Option<Arc<Caller>> {
        self.known_caller(token).or_else(|| {
            self.reload_if_stamped().ok()?;
            self.known_caller(token)
        })
    }

    fn known_caller(&self, token: &str) -> Option<Arc<Caller>> {
        let known = self.known.read_anyway();
        let caller = known.callers.get(id_of(token)?)?;
        caller.hash.equals(&TokenHash::of(token)).then(|| Arc::clone(caller))
    }

    /// Whether a caller's token is still there.
    pub(crate) fn knows(&self, caller: &Caller) -> bool {
        let known = self.known.read_anyway();
        known.callers.get(&caller.id).is_some_and(|kept| kept.hash.equals(&caller.hash))
    }

    fn reload_if_stamped(&self) -> Result<(), TokensError> {
        let stamp = stamp(&self.path);
        let is_new = self.known.read_anyway().stamp != stamp;
        if is_new { self.reload() } else { Ok(()) }
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// It cannot be read; the tokens that were known stay.
    pub fn reload(&self) -> Result<(), TokensError> {
        let stamp = stamp(&self.path);
        self.know(self.read()?, stamp)
    }

    fn know(&self, file: TokensFile, stamp: Option<Stamp>) -> Result<(), TokensError> {
        let mut known = self.known.write_anyway();
        let mut callers = BTreeMap::new();
        for token in &file.tokens {
            let hash =
                TokenHash::from_text(&token.hash).ok_or_else(|| damaged(&self.path, "a hash is none"))?;
            // A caller who stays keeps its bucket.
            let caller = match known.callers.get(&token.id).filter(|caller| caller.is_of(token, &hash)) {
                Some(caller) => Arc::clone(caller),
                None => Arc::new(self.new_caller(token, hash)),
            };
            caller.bound.write_anyway().clone_from(&token.bound);
            callers.insert(token.id.clone(), caller);
        }
        *known = Known { file, stamp, callers };
        Ok(())
    }

    fn new_caller(&self, token: &KeptToken, hash: TokenHash) -> Caller {
        let bucket = Mutex::new(Bucket::new(self.per_second, self.burst, Instant::now()));
        let id = token.id.clone();
        let grant = token.grant.clone();
        let batch_owner = token.batch_owner();
        let bound = RwLock::default();
        Caller { id, grant, batch_owner, hash, bucket, bound }
    }

    /// Changes the file as it is now, alone.
    fn change(
        &self,
        change: impl FnOnce(&mut TokensFile) -> Result<(), TokensError>,
    ) -> Result<(), TokensError> {
        let lock_path = self.path.with_extension("lock");
        let failed = |source| failed(&self.path, source);
        let lock = owner_only().write(true).create(true).truncate(false).open(&lock_path).map_err(failed)?;
        keep_owner(&lock, &lock_path).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut file = self.read()?;
        change(&mut file)?;
        write(&self.path, &file)?;
        self.know(file, stamp(&self.path))
    }

    /// The tokens without those that were deleted.
    fn read(&self) -> Result<TokensFile, TokensError> {
        let (mut file, deleted): (TokensFile, Deleted) = (read(&self.path)?, read(&self.deleted_path)?);
        file.tokens.retain(|token| !deleted.ids.contains(&token.id));
        Ok(file)
    }
}

/// What a file holds; nothing if there is none.
fn read<T: DeserializeOwned + Default>(path: &Path) -> Result<T, TokensError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| damaged(path, &error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(source) => Err(failed(path, source)),
    }
}

/// Replaces a file: whoever reads it sees the old one or the new one.
fn write(path: &Path, content: &impl Serialize) -> Result<(), TokensError> {
    let replaced = replace_file(path, |file| {
        keep_owner(file, path)?;
        file.write_all(&serde_json::to_vec_pretty(content)?)
    });
    replaced.map_err(|source| failed(path, source))
}

/// Root may make tokens for a service that runs as another user: a file that root makes belongs to the owner of its folder.
#[cfg(unix)]
fn keep_owner(file: &fs::File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let Some(folder) = path.parent() else { return Ok(()) };
    let file_uid = file.metadata()?.uid();
    let folder = fs::metadata(folder)?;
    if file_uid != 0 || folder.uid() == 0 {
        return Ok(());
    }
    fchown(file, Some(folder.uid()), Some(folder.gid()))
}

/// Other systems have no such owners.
#[cfg(not(unix))]
fn keep_owner(_: &fs::File, _: &Path) -> io::Result<()> {
    Ok(())
}

fn failed(path: &Path, source: io::Error) -> TokensError {
    TokensError::File { path: path.display().to_string(), source }
}

fn damaged(path: &Path, reason: &str) -> TokensError {
    TokensError::Damaged { path: path.display().to_string(), reason: reason.to_owned() }
}

impl Caller {
    /// Whether nothing of its token has changed.
    fn is_of(&self, token: &KeptToken, hash: &TokenHash) -> bool {
        self.hash.equals(hash) && self.grant == token.grant && self.batch_owner == token.batch_owner()
    }

    /// Whether it may do this with a stream, of which `number` is the own number, `None` if there is no such stream.
    pub(crate) fn allows_stream(&self, role: Role, stream: &str, number: Option<u64>, source: &str) -> bool {
        self.grant.allows_source(role, source)
            || self.grant.roles.contains(&role) && self.names_stream(stream, number)
    }

    /// Whether it is for this stream by name, and not for an earlier one of the same name.
    pub(crate) fn names_stream(&self, stream: &str, number: Option<u64>) -> bool {
        let bound = self.bound.read_anyway();
        let is_the_same = bound.get(stream).is_none_or(|bound| Some(*bound) == number);
        self.grant.names_stream(stream) && is_the_same
    }

    /// Counts a request, or says how long to wait.
    pub(crate) fn take(&self, now: Instant) -> Result<(), Duration> {
        self.bucket.lock_anyway().take(now)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(folder: &Path) -> Keeper {
        Keeper::open(folder, folder, &Limits { tokens: 3, ..Limits::default() }).expect("a folder")
    }

    #[test]
    fn tokens_are_known_until_they_are_deleted_also_to_another_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (keeper(folder.path()), keeper(folder.path()));
        let token = one.create("first", Grant::everything(), 5).expect("a token");
        let caller = one.caller(&token.text).expect("it was just made");
        assert_eq!((&caller.id, other.caller(&token.text).is_some()), (&token.id, true));
        assert_eq!(keeper(folder.path()).list(), one.list());
        other.delete(&token.id).expect("it is there");
        one.reload().expect("the file");
        assert!(one.caller(&token.text).is_none() && !one.knows(&caller));
        assert!(matches!(one.delete(&token.id), Err(TokensError::Unknown(_))));
    }

    #[test]
    fn a_token_that_was_deleted_stays_deleted_when_an_older_file_is_restored() {
        let (data, marker) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let open = || Keeper::open(data.path(), marker.path(), &Limits::default()).expect("the folders");
        let keeper = open();
        let token = keeper.create("lost", Grant::everything(), 5).expect("a token");
        let other = keeper.create("kept", Grant::everything(), 5).expect("a token");
        let backup = fs::read(data.path().join(TOKENS_FILE)).expect("a file");
        keeper.delete(&token.id).expect("it is there");
        fs::write(data.path().join(TOKENS_FILE), backup).expect("a file");
        for keeper in [keeper, open()] {
            keeper.reload().expect("the files");
            assert!(keeper.caller(&token.text).is_none() && keeper.caller(&other.text).is_some());
            assert_eq!(keeper.list().len(), 1);
        }
        assert_eq!(open().take_out_deleted().expect("the files"), [token.id]);
        assert_eq!(open().take_out_deleted().expect("the files"), Vec::<String>::new(), "it is said once");
    }

    #[test]
    fn only_the_whole_token_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let keeper = keeper(folder.path());
        let token = keeper.create("", Grant::everything(), 5).expect("a token");
        let other = keeper.create("", Grant::everything(), 5).expect("a token");
        let secret = other.text.splitn(3, '_').nth(2).expect("three parts");
        for wrong in [
            format!("dpsw_{}_{secret}", token.id),
            format!("{}x", *token.text),
            token.text[..token.text.len() - 1].to_owned(),
            token.id.clone(),
            String::new(),
        ] {
            assert!(keeper.caller(&wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn neither_the_file_nor_debug_output_holds_a_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let keeper = keeper(folder.path());
        let token = keeper.create("first", Grant::everything(), 5).expect("a token");
        let secret = token.text.splitn(3, '_').nth(2).expect("three parts");
        let file = fs::read_to_string(folder.path().join(TOKENS_FILE)).expect("written");
        assert!(file.contains("first") && !file.contains(secret) && !format!("{keeper:?}").contains(secret));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let metadata = fs::metadata(folder.path().join(TOKENS_FILE)).expect("written");
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_cannot_be_a_token_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let keeper = keeper(folder.path());
        let nothing = Grant { roles: BTreeSet::new(), ..Grant::everything() };
        assert!(matches!(keeper.create("", nothing, 5), Err(TokensError::NoRole)));
        let long = "x".repeat(TOKEN_NAME_LEN_MAX + 1);
        assert!(matches!(keeper.create(&long, Grant::everything(), 5), Err(TokensError::Name(_))));
        let query = Grant { roles: BTreeSet::from([Role::Query]), sources: None, streams: None };
        (0..3).for_each(|_| drop(keeper.create("", query.clone(), 5).expect("room")));
        assert!(matches!(keeper.create("", query, 5), Err(TokensError::Many(3))));
        fs::write(folder.path().join(TOKENS_FILE), "{}").expect("a file");
        assert!(matches!(keeper.reload(), Err(TokensError::Damaged { .. })));
        assert_eq!(keeper.list().len(), 3);
    }
}
