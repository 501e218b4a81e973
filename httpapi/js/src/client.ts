import { Link, type Ask, type Connection, type ConnectionOptions } from './connection.js';
import { events, objects } from './format.js';
import type {
  Forked, ForkRequest, Record as LogRecord, RemoteStatus, SessionSummary, Snapshot, Started, StartRequest, StateAt, Submitted, ToolAnswer, TransportEvent, UserInput,
} from './wire.js';

/** What the callers of one request may set. */
export interface CallOptions {
  signal?: AbortSignal;
}

/** Which records {@link HelixClient.records} yields. */
export interface RecordsOptions extends CallOptions {
  /** Only records after this sequence. Default: 0. */
  from?: number;
  /** Only records up to this sequence. Default: the last one at the call. Not with follow. */
  to?: number;
  /** Whether to include records that are truncated up to `to`. */
  dead?: boolean;
  /** Whether to continue with new records. It includes what is truncated: a marker follows. */
  follow?: boolean;
  kind?: 'chunk' | 'fact';
  /** Any of these types. */
  type?: string[];
  /** A session of the tree. */
  agent?: string;
}

/**
 * A client of a helixd server. While the server can't be reached, requests are repeated, except {@link HelixClient.fork}:
 * a request that the server has carried out, and whose answer was lost, changes nothing a second time. The server's
 * refusals are {@link HelixError}s.
 */
export class HelixClient {
  private readonly link: Link;

  constructor(options: ConnectionOptions) {
    this.link = new Link(options);
  }

  /**
   * Begins a session. If its run is under way, the answer is that run. If the run has ended, the refusal is
   * ALREADY_COMPLETED; if it waits, ALREADY_RUNNING. That may also follow a call whose first answer was lost.
   */
  start(request: StartRequest, options?: CallOptions): Promise<Started> {
    return this.post('/start', request, options);
  }

  /** Begins a session's next turn, or continues one that waits or was interrupted. The message is accepted once. */
  say(sessionId: string, message: UserInput, { idempotencyKey = randomKey(), ...options }: CallOptions & { idempotencyKey?: string } = {}): Promise<Started> {
    const ask = { ...this.of('sessions', sessionId, 'messages'), method: 'POST', body: { message }, headers: { 'idempotency-key': idempotencyKey } };
    return this.link.json(ask, options);
  }

  /**
   * Yields the session's chunks after a sequence, then new ones, and at last an `end` or an `error` event. Whenever the
   * connection breaks, it continues after the last chunk: each chunk is yielded once and in order.
   *
   * If chunks that were yielded have been truncated, a `stream_resync` chunk says so.
   */
  async *stream(sessionId: string, { from = 0, signal, onConnection }: CallOptions & { from?: number; onConnection?: (state: Connection) => void } = {}): AsyncGenerator<TransportEvent> {
    const next = () => ({ path: `/sse?${new URLSearchParams({ sessionId, fromSequence: `${from}` })}` });
    for await (const { data } of this.link.follow(next, events, signal, onConnection)) {
      const event = JSON.parse(data) as TransportEvent;
      if (event.type === 'chunk') {
        if (event.sequence <= from) continue;
        from = event.sequence;
      }
      if (event.type === 'close') continue; // the token has expired: the next attempt has new headers
      yield event;
      if (event.type !== 'chunk') return;
    }
  }

  /** Answers a call that waits. If no other call waits, the session continues. */
  submit(sessionId: string, answer: Omit<ToolAnswer, 'sessionId'>, options?: CallOptions): Promise<Submitted> {
    return this.link.json({ ...this.of('chat', sessionId, 'submit-tool-result'), method: 'POST', body: answer }, options);
  }

  /** Approves a call, or denies it with `approved: false`. If no other call waits, the session continues. */
  approve(sessionId: string, toolCallId: string, { approved = true, reason, ...options }: CallOptions & { approved?: boolean; reason?: string } = {}): Promise<Submitted> {
    return this.submit(sessionId, { kind: 'approval-response', toolCallId, approved, reason }, options);
  }

  /** Stops a session's run for now. It can be continued. */
  async interrupt(sessionId: string, { reason, ...options }: CallOptions & { reason?: string } = {}): Promise<void> {
    await this.post('/interrupt', { sessionId, reason }, options);
  }

  /** Ends a session's run for good. */
  async abort(sessionId: string, { reason, ...options }: CallOptions & { reason?: string } = {}): Promise<void> {
    await this.post('/abort', { sessionId, reason }, options);
  }

  /** The status of a session's run. */
  status(sessionId: string, options?: CallOptions): Promise<RemoteStatus> {
    return this.link.json({ path: `/status?${new URLSearchParams({ sessionId })}` }, options);
  }

  /** A session, with the calls that wait for an answer. */
  session(sessionId: string, options?: CallOptions): Promise<SessionSummary> {
    return this.link.json({ path: `/sessions/${escape(sessionId)}` }, options);
  }

  /** The session's messages for a chat, and the sequence up to which they are. */
  snapshot(sessionId: string, options?: CallOptions): Promise<Snapshot> {
    return this.link.json(this.of('chat', sessionId, 'snapshot'), options);
  }

  /** The whole state of a session at a sequence; by default now. */
  state(sessionId: string, { at, ...options }: CallOptions & { at?: number } = {}): Promise<StateAt> {
    return this.link.json(this.of('sessions', sessionId, at === undefined ? 'state' : `state?at=${at}`), options);
  }

  /** Yields the records of a session's log. A connection that breaks is continued after the last record. */
  async *records(sessionId: string, { from = 0, to, dead = false, follow = false, kind, type = [], agent, signal }: RecordsOptions = {}): AsyncGenerator<LogRecord> {
    // Later markers truncate more: all connections must have the same end, or some would have what others leave out.
    if (!follow) to ??= Math.max(from, (await this.session(sessionId, { signal })).headSequence);
    const next = () => {
      const query = new URLSearchParams({ from: `${from}` });
      for (const [name, value] of Object.entries({ to: follow ? undefined : to, dead: dead || undefined, follow: follow || undefined, kind, agent })) {
        if (value !== undefined) query.set(name, `${value}`);
      }
      type.forEach((one) => query.append('type', one));
      return this.of('sessions', sessionId, `records?${query}`);
    };
    for await (const { data } of this.link.follow(next, objects, signal, undefined, !follow)) {
      const record = JSON.parse(data) as LogRecord;
      from = record.sequence;
      yield record;
    }
  }

  /** Forks a session; by default at its end. It is sent once: a session that grows meanwhile would be forked elsewhere. */
  fork(sessionId: string, request: ForkRequest = {}, options?: CallOptions): Promise<Forked> {
    return this.link.json({ ...this.of('sessions', sessionId, 'fork'), method: 'POST', body: request }, { ...options, repeat: false });
  }

  private post<T>(path: string, body: unknown, options?: CallOptions): Promise<T> {
    return this.link.json({ path, method: 'POST', body }, options);
  }

  private of(folder: 'chat' | 'sessions', sessionId: string, route: string): Ask {
    return { path: `/${folder}/${escape(sessionId)}/${route}` };
  }
}

/** Escapes a session's id for a path: dots too, or `.` and `..` would be lost. */
export function escape(sessionId: string): string {
  return encodeURIComponent(sessionId).replaceAll('.', '%2E');
}

/** A random name, for a request that may be repeated. crypto.randomUUID is not there in pages without TLS. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
