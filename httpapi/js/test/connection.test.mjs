// Requests to servers and networks that fail: what is repeated, and what is not.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import { HelixClient, HelixError } from '../dist/index.js';
import { json, serve } from './server.mjs';

const live = { status: 'active' };
const limits = { timeout: 20_000 }; // of a request that is repeated for ever

test('an answer that is not of helixd is refused, such as the page that a web server has for every path', limits, async (t) => {
  const server = await serve((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html>'));
  t.after(() => server.close());
  const helix = new HelixClient({ url: server.url, minDelay: 1 });
  const refused = (error) => error instanceof HelixError && error.status === 200 && error.code === undefined && !error.temporary;
  await assert.rejects(helix.status('s'), refused);
  await assert.rejects(helix.stream('s').next(), refused);
  await assert.rejects(helix.records('s', { follow: true }).next(), refused);
  assert.equal(server.requests.length, 3, 'each was sent once');
});

test('a body that claims to be JSON and is not is refused', limits, async (t) => {
  const server = await serve((_, response) => response.setHeader('content-type', 'application/json').end('<!doctype html>'));
  t.after(() => server.close());
  await assert.rejects(new HelixClient({ url: server.url, minDelay: 1 }).status('s'), HelixError);
});

test('a request that can never be sent is not repeated', limits, async (t) => {
  const server = await serve(json(live));
  t.after(() => server.close());
  const { url } = server;
  const helix = new HelixClient({ url, minDelay: 1 });
  const cyclic = {};
  cyclic.itself = cyclic;
  const at = (options) => new HelixClient({ url, minDelay: 1, ...options }).status('s');
  for (const [name, request] of Object.entries({
    'a key that no header can hold': () => helix.say('s', 'hi', { idempotencyKey: 'ключ' }),
    'a BigInt': () => helix.start({ sessionId: 's', agentType: 'a', message: 'hi', state: { n: 1n } }),
    'a cycle': () => helix.start({ sessionId: 's', agentType: 'a', message: 'hi', state: cyclic }),
    'a header': () => at({ headers: { authorization: 'ключ' } }),
    'a header of a function': () => at({ headers: async () => ({ authorization: 'ключ' }) }),
    'a function that fails': () => at({ headers: () => undefined.token }),
    'no scheme': () => at({ url: 'localhost:8080' }),
    'no host': () => at({ url: '/api' }),
    'a password': () => at({ url: url.replace('//', '//user:password@') }),
  })) {
    await assert.rejects(request(), TypeError, name);
  }
  assert.equal(server.requests.length, 0);
});

test('headers whose function fails as fetch does are asked for again', limits, async (t) => {
  const server = await serve(json(live));
  t.after(() => server.close());
  const gone = await serve();
  gone.close();
  let calls = 0;
  const headers = async () => {
    if (calls++ === 0) await fetch(gone.url);
    if (calls === 2) await new Promise(() => {}); // a connection that says nothing
    return { authorization: 'Bearer token' };
  };
  assert.deepEqual(await new HelixClient({ url: server.url, minDelay: 1, silence: 300, headers }).status('s'), live);
  assert.ok(calls >= 3); // more if an answer takes longer than the silence
  assert.equal(server.requests[0].headers.authorization, 'Bearer token');
});

test('a request that gets no answer, or half of one, is sent again', limits, async (t) => {
  const half = (_, response) => response.setHeader('content-type', 'application/json').write('{"sta');
  const refusal = (_, response) => response.writeHead(404, { 'content-type': 'application/json' }).write('{"err');
  const server = await serve(() => {}, half, refusal, json(live));
  t.after(() => server.close());
  assert.deepEqual(await new HelixClient({ url: server.url, minDelay: 1, silence: 300 }).status('s'), live);
  assert.ok(server.requests.length >= 4);
});

test('a fork that gets no answer is sent once, and fails', limits, async (t) => {
  const server = await serve(() => {});
  t.after(() => server.close());
  let sent = 0; // the server may not have got it yet
  const counted = (...of) => { sent++; return fetch(...of); };
  await assert.rejects(new HelixClient({ url: server.url, minDelay: 1, silence: 50, fetch: counted }).fork('s'), { name: 'TimeoutError' });
  assert.equal(sent, 1);
});

test('an answer may take longer than the silence, as long as it comes', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  let pieces, aborted;
  const slow = (_, { signal }) => {
    signal.addEventListener('abort', () => { aborted ??= signal.reason; });
    return new Response(new ReadableStream({ start: (to) => { pieces = to; } }), { headers: { 'content-type': 'application/json' } });
  };
  const answer = new HelixClient({ url: 'http://helixd', fetch: async (...of) => slow(...of), silence: 40_000 }).status('s');
  await settled();
  for (const byte of new TextEncoder().encode(JSON.stringify(live))) {
    pieces.enqueue(Uint8Array.of(byte));
    await settled();
    mock.timers.tick(30_000);
    assert.equal(aborted, undefined);
  }
  pieces.close();
  assert.deepEqual(await answer, live);
});

test('a page that left makes no further attempts', limits, async (t) => {
  const server = await serve(() => {});
  t.after(() => server.close());
  const left = new AbortController();
  const answer = new HelixClient({ url: server.url, minDelay: 1 }).status('s', { signal: left.signal });
  const reason = new Error('the page is left');
  left.abort(reason);
  await assert.rejects(answer, reason);
});

test('records of one call have one end, although the log grows while the connection breaks', limits, async (t) => {
  const record = (sequence) => `${JSON.stringify({ sequence })}\n`;
  const queries = [];
  let head = 3, broken;
  const server = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://helixd');
    if (!pathname.endsWith('/records')) return json({ headSequence: head })(request, response);
    queries.push(Object.fromEntries(searchParams));
    response.setHeader('content-type', 'application/x-ndjson');
    if (queries.length > 1) return response.end(record(2) + record(3));
    [head, broken] = [9, request.socket];
    response.write(record(1));
  });
  t.after(() => server.close());
  const sequences = [];
  for await (const { sequence } of new HelixClient({ url: server.url, minDelay: 1 }).records('s', { dead: true })) {
    sequences.push(sequence);
    broken.destroy();
  }
  assert.deepEqual(sequences, [1, 2, 3]);
  assert.deepEqual(queries, [{ from: '0', to: '3', dead: 'true' }, { from: '1', to: '3', dead: 'true' }]);
});

test('a message is sent in a page without TLS, where crypto.randomUUID is not there', limits, async (t) => {
  const server = await serve(json({ sessionId: 's' }));
  t.after(() => server.close());
  Object.defineProperty(crypto, 'randomUUID', { value: undefined, configurable: true });
  t.after(() => delete crypto.randomUUID);
  await new HelixClient({ url: server.url }).say('s', 'hi');
  assert.match(server.requests[0].headers['idempotency-key'], /^[0-9a-f]{32}$/);
});
