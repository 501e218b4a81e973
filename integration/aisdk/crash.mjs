// The law when the daemon is killed in mid-stream. The marker truncates the output after
// its run's last commit: a client that has seen some of it reloads.
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { assemble } from './assemble.mjs';
import { checkReload, Proofs } from './cut.mjs';
import { kill, restart } from './daemon.mjs';
import { hold } from './gates.mjs';
import { normal } from './normal.mjs';
import { asked, lookBack, lookLive, newSession } from './take.mjs';
import { before, framesOf, lastID, textOf } from './wire.mjs';

/** takeCrash plays the agent "crash", kills the daemon at the gate and continues. */
export async function takeCrash(daemon) {
  const session = newSession('crash');
  const t = { session, segments: [], ends: [], cuts: [], reloads: [], replays: [], rests: [] };
  const user = { id: 'u1', role: 'user', parts: [{ type: 'text', text: asked(session) }] };

  const first = hold(`${session}:model`);
  const stream = await daemon.post({ id: session, messages: [user], trigger: 'submit-message', agentType: 'crash' });
  await first.reached();
  await stream.has((frame) => frame.text.includes('⟨here⟩'), 'the piece before the gate');
  await kill();
  await stream.end();
  first.open();
  t.segments.push({ frames: stream.frames });

  const second = hold(`${session}:model`); // before the start: the run continues by itself
  await restart();
  await daemon.resume(session);
  await second.reached();
  const finish = await lookLive(daemon, t, 0, stream.frames);
  second.open();
  await finish();
  t.ends.push(lastID(framesOf(t.replays[0].text)));
  await lookBack(daemon, t, 0);
  t.messages = (await daemon.snapshot(session)).messages;
  return t;
}

/** reloads returns whether the rest has its client reload: its cursor is after the checkpoint that is left. */
const reloads = (cut) => framesOf(cut.text).some(({ id, chunk }) => (
  id !== undefined && chunk?.type === 'data-stream-resync' && before(chunk.data.fromSequence, cut.position)
));

/** checkCrash proves for a version that every cut leads to the message, with a reload or without. */
export async function checkCrash(version, t) {
  const want = normal(t.messages.at(-1));
  const proofs = new Proofs();
  let reloaded = 0;
  for (const cut of t.cuts) {
    const had = cut.position === undefined ? '' : textOf(cut.frames);
    await proofs.prove('one reader', cut, async () => {
      const read = await assemble(version, had + cut.text);
      assert.deepEqual(read.errors, []);
      if (isDeepStrictEqual(normal(read.message), want)) return;
      assert.ok(reloads(cut), 'the client has truncated text, and does not reload');
      reloaded++;
    });
  }
  for (const replay of t.replays) {
    await proofs.prove('replay', replay, async () => {
      const read = await assemble(version, replay.text);
      assert.deepEqual(read.errors, []);
      assert.deepEqual(normal(read.message), want);
    });
  }
  for (const reload of t.reloads) await proofs.prove('reload', reload, () => checkReload(version, reload, want));
  await proofs.prove('some clients have to reload, some have not', { text: '' }, () => {
    assert.ok(reloaded > 0 && reloaded < t.cuts.length, `${reloaded} of ${t.cuts.length}`);
  });
  return `${proofs.result(t)}, ${reloaded} of them reload`;
}
