// One try of a request, which fails when the network does.

/** One connection. It is aborted by its owner, when the network goes, and when nothing comes on it any more. */
export class Attempt {
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
    this.offs.push(on('window', 'offline', () => this.controller.abort(new DOMException('the device is offline', 'NetworkError'))));
    // A tab that slept may have a dead connection, and a timer that is late.
    this.offs.push(on('document', 'visibilitychange', () => visible() && Date.now() - this.last > silence && this.silent()));
    this.alive();
  }

  /** Yields an answer's text as it comes. */
  async *read(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
    const reader = bytes.getReader();
    const decoder = new TextDecoder();
    try {
      for (let piece; !(piece = await network(() => reader.read())).done;) {
        this.alive();
        yield decoder.decode(piece.value, { stream: true });
      }
    } finally {
      reader.releaseLock();
    }
  }

  /** The whole text of an answer. */
  async text({ body }: Response): Promise<string> {
    let all = '';
    if (body) for await (const piece of this.read(body)) all += piece;
    return all;
  }

  /** Rejects when the attempt is aborted, for promises that don't. */
  until<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(this.signal.reason);
      if (this.signal.aborted) abort();
      this.signal.addEventListener('abort', abort);
      promise.then(resolve, reject);
    });
  }

  close() {
    clearTimeout(this.timer);
    this.offs.forEach((off) => off());
    this.controller.abort(); // the rest of the answer is not read
  }

  /** Something has come. */
  private alive() {
    this.last = Date.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.silent(), this.silence);
  }

  private silent() {
    this.controller.abort(new DOMException(`nothing has come from the server for ${this.silence} ms`, 'TimeoutError'));
  }
}

/** A failure of the network. `cause` is what fetch, or the reading of an answer, has rejected with. */
export class Broken extends Error {
  constructor(override readonly cause: unknown) {
    super('the connection broke');
  }
}

/** Does what uses the network, so that its failures differ from the same errors of a request that is wrong. */
export async function network<T>(use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    // fetch rejects with a TypeError when the network fails; aborts are DOMExceptions.
    throw error instanceof TypeError || error instanceof DOMException ? new Broken(error) : error;
  }
}

type Page = {
  window?: EventTarget; document?: EventTarget & { visibilityState?: string; baseURI?: string };
  navigator?: { onLine?: boolean }; location?: { href: string };
};
export const page = globalThis as Page;
export const offline = () => page.document !== undefined && page.navigator?.onLine === false;
export const visible = () => page.document?.visibilityState === 'visible';

/** Listens where there is a page. Returns a function that stops. */
export function on(target: 'window' | 'document', event: string, listener: () => void): () => void {
  page[target]?.addEventListener(event, listener);
  return () => page[target]?.removeEventListener(event, listener);
}
