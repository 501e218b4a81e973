// The official OpenAI SDK for Node against a running daemon. TestOpenAI runs this.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import OpenAI from 'openai';
import { compliance } from './compliance.mjs';
import { kill, restart, start } from './daemon.mjs';
import { listen, open } from './world.mjs';

const [config] = process.argv.slice(2);
const world = await listen();
await writeFile(config, `
protocols: {responses: {enabled: true}}
modelRetryDelay: 10ms
agents:
  brain:
    systemPrompt: Do what you are told.
    model: {provider: openai, name: m-1, maxRetries: 3, apiKey: none, baseURL: "${world}/v1"}
    tools:
      clock: {description: The time., inputSchema: {type: object}, http: {url: "${world}/clock"}}
      slow: {description: Takes long., inputSchema: {type: object}, http: {url: "${world}/slow"}}
      pay: {description: Pays., inputSchema: {type: object}, http: {url: "${world}/clock"}, requireApproval: true}
`);
const url = await start(config);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
const model = 'brain';
const { responses, conversations } = client;
const weather = {
  type: 'function', name: 'get_weather', description: 'The weather.', strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
};

/** all reads a stream of events to its end. */
async function all(stream) {
  const events = [];
  for await (const event of await stream) events.push(event);
  events.slice(1).forEach((event, i) => assert.equal(event.sequence_number, events[i].sequence_number + 1));
  return events;
}

/** accumulated gives events to the SDK's own accumulator, and returns its final response. */
async function accumulated(id) {
  return responses.stream({ response_id: id }).finalResponse();
}

/** textIn is the text that events bring. */
const textIn = (events) => events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta).join('');

/** plain leaves out what the SDK adds to a response. */
const plain = ({ output_text, output_parsed, ...rest }) => JSON.parse(JSON.stringify(rest, (name, value) => (['parsed', 'parsed_arguments'].includes(name) ? undefined : value)));

/** fails makes a call that the daemon must refuse. */
async function fails(call, kind, code) {
  const error = await call.then(() => assert.fail('it was not refused'), (e) => e);
  assert(error instanceof kind, String(error));
  assert.equal(error.code, code);
}

/** checkCuts reads the rest of a response after each of its events. */
async function checkCuts(id) {
  const whole = await all(responses.retrieve(id, { stream: true }));
  assert.equal(whole[0].sequence_number, 0);
  for (let n = 0; n < whole.length; n++) {
    assert.deepEqual(await all(responses.retrieve(id, { stream: true, starting_after: n })), whole.slice(n + 1));
  }
  return whole;
}

/** until reads a response after the events that there are, adds to them, and leaves when enough says so. */
async function until(id, events, enough) {
  const rest = events.length === 0 ? {} : { starting_after: events.at(-1).sequence_number };
  for await (const event of await responses.retrieve(id, { stream: true, ...rest })) {
    events.push(event);
    if (enough(event)) return;
  }
}

/** itemsDone are the statuses with which items were done, in order. */
const itemsDone = (events) => events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item.status);

const tests = [
  ['create and retrieve', async () => {
    const made = await responses.create({ model, input: 'hello', instructions: 'Be kind.', metadata: { k: 'v' } });
    assert.equal(made.output_text, 'Hello to you.');
    assert.deepEqual(made.output.map((item) => item.type), ['reasoning', 'message']);
    assert.equal(made.output[0].summary[0].text, 'They greet me.');
    assert.deepEqual([made.usage.input_tokens, made.usage.input_tokens_details.cached_tokens, made.usage.output_tokens_details.reasoning_tokens], [10, 4, 2]);
    assert.deepEqual(plain(await responses.retrieve(made.id)), plain(made));
    const { data } = await responses.inputItems.list(made.id);
    assert.equal(data[0].content[0].text, 'hello');
    assert.deepEqual(plain(await accumulated(made.id)), plain(made));
    await responses.delete(made.id);
    await fails(responses.retrieve(made.id), OpenAI.NotFoundError, 'response_not_found');
  }],
  ['stream', async () => {
    const runner = responses.stream({ model, input: 'hello' });
    const deltas = [];
    runner.on('response.output_text.delta', ({ delta, snapshot }) => deltas.push([delta, snapshot]));
    const made = await runner.finalResponse();
    assert.equal(deltas.map(([delta]) => delta).join(''), 'Hello to you.');
    assert.equal(deltas.at(-1)[1], 'Hello to you.');
    assert.deepEqual(plain(made), plain(await responses.retrieve(made.id)));
    const whole = await checkCuts(made.id);
    assert.equal(whole.at(-1).type, 'response.completed');
  }],
  ['function tools', async () => {
    const first = await responses.stream({ model, input: 'call get_weather', tools: [weather] }).finalResponse();
    const call = first.output.find((item) => item.type === 'function_call');
    assert.deepEqual(JSON.parse(call.arguments), { city: 'Lisbon' });
    await checkCuts(first.id);
    await fails(responses.create({
      model, previous_response_id: first.id, input: [{ type: 'function_call_output', call_id: 'other', output: 'x' }],
    }), OpenAI.BadRequestError, 'tool_call_not_found');
    const input = [{ type: 'function_call_output', call_id: call.call_id, output: 'fog' }];
    const second = await responses.create({ model, previous_response_id: first.id, input, tools: [weather] });
    assert.match(second.output_text, /fog/);
    assert.match((await responses.create({ model, previous_response_id: first.id, input })).output_text, /fog/);
  }],
  ['server tools', async () => {
    const made = await responses.stream({ model, input: 'call clock' }).finalResponse();
    assert.deepEqual(made.output.map((item) => item.type), ['reasoning', 'mcp_call', 'message']);
    assert.equal(made.output[1].status, 'completed');
    assert.match(made.output_text, /noon/);
    await checkCuts(made.id);
  }],
  ['approvals', async () => {
    const first = await responses.create({ model, input: 'call pay' });
    const asked = first.output.find((item) => item.type === 'mcp_approval_request');
    const second = await responses.create({
      model, previous_response_id: first.id, input: [{ type: 'mcp_approval_response', approval_request_id: asked.id, approve: true }],
    });
    assert.match(second.output_text, /noon/);
    assert.equal(second.output[0].approval_request_id, asked.id);
  }],
  ['previous responses are a tree', async () => {
    const one = await responses.create({ model, input: 'hello' });
    const said = [];
    for (const from of [one, one]) said.push(await responses.create({ model, input: 'context', previous_response_id: from.id }));
    assert.equal(said[0].output_text, said[1].output_text);
    assert.match(said[0].output_text, /^4 messages/);
    await responses.delete(one.id);
    await fails(responses.create({ model, input: 'x', previous_response_id: one.id }), OpenAI.BadRequestError, 'previous_response_not_found');
  }],
  ['nothing stored', async () => {
    const first = await responses.create({ model, input: 'call get_weather', tools: [weather], store: false });
    await fails(responses.retrieve(first.id), OpenAI.NotFoundError, 'response_not_found');
    const call = first.output.find((item) => item.type === 'function_call');
    const second = await responses.create({
      model, store: false,
      input: [{ role: 'user', content: 'call get_weather' }, ...first.output, { type: 'function_call_output', call_id: call.call_id, output: 'fog' }],
    });
    assert.match(second.output_text, /fog/);
  }],
  ['conversations', async () => {
    const made = await conversations.create({ metadata: { k: 'v' }, items: [{ role: 'user', content: 'first' }] });
    assert.deepEqual(await conversations.retrieve(made.id), made);
    assert.deepEqual((await conversations.update(made.id, { metadata: { k: 'w' } })).metadata, { k: 'w' });
    const added = await conversations.items.create(made.id, { items: [{ role: 'user', content: 'second' }] });
    assert.equal(added.data.length, 1);
    const answer = await responses.create({ model, input: 'hello', conversation: made.id });
    assert.equal(answer.conversation.id, made.id);
    const listed = [];
    for await (const item of conversations.items.list(made.id, { limit: 2, order: 'asc' })) listed.push(item);
    assert.deepEqual(listed.map((item) => item.type), ['message', 'message', 'message', 'reasoning', 'message']);
    assert.deepEqual(listed.slice(-2), answer.output);
    const newest = await conversations.items.list(made.id);
    assert.deepEqual(newest.data, listed.toReversed());
    assert.deepEqual(await conversations.items.retrieve(answer.output[0].id, { conversation_id: made.id }), answer.output[0]);
    const held = await responses.create({ model, input: 'hold conversation', conversation: made.id, background: true });
    await fails(responses.create({ model, input: 'x', conversation: made.id }), OpenAI.ConflictError, 'conversation_locked');
    open('conversation');
    await accumulated(held.id);
    assert.equal((await conversations.delete(made.id)).deleted, true);
    await fails(conversations.retrieve(made.id), OpenAI.NotFoundError, 'conversation_not_found');
  }],
  ['a stream that is cut after each of its events, as they come', async () => {
    const made = await responses.create({ model, input: 'hold cuts', background: true });
    const events = [];
    while (events.at(-1)?.type !== 'response.completed') {
      const before = events.length;
      await until(made.id, events, () => true);
      assert.equal(events.length, before + 1);
      if (textIn(events) === 'This is held ') open('cuts');
    }
    assert.equal(textIn(events), 'This is held no more.');
    assert.deepEqual(events, await all(responses.retrieve(made.id, { stream: true })));
  }],
  ['background and cancel', async () => {
    const made = await responses.create({ model, input: 'hold cancel', background: true });
    assert(['queued', 'in_progress'].includes(made.status));
    const rest = accumulated(made.id);
    const cancelled = await responses.cancel(made.id);
    assert.equal(cancelled.status, 'cancelled');
    assert.deepEqual(plain(await responses.cancel(made.id)), plain(cancelled));
    assert.equal((await rest).status, 'cancelled');
    open('cancel');
  }],
  ['errors', async () => {
    await fails(responses.create({ model: 'nobody', input: 'x' }), OpenAI.NotFoundError, 'model_not_found');
    await fails(responses.create({ model, input: [{ role: 'user', content: [] }] }), OpenAI.BadRequestError, 'invalid_value');
    await fails(responses.retrieve('resp_none_none'), OpenAI.NotFoundError, 'response_not_found');
    const failed = await responses.create({ model, input: 'fail' });
    assert.deepEqual([failed.status, failed.error.code], ['failed', 'invalid_prompt']);
    assert.equal((await all(responses.create({ model, input: 'fail', stream: true }))).at(-1).type, 'response.failed');
  }],
  ['kill -9 in the middle of a background response', async () => {
    const made = await responses.create({ model, input: 'hold crash', background: true });
    const before = [];
    await until(made.id, before, () => textIn(before) === 'This is held ');
    await kill();
    open('crash');
    await restart();
    const last = before.at(-1).sequence_number;
    const after = await all(responses.retrieve(made.id, { stream: true, starting_after: last }));
    const whole = await checkCuts(made.id);
    assert.deepEqual([...before, ...after], whole, 'what was read before the crash is what is read later');
    assert.deepEqual(itemsDone(whole), ['incomplete', 'completed']);
    const final = await responses.retrieve(made.id);
    assert.equal(final.output_text, 'This is held no more.');
    assert.deepEqual(final.output.map((item) => item.id), [whole.at(-1).response.output[0].id]);
    assert.deepEqual(plain(await accumulated(made.id)), plain(final));
  }],
  ['a background response through three kills', async () => {
    const made = await responses.create({ model, input: 'hold crashes', background: true });
    const events = [];
    for (let n = 1; n <= 3; n++) {
      await until(made.id, events, () => textIn(events) === 'This is held '.repeat(n));
      await kill();
      await restart();
    }
    open('crashes');
    await until(made.id, events, () => false);
    assert.deepEqual(events, await all(responses.retrieve(made.id, { stream: true })));
    assert.deepEqual(itemsDone(events), ['incomplete', 'incomplete', 'incomplete', 'completed']);
    assert.equal((await accumulated(made.id)).output_text, 'This is held no more.');
  }],
  ['kill -9 while the server executes a tool', async () => {
    const made = await responses.create({ model, input: 'call slow', background: true });
    const events = [];
    await until(made.id, events, ({ type }) => type === 'response.mcp_call_arguments.done');
    await kill();
    open('slow');
    await restart();
    await until(made.id, events, () => false);
    assert.deepEqual(events, await checkCuts(made.id));
    const final = await responses.retrieve(made.id);
    assert.deepEqual(final.output.map(({ type, status }) => [type, status]), [['reasoning', 'completed'], ['mcp_call', 'completed'], ['message', 'completed']]);
    assert.match(final.output_text, /noon/);
  }],
  ['nothing stored, and kill -9 before the end', async () => {
    let id;
    for await (const event of await responses.create({ model, input: 'hold nothing', store: false, stream: true })) {
      id ??= event.response.id;
      if (event.type === 'response.output_text.delta') break;
    }
    await kill();
    open('nothing');
    await restart();
    await fails(responses.retrieve(id), OpenAI.NotFoundError, 'response_not_found');
    const session = id.slice('resp_'.length, id.lastIndexOf('_'));
    const erased = async () => (await fetch(`${url}/sessions/${session}`)).status === 404;
    while (!await erased()) { // the daemon does it every five minutes
      assert.equal((await fetch(`${url}/sweep`, { method: 'POST', body: '{}' })).status, 200);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }],
  ['the program of the documentation', async () => {
    const page = await readFile(new URL('../../docs/guides/openai.md', import.meta.url), 'utf8');
    const program = /```js\n([^]*?)```/.exec(page)[1];
    const node = spawn('node', ['--input-type=module', '--eval', program], {
      env: { ...process.env, OPENAI_BASE_URL: `${url}/v1`, AGENT: model }, stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    node.stdout.on('data', (piece) => (out += piece));
    assert.deepEqual(await once(node, 'close'), [0, null]);
    assert.equal(out, 'Hello to you.\n');
  }],
  ...compliance(url),
  ['the SDK for Go', async () => {
    const go = spawn('go', ['run', '.', url], { stdio: ['ignore', 'inherit', 'inherit'] });
    assert.deepEqual(await once(go, 'exit'), [0, null]);
  }],
];

let failed = 0;
for (const [name, test] of tests) {
  try {
    await test();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n${error.stack}`);
  }
}
console.log(`${tests.length - failed} of ${tests.length} passed`);
process.exit(failed === 0 ? 0 : 1);
