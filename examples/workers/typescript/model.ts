// A worker for a model: it answers the steps of {agent}-enriched-message-input on {agent}-think-request-response.
import { agent, run, type Answer } from './worker.ts';

type Message = { role: string; content: any };
type Reply = { text: string; calls: { name: string; input: object }[] };

// Stands for the request to a provider.
async function model(messages: Message[]): Promise<Reply> {
  const { role, content } = messages.at(-1)!;
  if (role === 'tool') { // one object for each call: tool_use_id, name, result, status
    return { text: content.map((each: any) => `${each.name}: ${each.result.result ?? each.result.error}`).join('; '), calls: [] };
  }
  if (typeof content !== 'string') throw new Error('the model reads text only');
  const order = content.match(/\d+/);
  if (!order) return { text: 'Which order?', calls: [] };
  return { text: 'Let me look.', calls: [{ name: 'order_status', input: { number: Number(order[0]) } }] };
}

await run('models', 'enriched-message-input', async (step, session, id): Promise<Answer> => {
  if (!step.latest_input?.role) throw new TypeError('not a step');
  const messages = [...(step.history ?? []), step.latest_input];
  let reply: Reply;
  try {
    reply = await model(messages);
  } catch (error) { // ends the turn at once; without this record it ends at its deadline
    return { topic: 'think-dlq', word: 'failure', value: step, headers: { 'error.reason': String(error) } };
  }
  const timestamp = new Date().toISOString();
  const uses = reply.calls.map((call, i) => ({ tool_use_id: `${id}/${i}`, ...call }));
  const blocks = uses.map((use) => ({ type: 'tool_use', id: use.tool_use_id, name: use.name, input: use.input }));
  const metadata = { agent };
  return {
    topic: 'think-request-response', word: 'think', headers: { 'turntable.events': 'none' }, value: {
      session_id: session, user_id: step.user_id, think_input_tokens: 0, think_output_tokens: 0,
      last_input_response: [{ role: 'assistant', content: [{ type: 'text', text: reply.text }, ...blocks], timestamp, metadata }],
      tool_uses: uses, end_turn: uses.length === 0, timestamp,
    },
  };
});
