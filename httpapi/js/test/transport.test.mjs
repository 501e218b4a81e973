// The transport over a server that the tests script.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import { HelixChatTransport } from '../dist/index.js';
import { event, serve } from './server.mjs';

const limits = { timeout: 20_000 };
const stream = { 'content-type': 'text/event-stream' };
const ask = { trigger: 'submit-message', chatId: 's', messageId: undefined, messages: [] };
const resync = { type: 'data-stream-resync', data: { fromSequence: 1 } };

test('a user stops a chat while the transport loads what a crash has truncated', limits, async (t) => {
  let loading;
  const loads = new Promise((resolve) => { loading = resolve; });
  const server = await serve(
    (_, response) => response.writeHead(200, stream).write(event({ type: 'start' }, 5) + event(resync)),
    () => loading(), // which does not come
  );
  t.after(() => server.close());
  const transport = new HelixChatTransport({ url: server.url, minDelay: 1 });
  t.after(transport.close);
  let shown = 0;
  transport.attach({ setMessages: () => { shown++; }, resumeStream: async () => {} });
  const user = new AbortController();
  const reader = (await transport.sendMessages({ ...ask, abortSignal: user.signal })).getReader();
  assert.deepEqual((await reader.read()).value, { type: 'start' });
  const next = reader.read();
  await loads;
  user.abort();
  await assert.rejects(next, { name: 'AbortError' });
  assert.equal(shown, 0);
});

/** scripted is a transport whose requests get some answers, one after the other, and the positions that they were sent with. */
function scripted(t, ...answers) {
  const positions = [];
  const transport = new HelixChatTransport({
    url: 'http://helixd', minDelay: 1,
    fetch: async (_, { headers, signal }) => {
      positions.push(headers.get('last-event-id'));
      return answers.shift()(signal);
    },
  });
  t.after(transport.close);
  return { transport, positions };
}

/** parts answers with a stream of events; that of open does not end. */
const parts = (...events) => () => new Response(events.join(''), { headers: stream });
const open = (...events) => (signal) => new Response(new ReadableStream({
  start(to) {
    to.enqueue(new TextEncoder().encode(events.join('')));
    signal.addEventListener('abort', () => to.error(signal.reason));
  },
}), { headers: stream });
const snapshot = (status, streamSequence, ...messages) => () => Response.json({ messages, streamSequence, status, state: {}, timestamp: 1 });
const nothing = () => new Response(null, { status: 204 });
const done = event('[DONE]');

test('a page that reads its answer again gets it from the beginning, although a part of the old stream comes late', limits, async (t) => {
  let old;
  const { transport, positions } = scripted(t,
    () => new Response(new ReadableStream({ start: (to) => { old = to; } }), { headers: stream }),
    () => { throw new TypeError('the network is gone'); },
    parts(event({ type: 'start' }, 3), done),
  );
  const send = (part, id) => old.enqueue(new TextEncoder().encode(event(part, id)));
  const first = transport.sendMessages({ ...ask, abortSignal: undefined });
  while (!old) await settled();
  send({ type: 'start' }, 1);
  const reader = (await first).getReader();
  await reader.read();
  const late = reader.read().catch((error) => error);
  await settled();
  send({ type: 'text-start', id: 't' }, 2);
  const again = await transport.reconnectToStream({ chatId: 's' });
  for await (const part of again) assert.deepEqual(part, { type: 'start' });
  assert.deepEqual(positions, [null, '0', '0']);
  assert.equal((await late).name, 'AbortError');
});

test('a chat whose connection breaks between the last part and the end lacks nothing', limits, async (t) => {
  const { transport, positions } = scripted(t, parts(event({ type: 'start' }, 3), event({ type: 'finish' }, 7)), nothing, nothing);
  const types = [];
  for await (const { type } of await transport.sendMessages({ ...ask, abortSignal: undefined })) types.push(type);
  assert.deepEqual(types, ['start', 'finish']);
  assert.equal(await transport.reconnectToStream({ chatId: 's' }), null);
  assert.deepEqual(positions, [null, '7', '7']);
});

test('a page that is refreshed while it reads an answer reads one stream', limits, async (t) => {
  const { transport, positions } = scripted(t,
    open(event({ type: 'start' }), event({ type: 'text-start', id: 't' }, 5)),
    snapshot('active', 3),
    parts(event({ type: 'start' }), event({ type: 'finish' }, 9), done),
  );
  const shown = [];
  transport.attach({
    setMessages: () => shown.push('loaded'),
    resumeStream: async () => { for await (const { type } of await transport.reconnectToStream({ chatId: 's' })) shown.push(type); },
  });
  const reader = (await transport.sendMessages({ ...ask, abortSignal: undefined })).getReader();
  await reader.read();
  await reader.read();
  reader.read().catch(({ name }) => shown.push(name));
  await transport.refresh('s');
  assert.deepEqual(shown, ['AbortError', 'loaded', 'start', 'finish']);
  assert.deepEqual(positions, [null, null, '3']);
});

test('a chat whose connection breaks until another answer is under way loads its messages again', limits, async (t) => {
  const other = { id: 'msg-3', role: 'assistant', parts: [] };
  for (const again of ['msg-3', 'msg-1']) { // msg-1: the session was taken back to its beginning
    const { transport, positions } = scripted(t,
      parts(event({ type: 'start', messageId: 'msg-1' }), event({ type: 'text-start', id: 't' }, 5)),
      parts(event({ type: 'start', messageId: again }), event({ type: 'text-start', id: 't' }, 15), event({ type: 'finish' }, 19), done),
      snapshot('ended', 19, other),
    );
    const shown = new Promise((resolve) => transport.attach({ setMessages: resolve, resumeStream: async () => {} }));
    const types = [];
    await assert.rejects(async () => {
      for await (const { type } of await transport.sendMessages({ ...ask, abortSignal: undefined })) types.push(type);
    }, { name: 'AbortError' });
    assert.deepEqual(types, ['start', 'text-start']);
    assert.deepEqual(await shown, [other]);
    assert.deepEqual(positions, [null, '5', null]);
  }
});

test('a page that reads an answer again after it has answered a call gets the whole message', limits, async (t) => {
  const { transport, positions } = scripted(t,
    parts(event({ type: 'start' }), event({ type: 'tool-approval-request', toolCallId: 'c' }, 7), event({ type: 'finish' }, 8), done),
    nothing,
    () => Response.json({ error: 'it is gone', code: 'NOT_FOUND' }, { status: 404 }),
    nothing,
    open(event({ type: 'start' }), event({ type: 'text-start', id: 't' }, 11)),
    parts(event({ type: 'start' }), event({ type: 'finish' }, 19), done),
    nothing,
  );
  const again = () => transport.reconnectToStream({ chatId: 's' });
  const answers = { ...ask, abortSignal: undefined, messages: [{ id: 'msg-1', role: 'assistant', parts: [] }] };
  for await (const _ of await transport.sendMessages({ ...ask, abortSignal: undefined }));
  assert.equal(await again(), null);
  await assert.rejects(transport.sendMessages(answers), { code: 'NOT_FOUND' });
  assert.equal(await again(), null);
  const reader = (await transport.sendMessages(answers)).getReader();
  await reader.read();
  for await (const _ of await again());
  assert.equal(await again(), null);
  assert.deepEqual(positions, [null, '8', null, '8', null, '0', '19']);
});

test('a page reads an unfinished answer from its beginning, also if the snapshot has a part of it', limits, async (t) => {
  const { transport, positions } = scripted(t,
    snapshot('active', 9, { id: 'msg-0', role: 'user', parts: [] }, { id: 'msg-1-partial', role: 'assistant', parts: [] }),
    parts(event({ type: 'start' }), event({ type: 'finish' }, 12), done),
  );
  const { messages, resume } = await transport.load('s');
  assert.deepEqual(messages.map(({ id }) => id), ['msg-0']);
  assert.equal(resume, true);
  for await (const _ of await transport.reconnectToStream({ chatId: 's' }));
  assert.deepEqual(positions, [null, '0']);
});
