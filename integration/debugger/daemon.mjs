// What the scenarios ask of a daemon, beside the page.
import assert from 'node:assert/strict';
import readline from 'node:readline';
import { sleep, until } from './browser.mjs';

const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// The daemons belong to the Go test that runs this program: it kills and
// starts the first one on request, and answers with a line of JSON.
async function tell(command) {
  process.stdout.write(`@${command}\n`);
  const { value, done } = await answers.next();
  if (done) throw new Error('nobody answers: run this by `make debugger`');
  return JSON.parse(value);
}

/** kill is kill -9. */
export const kill = () => tell('kill');

/** restart starts the daemon again, on its data and its address. */
export const restart = () => tell('restart');

/** startLab starts a daemon for sessions that a lab judges, and returns its URL. */
export const startLab = () => tell('start-lab');

/** runLab has helixd judge them, with changed agents, and returns the exit code. */
export const runLab = () => tell('run-lab');

/** startGrowing starts a server of a log to which grow appends, and returns its URL. */
export const startGrowing = () => tell('start-growing');

/** grow appends chunks to a session, each with the label call, as a lab does that runs. */
export const grow = (session, chunks) => tell(`grow ${JSON.stringify({ session, chunks })}`);

const of = (session) => encodeURIComponent(session).replaceAll('.', '%2E');

/** Daemon is one that is reached over HTTP. */
export class Daemon {
  constructor(url, token) {
    Object.assign(this, { url, headers: token ? { Authorization: `Bearer ${token}` } : {} });
  }

  async ask(method, path, body) {
    const response = await fetch(this.url + path, {
      method, headers: { ...this.headers, 'Content-Type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json' },
      body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  }

  async get(path) {
    const { status, text } = await this.ask('GET', path);
    assert.equal(status, 200, `${path}: ${text}`);
    return JSON.parse(text);
  }

  async post(path, body) {
    const { status, text } = await this.ask('POST', path, body);
    assert.equal(status, 200, `${path}: ${text}`);
    return JSON.parse(text);
  }

  start(sessionId, agentType, message, more = {}) { return this.post('/start', { sessionId, agentType, message, ...more }); }

  summary(session) { return this.get(`/sessions/${of(session)}`); }

  state(session, at) { return this.get(`/sessions/${of(session)}/state${at === undefined ? '' : `?at=${at}`}`); }

  async records(session) {
    const { text } = await this.ask('GET', `/sessions/${of(session)}/records?dead=1`);
    return text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }

  /** comes waits for a status of a session, and until nothing is added to it. */
  comes(session, status) {
    return this.rests(`${session} is ${status}`, session, (s) => s.status === status && (status === 'interrupted' || s.streamStatus !== 'active'));
  }

  /** waits waits until a session waits for somebody. */
  waits(session) {
    return this.rests(`${session} waits`, session, (s) => s.pendingToolCalls?.length > 0 && s.streamStatus === 'paused');
  }

  rests(what, session, is) {
    return until(what, async () => {
      const before = await this.summary(session);
      if (!is(before) || before.isExecuting) return false;
      await sleep(300); // the records after the one that has changed it
      const now = await this.summary(session);
      return now.headSequence === before.headSequence && now;
    });
  }

  /** bring imports records. */
  async bring(session, records) {
    return this.post(`/sessions/${of(session)}/import`, records.map((r) => JSON.stringify(r)).join('\n') + '\n');
  }
}
