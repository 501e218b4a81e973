// The law under way: a client that loses its connection after every frame of a
// run that continues meanwhile.
import assert from 'node:assert/strict';
import { assemble } from './assemble.mjs';
import { continued } from './continued.mjs';
import { within } from './gates.mjs';
import { normal } from './normal.mjs';
import { asked, newSession } from './take.mjs';
import { Frame, textOf } from './wire.mjs';

/** chase plays the agent "slow" to such a client. Returns what it got, and the history. */
export async function chase(daemon) {
  const session = newSession('chase');
  const user = { id: 'u1', role: 'user', parts: [{ type: 'text', text: asked(session) }] };
  const body = { id: session, messages: [user], trigger: 'submit-message', agentType: 'slow' };
  const t = { user, pieces: [] };
  let answer = await daemon.open(body);
  for (let position; answer.status === 200;) {
    const frames = await within(upToID(answer.body, position), 'a frame with an id');
    t.pieces.push(textOf(frames));
    if (frames.at(-1).data === '[DONE]') break;
    position = frames.at(-1).id;
    answer = await daemon.behind(session, position);
  }
  t.messages = (await daemon.snapshot(session)).messages;
  return t;
}

/** upToID reads the frames up to the first that moves the cursor, or to the end, and hangs up. */
async function upToID(body, position) {
  const frames = [];
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    for (let end; (end = rest.indexOf('\n\n')) !== -1; rest = rest.slice(end + 2)) {
      const frame = new Frame(rest.slice(0, end + 2));
      frames.push(frame);
      if (frame.id !== undefined && frame.id !== position) return frames;
    }
  }
  return frames;
}

/** checkChase: the pieces are the message, for one reader of all and for a Chat that continues, in each version. */
export async function checkChase(version, t) {
  const text = t.pieces.join('');
  const want = normal(t.messages.at(-1));
  const read = await assemble(version, text);
  assert.deepEqual(read.errors, [], text);
  assert.deepEqual(normal(read.message), want, text);
  if (!version.continues) return;
  const chat = await continued(version, [t.user], t.pieces);
  assert.equal(chat.status, 'ready', chat.error);
  assert.deepEqual(normal(chat.messages.at(-1)), want, text);
}

/** checkPace: the client has lost many connections. */
export function checkPace({ pieces }) {
  assert.ok(pieces.length > 20, `only ${pieces.length} connections`);
  return `${pieces.length} connections`;
}
