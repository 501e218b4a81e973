// What somebody sees who has never seen the page: nothing yet, loading, unreachable, an
// outside producer's session. Every state can be read by everybody: axe checks WCAG AA.
import assert from 'node:assert/strict';
import { appears, close, drawn, link, open, part, press, settles, shoot, text, until, write } from './browser.mjs';
import { answering, chunks, none } from './samples.mjs';
import { violations } from './shown.mjs';

/** Without sessions the page says what to do, and does it. */
export async function teachesAndStarts({ browser, demo }) {
  const page = await open(browser, `${demo.url}/`);
  await answering(page, none);
  await until('it says so', async () => (await text(page, '#welcome'))?.includes('No sessions yet') && (await text(page, '#sessions')).includes('No sessions yet'));
  await until('how to start one', async () => (await text(page, '#chat')).includes(`curl ${demo.url}/start`));
  await shoot(page, 'empty');
  page.answersItself = true;
  await page.select(part('chat-agent'), 'planner');
  await write(page, part('chat-session'), 's-first');
  await write(page, part('chat-input'), 'Plan the day.');
  await press(page, part('chat-send'));
  const { headSequence: head } = await demo.comes('s-first', 'completed');
  await settles(page, 's-first', head);
  await press(page, part('new-session'));
  await appears(page, part('chat-session'));
  await close(page);
}

/** A page that loads says so in each of its parts; one whose server is away, too. */
export async function loadsAndIsAway({ browser, demo }) {
  const page = await open(browser, link(demo.url, 'demo-incident', 150));
  await answering(page, { '/sessions': null });
  for (const where of ['#sessions', '#timeline', '#moment', '#actions', '#records']) await until(`${where} says that it loads`, () => page.$eval(where, (e) => /Loading/.test(e.innerText)));
  await shoot(page, 'loading');
  // What one session does not answer keeps no other one waiting.
  await demo.post('/sessions/s-next/chunks', chunks('s-next'));
  page.answersItself = true;
  await page.evaluate(() => { location.hash = '#/s-next'; });
  const { headSequence: head } = await demo.summary('s-next');
  await settles(page, 's-next', head);
  await until('its records', () => page.$(`#records[data-at="${head}"]`));
  await until('what can be done', async () => (await text(page, part('run-status'))) === 'active');
  await close(page);
  const away = await open(browser, link(demo.url, 'demo-incident'));
  await answering(away, { '/sessions': new Error('away') });
  await until('it is away', async () => (await away.$eval(part('connection'), (e) => e.dataset.state)) === 'retrying' && (await away.$eval('#sessions', (e) => e.innerText)).includes('cannot be reached'));
  await until('nothing is live', async () => (await text(away, part('live-toggle'))) === 'Offline' && (await text(away, '#trouble')).includes('cannot be reached'));
  await shoot(away, 'unreachable');
  await close(away);
}

/** An outside producer's session is a conversation. */
export async function outsideIsAConversation({ browser, demo }) {
  const session = 's-outside';
  const { firstSequence: first } = await demo.post(`/sessions/${session}/chunks`, chunks(session));
  const page = await open(browser, link(demo.url, session));
  const said = async () => page.$$eval(part('outside'), (all) => all.map((e) => e.innerText.replace(/\s+/g, ' ')));
  await until('what it said', async () => (await said()).length === 2);
  const [one, two] = await said();
  for (const w of ['barista', 'They ask for tea.', 'I look for tea.', 'lookup', 'tea', 'green', 'done']) assert.ok(one.includes(w), `${w}: ${one}`);
  assert.equal(one.split('They ask for tea.').length, 2, 'the whole of what came in pieces is not said again');
  assert.ok(two.includes('Green will do.') && two.includes('There is green tea.'), two);
  await page.evaluate((hash) => { location.hash = hash; }, `#/${session}@${first + 2}`);
  await until('what it had said by then', async () => (await said()).length === 1 && (await said())[0].includes('I look') && !(await said())[0].includes('I look for'));
  await page.evaluate((hash) => { location.hash = hash; }, `#/${session}`);
  await until('all of it again', async () => (await said()).length === 2);
  await demo.post(`/sessions/${session}/chunks`, [{ type: 'text_delta', delta: ' Or black.', step: 2, agentId: session, agentType: 'barista', timestamp: Date.now() }]);
  await until('what comes', async () => (await said())[1]?.includes('There is green tea. Or black.'));
  const whole = (await said()).join();

  // What is taken back goes, and is still there before that; of a long one the page says how much it shows.
  const { headSequence: before } = await demo.summary(session);
  await demo.post(`/sessions/${session}/rollback`, { sequence: first + 2 });
  await until('what is left', async () => { const now = await said(); return now.length === 1 && now[0].includes('I look') && !now[0].includes('I look for'); });
  await page.evaluate((hash) => { location.hash = hash; }, `#/${session}@${before}`);
  await until('what it was', async () => (await said()).join() === whole);
  const delta = (text) => ({ type: 'text_delta', delta: text, step: 3, agentId: session, agentType: 'barista', timestamp: Date.now() });
  for (let i = 0; i < 5; i++) await demo.post(`/sessions/${session}/chunks`, Array.from({ length: 1000 }, () => delta('.')));
  await demo.post(`/sessions/${session}/chunks`, [delta('The end.')]);
  await page.evaluate((hash) => { location.hash = hash; }, `#/${session}`);
  await until('how much is shown', async () => (await text(page, '#moment .messages')).includes('the first 5,000 chunks'));
  await close(page);
}

/** Everybody can read every state, in both schemes. */
export async function isAccessible({ browser, demo, secured, log }) {
  await demo.start('s-asks', 'janitor', 'Tidy up.');
  await demo.waits('s-asks');
  await demo.post('/sessions/s-axe/chunks', chunks('s-axe'));
  const { headSequence: head } = await demo.summary('demo-incident');
  const states = {
    list: [`${demo.url}/`, (page) => appears(page, part('session-row'))],
    search: [`${demo.url}/`, async (page) => { await write(page, part('search'), 'Lisbon'); await appears(page, part('search-hit')); }],
    failed: [link(demo.url, 'demo-incident'), async (page) => { await settles(page, 'demo-incident', head); await appears(page, part('why-first')); await until('its records', () => page.$(`#records[data-at="${head}"]`)); }],
    past: [link(demo.url, 'demo-incident', 150), async (page) => { await settles(page, 'demo-incident', 150); await until('its records', () => page.$('#records[data-at="150"]')); }],
    waiting: [link(demo.url, 's-asks'), (page) => appears(page, part('approve'))],
    compare: [`${demo.url}/#/demo-incident@107..205`, (page) => until('the comparison', () => page.$('#compare[data-ready]'))],
    outside: [link(demo.url, 's-axe'), (page) => appears(page, part('outside'))],
    help: [link(demo.url, 'demo-incident'), async (page) => { await settles(page, 'demo-incident', head); await press(page, part('help')); await appears(page, 'dialog'); }],
    'sign-in': [`${secured.url}/`, (page) => appears(page, part('token-input'))],
    empty: [`${demo.url}/`, async (page) => { await answering(page, none); await until('it is empty', async () => (await text(page, '#sessions')).includes('No sessions yet')); }],
    away: [link(demo.url, 'demo-incident'), async (page) => { await answering(page, { '/sessions': new Error('away') }); await until('it is away', async () => (await page.$eval(part('connection'), (e) => e.dataset.state)) === 'retrying'); }],
  };
  const wrong = [];
  for (const [name, [url, ready]] of Object.entries(states)) {
    const page = await open(browser, url);
    await ready(page);
    for (const scheme of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
      await drawn(page);
      await shoot(page, `axe-${name}-${scheme}`);
      for (const v of await violations(page, scheme)) wrong.push(`${name}, ${scheme}: ${v}`);
    }
    await close(page);
  }
  log(`${Object.keys(states).length * 2} states checked by axe`);
  assert.deepEqual(wrong, []);
}
