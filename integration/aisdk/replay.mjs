// Pages that come to a run under way: the whole replay, in each Chat.
import assert from 'node:assert/strict';
import { Page, reload } from './chat.mjs';
import { hold } from './gates.mjs';
import { history } from './normal.mjs';
import { asked, newSession } from './take.mjs';

/**
 * checkReplay plays a scenario on a page. At the last request's gate, other
 * pages load and reconnect; in the end all show what the server has. Where
 * calls wait for an answer, a reloaded page shows them too.
 */
export async function checkReplay(version, daemon, scenario) {
  const { agent, then } = scenario;
  const session = newSession(`replay ${scenario.name}`, version);
  const page = new Page(version, daemon, session, { agent });
  const last = scenario.requests.length - 1;
  let others = [];
  if (then) await page.say('Go on.');
  for (const [i, { hold: point, seen, answer }] of scenario.requests.entries()) {
    const gate = point && hold(`${session}:${point}`);
    const sent = i === 0 ? [then ? then.page(page) : page.say('Go on.')]
      : (await page.open()).map((part) => page.answer(part, answer(part)));
    if (gate) {
      await page.meets(gate);
      if (seen) await page.sees((message) => message && seen.shows(message), seen.what);
      if (i === last) others = await arrive(version, daemon, session, scenario);
      gate.open();
    }
    await Promise.all(sent);
    if (i < last) await waits(page, await reload(version, daemon, session, { agent }));
  }
  for (const other of others) assert.ok(!other.asked.includes('locate'), 'a replay runs no tool again');
  for (const p of [page, ...others]) await p.agrees();
  for (const p of [page, ...others]) {
    await p.resume(); // nothing is under way
    await p.agrees();
  }
  if (scenario.name !== 'mixed') assert.equal(page.posts, scenario.requests.length + (then ? 1 : 0), 'requests of the page');
  return `${others.length + 1} pages`;
}

/** arrive lets pages reconnect: of a snapshot, of its position, and of the user's message alone. */
async function arrive(version, daemon, session, { agent, then }) {
  const loaded = await reload(version, daemon, session, { agent });
  const placed = await reload(version, daemon, session, { agent });
  loaded.resume();
  placed.resume(placed.cursor);
  const pages = [loaded, placed];
  if (!then) {
    const user = { id: 'own', role: 'user', parts: [{ type: 'text', text: asked(session) }] };
    const bare = new Page(version, daemon, session, { agent, messages: [user] });
    bare.resume();
    pages.push(bare);
  }
  for (const page of pages) await page.sees((message) => message?.role === 'assistant', 'the replayed message');
  return pages;
}

/** waits: a page that loads while calls are open shows what the page shows that asked. */
async function waits(page, loaded) {
  await loaded.resume(loaded.cursor);
  await page.open();
  await loaded.open();
  assert.deepEqual(loaded.errors.map(String), []);
  assert.deepEqual(history(loaded.chat.messages), history(page.chat.messages));
}
