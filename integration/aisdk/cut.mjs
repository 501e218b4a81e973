// The law: what a client got before a cut, and what resuming from there sends,
// make the message of the uncut stream. At every cut, in every version.
import assert from 'node:assert/strict';
import { assemble, withAnswers } from './assemble.mjs';
import { continued } from './continued.mjs';
import { normal } from './normal.mjs';
import { before as comesBefore, framesOf, textOf } from './wire.mjs';

/** uncut returns the message after each segment, as the version sees it. */
export async function uncut(version, t) {
  const after = [];
  let message;
  const errors = [];
  for (const { frames, answer } of t.segments) {
    if (message) message = withAnswers(message, answer);
    const before = message;
    const read = await assemble(version, textOf(frames), message);
    errors.push(...read.errors);
    message = read.message;
    after.push({ before, message, want: normal(message) });
  }
  assert.equal(errors.length, t.scenario.errors ?? 0, `errors of the uncut stream: ${errors}`);
  return { after, errors };
}

/** Proofs counts what holds and keeps what does not. */
export class Proofs {
  #broken = [];
  #count = 0;

  async prove(what, cut, fn) {
    this.#count++;
    try {
      await fn();
    } catch (error) {
      this.#broken.push({ what, cut, error });
    }
  }

  /** result says how many held at the cuts, or throws. */
  result(t) {
    if (this.#broken.length > 0) throw failure(this.#broken, this.#count);
    return `${this.#count} proofs at ${t.cuts.length} cuts`;
  }
}

/** checkVersion proves the law for a version and says how often. */
export async function checkVersion(version, t) {
  const { after, errors } = await uncut(version, t);
  const proofs = new Proofs();
  for (const cut of t.cuts) {
    const { before } = after[cut.segment];
    const { want } = after[cut.after];
    const had = textOf(cut.frames);
    await proofs.prove('one reader', cut, async () => {
      const read = cut.position === undefined ? await assemble(version, cut.text) : await assemble(version, had + cut.text, before);
      assert.deepEqual(read.errors, cut.after === t.segments.length - 1 ? errors : []);
      assert.deepEqual(normal(read.message), want);
    });
    if (cut.position === undefined) continue;
    if (!version.continues || cut.frames.some(failed)) continue; // a client that has an error starts again
    await proofs.prove('a Chat that continues', cut, async () => {
      const chat = await continued(version, before ? [t.user, before] : [t.user], [had, cut.status === 204 ? undefined : cut.text]);
      assert.equal(chat.status, framesOf(cut.text).some(failed) ? 'error' : 'ready', chat.error);
      assert.deepEqual(normal(chat.messages.at(-1)), want);
      assert.equal(chat.messages.length, 2);
    });
  }
  for (const replay of t.replays) {
    await proofs.prove('replay', replay, async () => {
      const read = await assemble(version, replay.text);
      assert.deepEqual(read.errors, errors);
      assert.deepEqual(normal(read.message), after[replay.after].want);
    });
  }
  for (const reload of t.reloads) await proofs.prove('reload', reload, () => checkReload(version, reload, after[reload.after].want));
  await proofs.prove('history', { text: '' }, () => assert.deepEqual(normal(t.messages.at(-1)), after.at(-1).want));
  return proofs.result(t);
}

/** checkReload: the snapshot's messages are valid, and the chunks after them complete them. */
export async function checkReload(version, { snapshot, text }, want) {
  if (snapshot.messages.length > 0) {
    const valid = await version.ai.safeValidateUIMessages({ messages: snapshot.messages });
    assert.ok(valid.success, `the snapshot's messages are not valid: ${valid.error?.message}`);
  }
  const last = snapshot.messages.at(-1);
  const read = await assemble(version, text, last?.role === 'assistant' ? last : undefined);
  assert.deepEqual(normal(read.message), want);
}

/** checkUncut looks at the uncut streams, whatever the version. */
export function checkUncut(t) {
  assert.equal(t.headers.get('content-type'), 'text/event-stream');
  assert.equal(t.headers.get('cache-control'), 'no-cache');
  assert.equal(t.headers.get('x-vercel-ai-ui-message-stream'), 'v1');
  assert.equal(t.headers.get('x-accel-buffering'), 'no');
  for (const { frames } of t.segments) {
    assert.equal(frames.at(-1).data, '[DONE]', 'a whole stream ends in [DONE]');
    assert.ok(frames.slice(1, -1).every(({ id }) => id !== undefined), `a frame of the log without an id: ${textOf(frames)}`);
  }
  t.segments.forEach(({ frames }, i) => rising(frames, t.ends[i - 1]));
  // The second request answers all calls.
  const later = [...t.cuts, ...t.replays, ...t.reloads].filter(({ after }) => after > 0);
  for (const { text } of later) assert.ok(!framesOf(text).some(asks), `the client is asked again: ${text}`);
  return checkResumed(t);
}

/** checkResumed looks at what resuming sends, whatever the version. */
export function checkResumed(t) {
  assert.ok(t.rests.every((status) => status === 204), `a reconnect to a run that rests: ${t.rests}`);
  for (const cut of [...t.cuts, ...t.reloads]) {
    const what = `after ${cut.position}, with ${t.ends[cut.after]} the last: ${cut.text}`;
    assert.equal(cut.status, cut.live || comesBefore(cut.position, t.ends[cut.after]) ? 200 : 204, what);
    const frames = framesOf(cut.text);
    if (cut.status === 200) assert.equal(frames.at(-1).data, '[DONE]', what);
    rising(frames, cut.position);
  }
  return `${t.cuts.length} cuts, ${t.segments.map(({ frames }) => frames.length).join(' + ')} frames`;
}

/** asks tells a frame that makes the client ask its user, or run a tool. */
const asks = ({ chunk }) => chunk?.type === 'tool-approval-request'
  || (chunk?.type === 'tool-input-available' && chunk.toolName === 'locate' && !chunk.providerExecuted);

/** failed returns whether a client ignores the rest after a frame. */
const failed = ({ chunk }) => chunk?.type === 'error';

/** rising: the ids rise in a stream, from the position on. */
function rising(frames, position = 0) {
  let last = position;
  for (const { id } of frames) {
    if (id === undefined) continue;
    assert.ok(comesBefore(last, id), `${id} follows ${last}: ${textOf(frames)}`);
    last = id;
  }
}

/** failure tells of the first of each kind, with the bytes. */
function failure(broken, checked) {
  const kinds = new Map();
  for (const b of broken) kinds.set(b.what, [...(kinds.get(b.what) ?? []), b]);
  const text = [...kinds].map(([what, all]) => {
    const { cut, error } = all[0];
    return `${what}: ${all.length} at ${all.map((b) => place(b.cut)).join('; ')}\nat ${place(cut)}: ${error.message}\n`
      + `before the cut:\n${textOf(cut.frames ?? [])}the rest:\n${cut.text}`;
  });
  return new Error(`${broken.length} of ${checked} proofs failed\n${text.join('\n')}`);
}

function place(cut) {
  const state = cut.live ? 'live' : 'idle';
  return cut.frames ? `segment ${cut.segment} frame ${cut.frames.length} position ${cut.position} (${state}, after ${cut.after})` : state;
}
