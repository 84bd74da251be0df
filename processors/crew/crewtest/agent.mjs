// The agent of crewtest on the TypeScript SDK of ACP: node agent.mjs SCRIPT.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Readable, Writable } from "node:stream";
import { agent, methods, ndJsonStream, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk";

const script = JSON.parse(readFileSync(process.argv[2], "utf8"));
const sessions = new Map();
const used = new Map();
const forever = () => new Promise(() => setInterval(() => {}, 1 << 30));

if (script.stubborn) {
  process.on("SIGTERM", () => {});
  process.on("SIGINT", () => {});
}

// update sends a session/update, and keeps it for session/load.
async function update(turn, value) {
  const { session, client } = turn;
  if (script.store && !turn.replay) appendFileSync(file(session), JSON.stringify(value) + "\n");
  await client.notify(methods.client.session.update, { sessionId: session.id, update: value });
}

const file = (session) => join(script.store, session.id + ".jsonl");
const chunk = (turn, kind, text) => update(turn, { sessionUpdate: kind, content: { type: "text", text } });
const say = (turn, text) => chunk(turn, "agent_message_chunk", text);
const path = (turn, p) => (isAbsolute(p) ? p : join(turn.session.cwd, p));

async function attempt(turn, what) {
  try {
    await say(turn, await what());
  } catch (err) {
    await say(turn, "failed: " + (err?.message ?? err));
  }
}

const pause = (turn, ms) => sleep(ms, undefined, { signal: turn.abort.signal }).catch(() => {});

async function run(turn, steps = []) {
  for (const step of steps) {
    if (turn.abort.signal.aborted && !turn.anyway) return;
    await perform(turn, step);
  }
}

async function perform(turn, step) {
  const sessionId = turn.session?.id;
  const client = turn.client;
  if (step.text) {
    const all = Array.from(step.text);
    const split = step.split || all.length;
    for (let at = 0; at < all.length; at += split) await say(turn, all.slice(at, at + split).join(""));
  } else if (step.thought) await chunk(turn, "agent_thought_chunk", step.thought);
  else if (step.update) await update(turn, step.update);
  else if (step.tool) await tool(turn, step.tool);
  else if (step.plan) {
    const entries = step.plan.map((content, i) => ({ content, priority: "medium", status: i ? "pending" : "in_progress" }));
    await update(turn, { sessionUpdate: "plan", entries });
  } else if (step.usage) await update(turn, { sessionUpdate: "usage_update", used: step.usage[0], size: step.usage[1] });
  else if (step.ask) await ask(turn, step.ask);
  else if (step.read)
    await attempt(turn, async () => {
      const { path: p, line, limit } = step.read;
      return "read: " + (await client.request(methods.client.fs.readTextFile, { sessionId, path: path(turn, p), line, limit })).content;
    });
  else if (step.write)
    await attempt(turn, async () => {
      const { path: p, content = "" } = step.write;
      await client.request(methods.client.fs.writeTextFile, { sessionId, path: path(turn, p), content });
      return "written";
    });
  else if (step.save) {
    const to = path(turn, step.save.path);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, step.save.content ?? "");
  } else if (step.terminal)
    await attempt(turn, async () => {
      const [command, ...args] = step.terminal;
      const { terminalId } = await client.request(methods.client.terminal.create, { sessionId, command, args });
      const end = await client.request(methods.client.terminal.waitForExit, { sessionId, terminalId });
      const { output } = await client.request(methods.client.terminal.output, { sessionId, terminalId });
      await client.request(methods.client.terminal.release, { sessionId, terminalId });
      return `exit ${end.exitCode ?? -1}: ${output}`;
    });
  else if (step.call) client.request(step.call, step.call_params).catch(() => {});
  else if (step.sleep) await pause(turn, step.sleep);
  else if (step.hang) await new Promise((done) => turn.abort.signal.addEventListener("abort", done));
  else if (step.stuck) await forever();
  else if (step.await) while (!existsSync(step.await) && !turn.abort.signal.aborted) await pause(turn, 5);
  else await inProcess(step);
}

// inProcess does a step that concerns the process, not the protocol.
async function inProcess(step) {
  if (step.exit !== undefined) process.exit(step.exit);
  if (step.signal) {
    process.kill(process.pid, step.signal);
    await forever();
  }
  if (step.line) process.stdout.write(step.line + "\n");
  if (step.raw) process.stdout.write(step.raw);
  if (step.flood) process.stdout.write("x".repeat(step.flood) + "\n");
  if (step.stderr) process.stderr.write(step.stderr + "\n");
  if (step.fork) {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1 << 30)"], { stdio: "ignore" });
    writeID(step.fork, child.pid);
  }
  if (step.pid) writeID(step.pid, process.pid);
}

// writeID writes a file that is complete when it exists.
function writeID(to, pid) {
  writeFileSync(to + ".tmp", String(pid));
  renameSync(to + ".tmp", to);
}

async function tool(turn, t) {
  const call = { sessionUpdate: "tool_call", toolCallId: t.id, title: t.title, status: "in_progress" };
  if (t.kind) call.kind = t.kind;
  if (t.raw_input) call.rawInput = t.raw_input;
  await update(turn, call);
  await run(turn, t.steps);
  const status = turn.abort.signal.aborted ? "failed" : "completed";
  await update(turn, { sessionUpdate: "tool_call_update", toolCallId: t.id, status });
}

async function ask(turn, q) {
  const toolCall = q.tool_call ?? {
    toolCallId: "call-1", title: "Run tests", kind: "execute", status: "pending", rawInput: { command: "make test" },
  };
  const options = q.options ?? [
    { optionId: "allow_once", name: "Allow", kind: "allow_once" },
    { optionId: "reject_once", name: "Reject", kind: "reject_once" },
  ];
  let answer;
  try {
    answer = await turn.client.request(methods.client.session.requestPermission, { sessionId: turn.session.id, toolCall, options });
  } catch (err) {
    await say(turn, "failed: " + (err?.message ?? err));
    return;
  }
  if (answer.outcome.outcome !== "selected") return run({ ...turn, anyway: true }, q.cancelled);
  const option = options.find((o) => o.optionId === answer.outcome.optionId);
  await run(turn, option?.kind.startsWith("allow") ? q.allowed : q.rejected);
}

// ruleFor is the rule for a prompt, its placeholders filled in.
function ruleFor(session, prompt) {
  for (const [i, rule] of (script.rules ?? []).entries()) {
    const groups = new RegExp(rule.match ?? "").exec(prompt);
    if (!groups || (rule.times && (used.get(i) ?? 0) >= rule.times)) continue;
    if (rule.once) {
      try {
        writeFileSync(rule.once, "", { flag: "wx" });
      } catch {
        continue;
      }
    }
    used.set(i, (used.get(i) ?? 0) + 1);
    const values = { prompt, session: session.id, cwd: session.cwd };
    groups.slice(0, 10).forEach((g, n) => (values[n] = g ?? ""));
    const filled = JSON.stringify(rule).replace(/\{\{(\w+)\}\}/g, (all, name) =>
      name in values ? JSON.stringify(values[name]).slice(1, -1) : all);
    return JSON.parse(filled);
  }
  return {};
}

const app = agent({ name: "tsagent" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: script.protocol ?? PROTOCOL_VERSION,
    agentCapabilities: { loadSession: !!script.load },
    agentInfo: { name: "tsagent", version: "1" },
    authMethods: [],
  }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    if (script.sign_in) throw RequestError.authRequired();
    const session = { id: "session-" + randomBytes(8).toString("hex"), cwd: params.cwd };
    sessions.set(session.id, session);
    if (script.store) writeFileSync(file(session), "");
    return { sessionId: session.id };
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    if (script.sign_in) throw RequestError.authRequired();
    const session = { id: params.sessionId, cwd: params.cwd };
    const turn = { session, client, replay: true, abort: new AbortController() };
    if (!script.store) await run(turn, script.history);
    else if (!existsSync(file(session))) throw new RequestError(-32002, "no such session");
    else for (const line of readFileSync(file(session), "utf8").split("\n")) if (line) await update(turn, JSON.parse(line));
    sessions.set(session.id, session);
    return {};
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const session = sessions.get(params.sessionId);
    if (!session || session.abort) throw RequestError.invalidParams(undefined, "no such session, or a turn is open");
    const abort = (session.abort = new AbortController());
    try {
      const text = params.prompt.filter((b) => b.type === "text").map((b) => b.text).join("\n");
      const rule = ruleFor(session, text);
      await run({ session, client, abort }, rule.steps);
      if (rule.error) throw RequestError.internalError(undefined, rule.error);
      return { stopReason: rule.stop || (abort.signal.aborted ? "cancelled" : "end_turn") };
    } finally {
      session.abort = undefined;
    }
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.abort?.abort());

await run({ abort: new AbortController() }, script.start);
const connection = app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
if (script.keep_alive) await forever();
process.exit(0);
