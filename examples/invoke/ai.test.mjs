// The Vercel streams of every corpus turn, read by the ai package itself: its schema accepts every part, its reader
// makes a message of them, and that message says what the batch says. ai-strict is an earlier release of the package
// whose schema takes no name that it does not know.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import * as ai from 'ai';
import * as strict from 'ai-strict';

const corpus = new URL('../../processors/fold/folder/testdata/turns.jsonl', import.meta.url).pathname;
const program = process.env.INVOKE ?? new URL('../../bin/invoke', import.meta.url).pathname;
const turns = readFileSync(corpus, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line))
  .filter((turn) => Array.isArray(turn.events) && !turn.error);

let service;
let url;

before(async () => {
  service = spawn(program, ['serve', '-addr', '127.0.0.1:0', '-turns', corpus, '-pace', '0'],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: service.stdout })) {
    url = line.match(/http:\S+/)?.[0];
    if (url) break;
  }
  assert.ok(url, 'the service listens');
});

after(async () => {
  if (service?.exitCode !== null) return;
  service.kill('SIGTERM');
  await once(service, 'exit');
});

function ask(id, headers = {}) {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ data: { inputs: { messages: [{ role: 'user', parts: [{ type: 'text', text: id }], content: id }] } } }),
  });
}

const vercel = { 'x-ag-messages-format': 'vercel' };
const sse = { accept: 'text/event-stream' };

// chunks reads a stream as the package does, by the schema of one of its releases.
async function chunks(body, release) {
  const list = [];
  const parsed = ai.parseJsonEventStream({ stream: body, schema: release.uiMessageChunkSchema });
  for await (const part of parsed) {
    assert.ok(part.success, `${part.error?.message} in ${JSON.stringify(part.rawValue)}`);
    list.push(part.value);
  }
  return list;
}

// message is what the package's reader makes of chunks.
async function message(list) {
  let last;
  const errors = [];
  const stream = new ReadableStream({
    start(controller) {
      list.forEach((chunk) => controller.enqueue(chunk));
      controller.close();
    },
  });
  for await (const m of ai.readUIMessageStream({ stream, onError: (e) => errors.push(e) })) last = m;
  return { message: last, errors };
}

test('there are turns enough', () => assert.ok(turns.length >= 40));

for (const turn of turns) {
  test(turn.id, async () => {
    const answers = await Promise.all([ask(turn.id, { ...vercel, ...sse }), ask(turn.id, { ...vercel, ...sse })]);
    for (const answer of answers) assert.equal(answer.headers.get('x-vercel-ai-ui-message-stream'), 'v1');
    const list = await chunks(answers[0].body, ai);
    await chunks(answers[1].body, strict);
    assert.equal(list.at(0).type, 'start');
    assert.equal(list.at(-1).type, 'finish');

    const { message: read, errors } = await message(list);
    const told = list.filter((chunk) => chunk.type === 'error').map((chunk) => chunk.errorText);
    assert.deepEqual(errors.map((e) => e.message), told, 'the reader stumbles over nothing but what the agent reports');

    // The text is the batch's, as far as messages are text.
    const texts = turn.batch.messages.filter((m) => m.role === 'assistant').map((m) => m.content);
    if (texts.every((text) => typeof text === 'string')) {
      const text = read?.parts.filter((part) => part.type === 'text').map((part) => part.text).join('') ?? '';
      assert.equal(text.toWellFormed(), texts.join('').toWellFormed());
    }

    const batch = await (await ask(turn.id, vercel)).json();
    assert.equal(batch.status.code, 200, JSON.stringify(batch));
    const { messages } = batch.data.outputs;
    if (messages.length > 0) {
      const checked = await ai.safeValidateUIMessages({ messages });
      assert.ok(checked.success || messages.some((m) => m.parts.length === 0), checked.error?.message);
    }
  });
}
