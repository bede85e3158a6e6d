//! NATS JetStream: an ordered consumer reads the stream from where the source stands, and acknowledges nothing.
//!
//! Who reads a stream stands in the bucket `dpsw-owners`, under the stream's name.

use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::kv::{Operation, Store, UpdateErrorKind};
use async_nats::jetstream::{self, Context, Message, stream};
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::broker::access::{BrokerAccess, Trust};
use crate::broker::claim::Claim;
use crate::broker::connector::{Begun, Connector, Offsets, Record, Take};
use crate::broker::error::BrokerError;
use crate::config::BrokerConfig;

/// The bucket that says who reads which stream.
const OWNERS: &str = "dpsw-owners";
/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Records are asked for ahead, so many that they have at most this many bytes if all are as long as the server allows.
const AHEAD_BYTES_MAX: usize = 64 << 20;
/// The most of them.
const AHEAD_MAX: usize = 500;
/// How long a next record may take before a batch goes without it.
const LINGER: Duration = Duration::from_millis(1);

pub(crate) struct Nats {
    runtime: Runtime,
    context: Context,
    topic: String,
    messages: Option<Ordered>,
}

impl Nats {
    pub(crate) fn connect(config: &BrokerConfig, access: Option<&BrokerAccess>) -> Result<Self, BrokerError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(broker_error)?;
        let options = options(access)?.connection_timeout(TIMEOUT);
        let connect = async { options.connect(&config.address).await.map(jetstream::new) };
        let context = runtime.block_on(connect).map_err(broker_error)?;
        Ok(Self { runtime, context, topic: config.topic.clone(), messages: None })
    }

    async fn stream(&self) -> Result<stream::Stream, BrokerError> {
        self.context.get_stream(&self.topic).await.map_err(|error| match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.code() == 404 => BrokerError::NoTopic,
            _ => broker_error(error),
        })
    }

    async fn owners(&self) -> Result<Store, BrokerError> {
        if let Ok(store) = self.context.get_key_value(OWNERS).await {
            return Ok(store);
        }
        // The stream of a bucket. Asked for a bucket, the client asks older servers for what they do not know.
        let config = stream::Config {
            name: format!("KV_{OWNERS}"),
            subjects: vec![format!("$KV.{OWNERS}.>")],
            max_messages_per_subject: 1,
            allow_rollup: true,
            deny_delete: true,
            ..Default::default()
        };
        self.context.create_stream(config).await.map_err(broker_error)?;
        self.context.get_key_value(OWNERS).await.map_err(broker_error)
    }

    /// The claim, and its number in the bucket.
    async fn entry(&self) -> Result<(Option<Claim>, u64), BrokerError> {
        let entry = self.owners().await?.entry(&self.topic).await.map_err(broker_error)?;
        let Some(entry) = entry else { return Ok((None, 0)) };
        let claim = Claim::from_text(&String::from_utf8_lossy(&entry.value));
        Ok(((entry.operation == Operation::Put).then_some(claim), entry.revision))
    }

    async fn begin_after(&self, last: Option<u64>) -> Result<(Ordered, Begun), BrokerError> {
        let stream = self.stream().await?;
        let state = stream.get_info().await.map_err(broker_error)?.state;
        let (first, wanted) = (state.first_sequence, last.map_or(1, |last| last + 1));
        if state.last_sequence + 1 < wanted {
            return Err(BrokerError::Ahead);
        }
        let start_sequence = wanted.max(first).max(1);
        let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence };
        let longest = self.context.client().server_info().max_payload.max(1);
        let max_batch = i64::try_from((AHEAD_BYTES_MAX / longest).clamp(1, AHEAD_MAX)).unwrap_or(1);
        let config = OrderedConfig { deliver_policy, max_batch, ..Default::default() };
        let consumer = stream.create_consumer(config).await.map_err(broker_error)?;
        let begun = if last.is_some() && wanted < first { Begun::Later } else { Begun::After };
        Ok((consumer.messages().await.map_err(broker_error)?, begun))
    }
}

impl Connector for Nats {
    fn claim(&mut self) -> Result<Option<Claim>, BrokerError> {
        Ok(self.runtime.block_on(self.entry())?.0)
    }

    fn replace_claim(&mut self, old: Option<&Claim>, new: &Claim) -> Result<bool, BrokerError> {
        self.runtime.block_on(async {
            let (found, revision) = self.entry().await?;
            if found.as_ref() != old {
                return Ok(false);
            }
            let owners = self.owners().await?;
            match owners.update(&self.topic, new.to_text().into(), revision).await {
                Ok(_) => Ok(true),
                // Somebody has written since.
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(false),
                Err(error) => Err(broker_error(error)),
            }
        })
    }

    fn ends(&mut self) -> Result<Offsets, BrokerError> {
        let info =
            self.runtime.block_on(async { self.stream().await?.get_info().await.map_err(broker_error) })?;
        let last = info.state.last_sequence;
        Ok((0 < last).then_some((0, last.into())).into_iter().collect())
    }

    fn begin(&mut self, taken: &Offsets) -> Result<Begun, BrokerError> {
        let last =
            taken.get(&0).map(|last| u64::try_from(*last)).transpose().map_err(|_| BrokerError::Ahead)?;
        let (messages, begun) = self.runtime.block_on(self.begin_after(last))?;
        self.messages = Some(messages);
        Ok(begun)
    }

    fn poll(&mut self, most: usize, patience: Duration, take: Take<'_>) -> Result<(), BrokerError> {
        let Some(messages) = &mut self.messages else { return Ok(()) };
        let mut patience = patience;
        self.runtime.block_on(async {
            for _ in 0..most {
                let message = match timeout(patience, messages.next()).await {
                    Err(_) => return Ok(()),
                    Ok(None) => return Err(BrokerError::Failed("it ended the reading".to_owned())),
                    Ok(Some(message)) => message.map_err(broker_error)?,
                };
                if !take(record(&message)?) {
                    return Ok(());
                }
                patience = LINGER;
            }
            Ok(())
        })
    }
}

fn options(access: Option<&BrokerAccess>) -> Result<ConnectOptions, BrokerError> {
    let (options, Some(access)) = (ConnectOptions::new(), access) else { return Ok(ConnectOptions::new()) };
    let options = match (access.password()?, &access.user) {
        (None, _) => options,
        (Some(token), None) => options.token(token.text().to_owned()),
        (Some(password), Some(user)) => options.user_and_password(user.clone(), password.text().to_owned()),
    };
    Ok(match &access.tls {
        None => options,
        Some(Trust::System) => options.require_tls(true),
        Some(Trust::Ca(path)) => options.require_tls(true).add_root_certificates(path.clone()),
    })
}

fn record(message: &Message) -> Result<Record<'_>, BrokerError> {
    let info = message.info().map_err(|error| BrokerError::Failed(error.to_string()))?;
    let time_ms = info.published.unix_timestamp_nanos() / 1_000_000;
    Ok(Record {
        partition: 0,
        offset: info.stream_sequence.into(),
        time_ms: time_ms.try_into().unwrap_or(0),
        value: Some(&message.payload),
    })
}

fn broker_error(error: impl std::fmt::Display) -> BrokerError {
    BrokerError::of_client(error.to_string())
}
