import { HelixClient, escape, randomKey } from './client.js';
import { HelixError, Link, type Ask, type Connection, type ConnectionOptions } from './connection.js';
import { events, type Item } from './format.js';
import type { UIMessage } from './wire.js';

/** Options of a {@link HelixChatTransport}. */
export interface TransportOptions extends ConnectionOptions {
  /** Members of every POST /chat beside those of the AI SDK, as `{ agentType: 'weather' }`. */
  body?: Record<string, unknown>;
  /** Whether the SDK knows approvals. `false` for AI SDK 5, whose streams they would break; answer them with {@link HelixClient.approve}, and refresh. Default: true. */
  approvals?: boolean;
}

/** What a page begins with: `useChat({ ...chat, transport })`. */
export interface LoadedChat<M> {
  id: string;
  messages: M[];
  /** Whether an answer is under way, which the page then reads. */
  resume: boolean;
}

/** What {@link HelixChatTransport.attach} needs of useChat's result, or of a Chat with `setMessages`. */
export interface ChatPage<M> {
  setMessages(messages: M[]): void;
  resumeStream(): Promise<void>;
}

/** What the AI SDK, version 5, 6 or 7, passes to a transport's sendMessages. */
export interface SendOptions<M> {
  trigger: 'submit-message' | 'regenerate-message';
  chatId: string;
  messageId: string | undefined;
  messages: M[];
  abortSignal: AbortSignal | undefined;
  headers?: Record<string, string> | Headers;
  body?: object;
  metadata?: unknown;
}

/** What the AI SDK passes to a transport's reconnectToStream. */
export interface ReconnectOptions {
  chatId: string;
  abortSignal?: AbortSignal;
  headers?: Record<string, string> | Headers;
  body?: object;
  metadata?: unknown;
}

/** Where a chat is in its stream. A position is an SSE id: `12`, or `12.3`. */
interface Place {
  /** All that the page's messages hold before the answer that is under way. */
  base: string;
  /** The last frame that the page has. */
  at: string;
  /** Ends the stream that is open. */
  close?: () => void;
}

/**
 * The transport of `useChat` for helixd. The stream that it gives to the chat outlives its connections: when one
 * breaks, the transport continues after the last frame that arrived, so that the chat has every part once and whole.
 *
 * Use one transport for one page, and `attach` the chat: after a crash of the server some output that was shown may be
 * truncated, and the chat then begins the answer again.
 *
 * `M` is the page's UIMessage, `C` its UIMessageChunk: both are `any` to fit each version of the SDK.
 */
export class HelixChatTransport<M = any, C = any> {
  /** A reconnect replays the answer from its beginning (AI SDK 6 and 7 read it). */
  readonly resumeStreamIsReplay = true;

  private readonly link: Link;
  private readonly client: HelixClient;
  private readonly places = new Map<string, Place>();
  private readonly listeners = new Set<() => void>();
  private readonly left = new AbortController();
  private page: ChatPage<M> | undefined;
  private state: Connection = 'idle';

  constructor(private readonly options: TransportOptions) {
    this.link = new Link(options);
    this.client = new HelixClient(options);
  }

  /** The state of the connection. Arrow functions, to be passed to useSyncExternalStore. */
  readonly connection = (): Connection => this.state;

  /** Calls a function whenever the connection's state changes. Returns a function that stops. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Reads what a page begins with. A session that does not exist yet has no messages. It retries while the server can't be reached. */
  async load(chatId: string, signal?: AbortSignal): Promise<LoadedChat<M>> {
    try {
      const { messages, streamSequence, status } = await this.client.snapshot(chatId, { signal });
      const resume = status === 'active';
      // With contentReplay off the snapshot has the unfinished answer, but a chat can't continue its parts: it reads all of it.
      const partial = resume && messages.at(-1)?.id.endsWith('-partial') === true;
      this.moveTo(chatId, partial ? '0' : `${streamSequence}`);
      return { id: chatId, messages: (partial ? messages.slice(0, -1) : messages) as UIMessage[] as M[], resume };
    } catch (error) {
      if (!(error instanceof HelixError && error.status === 404)) throw error;
      this.moveTo(chatId, '0');
      return { id: chatId, messages: [], resume: false };
    }
  }

  /**
   * Lets the transport replace the chat's messages when the server has truncated output that it shows, or another
   * client has begun a further turn while the connection was broken. Returns a function that detaches, as useEffect
   * wants it.
   */
  readonly attach = (page: ChatPage<M>): (() => void) => {
    this.page = page;
    return () => {
      if (this.page === page) this.page = undefined;
    };
  };

  /**
   * Gives the attached page the messages that there are now, and the answer that is under way from its beginning: after
   * a change by another client, as an approval by {@link HelixClient.approve}.
   */
  async refresh(chatId: string): Promise<void> {
    const { page } = this;
    const loaded = await this.load(chatId, this.left.signal);
    if (page) this.places.get(chatId)?.close?.();
    await new Promise((resolve) => setTimeout(resolve)); // until the chat is done with the stream that was open
    await this.show(page, loaded);
  }

  /** Called by the AI SDK. */
  async sendMessages({ chatId, messages, trigger, messageId, abortSignal, body, headers }: SendOptions<M>): Promise<ReadableStream<C>> {
    const place = this.placeOf(chatId);
    // The ids of messages and calls show that a request is a repetition. Regenerating has none.
    const key: Record<string, string> = trigger === 'regenerate-message' ? { 'idempotency-key': randomKey() } : {};
    const post = {
      path: '/chat', method: 'POST', headers: { ...key, ...plain(headers) },
      body: { ...this.options.body, ...body, id: chatId, messages, trigger, messageId },
    };
    const continues = trigger === 'submit-message' && (messages.at(-1) as { role?: string } | undefined)?.role === 'assistant';
    const taken = () => { if (continues) place.base = '0'; }; // the message begins before what the server has stopped at
    return await this.open(chatId, place, post, abortSignal, plain(headers), taken) ?? new ReadableStream({ start: (controller) => controller.close() });
  }

  /** Called by the AI SDK. Resolves to null if no answer is under way, and the page lacks nothing. */
  reconnectToStream({ chatId, abortSignal, headers }: ReconnectOptions): Promise<ReadableStream<C> | null> {
    const place = this.placeOf(chatId);
    place.at = place.base; // the chat begins the message again
    return this.open(chatId, place, undefined, abortSignal, plain(headers));
  }

  /** Ends all streams. The sessions continue on the server. */
  readonly close = (): void => {
    this.page = undefined;
    this.left.abort();
  };

  /** Sets what the page has. A stream that is open stays open until the next one. */
  private moveTo(chatId: string, at: string) {
    this.places.set(chatId, { base: at, at, close: this.places.get(chatId)?.close });
  }

  private placeOf(chatId: string): Place {
    let place = this.places.get(chatId);
    if (!place) this.places.set(chatId, place = { base: '0', at: '0' });
    place.close?.(); // a page has one stream, as under StrictMode, which opens two
    return place;
  }

  /**
   * Opens the stream of an answer, first by `post`, if given. When the server has accepted that, it is not sent again:
   * what follows is asked for by position. `taken` is called when a request was accepted.
   */
  private async open(
    chatId: string, place: Place, post: Ask | undefined, signal: AbortSignal | undefined, headers: Record<string, string>, taken = () => {},
  ): Promise<ReadableStream<C> | null> {
    const ended = new AbortController();
    const end = () => ended.abort();
    place.close = end;
    const owners = [signal, this.left.signal];
    owners.forEach((owner) => (owner?.aborted ? end() : owner?.addEventListener('abort', end)));
    const next = (): Ask => post ?? { path: `/chat/${escape(chatId)}/stream`, headers: { ...headers, 'last-event-id': place.at } };
    const opened = () => {
      post = undefined;
      taken();
    };
    const items = this.link.follow(next, events, ended.signal, (state) => this.note(place, end, state), false, opened);
    const finished = () => {
      owners.forEach((owner) => owner?.removeEventListener('abort', end));
      end(); // also the connection
      void items.return(undefined);
    };
    const read = async () => {
      try {
        const item = await items.next();
        ended.signal.throwIfAborted(); // what came last is another stream's to show
        return item;
      } catch (error) {
        finished();
        throw error;
      }
    };
    let waiting: IteratorResult<Item> | undefined = await read();
    if (waiting.done) {
      finished();
      return null;
    }
    const answer = new Answer(place, this.options.approvals ?? true);
    return new ReadableStream<C>({
      pull: async (controller) => {
        for (;;) {
          const item = waiting ?? await read();
          waiting = undefined;
          if (item.done || item.value.data === '[DONE]') {
            place.base = place.at; // also if the connection broke after the last part, and the server has nothing more
            finished();
            return controller.close();
          }
          if (this.page && answer.outdatedBy(item.value)) {
            const { page } = this;
            void items.return(undefined); // this connection; the chat can still abort
            const loaded = await this.load(chatId, ended.signal).finally(finished);
            setTimeout(() => void this.show(page, loaded)); // when the chat is done with this stream
            throw new DOMException('the server has truncated or continued what the chat shows: it is loaded again', 'AbortError');
          }
          const part = answer.take(item.value);
          if (part) return controller.enqueue(part as C);
        }
      },
      cancel: finished,
    });
  }

  private async show(page: ChatPage<M> | undefined, { messages, resume }: LoadedChat<M>) {
    if (!page || this.page !== page) return; // it is gone
    page.setMessages(messages);
    if (resume) await page.resumeStream();
  }

  private note(place: Place, end: () => void, state: Connection) {
    if (place.close !== end || state === this.state) return; // another stream has replaced this one
    this.state = state;
    this.listeners.forEach((listener) => listener());
  }
}

interface Part {
  type: string;
  messageId?: string;
  transient?: boolean;
  toolCallId?: string;
  data?: { fromSequence: number };
}

/** Turns the frames of one stream into the parts for the chat. */
class Answer {
  private start: Part | undefined;
  private begun = false; // the chat has more of the message than its start
  private shown = ''; // the last position of a frame that the chat has from this stream

  constructor(private readonly place: Place, private readonly approvals: boolean) {}

  /** Whether a frame says that parts which the chat has were truncated, or that another answer is under way since. */
  outdatedBy({ data }: Item): boolean {
    const part = JSON.parse(data) as Part;
    if (part.type === 'start' && this.start) return this.begun || part.messageId !== this.start.messageId;
    return part.type === 'data-stream-resync' && this.shown !== '' && after(this.shown, part.data?.fromSequence ?? 0);
  }

  /** Returns a frame's part, or undefined if the chat gets none. */
  take({ id, data }: Item): object | undefined {
    const part = JSON.parse(data) as Part;
    if (part.type === 'start') {
      if (this.start) return undefined; // of the same answer, after a connection that brought nothing else
      this.start = part;
    } else if (!part.transient) {
      this.begun = true;
    }
    if (id !== undefined) this.place.at = this.shown = id;
    if (!this.approvals && part.type === 'tool-approval-request') return undefined;
    if (!this.approvals && part.type === 'tool-output-denied') {
      return { type: 'tool-output-error', toolCallId: part.toolCallId, errorText: 'The call was denied.' };
    }
    return part;
  }
}

/** Whether a position is after a sequence. */
function after(position: string, sequence: number): boolean {
  const [whole, frames = 0] = position.split('.').map(Number);
  return whole! > sequence || (whole === sequence && frames > 0);
}

function plain(headers: Record<string, string> | Headers | undefined): Record<string, string> {
  return headers instanceof Headers ? Object.fromEntries(headers) : { ...headers };
}
