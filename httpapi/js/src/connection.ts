// Requests that are repeated, and streams that continue, while the network or the server is away.
import type { Error as ErrorAnswer, ErrorCode } from './wire.js';

/**
 * The state of a stream's connection:
 * - `idle`: no stream is open;
 * - `connecting`: a request is under way;
 * - `open`: the server streams;
 * - `waiting`: the connection broke, and the next attempt follows after a delay;
 * - `offline`: the device has no network. The next attempt follows when it is back.
 */
export type Connection = 'idle' | 'connecting' | 'open' | 'waiting' | 'offline';

/** Options of every client. */
export interface ConnectionOptions {
  /** The server's URL, with the path where it is mounted, as `https://example.com/api`. */
  url: string;
  /** Headers of each request. A function is called before every attempt, so that a token can be renewed. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Used in place of the global fetch. */
  fetch?: typeof fetch;
  /** Cookies of other origins, as for fetch. */
  credentials?: RequestCredentials;
  /** The first delay between attempts, in milliseconds, of which half is random. Default: 250. */
  minDelay?: number;
  /** The longest delay, in milliseconds. Default: 10 000. */
  maxDelay?: number;
  /** A stream on which nothing comes for this long, in milliseconds, is opened again. The server sends a heartbeat every 15 s. Default: 40 000. */
  silence?: number;
}

/** The server's refusal of a request. */
export class HelixError extends Error {
  override name = 'HelixError';
  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** A stable code, undefined if the answer is not helixd's, as a proxy's. */
    readonly code: ErrorCode | undefined,
    message: string,
    readonly detail?: ErrorAnswer['detail'],
    /** How long to wait, in milliseconds, if the server says it. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }

  /** Whether the same request may succeed later, without a change. */
  get temporary(): boolean {
    if (this.code === undefined) return this.status >= 500 || this.status === 429;
    return ['BUSY', 'RATE_LIMITED', 'UNAVAILABLE', 'READ_ONLY'].includes(this.code);
  }
}

/** A request, relative to the server's URL. */
export interface Ask {
  path: string;
  method?: string;
  headers?: Record<string, string>;
  /** JSON. */
  body?: unknown;
}

/** An event of a stream of server-sent events, or a line of NDJSON in `data`. */
export interface Item {
  id?: string;
  data: string;
}

/** Link sends requests to one server. */
export class Link {
  constructor(private readonly options: ConnectionOptions) {}

  /** Sends a request once. Rejects with a HelixError unless the status is 2xx. */
  async send(ask: Ask, signal?: AbortSignal): Promise<Response> {
    const { url, fetch: send = globalThis.fetch, credentials, headers: given } = this.options;
    const headers = new Headers(typeof given === 'function' ? await given() : given);
    for (const [name, value] of Object.entries(ask.headers ?? {})) headers.set(name, value);
    if (ask.body !== undefined) headers.set('content-type', 'application/json');
    const response = await send.call(globalThis, url.replace(/\/$/, '') + ask.path, {
      method: ask.method ?? 'GET', headers, credentials, signal, cache: 'no-store',
      body: ask.body === undefined ? undefined : JSON.stringify(ask.body),
    });
    if (!response.ok) throw await refusal(response);
    return response;
  }

  /** Sends a request whose answer is JSON. `repeat` repeats it while the server can't be reached. */
  async json<T>(ask: Ask, { repeat = true, signal }: { repeat?: boolean; signal?: AbortSignal } = {}): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await (await this.send(ask, signal)).json() as T;
      } catch (error) {
        if (!repeat || !temporary(error, signal)) throw error;
        await this.pause(failures, error, signal);
      }
    }
  }

  /**
   * Yields what streams back, and opens the stream again whenever it breaks: `next` returns the request that
   * continues it. It ends when the consumer stops reading, at an answer without content (204), and, if the answer is
   * finite, at its end. `opened` is called when the server has taken a request.
   */
  async *follow(
    next: () => Ask, split: (bytes: ReadableStream<Uint8Array>) => AsyncGenerator<Item | undefined>,
    signal: AbortSignal | undefined, note: (state: Connection) => void = () => {}, finite = false, opened?: () => void,
  ): AsyncGenerator<Item> {
    try {
      for (let failures = 0; ; failures++) {
        const attempt = new Attempt(signal, this.options.silence ?? 40_000);
        try {
          note('connecting');
          const response = await this.send(next(), attempt.signal);
          if (response.status === 204 || !response.body) return;
          opened?.();
          note('open');
          for await (const item of split(response.body)) {
            attempt.alive();
            failures = 0;
            if (item) yield item; // without one: a heartbeat
          }
          if (finite) return;
        } catch (error) {
          if (!temporary(error, signal)) throw error;
          note(offline() ? 'offline' : 'waiting');
          await this.pause(failures, error, signal);
          continue;
        } finally {
          attempt.close();
        }
        note('waiting'); // the server has closed it
        await this.pause(failures, undefined, signal);
      }
    } finally {
      note('idle');
    }
  }

  /** Waits before an attempt: ever longer, but no longer than until the network is back or the page is shown. */
  private async pause(failures: number, error: unknown, signal?: AbortSignal): Promise<void> {
    const { minDelay = 250, maxDelay = 10_000 } = this.options;
    let delay = Math.min(maxDelay, minDelay * 2 ** Math.min(failures, 20));
    delay *= 0.5 + Math.random() / 2;
    if (error instanceof HelixError) delay = Math.max(delay, error.retryAfter ?? 0);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, offline() ? maxDelay : delay);
      const wakes = [on('window', 'online', done), on('document', 'visibilitychange', () => visible() && !offline() && done())];
      signal?.addEventListener('abort', done);
      function done() {
        clearTimeout(timer);
        wakes.forEach((off) => off());
        signal?.removeEventListener('abort', done);
        resolve();
      }
      if (signal?.aborted) done();
    });
    signal?.throwIfAborted();
  }
}

/** One connection. It is aborted by its owner, when the network goes, and when nothing comes on it any more. */
class Attempt {
  private readonly controller = new AbortController();
  private readonly offs: Array<() => void> = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = Date.now();
  readonly signal = this.controller.signal;

  constructor(owner: AbortSignal | undefined, private readonly silence: number) {
    const abort = () => this.controller.abort(owner?.reason);
    if (owner?.aborted) abort();
    owner?.addEventListener('abort', abort);
    this.offs.push(() => owner?.removeEventListener('abort', abort));
    this.offs.push(on('window', 'offline', () => this.controller.abort()));
    // A tab that slept may have a dead connection, and a timer that is late.
    this.offs.push(on('document', 'visibilitychange', () => visible() && Date.now() - this.last > silence && this.controller.abort()));
    this.alive();
  }

  /** Something has come. */
  alive() {
    this.last = Date.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.controller.abort(), this.silence);
  }

  close() {
    clearTimeout(this.timer);
    this.offs.forEach((off) => off());
    this.controller.abort(); // the rest of the answer is not read
  }
}

/** Splits server-sent events. A comment is yielded as undefined: the connection is alive. */
export async function* events(bytes: ReadableStream<Uint8Array>): AsyncGenerator<Item | undefined> {
  let item: Item = { data: '' };
  let some = false; // there is data
  for await (const line of lines(bytes)) {
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (line === '') {
      if (some) yield item;
      [item, some] = [{ data: '' }, false];
    } else if (field === '') yield undefined;
    else if (field === 'id') item.id = value;
    else if (field === 'data') [item.data, some] = [some ? `${item.data}\n${value}` : value, true];
  }
}

/** Splits NDJSON. An empty line is yielded as undefined. */
export async function* objects(bytes: ReadableStream<Uint8Array>): AsyncGenerator<Item | undefined> {
  for await (const line of lines(bytes)) yield line === '' ? undefined : { data: line };
}

/** Yields the lines that are whole. */
async function* lines(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = bytes.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (let piece; !(piece = await reader.read()).done;) {
      const all = (rest + decoder.decode(piece.value, { stream: true })).split(/\r?\n/);
      rest = all.pop() ?? '';
      yield* all;
    }
  } finally {
    reader.releaseLock();
  }
}

async function refusal(response: Response): Promise<HelixError> {
  const text = await response.text().catch(() => '');
  const seconds = Number(response.headers.get('retry-after') ?? NaN);
  const after = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  try {
    const { error, code, detail } = JSON.parse(text) as ErrorAnswer;
    if (typeof error === 'string' && code) return new HelixError(response.status, code, error, detail, after);
  } catch { /* it is not helixd's */ }
  return new HelixError(response.status, undefined, `the server answers ${response.status} ${response.statusText}`.trim(), undefined, after);
}

/** Whether an attempt failed for a reason that may pass: no answer, a broken one, or a server that can't now. */
function temporary(error: unknown, signal?: AbortSignal): boolean {
  if (signal?.aborted) return false;
  if (error instanceof HelixError) return error.temporary;
  // fetch rejects with a TypeError when the network fails; our own abort of an attempt is an AbortError.
  return error instanceof TypeError || (error as Error)?.name === 'AbortError' || (error as Error)?.name === 'SyntaxError';
}

type Page = { window?: EventTarget; document?: EventTarget & { visibilityState?: string }; navigator?: { onLine?: boolean } };
const page = globalThis as Page;
const offline = () => page.document !== undefined && page.navigator?.onLine === false;
const visible = () => page.document?.visibilityState === 'visible';

/** Listens where there is a page. Returns a function that stops. */
function on(target: 'window' | 'document', event: string, listener: () => void): () => void {
  page[target]?.addEventListener(event, listener);
  return () => page[target]?.removeEventListener(event, listener);
}
