// What both workers do with Kafka: they read a topic and answer each record at least once.
import { Kafka, logLevel, Partitioners, type EachMessagePayload } from 'kafkajs';

export const agent = process.env.AGENT ?? 'support';
const kafka = new Kafka({ brokers: process.env.KAFKA_BOOTSTRAP_SERVERS!.split(','), logLevel: logLevel.ERROR });

// An answer to a record: the end of its topic, the last word of its turntable.id, its value, and more headers.
export type Answer = { topic: string; word: string; value: object; headers?: Record<string, string> };
// Answers a record of a session with a turntable.id. It throws only if the record is bad.
export type Answerer = (record: any, session: string, id: string) => Promise<Answer>;

// Answers the records of {agent}-{topic} until Ctrl-C or SIGTERM.
export async function run(group: string, topic: string, answer: Answerer) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, allowAutoTopicCreation: false }); // Java's
  const consumer = kafka.consumer({
    groupId: `${agent}-${group}`, sessionTimeout: 10_000, maxWaitTimeInMs: 500, allowAutoTopicCreation: false,
  });
  const stop = async () => {
    await consumer.disconnect();
    await producer.disconnect();
    process.exit(0);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || process.exit(1));
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topic: `${agent}-${topic}`, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async (read) => {
      const beat = setInterval(() => read.heartbeat().catch(() => {}), 3_000); // KafkaJS sends none while an answer is made
      const out = await answered(read, answer).finally(() => clearInterval(beat));
      if (out) await producer.send({ topic: `${agent}-${out.topic}`, acks: -1, messages: [{ ...out, key: read.message.key }] });
      const offset = String(BigInt(read.message.offset) + 1n);
      await consumer.commitOffsets([{ topic: read.topic, partition: read.partition, offset }]);
    },
  });
}

// Returns the answer to a record, or undefined if it needs none. Errors can quote the record, so only their names are printed.
async function answered({ topic, partition, message }: EachMessagePayload, answer: Answerer) {
  try {
    const header = (name: string) => message.headers?.[name]?.toString();
    if (message.value === null || Number(header('turntable.deadline') ?? Infinity) < Date.now()) return undefined;
    const id = header('turntable.id') ?? '';
    const out = await answer(JSON.parse(message.value.toString()), message.key!.toString(), id);
    const headers = { ...out.headers, ...(id && { 'turntable.id': `${id}/${out.word}` }) };
    return { topic: out.topic, value: JSON.stringify(out.value), headers };
  } catch (error) {
    console.error(`skipped ${topic}[${partition}]@${message.offset}: ${(error as Error).name}`);
    return undefined;
  }
}
