//! Redis streams: entries are read with `XRANGE`, and the field `value` of each is its value.
//!
//! Who reads a stream stands under `dpsw:owner:` and the stream's key.

use std::time::{Duration, Instant};

use redis::streams::{StreamInfoStreamReply, StreamRangeReply};
use redis::{
    Client, Commands, Connection, ConnectionInfo, IntoConnectionInfo, RedisError, Script, TlsCertificates,
};

use crate::broker::access::BrokerAccess;
use crate::broker::claim::Claim;
use crate::broker::connector::{Begun, Connector, Offsets, Record, Take};
use crate::broker::error::BrokerError;
use crate::config::BrokerConfig;

/// How long Redis may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most entries of one reply, which is in memory as a whole.
const ENTRIES_MAX: usize = 1 << 12;
/// A reply has no more entries from this many bytes of values on: it is in memory as a whole.
const REPLY_BYTES_MAX: usize = 4 << 20;
/// A longer value is not sent by Redis, and counts as one that cannot be read.
const VALUE_LEN_MAX: usize = 1 << 20;
/// How long to wait before an empty stream is looked at again.
const PAUSE: Duration = Duration::from_millis(5);

/// Reads entries from an id on: at most so many, until their values have so many bytes, each value up to so many. Nothing else
/// bounds a reply: producers may write entries of any length.
const READ: &str = "
local from, most = ARGV[1], tonumber(ARGV[2])
local bytes_max, len_max = tonumber(ARGV[3]), tonumber(ARGV[4])
local entries, bytes = {}, 0
while #entries < most do
  local wanted = math.min(64, most - #entries)
  local found = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', wanted)
  for _, entry in ipairs(found) do
    local value, fields = false, entry[2]
    for i = 1, #fields, 2 do
      if fields[i] == 'value' then value = fields[i + 1] end
    end
    if value and len_max < #value then value = false end
    if value then bytes = bytes + #value end
    entries[#entries + 1] = {entry[1], value}
    if bytes_max <= bytes then return entries end
  end
  if #found < wanted then return entries end
  from = '(' .. found[#found][1]
end
return entries";

/// Replaces a claim if it is still the one that was seen.
const REPLACE: &str = "
local found = redis.call('GET', KEYS[1])
if (found or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1";

/// An entry: its id, and its value if it has one.
type Entry = (String, Option<Vec<u8>>);

pub(crate) struct Redis {
    connection: Connection,
    topic: String,
    last: u128,
}

impl Redis {
    pub(crate) fn connect(config: &BrokerConfig, access: Option<&BrokerAccess>) -> Result<Self, BrokerError> {
        let client = client(&config.address, access)?;
        let connection = client.get_connection_with_timeout(TIMEOUT)?;
        connection.set_read_timeout(Some(TIMEOUT))?;
        connection.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self { connection, topic: config.topic.clone(), last: 0 })
    }

    fn owner_key(&self) -> String {
        format!("dpsw:owner:{}", self.topic)
    }

    /// Whether the stream still has the entry that was read last, if any was.
    fn has_last(&mut self) -> Result<bool, BrokerError> {
        let last = id(self.last);
        let found: StreamRangeReply = self.connection.xrange(&self.topic, &last, &last)?;
        Ok(self.last == 0 || !found.ids.is_empty())
    }

    fn read(&mut self, most: usize) -> Result<Vec<Entry>, BrokerError> {
        let script = Script::new(READ);
        let mut call = script.key(&self.topic);
        call.arg(format!("({}", id(self.last))).arg(most.min(ENTRIES_MAX));
        call.arg(REPLY_BYTES_MAX).arg(VALUE_LEN_MAX);
        Ok(call.invoke(&mut self.connection)?)
    }

    /// The id of the newest entry that the stream ever had; `None` if there is no stream.
    fn newest(&mut self) -> Result<Option<u128>, BrokerError> {
        let info: Result<StreamInfoStreamReply, _> = self.connection.xinfo_stream(&self.topic);
        match info {
            Ok(info) => Ok(Some(offset(&info.last_generated_id)?)),
            Err(error) if error.to_string().contains("no such key") => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Connector for Redis {
    fn claim(&mut self) -> Result<Option<Claim>, BrokerError> {
        let text: Option<String> = self.connection.get(self.owner_key())?;
        Ok(text.map(|text| Claim::from_text(&text)))
    }

    fn replace_claim(&mut self, old: Option<&Claim>, new: &Claim) -> Result<bool, BrokerError> {
        let script = Script::new(REPLACE);
        let key = self.owner_key();
        let mut call = script.key(key);
        call.arg(old.map(Claim::to_text).unwrap_or_default()).arg(new.to_text());
        Ok(call.invoke(&mut self.connection)?)
    }

    fn ends(&mut self) -> Result<Offsets, BrokerError> {
        Ok(self.newest()?.into_iter().map(|last| (0, last)).collect())
    }

    fn begin(&mut self, taken: &Offsets) -> Result<Begun, BrokerError> {
        self.last = taken.get(&0).copied().unwrap_or(0);
        match self.newest()? {
            None if self.last == 0 => Err(BrokerError::NoTopic),
            Some(newest) if self.last <= newest => {
                Ok(if self.has_last()? { Begun::After } else { Begun::Later })
            }
            _ => Err(BrokerError::Ahead),
        }
    }

    fn poll(&mut self, most: usize, patience: Duration, take: Take<'_>) -> Result<(), BrokerError> {
        let since = Instant::now();
        let mut entries = self.read(most)?;
        while entries.is_empty() && since.elapsed() < patience {
            std::thread::sleep(PAUSE);
            entries = self.read(most)?;
        }
        for (entry, value) in entries {
            let offset = offset(&entry)?;
            let time_ms = u64::try_from(offset >> 64).unwrap_or(0);
            self.last = offset;
            if !take(Record { partition: 0, offset, time_ms, value: value.as_deref() }) {
                break;
            }
        }
        Ok(())
    }
}

fn client(address: &str, access: Option<&BrokerAccess>) -> Result<Client, BrokerError> {
    let Some(access) = access else { return Ok(Client::open(format!("redis://{address}/"))?) };
    if access.tls.is_none() {
        return Ok(Client::open(logged_in(format!("redis://{address}/"), access)?)?);
    }
    let certificates = TlsCertificates { client_tls: None, root_cert: access.authority()? };
    Ok(Client::build_with_tls(logged_in(format!("rediss://{address}/"), access)?, certificates)?)
}

fn logged_in(address: String, access: &BrokerAccess) -> Result<ConnectionInfo, BrokerError> {
    let info = address.into_connection_info()?;
    let mut login = info.redis_settings().clone();
    if let Some(user) = &access.user {
        login = login.set_username(user);
    }
    if let Some(password) = access.password()? {
        login = login.set_password(password.text());
    }
    Ok(info.set_redis_settings(login))
}

/// An id as a number: milliseconds, then the number within the millisecond.
fn offset(id: &str) -> Result<u128, BrokerError> {
    let parts = id
        .split_once('-')
        .and_then(|(ms, number)| Some((ms.parse::<u64>().ok()?, number.parse::<u64>().ok()?)));
    let (ms, number) =
        parts.ok_or_else(|| BrokerError::Failed("an id of the stream cannot be read".to_owned()))?;
    Ok(u128::from(ms) << 64 | u128::from(number))
}

fn id(offset: u128) -> String {
    format!("{}-{}", offset >> 64, offset & u128::from(u64::MAX))
}

impl From<RedisError> for BrokerError {
    fn from(error: RedisError) -> Self {
        Self::of_client(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_order_of_their_numbers() {
        let ids =
            ["0-0", "0-1", "1-0", "1-18446744073709551615", "1700000000000-7", "18446744073709551615-0"];
        let offsets: Vec<u128> = ids.iter().map(|id| offset(id).expect("an id")).collect();
        assert!(offsets.is_sorted());
        assert_eq!(offsets.into_iter().map(id).collect::<Vec<_>>(), ids);
        for text in ["", "1", "1-", "-1", "1-x", "1-2-3"] {
            assert!(offset(text).is_err(), "{text}");
        }
    }
}
