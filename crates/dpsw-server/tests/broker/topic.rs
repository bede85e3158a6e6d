//! A topic, as producers and impartial readers see it: what a broker has is the truth that counts are held against.

use std::time::Duration;

use async_nats::jetstream;
use futures_util::StreamExt;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use redis::Commands;
use redis::streams::StreamRangeReply;
use tokio::runtime::Runtime;

use crate::server::{Broker, Kind};

const TIMEOUT: Duration = Duration::from_secs(10);

/// A topic of a broker.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) kind: Kind,
    pub(crate) address: String,
    pub(crate) name: String,
}

/// One who sends records to a topic.
pub(crate) enum Sender {
    Kafka(Topic, ThreadedProducer<DefaultProducerContext>),
    Nats(Topic, Runtime, jetstream::Context),
    Redis(Topic, redis::Connection),
}

/// What went wrong with a broker that was perhaps killed.
pub(crate) type Lost = Box<dyn std::error::Error + Send + Sync>;

impl Topic {
    /// Makes a topic.
    pub(crate) fn make(broker: &Broker, name: &str) -> Self {
        let topic = Self { kind: broker.kind, address: broker.address(), name: name.to_owned() };
        match broker.kind {
            Kind::Kafka => topic.make_in_kafka(),
            Kind::Nats => topic.make_in_nats(),
            // The first entry makes it.
            Kind::Redis => {}
        }
        topic
    }

    fn make_in_kafka(&self) {
        let admin: AdminClient<DefaultClientContext> = self.kafka().create().expect("settings");
        let partitions = i32::try_from(self.kind.partitions()).expect("few");
        let topic = NewTopic::new(&self.name, partitions, TopicReplication::Fixed(1));
        let options = AdminOptions::new().operation_timeout(Some(TIMEOUT));
        let made = runtime().block_on(admin.create_topics(&[topic], &options)).expect("it answers");
        made.into_iter().for_each(|made| drop(made.expect("a topic")));
    }

    fn make_in_nats(&self) {
        let config = jetstream::stream::Config {
            name: self.name.clone(),
            subjects: vec![self.name.clone()],
            ..Default::default()
        };
        let made = runtime().block_on(async {
            let client = async_nats::connect(&self.address).await.expect("it answers");
            jetstream::new(client).create_stream(config).await.map(drop)
        });
        made.expect("a stream");
    }

    fn kafka(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.address).set("message.timeout.ms", "2000");
        config.set("reconnect.backoff.max.ms", "200");
        config
    }

    /// One who sends; an error where the broker is down.
    pub(crate) fn sender(&self) -> Result<Sender, Lost> {
        Ok(match self.kind {
            Kind::Kafka => Sender::Kafka(self.clone(), self.kafka().create()?),
            Kind::Nats => {
                let runtime = runtime();
                let connect =
                    async { Ok::<_, Lost>(jetstream::new(async_nats::connect(&self.address).await?)) };
                let context = runtime.block_on(connect)?;
                Sender::Nats(self.clone(), runtime, context)
            }
            Kind::Redis => {
                let client = redis::Client::open(format!("redis://{}/", self.address))?;
                Sender::Redis(self.clone(), client.get_connection_with_timeout(TIMEOUT)?)
            }
        })
    }

    /// Sends records to a broker that runs.
    pub(crate) fn send(&self, values: &[Option<&str>]) {
        self.sender().and_then(|mut sender| sender.send(values)).expect("it runs");
    }

    /// Deletes all records of a JetStream stream.
    pub(crate) fn purge(&self) {
        let purged = runtime().block_on(async {
            let context = jetstream::new(async_nats::connect(&self.address).await?);
            context.get_stream(&self.name).await?.purge().await?;
            Ok::<_, Lost>(())
        });
        purged.expect("it runs");
    }

    /// Gives a topic of Kafka so many partitions.
    pub(crate) fn grow(&self, partitions: usize) {
        let admin: AdminClient<DefaultClientContext> = self.kafka().create().expect("settings");
        let grown = [NewPartitions::new(&self.name, partitions)];
        let made = runtime().block_on(admin.create_partitions(&grown, &AdminOptions::new()));
        made.expect("it answers").into_iter().for_each(|made| drop(made.expect("a topic")));
    }

    /// Sends a value so often to one partition of Kafka.
    pub(crate) fn send_to(&self, partition: i32, value: &str, times: usize) {
        let producer: ThreadedProducer<DefaultProducerContext> = self.kafka().create().expect("settings");
        for _ in 0..times {
            let record = BaseRecord::<(), str>::to(&self.name).partition(partition).payload(value);
            producer.send(record).map_err(|(error, _)| error).expect("room");
        }
        producer.flush(TIMEOUT).expect("it runs");
    }

    /// All values that the topic has, those of each partition in order.
    pub(crate) fn all(&self) -> Vec<Option<String>> {
        match self.kind {
            Kind::Kafka => self.all_of_kafka(),
            Kind::Nats => runtime().block_on(self.all_of_nats()).expect("it runs"),
            Kind::Redis => self.all_of_redis(),
        }
    }

    fn all_of_kafka(&self) -> Vec<Option<String>> {
        let mut config = self.kafka();
        config.remove("message.timeout.ms");
        config.set("group.id", "test").set("enable.partition.eof", "true");
        let consumer: BaseConsumer = config.create().expect("settings");
        let mut list = TopicPartitionList::new();
        for partition in 0..self.kind.partitions() {
            let partition = i32::try_from(partition).expect("few");
            list.add_partition_offset(&self.name, partition, Offset::Beginning).expect("a partition");
        }
        consumer.assign(&list).expect("a topic");
        let (mut values, mut ended) = (Vec::new(), 0);
        while ended < self.kind.partitions() {
            match consumer.poll(TIMEOUT).expect("an end") {
                Err(KafkaError::PartitionEOF(_)) => ended += 1,
                message => {
                    let message = message.expect("it runs");
                    values.push(message.payload().map(|value| String::from_utf8_lossy(value).into_owned()));
                }
            }
        }
        values
    }

    async fn all_of_nats(&self) -> Result<Vec<Option<String>>, Lost> {
        let stream = jetstream::new(async_nats::connect(&self.address).await?).get_stream(&self.name).await?;
        let messages = stream.get_info().await?.state.messages;
        let ack_policy = jetstream::consumer::AckPolicy::None;
        let config = jetstream::consumer::pull::Config { ack_policy, ..Default::default() };
        let consumer = stream.create_consumer(config).await?;
        let mut values = Vec::new();
        while (values.len() as u64) < messages {
            let mut some = consumer.fetch().max_messages(1000).messages().await?;
            while let Some(message) = some.next().await {
                values.push(Some(String::from_utf8_lossy(&message?.payload).into_owned()));
            }
        }
        Ok(values)
    }

    fn all_of_redis(&self) -> Vec<Option<String>> {
        let client = redis::Client::open(format!("redis://{}/", self.address)).expect("an address");
        let mut connection = client.get_connection().expect("it runs");
        let entries: StreamRangeReply = connection.xrange_all(&self.name).expect("a stream");
        entries.ids.iter().map(|entry| entry.get("value")).collect()
    }
}

impl Sender {
    /// Sends records. After an error nobody knows which of them the broker has.
    pub(crate) fn send(&mut self, values: &[Option<&str>]) -> Result<(), Lost> {
        match self {
            Self::Kafka(topic, producer) => {
                for value in values {
                    let record = BaseRecord::<(), str>::to(&topic.name);
                    let record = value.map_or(BaseRecord::to(&topic.name), |value| record.payload(value));
                    producer.send(record).map_err(|(error, _)| error)?;
                }
                Ok(producer.flush(TIMEOUT)?)
            }
            Self::Nats(topic, runtime, context) => runtime.block_on(async {
                // Beyond some thousands the client waits until somebody takes what was acknowledged.
                for values in values.chunks(1_000) {
                    let mut acknowledged = Vec::new();
                    for value in values {
                        let value = value.unwrap_or_default().to_owned();
                        acknowledged.push(context.publish(topic.name.clone(), value.into()).await?);
                    }
                    for acknowledged in acknowledged {
                        acknowledged.await?;
                    }
                }
                Ok(())
            }),
            Self::Redis(topic, connection) => {
                let mut pipe = redis::pipe();
                for value in values {
                    // An entry has a field at least.
                    let (field, value) = value.map_or(("none", ""), |value| ("value", value));
                    pipe.cmd("XADD").arg(&topic.name).arg("*").arg(field).arg(value).ignore();
                }
                Ok(pipe.query(connection)?)
            }
        }
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
