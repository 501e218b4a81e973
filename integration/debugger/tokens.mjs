// A daemon that wants to know who asks.
import assert from 'node:assert/strict';
import { appears, close, goes, link, open, part, press, settles, signIn, text, until, values } from './browser.mjs';
import { Daemon } from './daemon.mjs';

async function talk(daemon, ...sessions) {
  for (const session of sessions) {
    await daemon.start(session, 'talker', `How is ${session}?`);
    await daemon.comes(session, 'completed');
  }
}

/** Nothing is shown without a token; with one, what it may see. */
export async function signsIn({ browser, secured }) {
  const all = new Daemon(secured.url, secured.all);
  await talk(all, 'ann-1', 'bob-1');
  const response = await fetch(`${secured.url}/`);
  assert.equal(response.status, 401);
  assert.ok((await response.text()).includes('<html'));
  const page = await open(browser, link(secured.url, 'ann-1'));
  await appears(page, part('token-input'));
  assert.ok(!(await text(page, 'body')).includes('How is'));

  await signIn(page, 'wrong');
  await appears(page, `#signin ${part('error')}`);
  await appears(page, part('token-input'));
  await signIn(page, secured.ann);
  await goes(page, part('token-input'));
  const { headSequence: head } = await all.summary('ann-1');
  await settles(page, 'ann-1', head);
  assert.ok((await text(page, '#moment')).includes('How is ann-1?'));
  await until('the list', async () => (await values(page, part('session-row'), 'data-session')).includes('ann-1'));
  assert.ok((await values(page, part('session-row'), 'data-session')).every((s) => s.startsWith('ann-')), 'her sessions only');

  // The token is in this tab and nowhere else.
  assert.ok(!page.url().includes(secured.ann));
  assert.deepEqual(await page.evaluate((token) => [document.cookie, JSON.stringify(localStorage).includes(token)], secured.ann), ['', false]);
  await page.reload();
  await settles(page, 'ann-1', head);

  // Somebody else's session is refused, in words.
  await page.evaluate(() => { location.hash = '#/bob-1'; });
  await appears(page, part('error'));
  assert.ok(!(await text(page, 'body')).includes('How is bob-1?'));
  await close(page);
}

/** Who may only look can't stop or fork anything. */
export async function looksOnly({ browser, secured }) {
  const all = new Daemon(secured.url, secured.all);
  await talk(all, 'ann-2');
  const page = await open(browser, link(secured.url, 'ann-2'));
  await signIn(page, secured.ann);
  const { headSequence: head } = await all.summary('ann-2');
  await settles(page, 'ann-2', head);
  await press(page, part('fork'));
  await press(page, part('confirm'));
  await until('the refusal is shown', () => page.evaluate((s) => [...document.querySelectorAll(s)].some((e) => e.checkVisibility() && /UNAUTHORIZED|not allowed/.test(e.textContent)), part('error')));
  await close(page);
}
