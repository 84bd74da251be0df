// A worker for tools: it answers the calls of {agent}-tool-use on {agent}-tool-use-result.
import { readFile } from 'node:fs/promises';
import { run } from './worker.ts';

const orders = process.env.ORDERS ?? new URL('../orders.json', import.meta.url);

// Finds the status of an order. key is the same if a call is repeated: the idempotency key of a tool that changes something.
async function orderStatus(input: { number: number }, key: string): Promise<string> {
  const status = JSON.parse(await readFile(orders, 'utf8'))[input.number];
  if (status === undefined) throw new Error(`there is no order ${input.number}`);
  return status;
}

const tools = new Map<string, (input: any, key: string) => Promise<unknown>>([['order_status', orderStatus]]);

await run('tools', 'tool-use', async (call, session, id) => {
  if (!call.tool_use_id || !call.name) throw new TypeError('not a call');
  const began = performance.now();
  let status = 'success';
  let result: object;
  try {
    const tool = tools.get(call.name);
    if (!tool) throw new Error(`there is no tool ${call.name}`);
    result = { result: await tool(call.input ?? {}, id) };
    if (JSON.stringify(result).length > 300_000) throw new Error('the result is too large for a record');
  } catch (error) { // the model reads what went wrong
    status = 'error';
    result = { error: String(error), reason: 'tool_failed' };
  }
  return {
    topic: 'tool-use-result', word: 'result', value: {
      session_id: session, tool_use_id: call.tool_use_id, tool_id: call.tool_id, name: call.name, result,
      latency_ms: Math.round(performance.now() - began), status, total_tools: call.total_tools, timestamp: new Date().toISOString(),
    },
  };
});
