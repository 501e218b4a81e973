// Requests that are repeated, and streams that continue, while the network or the server is away.
import { Attempt, Broken, network, offline, on, page, visible } from './attempt.js';
import type { Format, Item } from './format.js';
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
  /**
   * Headers of each request. A function is called before every attempt, so that a token can be renewed. If its promise
   * rejects with a TypeError, as that of fetch does without a network, it is called again after a delay.
   */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Used in place of the global fetch. */
  fetch?: typeof fetch;
  /** Cookies of other origins, as for fetch. */
  credentials?: RequestCredentials;
  /** The first delay between attempts, in milliseconds, of which half is random. Default: 250. */
  minDelay?: number;
  /** The longest delay, in milliseconds. Default: 10 000. */
  maxDelay?: number;
  /**
   * An attempt on which nothing comes for this long, in milliseconds, has failed: a stream is opened again. The server
   * sends a heartbeat every 15 s, and answers other requests within 30 s. Default: 40 000.
   */
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

/** Link sends requests to one server. */
export class Link {
  constructor(private readonly options: ConnectionOptions) {}

  /** Sends a request whose answer is JSON. `repeat` repeats it while the server can't be reached. */
  async json<T>(ask: Ask, { repeat = true, signal }: { repeat?: boolean; signal?: AbortSignal } = {}): Promise<T> {
    for (let failures = 0; ; failures++) {
      const attempt = this.attempt(signal);
      try {
        const response = await this.send(ask, 'application/json', attempt);
        return parse<T>(response, await attempt.text(response));
      } catch (error) {
        if (!repeat || !temporary(error, signal)) throw reason(error);
        await this.pause(failures, error, signal);
      } finally {
        attempt.close();
      }
    }
  }

  /**
   * Yields what streams back, and opens the stream again whenever it breaks: `next` returns the request that
   * continues it. It ends when the consumer stops reading, at an answer without content (204), and, if the answer is
   * finite, at its end. `opened` is called when the server has taken a request.
   */
  async *follow(
    next: () => Ask, format: Format,
    signal: AbortSignal | undefined, note: (state: Connection) => void = () => {}, finite = false, opened?: () => void,
  ): AsyncGenerator<Item> {
    try {
      for (let failures = 0; ; failures++) {
        const attempt = this.attempt(signal);
        try {
          note('connecting');
          const response = await this.send(next(), format.type, attempt);
          if (response.status === 204 || !response.body) return;
          opened?.();
          note('open');
          for await (const item of format.split(attempt.read(response.body))) {
            failures = 0;
            if (item) yield item; // without one: a heartbeat
          }
          if (finite) return;
        } catch (error) {
          if (!temporary(error, signal)) throw reason(error);
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

  private attempt(signal: AbortSignal | undefined): Attempt {
    return new Attempt(signal, this.options.silence ?? 40_000);
  }

  /**
   * Sends a request once. Rejects with a HelixError unless the answer is 2xx of the wanted type, and with Broken if the
   * network fails. Mistakes in the request, such as a body that JSON can't hold, are thrown as they are.
   */
  private async send(ask: Ask, type: string, attempt: Attempt): Promise<Response> {
    const { fetch: send = globalThis.fetch, credentials } = this.options;
    const url = this.address(ask.path);
    const body = ask.body === undefined ? undefined : JSON.stringify(ask.body);
    const headers = await this.headers(ask, attempt);
    const { signal } = attempt;
    const response = await network(() => send.call(globalThis, url, { method: ask.method ?? 'GET', headers, credentials, signal, cache: 'no-store', body }));
    if (!response.ok) throw refusal(response, await attempt.text(response));
    const got = response.headers.get('content-type') ?? '';
    if (response.status !== 204 && !got.startsWith(type)) {
      throw new HelixError(response.status, undefined, `the server answers with ${got || 'no content type'}, not ${type}: is the URL that of helixd?`);
    }
    return response;
  }

  /** Refuses URLs that fetch refuses with the error of a network that is away. Another fetch may know other URLs. */
  private address(path: string): string {
    const url = this.options.url.replace(/\/$/, '') + path;
    if (this.options.fetch) return url;
    let at: URL | undefined;
    try {
      at = new URL(url, page.document?.baseURI ?? page.location?.href);
    } catch { /* it is refused below */ }
    if (!at?.host || at.username || at.password) {
      throw new TypeError(`the option url must be a URL like https://example.com/api, without a user: ${this.options.url}`);
    }
    return url;
  }

  private async headers(ask: Ask, attempt: Attempt): Promise<Headers> {
    const { headers: given } = this.options;
    const own = typeof given === 'function' ? given() : given;
    const headers = new Headers(await network(() => attempt.until(Promise.resolve(own))));
    for (const [name, value] of Object.entries(ask.headers ?? {})) headers.set(name, value);
    if (ask.body !== undefined) headers.set('content-type', 'application/json');
    return headers;
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

function parse<T>(response: Response, text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new HelixError(response.status, undefined, 'the answer is not JSON');
  }
}

function refusal(response: Response, text: string): HelixError {
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
  return error instanceof Broken || (error instanceof HelixError && error.temporary);
}

/** What the caller gets for an attempt's error. */
function reason(error: unknown): unknown {
  return error instanceof Broken ? error.cause : error;
}
