// How the text of streams is put together, by the package and by the debugger's page.
import assert from 'node:assert/strict';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { events, objects } from '../dist/format.js';

const bytes = new TextEncoder();
const records = [{ sequence: 1, text: 'a' }, { sequence: 2, text: 'ünd\r\n' }, { sequence: 3, text: '🙂' }];

async function* over(pieces) { yield* pieces; }

async function all(items) {
  const got = [];
  for await (const item of items) got.push(item);
  return got;
}

/** cuts returns a text in two pieces, and in three, cut everywhere, and in pieces of one character. */
function* cuts(text) {
  yield [...text];
  for (let i = 0; i <= text.length; i++) {
    for (let j = i; j <= text.length; j++) yield [text.slice(0, i), text.slice(i, j), text.slice(j)];
  }
}

/** searched counts the characters that strings are searched through meanwhile. */
async function searched(work) {
  const { indexOf, split } = String.prototype;
  let n = 0;
  String.prototype.indexOf = function (...of) { n += this.length - (of[1] ?? 0); return indexOf.apply(this, of); };
  String.prototype.split = function (...of) { n += this.length; return split.apply(this, of); };
  try {
    await work();
  } finally {
    Object.assign(String.prototype, { indexOf, split });
  }
  return n;
}

// A line of a million characters in a thousand pieces.
const piece = 'x'.repeat(1000);
const long = ['"', ...Array(1000).fill(piece), '"\n'];
const size = long.join('').length;

for (const end of ['\n', '\r\n']) {
  test(`events and records are the same, wherever their text is cut, with ${JSON.stringify(end)}`, async () => {
    const stream = [': hi', '', 'id: 1.2', 'data: one', 'data:two', '', 'data', '', 'data: cut off'].join(end);
    for (const pieces of cuts(stream)) {
      assert.deepEqual(await all(events.split(over(pieces))), [undefined, { id: '1.2', data: 'one\ntwo' }, { data: '' }]);
    }
    const lines = ['{"a":1}', '', '{"b\r":2}', '{"cut'].join(end);
    for (const pieces of cuts(lines)) {
      assert.deepEqual(await all(objects.split(over(pieces))), [{ data: '{"a":1}' }, undefined, { data: '{"b\r":2}' }]);
    }
  });
}

test('a line of many pieces is searched once', async () => {
  const n = await searched(async () => assert.equal((await all(objects.split(over(long))))[0].data.length, size - 1));
  assert.ok(n <= 2 * size, `${n} characters of ${size}`);
});

let page, api;
before(async () => {
  page = await mkdtemp(join(tmpdir(), 'debugger-'));
  await cp(new URL('../../debugger/static', import.meta.url), page, { recursive: true });
  await writeFile(join(page, 'package.json'), '{"type":"module"}');
  const { createAPI } = await import(join(page, 'api.js'));
  globalThis.document = { baseURI: 'http://helixd/' };
  api = createAPI(() => {});
  delete globalThis.document;
});
after(() => rm(page, { recursive: true }));

/** follow gives the page's API the pieces of an answer, and returns the records that it reports. */
async function follow(t, pieces) {
  t.mock.method(globalThis, 'fetch', async () => new Response(ReadableStream.from(pieces)));
  const got = [];
  await api.ndjson('/sessions/s/records', {}, (record) => got.push(record)).finally(() => t.mock.restoreAll());
  return got;
}

test('the debugger reads the same records, wherever their text is cut', async (t) => {
  const text = `${records.map((record) => JSON.stringify(record)).join('\n\n')}`;
  const whole = bytes.encode(text);
  for (let i = 0; i <= whole.length; i++) {
    assert.deepEqual(await follow(t, [whole.slice(0, i), whole.slice(i)]), records);
  }
  assert.deepEqual(await follow(t, Array.from(whole, (byte) => Uint8Array.of(byte))), records);
});

test('the debugger searches a line of many pieces once', async (t) => {
  const pieces = long.map((part) => bytes.encode(part));
  const n = await searched(async () => assert.equal((await follow(t, pieces))[0].length, size - 3));
  assert.ok(n <= 2 * size, `${n} characters of ${size}`);
});

test('the debugger closes the connection when it can not show a record', async (t) => {
  const closed = new Promise((resolve) => {
    t.mock.method(globalThis, 'fetch', async (_, { signal }) => {
      signal.addEventListener('abort', resolve);
      return new Response(new ReadableStream({ start: (to) => to.enqueue(bytes.encode('{}\n')) }));
    });
  });
  await assert.rejects(api.ndjson('/sessions/s/records', {}, () => { throw new Error('shown'); }), /shown/);
  await closed;
});
