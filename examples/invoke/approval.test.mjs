// Whole approvals and denials through the ai package's own chat: it reads the paused turn, takes the person's answer, sends
// its message history without being told to, and reads how the turn goes on into the same message.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import * as ai from 'ai';
import * as strict from 'ai-strict';

const program = process.env.INVOKE ?? new URL('../../bin/invoke', import.meta.url).pathname;
const bill = { amount: 30, currency: 'EUR', to: 'harbour' };

let service;
let url;

before(async () => {
  service = spawn(program, ['serve', '-addr', '127.0.0.1:0', '-pace', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: service.stdout })) {
    url = line.match(/http:\S+/)?.[0];
    if (url) break;
  }
  assert.ok(url, 'the service listens');
  url = url.replace('/invoke', '/desk/invoke');
});

after(async () => {
  if (service?.exitCode !== null) return;
  service.kill('SIGTERM');
  await once(service, 'exit');
});

// State is what useChat keeps.
class State {
  status = 'ready';
  error = undefined;
  messages = [];
  pushMessage = (m) => { this.messages = [...this.messages, m]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (i, m) => { this.messages = this.messages.map((old, at) => (at === i ? structuredClone(m) : old)); };
  snapshot = (v) => structuredClone(v);
}

class Chat extends ai.AbstractChat {
  constructor(init) { super({ ...init, state: new State() }); }
}

let sessions = 0;

// open returns a chat, the bodies that it sent, the streams that it received, and a wait for the end of its next response.
function open({ alter = (messages) => messages } = {}) {
  const session = `chat-${process.pid}-${++sessions}`;
  const sent = [];
  const streams = [];
  const finished = [];
  const waiting = [];
  const chat = new Chat({
    id: session,
    sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
    onFinish: (end) => { finished.push(end); waiting.shift()?.(end); },
    onError: (e) => { throw e; },
    transport: new ai.DefaultChatTransport({
      api: url,
      headers: { accept: 'text/event-stream', 'x-ag-messages-format': 'vercel' },
      prepareSendMessagesRequest: ({ messages }) => ({
        body: { session_id: session, data: { inputs: { messages: alter(structuredClone(messages)) } } },
      }),
      fetch: async (input, init) => {
        sent.push(init.body);
        const response = await fetch(input, init);
        streams.push(response.clone().text());
        return response;
      },
    }),
  });
  return { chat, session, sent, streams, finished, next: () => new Promise((resolve) => waiting.push(resolve)) };
}

// chunksOf checks a received stream by the schemas of both releases and returns its chunks.
async function chunksOf(text) {
  let list;
  for (const release of [strict, ai]) {
    list = [];
    const parsed = ai.parseJsonEventStream({ stream: new Blob([text]).stream(), schema: release.uiMessageChunkSchema });
    for await (const part of parsed) {
      assert.ok(part.success, `${part.error?.message} in ${JSON.stringify(part.rawValue)}`);
      list.push(part.value);
    }
  }
  return list;
}

const tools = (message) => message.parts.filter((part) => part.type === 'tool-pay');
const words = (message) => message.parts.filter((part) => part.type === 'text').map((part) => part.text).join('');

async function paused(options, text = 'Pay the harbour.') {
  const c = open(options);
  await c.chat.sendMessage({ text });
  const message = c.chat.lastMessage;
  assert.ok(tools(message).every((part) => part.state === 'approval-requested'), JSON.stringify(message));
  assert.equal(c.sent.length, 1, 'the chat waits for the person');
  return { ...c, message, ids: tools(message).map((part) => part.approval.id) };
}

async function checked(c) {
  assert.equal(c.chat.status, 'ready', String(c.chat.error));
  assert.ok(c.finished.every((end) => !end.isError && !end.isAbort && !end.isDisconnect));
  const valid = await ai.safeValidateUIMessages({ messages: c.chat.messages });
  assert.ok(valid.success, valid.error?.message);
  for (const text of c.streams) await chunksOf(await text);
  return chunksOf(await c.streams.at(-1));
}

test('a whole approval', async () => {
  const c = await paused();
  const done = c.next();
  await c.chat.addToolApprovalResponse({ id: c.ids[0], approved: true });
  await done;
  const list = await checked(c);
  assert.deepEqual(list.map((chunk) => chunk.type),
    ['start', 'tool-output-available', 'start-step', 'text-start', 'text-delta', 'text-end', 'finish-step', 'finish']);
  assert.equal(list[0].messageId, c.message.id);
  assert.equal(c.sent.length, 2, 'one request for the answer, and none after it');
  assert.equal(c.chat.messages.length, 2, 'the turn is one message');
  const message = c.chat.lastMessage;
  assert.equal(message.id, c.message.id);
  const [part] = tools(message);
  assert.equal(tools(message).length, 1);
  assert.equal(part.state, 'output-available');
  assert.deepEqual(part.output, { paid: bill });
  assert.equal(part.approval.approved, true);
  assert.equal(words(message), '1 of 1 paid.');
});

test('a whole denial', async () => {
  const c = await paused();
  const done = c.next();
  await c.chat.addToolApprovalResponse({ id: c.ids[0], approved: false, reason: 'too much' });
  await done;
  const list = await checked(c);
  assert.deepEqual(list.slice(0, 3).map((chunk) => chunk.type), ['start', 'tool-output-denied', 'start-step']);
  const message = c.chat.lastMessage;
  const [part] = tools(message);
  assert.equal(part.state, 'output-denied');
  assert.deepEqual(part.approval, { id: c.ids[0], approved: false, reason: 'too much' });
  assert.equal(words(message), '0 of 1 paid.');
  assert.equal(c.sent.length, 2);

  // The canonical batch has the result that the model was told.
  const batch = await (await fetch(url, {
    method: 'POST', headers: { 'content-type': 'application/json', 'x-ag-messages-format': 'agenta' },
    body: JSON.stringify({ session_id: c.session, data: { inputs: { messages: [
      { role: 'tool', content: [{ type: 'tool_result', output: { approved: false, interactionToken: c.ids[0] } }] } ] } } }),
  })).json();
  assert.ok(batch.data.outputs.messages.some((m) => m.content === 'The user denied the call: too much' && m.is_error));
});

test('two approvals are sent together', async () => {
  const c = await paused({}, 'Pay twice.');
  assert.equal(c.ids.length, 2);
  const done = c.next();
  await c.chat.addToolApprovalResponse({ id: c.ids[0], approved: true });
  assert.equal(c.sent.length, 1, 'one is open');
  await c.chat.addToolApprovalResponse({ id: c.ids[1], approved: false });
  await done;
  await checked(c);
  assert.deepEqual(tools(c.chat.lastMessage).map((part) => part.state), ['output-available', 'output-denied']);
  assert.equal(words(c.chat.lastMessage), '1 of 2 paid.');
  assert.equal(c.sent.length, 2);
});

test('an answer to one of two leaves the turn paused', async () => {
  const c = await paused({}, 'Pay twice.');
  let done = c.next();
  await c.chat.addToolApprovalResponse({ id: c.ids[0], approved: true });
  await c.chat.sendMessage();
  await done;
  let list = await checked(c);
  assert.deepEqual(list.map((chunk) => chunk.type), ['start', 'finish']);
  assert.deepEqual(tools(c.chat.lastMessage).map((part) => part.state), ['approval-responded', 'approval-requested']);
  done = c.next();
  await c.chat.addToolApprovalResponse({ id: c.ids[1], approved: true });
  await done;
  list = await checked(c);
  assert.equal(words(c.chat.lastMessage), '2 of 2 paid.');
  assert.equal(c.sent.length, 3);
});

test('the stored arguments run, not those of the client', async () => {
  const c = await paused({
    alter: (messages) => messages.map((m) => ({ ...m, parts: m.parts.map((part) => (part.type === 'tool-pay'
      ? { ...part, input: { amount: 1000000, currency: 'EUR', to: 'mallory' } } : part)) })),
  });
  const done = c.next();
  await c.chat.addToolApprovalResponse({ id: c.ids[0], approved: true });
  await done;
  await checked(c);
  assert.ok(c.sent[1].includes('mallory'));
  assert.deepEqual(tools(c.chat.lastMessage)[0].output, { paid: bill });
  assert.ok(!(await c.streams[1]).includes('mallory'));
});

test('an answer counts once', async () => {
  const c = await paused();
  const done = c.next();
  await c.chat.addToolApprovalResponse({ id: c.ids[0], approved: true });
  await done;
  const send = (body) => fetch(url, {
    method: 'POST', body,
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', 'x-ag-messages-format': 'vercel' },
  });
  const again = await send(c.sent[1]);
  assert.equal(again.status, 200);
  const repeated = await chunksOf(await again.text());
  const first = await chunksOf(await c.streams[1]);
  assert.deepEqual(repeated.map((chunk) => chunk.type), first.map((chunk) => chunk.type));
  const other = await send(c.sent[1].replace('"approved":true', '"approved":false'));
  assert.equal(other.status, 409);
  assert.equal((await other.json()).status.outcome.status, 'approved');
});
