// The package against a daemon, which TestJS starts. URL is a relay's whose connections the tests break.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { HelixChatTransport, HelixClient, HelixError } from '../dist/index.js';
import { relay } from '../../../integration/readme/relay.mjs';

let line, helix;
before(async () => {
  line = await relay(process.env.HELIX_URL);
  helix = new HelixClient({ url: line.url, minDelay: 10 });
});
after(() => line.close());

const session = () => crypto.randomUUID();
const user = (text) => ({ id: session(), role: 'user', parts: [{ type: 'text', text }] });

test('a stream that breaks after every few chunks yields each chunk once', async () => {
  const id = session();
  const started = await helix.start({ sessionId: id, agentType: 'weather', message: 'The weather?' });
  assert.equal(started.sessionId, id);
  const sequences = [];
  let last;
  for await (const event of helix.stream(id)) {
    last = event.type;
    if (event.type !== 'chunk') continue;
    sequences.push(event.sequence);
    if (sequences.length % 5 === 0) line.cut();
  }
  assert.equal(last, 'end');
  const kept = [];
  for await (const record of helix.records(id, { kind: 'chunk' })) kept.push(record.sequence);
  assert.deepEqual(sequences, kept);
});

test('a second turn, a fork, the state', async () => {
  const id = session();
  await helix.start({ sessionId: id, agentType: 'weather', message: 'The weather?' });
  for await (const _ of helix.stream(id));
  const { sequence } = await helix.state(id);
  await helix.say(id, 'And now?');
  for await (const _ of helix.stream(id, { from: sequence }));
  assert.equal((await helix.snapshot(id)).messages.length, 4);
  const fork = await helix.fork(id, { sequence });
  assert.equal((await helix.snapshot(fork.sessionId)).messages.length, 2);
});

test('an approval, an interrupt, a refusal', async () => {
  const id = session();
  await helix.start({ sessionId: id, agentType: 'janitor', message: 'Tidy up.' });
  for await (const _ of helix.stream(id));
  const { pendingToolCalls } = await helix.session(id);
  assert.deepEqual(pendingToolCalls.map(({ toolName, kind }) => [toolName, kind]), [['delete_files', 'approval']]);
  const submitted = await helix.approve(id, pendingToolCalls[0].toolCallId, { approved: false, reason: 'no' });
  assert.equal(submitted.status, 'accepted');
  for await (const _ of helix.stream(id));
  await assert.rejects(helix.status('nobody'), (error) => error instanceof HelixError && error.code === 'NOT_FOUND' && !error.temporary);
  const other = session();
  await helix.start({ sessionId: other, agentType: 'storyteller', message: 'Tell me.' });
  await helix.interrupt(other, { reason: 'enough' });
  assert.equal((await helix.status(other)).status, 'interrupted');
  await helix.abort(other);
  assert.equal((await helix.status(other)).status, 'failed');
});

test('a chat whose connection breaks after every part gets each part once', async () => {
  const transport = new HelixChatTransport({ url: line.url, minDelay: 10, body: { agentType: 'weather' } });
  const chatId = session();
  assert.deepEqual(await transport.load(chatId), { id: chatId, messages: [], resume: false });
  const states = new Set();
  transport.subscribe(() => states.add(transport.connection()));
  const read = async (stream) => {
    const parts = [];
    for await (const part of stream) {
      parts.push(part);
      line.cut();
    }
    return parts;
  };
  const messages = [user('The weather?')];
  const parts = await read(await transport.sendMessages({ trigger: 'submit-message', chatId, messages }));
  const whole = await read(await new HelixChatTransport({ url: process.env.HELIX_URL }).reconnectToStream({ chatId }));
  const text = (all) => all.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta).join('');
  const kinds = (all) => all.map(({ type }) => type).filter((type) => !type.endsWith('-delta'));
  assert.equal(text(parts), text(whole));
  assert.deepEqual(kinds(parts), kinds(whole));
  assert.deepEqual([...states].sort(), ['connecting', 'idle', 'open', 'waiting']);
  assert.equal(await transport.reconnectToStream({ chatId }), null);
  await assert.rejects(transport.sendMessages({ trigger: 'submit-message', chatId, messages: [] }), { code: 'INVALID_REQUEST' });
  transport.close();
});

test('a page that is loaded while a resumed answer is under way loads its messages once', async (t) => {
  const chatId = session();
  await helix.start({ sessionId: chatId, agentType: 'storyteller', message: 'Tell me.' });
  for await (const { type, chunk } of helix.stream(chatId)) if (type === 'chunk' && chunk.type === 'text_delta') break;
  await helix.interrupt(chatId);
  await fetch(`${process.env.HELIX_URL}/resume`, { method: 'POST', body: JSON.stringify({ sessionId: chatId }) });
  let resumed = 0;
  for await (const { type, chunk } of helix.stream(chatId)) {
    if (type !== 'chunk') continue;
    if (chunk.type === 'run_resumed') resumed++;
    if (resumed && chunk.type === 'text_delta') break;
  }
  const transport = new HelixChatTransport({ url: process.env.HELIX_URL });
  t.after(transport.close);
  const { resume } = await transport.load(chatId);
  assert.equal(resume, true);
  let again = 0;
  transport.attach({ setMessages: () => { again++; }, resumeStream: async () => {} });
  const types = new Set();
  for await (const { type } of await transport.reconnectToStream({ chatId })) types.add(type);
  assert.equal(again, 0);
  assert.ok(types.has('text-delta') && types.has('finish'), [...types].join());
});

/** lossy passes requests on. The first POST is carried out, but its connection breaks without an answer, when() the server has begun it. */
async function lossy(when) {
  const to = new URL(process.env.HELIX_URL);
  const keys = [];
  const server = http.createServer((request, response) => {
    const lost = request.method === 'POST' && keys.push(request.headers['idempotency-key']) === 1;
    const passed = http.request(new URL(request.url, to), { method: request.method, headers: request.headers }, async (answer) => {
      if (!lost) return response.writeHead(answer.statusCode, answer.headers) && answer.pipe(response);
      await when(answer);
      answer.destroy();
      request.socket.destroy();
    });
    request.pipe(passed);
    response.on('close', () => lost || passed.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, keys, close: () => { server.closeAllConnections(); server.close(); } };
}

for (const [state, when] of Object.entries({
  'is under way': () => {},
  'has ended': async (answer) => { for await (const _ of answer); },
})) {
  test(`an answer is given again once, if the connection breaks before the request's answer and the run ${state}`, async (t) => {
    const proxy = await lossy(when);
    t.after(proxy.close);
    const id = session();
    await helix.start({ sessionId: id, agentType: 'weather', message: 'The weather?' });
    for await (const _ of helix.stream(id));
    const transport = new HelixChatTransport({ url: proxy.url, minDelay: 10 });
    t.after(transport.close);
    const { messages } = await transport.load(id);
    const parts = [];
    for await (const part of await transport.sendMessages({ trigger: 'regenerate-message', chatId: id, messageId: messages[1].id, messages: messages.slice(0, 1) })) parts.push(part);
    const text = (all, type, member) => all.filter((part) => part.type === type).map((part) => part[member]).join('');
    const { messages: [, answer] } = await helix.snapshot(id);
    assert.ok(text(answer.parts, 'text', 'text'));
    assert.equal(text(parts, 'text-delta', 'delta'), text(answer.parts, 'text', 'text'));
    const modes = [];
    for await (const { data } of helix.records(id, { dead: true, type: ['run_requested'] })) modes.push(data.mode);
    assert.deepEqual(modes, ['start', 'retry']);
    assert.equal(proxy.keys.length, 2);
    assert.ok(proxy.keys[0] && proxy.keys[0] === proxy.keys[1]);
    for await (const part of await transport.sendMessages({ trigger: 'regenerate-message', chatId: id, messageId: messages[1].id, messages: messages.slice(0, 1) })) parts.push(part);
    assert.notEqual(proxy.keys[2], proxy.keys[0], 'the next request is another one');
  });
}
