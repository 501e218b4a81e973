// Takes: a scenario's streams, and what a client gets that resumes after
// every frame of them, while the run is held and when it rests.
import { assemble, withAnswers } from './assemble.mjs';
import { hold } from './gates.mjs';
import { newest } from './versions.mjs';
import { framesOf, lastID, textOf } from './wire.mjs';

let sessions = 0;

/** newSession returns an id that has to be escaped in a path, if the version can do that. */
export const newSession = (name, { escapes } = { escapes: true }) => `${escapes ? `${name}/?#%` : 'session'}${++sessions}`;

/** asked returns the message that a user asks a session with. */
export const asked = (session, text = 'Go on.') => `[${session}] ${text}`;

/**
 * take plays a scenario once. Returns
 * segments: of each request its frames and its answer function; ends: their last ids;
 * cuts: {segment, frames, position, live, after, status, text}: what a client
 * got that had so many frames of the segment, so that the stream has come to
 * its end after the segment `after`;
 * reloads: {live, after, snapshot, status, text}: what one got that reloaded;
 * replays: {after, status, text}: what one got that reconnected without a
 * position while the run was live; rests: the statuses of those when it was not;
 * messages: of the session in the end.
 */
export async function take(daemon, scenario) {
  const session = newSession(scenario.name);
  const t = { scenario, session, segments: [], ends: [], cuts: [], reloads: [], replays: [], rests: [] };
  const user = { id: 'u1', role: 'user', parts: [{ type: 'text', text: asked(session) }] };
  t.user = user;
  let body = { id: session, messages: [user], trigger: 'submit-message', agentType: scenario.agent };
  let message;
  if (scenario.then) {
    const first = await daemon.post(body);
    body = scenario.then.body(body, (await assemble(newest, await first.text())).message);
  }
  for (const [i, request] of scenario.requests.entries()) {
    if (i > 0) {
      message = withAnswers(message, request.answer);
      body = { ...body, messages: [user, message], messageId: message.id };
    }
    const frames = await play(daemon, t, i, request, body);
    t.segments.push({ frames, answer: request.answer });
    t.ends.push(lastID(frames));
    await lookBack(daemon, t, i);
    ({ message } = await assemble(newest, textOf(frames), message));
  }
  t.messages = await historyOf(daemon, session, scenario);
  return t;
}

/** historyOf returns the session's messages, with the one that an interrupt has left unfinished. */
async function historyOf(daemon, session, { stop }) {
  const { messages } = await daemon.snapshot(session, stop === 'interrupt');
  for (const message of messages) message.id = message.id.replace(/-partial$/, '');
  return messages;
}

/** play makes one request and returns its frames. */
async function play(daemon, t, i, { hold: point, seen }, body) {
  const gate = point && hold(`${t.session}:${point}`);
  const stream = await daemon.post(body);
  t.headers ??= stream.headers;
  if (!gate) return framesOf(await stream.text());
  await Promise.race([gate.reached(), stream.ended.then(() => {
    throw new Error(`the stream has ended before the gate ${point}:\n${textOf(stream.frames)}`);
  })]);
  if (seen) await stream.has(seen.test, seen.what);
  const finish = await lookLive(daemon, t, i, stream.frames.slice());
  if (t.scenario.stop) await daemon.command(t.session, t.scenario.stop, { reason: 'enough' });
  gate.open();
  await finish();
  return framesOf(await stream.text());
}

/** cutsOf returns the places after the frames of a segment. */
function cutsOf(t, segment, frames) {
  const before = t.segments.slice(0, segment).reduce((id, s) => lastID(s.frames, id), undefined);
  return Array.from({ length: frames.length + 1 }, (_, k) => ({
    segment, frames: frames.slice(0, k), position: lastID(frames.slice(0, k), before),
  }));
}

/**
 * lookLive opens a connection for each cut of what has arrived of a live run.
 * Returns a function that reads them to their ends.
 */
export async function lookLive(daemon, t, i, frames) {
  const open = await Promise.all(cutsOf(t, i, frames).map(async (cut) => (
    { ...cut, live: true, after: i, stream: await daemon.reconnect(t.session, cut.position) }
  )));
  const replay = { live: true, after: i, stream: await daemon.reconnect(t.session) };
  const reload = await reloading(daemon, t, { live: true, after: i });
  return async () => {
    for (const c of [...open, replay, reload]) await finished(c);
    t.cuts.push(...open);
    t.replays.push(replay);
    t.reloads.push(reload);
  };
}

/** lookBack resumes at every cut of the segments so far, now that the run rests. */
export async function lookBack(daemon, t, i) {
  for (let segment = 0; segment <= i; segment++) {
    for (const cut of cutsOf(t, segment, t.segments[segment].frames)) {
      if (cut.position === undefined) continue; // such a client reconnects without one, or reloads
      t.cuts.push(await finished({ ...cut, after: i, stream: await daemon.reconnect(t.session, cut.position) }));
    }
  }
  t.rests.push((await finished({ stream: await daemon.reconnect(t.session) })).status);
  t.reloads.push(await finished(await reloading(daemon, t, { after: i })));
}

async function reloading(daemon, t, reload) {
  const snapshot = await daemon.snapshot(t.session);
  return { ...reload, snapshot, position: snapshot.streamSequence, stream: await daemon.reconnect(t.session, snapshot.streamSequence) };
}

async function finished(c) {
  c.status = c.stream.status;
  c.text = await c.stream.text();
  delete c.stream;
  return c;
}
