"""What both workers do with Kafka: they read a topic and answer each record at least once."""
import json
import os
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer

AGENT = os.environ.get("AGENT", "support")
KAFKA = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "enable.metrics.push": False}


def run(group, topic, answer):
    """Answers the records of {AGENT}-{topic} until Ctrl-C or SIGTERM. answer takes a record, its session and its turntable.id, and
    returns the topic, the last word of the ID, the value and more headers of its answer. It raises only if a record is bad."""
    stopped = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(True))
    producer = Producer(KAFKA | {"partitioner": "murmur2_random", "enable.idempotence": True})  # Java's partitions
    consumer = Consumer(KAFKA | {"group.id": f"{AGENT}-{group}", "session.timeout.ms": 10_000, "auto.offset.reset": "earliest",
                                 "enable.auto.commit": False, "topic.metadata.refresh.interval.ms": 5_000})
    consumer.subscribe([f"{AGENT}-{topic}"])
    while not stopped:
        record = consumer.poll(0.5)
        if record is None:
            continue
        if record.error():
            print(record.error(), file=sys.stderr)
            continue
        publish(producer, record, answered(record, answer))
        try:
            consumer.commit(record, asynchronous=False)
        except KafkaException as error:  # another worker has the partition, and answers again under the same ID
            print(f"not committed: {error}", file=sys.stderr)
    consumer.close()


def answered(record, answer):
    """Returns the answer to a record, or None if it needs none. Exceptions can quote the record, so only their type is printed."""
    try:
        headers = {name: value.decode() for name, value in record.headers() or [] if value is not None}
        late = float(headers.get("turntable.deadline", "inf")) < time.time() * 1000
        if late or record.value() is None:
            return None
        identity = headers.get("turntable.id", "")
        topic, word, value, more = answer(json.loads(record.value()), record.key().decode(), identity)
        return topic, json.dumps(value), more | ({"turntable.id": f"{identity}/{word}"} if identity else {})
    except Exception as error:
        print(f"skipped {record.topic()}[{record.partition()}]@{record.offset()}: {type(error).__name__}", file=sys.stderr)
        return None


def publish(producer, record, out):
    """Returns when the answer is acknowledged. If it is not, the worker ends without a commit, and its successor answers."""
    if out:
        topic, value, headers = out
        failed = []
        producer.produce(f"{AGENT}-{topic}", value, record.key(), headers=headers, on_delivery=lambda error, _: failed.append(error))
        producer.flush()
        if failed[0]:
            raise KafkaException(failed[0])


def now():
    """Returns the time as a timestamp of a record."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
