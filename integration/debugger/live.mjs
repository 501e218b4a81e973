// Sessions that are under way while somebody watches.
import assert from 'node:assert/strict';
import { at, choose, close, link, open, part, press, settles, shoot, text, until, values, write } from './browser.mjs';
import { kill, restart } from './daemon.mjs';
import { agrees } from './shown.mjs';

const sessionOf = (page) => decodeURIComponent(/#\/([^@]*)/.exec(page.url())?.[1] ?? '');

/** Somebody talks to an agent from an empty page, and talks on. */
export async function chats({ browser, demo }) {
  const page = await open(browser, link(demo.url, 'demo-incident'));
  await settles(page, 'demo-incident');
  await choose(page, part('chat-agent'), 'planner');
  await write(page, part('chat-input'), 'Plan <b>my</b> day & "night".');
  await press(page, part('chat-send'));
  const session = await until('a new session is opened', () => { const s = sessionOf(page); return s !== '' && s !== 'demo-incident' && s; });
  let { headSequence: head } = await demo.comes(session, 'completed');
  await settles(page, session, head);
  const { state } = await agrees(page, demo, session, head);
  assert.equal(state.messages[0].content, 'Plan <b>my</b> day & "night".');
  await write(page, part('chat-input'), 'And tomorrow?');
  await press(page, part('chat-send'));
  await until('it answers once more', async () => (await demo.state(session)).state.turnCount === 2);
  ({ headSequence: head } = await demo.comes(session, 'completed'));
  await settles(page, session, head);
  await agrees(page, demo, session, head);
  await close(page);
}

/** What is said appears as it is said; a daemon that is killed and started again is no reason to load the page. */
export async function outlivesTheDaemon({ browser, demo, log }) {
  const session = 'l-tail';
  const page = await open(browser, link(demo.url, 'demo-incident')); // so that it is warm
  await settles(page, 'demo-incident');
  await page.evaluate(() => { window.sameDocument = true; });
  await demo.start(session, 'weather', 'How is it?');
  await page.evaluate(() => { location.hash = '#/l-tail'; });
  await until('it speaks', async () => sessionOf(page) === session && (await text(page, '#moment')).includes('Let me look'));
  await kill();
  await until('the page knows', async () => (await page.$eval(part('connection'), (e) => e.dataset.state)) === 'retrying');
  await shoot(page, 'retrying');
  const began = Date.now();
  await restart();
  const { headSequence: head } = await demo.comes(session, 'completed');
  await settles(page, session, head);
  log(`the page is current ${Date.now() - began} ms after the daemon's start began`);
  await agrees(page, demo, session, head);
  await until('it is live', async () => (await page.$eval(part('connection'), (e) => e.dataset.state)) === 'live');
  assert.equal(await page.evaluate(() => window.sameDocument), true, 'nobody has loaded it');
  const records = await demo.records(session);
  if (records.filter((r) => r.type === 'run_claimed').length > 1) { // otherwise it was finished before the kill
    await until('a mark tells of it', async () => (await values(page, part('mark'), 'data-kind')).includes('takeover'));
  }
  if (records.some((r) => r.type === 'truncated')) await until('truncated records are shown', () => page.$(part('span', '[data-truncated]')));
  await until('its lane', async () => (await values(page, part('lane'), 'data-lane')).includes(session));
  await close(page);
}

/** A user who looks at the past stays there while the session continues. */
export async function staysInThePast({ browser, demo }) {
  const session = 'l-past';
  await demo.start(session, 'weather', 'How is it?');
  const first = await until('it has begun', async () => (await demo.records(session))[1]?.sequence);
  const page = await open(browser, link(demo.url, session, first));
  await settles(page, session, first);
  const { headSequence: head } = await demo.comes(session, 'completed');
  await until('the head is followed', async () => Number(await text(page, part('head'))) === head);
  assert.equal(await at(page), first);
  await agrees(page, demo, session, first);
  await press(page, part('live-toggle'));
  await settles(page, session, head);
  await agrees(page, demo, session, head);
  await close(page);
}
