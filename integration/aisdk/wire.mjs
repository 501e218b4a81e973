// Requests to the daemon, and streams that are kept frame by frame.
import assert from 'node:assert/strict';
import { within } from './gates.mjs';

/** Frame is one event of a stream: its bytes, id and JSON. */
export class Frame {
  constructor(text) {
    this.text = text;
    for (const line of text.split('\n')) {
      const [, field, value] = /^(id|data): ?(.*)$/.exec(line) ?? [];
      if (field === 'id') this.id = value;
      if (field === 'data') this.data = value;
    }
    if (this.data !== undefined && this.data !== '[DONE]') this.chunk = JSON.parse(this.data);
  }
}

/** textOf returns the bytes of frames. */
export const textOf = (frames) => frames.map((frame) => frame.text).join('');

/** framesOf takes a stream apart. What is no whole frame is an error. */
export function framesOf(text) {
  const frames = [];
  for (let rest = text; rest !== '';) {
    const end = rest.indexOf('\n\n');
    assert.notEqual(end, -1, `the stream ends inside of a frame: ${JSON.stringify(rest)}`);
    frames.push(new Frame(rest.slice(0, end + 2)));
    rest = rest.slice(end + 2);
  }
  return frames;
}

/** before returns whether a position comes before another one: 12 before 12.1 before 12.2 before 13. */
export function before(a, b) {
  const [[m, j = 0], [n, k = 0]] = [a, b].map((position) => String(position).split('.').map(Number));
  return m < n || (m === n && j < k);
}

/** lastID returns the cursor of somebody who has frames, or before. */
export const lastID = (frames, earlier) => frames.findLast((frame) => frame.id !== undefined)?.id ?? earlier;

/** Stream is an answer that is being read. */
export class Stream {
  frames = [];
  #rest = '';
  #waiting = [];

  constructor(response) {
    this.status = response.status;
    this.headers = response.headers;
    this.ended = this.#read(response.body);
  }

  /** text returns the whole body, or fails if the connection has broken. */
  async text() {
    await this.end();
    if (this.broken) throw this.broken;
    return textOf(this.frames) + this.#rest;
  }

  /** end waits for the end, broken or not. */
  end() {
    return within(this.ended, () => 'the end of a stream');
  }

  /** has waits until a frame has arrived that test says yes to. */
  async has(test, what) {
    while (!this.frames.some(test)) {
      assert.ok(!this.over, `the stream has ended without ${what}:\n${textOf(this.frames)}`);
      await within(new Promise((resolve) => this.#waiting.push(resolve)), `${what}, after:\n${textOf(this.frames)}`);
    }
  }

  async #read(body) {
    const decoder = new TextDecoder();
    try {
      if (body) for await (const bytes of body) this.#take(decoder.decode(bytes, { stream: true }));
    } catch (error) {
      this.broken = error;
    }
    this.over = true;
    this.#wake();
  }

  #take(text) {
    this.#rest += text;
    const end = this.#rest.lastIndexOf('\n\n') + 2;
    if (end === 1) return;
    this.frames.push(...framesOf(this.#rest.slice(0, end)));
    this.#rest = this.#rest.slice(end);
    this.#wake();
  }

  #wake() {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** Daemon makes requests. */
export class Daemon {
  constructor(url) {
    this.url = url;
    this.api = `${url}/chat`;
  }

  path(session, what) {
    return `${this.api}/${encodeURIComponent(session)}/${what}`;
  }

  /** open sends a chat's request. */
  async open(body) {
    const response = await send(this.api, body);
    if (response.status !== 200) throw new Error(`POST /chat: ${response.status} ${await response.text()}`);
    return response;
  }

  /** behind requests the chunks after position, or all if it is undefined. */
  async behind(session, position) {
    const headers = position === undefined ? {} : { 'X-Resume-From-Sequence': String(position) };
    const response = await fetch(this.path(session, 'stream'), { headers });
    if (response.status !== 200 && response.status !== 204) {
      throw new Error(`GET /chat/…/stream after ${position}: ${response.status} ${await response.text()}`);
    }
    return response;
  }

  /** post and reconnect are open and behind, with the answer read as a Stream. */
  post = async (body) => new Stream(await this.open(body));
  reconnect = async (session, position) => new Stream(await this.behind(session, position));

  /** snapshot returns what a client starts from; partial: with an unfinished message. */
  async snapshot(session, partial = false) {
    const response = await fetch(this.path(session, `snapshot${partial ? '?includePartialContent=1' : ''}`));
    assert.equal(response.status, 200, 'GET /chat/…/snapshot');
    return response.json();
  }

  /** command posts to one of the session's routes: interrupt or abort. */
  async command(session, what, body = {}) {
    const response = await send(this.path(session, what), body);
    assert.equal(response.status, 200, `POST /chat/…/${what}: ${await response.text()}`);
  }

  /** resume continues a session whose daemon has died. */
  async resume(session) {
    const response = await send(`${this.url}/resume`, { sessionId: session });
    assert.equal(response.status, 200, `POST /resume: ${await response.text()}`);
  }

  async status(session) {
    const response = await fetch(`${this.url}/status?sessionId=${encodeURIComponent(session)}`);
    assert.equal(response.status, 200, 'GET /status');
    return response.json();
  }
}

const send = (url, body) => fetch(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
