//! Kafka, by librdkafka: partitions are assigned, never subscribed to, and nothing is ever committed there.
//!
//! Who reads a topic stands in the compacted topic `dpsw-owners`, under the topic's name. It is changed in a transaction whose
//! id belongs to the topic: of two that change it at once, Kafka fences one.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Message, Offset, TopicPartitionList};

use crate::broker::access::{BrokerAccess, Sasl, Trust};
use crate::broker::claim::Claim;
use crate::broker::connector::{Begun, Connector, Offsets, Record, Take};
use crate::broker::error::BrokerError;
use crate::config::BrokerConfig;
use crate::sync::LockAnyway;

/// The topic that says who reads which topic.
const OWNERS: &str = "dpsw-owners";
/// How long the broker may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Consumers need the name of a group, also if they never join one.
const GROUP: &str = "dpsw";
/// How many of the client's own remarks are heard where a broker is not reached.
const HEARD_MAX: usize = 100;

/// How much is fetched ahead: few records, since each takes some hundred bytes beside its own and cold memory is slow, and again as
/// soon as there is room (by default a full queue rests for a second).
const FETCHED_AHEAD: [(&str, &str); 4] = [
    ("queued.max.messages.kbytes", "32768"),
    ("fetch.max.bytes", "16777216"),
    ("queued.min.messages", "50000"),
    ("fetch.queue.backoff.ms", "2"),
];

pub(crate) struct Kafka {
    /// How the broker is reached.
    client: ClientConfig,
    topic: String,
    consumer: BaseConsumer<Hearing>,
    owners: Owners,
    partitions: usize,
}

/// The last remark of the client about itself, which tells more than what a call returns.
#[derive(Default)]
struct Hearing(Mutex<Option<String>>);

impl ClientContext for Hearing {
    fn error(&self, _: KafkaError, reason: &str) {
        *self.0.lock_anyway() = Some(reason.to_owned());
    }
}

impl ConsumerContext for Hearing {}

impl Hearing {
    fn last(&self) -> Option<String> {
        self.0.lock_anyway().take()
    }
}

/// The topic of owners, as far as it was read.
struct Owners {
    consumer: BaseConsumer,
    /// The end that was read up to.
    end: i64,
    claim: Option<Claim>,
}

impl Kafka {
    pub(crate) fn connect(config: &BrokerConfig, access: Option<&BrokerAccess>) -> Result<Self, BrokerError> {
        let client = client(&config.address, access)?;
        let consumer = consumer_config(&client, &FETCHED_AHEAD).create_with_context(Hearing::default())?;
        // It is read from the beginning, wherever that is by now.
        let owners = [("enable.partition.eof", "true"), ("auto.offset.reset", "earliest")];
        let owners = Owners { consumer: consumer_config(&client, &owners).create()?, end: 0, claim: None };
        let kafka = Self { client, topic: config.topic.clone(), consumer, owners, partitions: 0 };
        kafka.greet()?;
        Ok(kafka)
    }

    /// Asks for anything at all. Why a login or a certificate is refused, the client says aside.
    fn greet(&self) -> Result<(), BrokerError> {
        let Err(error) = self.consumer.fetch_metadata(Some(&self.topic), TIMEOUT) else { return Ok(()) };
        // An answer may be a line of the client's own log, which looks like none.
        let heard = (0..HEARD_MAX).filter_map(|_| {
            drop(self.consumer.poll(Duration::ZERO));
            self.consumer.context().last().map(BrokerError::of_client)
        });
        let mut telling = heard.filter(|error| !matches!(error, BrokerError::Failed(_)));
        Err(telling.next().unwrap_or_else(|| error.into()))
    }

    fn count_partitions(&self) -> Result<usize, BrokerError> {
        let metadata = self.consumer.fetch_metadata(Some(&self.topic), TIMEOUT)?;
        let topic = metadata.topics().first().ok_or(BrokerError::NoTopic)?;
        match topic.error() {
            None => Ok(topic.partitions().len()),
            Some(_) => Err(BrokerError::NoTopic),
        }
    }

    /// The first offset that each partition has, and the one that the next record will have.
    fn watermarks(&self, partition: u32) -> Result<(i64, i64), BrokerError> {
        Ok(self.consumer.fetch_watermarks(&self.topic, partition.cast_signed(), TIMEOUT)?)
    }

    fn all_partitions(&self) -> Result<std::ops::Range<u32>, BrokerError> {
        let count = u32::try_from(self.count_partitions()?);
        Ok(0..count.map_err(|_| BrokerError::Failed("it has too many partitions".to_owned()))?)
    }
}

impl Connector for Kafka {
    fn claim(&mut self) -> Result<Option<Claim>, BrokerError> {
        self.owners.refresh(&self.topic)?;
        Ok(self.owners.claim.clone())
    }

    fn replace_claim(&mut self, old: Option<&Claim>, new: &Claim) -> Result<bool, BrokerError> {
        make_owners(&self.client)?;
        let mut config = self.client.clone();
        config
            .set("transactional.id", format!("dpsw-owner-{}", self.topic))
            .set("transaction.timeout.ms", "10000");
        let producer: BaseProducer = config.create()?;
        // From here on, whoever began before cannot commit.
        producer.init_transactions(TIMEOUT)?;
        if self.claim()?.as_ref() != old {
            return Ok(false);
        }
        producer.begin_transaction()?;
        let text = new.to_text();
        let record = BaseRecord::to(OWNERS).key(&self.topic).payload(&text);
        producer.send(record).map_err(|(error, _)| BrokerError::from(error))?;
        match producer.commit_transaction(TIMEOUT) {
            Ok(()) => Ok(true),
            Err(KafkaError::Transaction(error)) if error.code() == RDKafkaErrorCode::Fenced => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn ends(&mut self) -> Result<Offsets, BrokerError> {
        let mut ends = Offsets::new();
        for partition in self.all_partitions()? {
            let (_, next) = self.watermarks(partition)?;
            ends.extend(u128::try_from(next - 1).ok().map(|last| (partition, last)));
        }
        Ok(ends)
    }

    fn begin(&mut self, taken: &Offsets) -> Result<Begun, BrokerError> {
        let partitions = self.all_partitions()?;
        self.partitions = partitions.len();
        let mut list = TopicPartitionList::new();
        let mut begun = Begun::After;
        for partition in partitions {
            let (first, next) = self.watermarks(partition)?;
            let wanted = match taken.get(&partition) {
                Some(last) => i64::try_from(last + 1).map_err(|_| BrokerError::Ahead)?,
                None => first,
            };
            if next < wanted {
                return Err(BrokerError::Ahead);
            }
            if wanted < first {
                begun = Begun::Later;
            }
            let from = Offset::Offset(wanted.max(first));
            list.add_partition_offset(&self.topic, partition.cast_signed(), from)?;
        }
        self.consumer.assign(&list)?;
        Ok(begun)
    }

    fn poll(&mut self, most: usize, patience: Duration, take: Take<'_>) -> Result<(), BrokerError> {
        let mut patience = patience;
        for _ in 0..most {
            let message = match self.consumer.poll(patience) {
                None => break,
                Some(message) => message?,
            };
            if !take(record(&message)) {
                break;
            }
            patience = Duration::ZERO;
        }
        Ok(())
    }

    fn has_grown(&mut self) -> Result<bool, BrokerError> {
        Ok(self.partitions < self.count_partitions()?)
    }
}

fn record<'m>(message: &'m rdkafka::message::BorrowedMessage<'_>) -> Record<'m> {
    let time_ms = message.timestamp().to_millis().unwrap_or(0);
    Record {
        partition: message.partition().cast_unsigned(),
        offset: message.offset().cast_unsigned().into(),
        time_ms: time_ms.try_into().unwrap_or(0),
        value: message.payload(),
    }
}

impl Owners {
    /// Reads what was written since.
    fn refresh(&mut self, topic: &str) -> Result<(), BrokerError> {
        let end = match self.consumer.fetch_watermarks(OWNERS, 0, TIMEOUT) {
            Ok((_, end)) => end,
            // Nobody has claimed anything on this broker.
            Err(error) if is_unknown_topic(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if end == self.end {
            return Ok(());
        }
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(OWNERS, 0, Offset::Offset(self.end))?;
        self.consumer.assign(&list)?;
        self.read_to_end(topic)?;
        self.end = end;
        Ok(())
    }

    fn read_to_end(&mut self, topic: &str) -> Result<(), BrokerError> {
        let since = Instant::now();
        while since.elapsed() < TIMEOUT {
            match self.consumer.poll(TIMEOUT) {
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(message) => {
                    let message = message?;
                    if message.key() == Some(topic.as_bytes()) {
                        let text = message.payload().map(String::from_utf8_lossy);
                        self.claim = text.map(|text| Claim::from_text(&text));
                    }
                }
                None => {}
            }
        }
        Err(BrokerError::Failed("it does not say who reads the topic".to_owned()))
    }
}

fn client(address: &str, access: Option<&BrokerAccess>) -> Result<ClientConfig, BrokerError> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", address).set("allow.auto.create.topics", "false");
    let Some(access) = access else { return Ok(config) };
    if !cfg!(feature = "kafka-tls") && (access.tls.is_some() || access.sasl != Sasl::Plain) {
        return Err(BrokerError::NotBuilt("kafka-tls"));
    }
    let password = access.password()?;
    config.set("security.protocol", protocol(access.tls.is_some(), password.is_some()));
    if let Some(Trust::Ca(path)) = &access.tls {
        config.set("ssl.ca.location", path.to_string_lossy());
    }
    if let Some(password) = password {
        config.set("sasl.mechanism", mechanism(access.sasl)).set("sasl.password", password.text());
        let user = access.user.as_deref();
        let nobody = || BrokerError::Secret("Kafka wants a user with the password".to_owned());
        config.set("sasl.username", user.ok_or_else(nobody)?);
    }
    Ok(config)
}

fn protocol(has_tls: bool, has_password: bool) -> &'static str {
    match (has_tls, has_password) {
        (false, false) => "plaintext",
        (false, true) => "sasl_plaintext",
        (true, false) => "ssl",
        (true, true) => "sasl_ssl",
    }
}

fn mechanism(sasl: Sasl) -> &'static str {
    match sasl {
        Sasl::Plain => "PLAIN",
        Sasl::ScramSha256 => "SCRAM-SHA-256",
        Sasl::ScramSha512 => "SCRAM-SHA-512",
    }
}

fn consumer_config(client: &ClientConfig, settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = client.clone();
    // Where reading begins is for us to say, each time.
    config.set("group.id", GROUP).set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
    config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
    for (name, value) in settings {
        config.set(*name, *value);
    }
    config
}

/// Makes the topic of owners, if it is not there.
fn make_owners(client: &ClientConfig) -> Result<(), BrokerError> {
    let admin: AdminClient<DefaultClientContext> = client.create()?;
    // As many replicas as the broker makes by default.
    let topic = NewTopic::new(OWNERS, 1, TopicReplication::Fixed(-1)).set("cleanup.policy", "compact");
    let options = AdminOptions::new().operation_timeout(Some(TIMEOUT)).request_timeout(Some(TIMEOUT));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| BrokerError::Failed(error.to_string()))?;
    let made = runtime.block_on(admin.create_topics(&[topic], &options))?;
    match made.first() {
        Some(Err((_, code))) if *code != RDKafkaErrorCode::TopicAlreadyExists => {
            Err(BrokerError::Failed(format!("the topic {OWNERS} cannot be made: {code}")))
        }
        _ => Ok(()),
    }
}

fn is_unknown_topic(error: &KafkaError) -> bool {
    let unknown = [RDKafkaErrorCode::UnknownTopicOrPartition, RDKafkaErrorCode::UnknownPartition];
    error
        .rdkafka_error_code()
        .is_some_and(|code| unknown.contains(&code) || code == RDKafkaErrorCode::UnknownTopic)
}

impl From<KafkaError> for BrokerError {
    fn from(error: KafkaError) -> Self {
        match error {
            error if is_unknown_topic(&error) => Self::NoTopic,
            error => Self::of_client(error.to_string()),
        }
    }
}
