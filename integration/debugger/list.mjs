// The list of sessions.
import assert from 'node:assert/strict';
import { appears, at, choose, close, drawn, open, part, press, settles, shoot, text, until, values, visible, write } from './browser.mjs';
import { agrees } from './shown.mjs';

const row = (session) => part('session-row', `[data-session="${session}"]`);
const listed = (page) => values(page, part('session-row'), 'data-session');

/** What runs appears by itself, and can be filtered, searched and opened. */
export async function filters({ browser, demo }) {
  const page = await open(browser, `${demo.url}/`);
  await appears(page, row('demo-incident'));
  await demo.start('list-plan', 'planner', 'Plan the day.', { userId: 'ada', tags: ['daily'] });
  await appears(page, row('list-plan'));
  await demo.comes('list-plan', 'completed');
  await until('its status is shown', async () => (await values(page, row('list-plan'), 'data-status'))[0] === 'completed');
  await demo.start('list-tidy', 'janitor', 'Tidy up.');
  await appears(page, row('list-tidy'));

  const lacks = (what, session) => until(`${what} hides ${session}`, async () => !(await listed(page)).includes(session));
  await choose(page, part('filter-status'), 'failed');
  await lacks('the status', 'list-plan');
  await appears(page, row('demo-incident'));
  await choose(page, part('filter-status'), '');
  await appears(page, row('list-plan'));
  await demo.waits('list-tidy');
  await choose(page, part('filter-status'), 'paused');
  await lacks('the status', 'list-plan');
  await appears(page, row('list-tidy'));
  await choose(page, part('filter-status'), 'active');
  await lacks('the status', 'list-tidy');
  await choose(page, part('filter-status'), '');
  await appears(page, row('list-plan'));
  await choose(page, part('filter-agent'), 'planner');
  await lacks('the agent', 'demo-incident');
  await appears(page, row('list-plan'));
  await choose(page, part('filter-agent'), '');
  await appears(page, row('demo-incident'));

  // What is found for a part of what is typed may be shown before the rest of it is.
  await write(page, part('search'), 'Lisbon'); // a word of a message
  const hit = part('search-hit', '[data-session="demo-incident"]');
  await until('a message is found, and no session', async () => (await visible(page, hit)) && (await listed(page)).length === 0);
  assert.equal(await text(page, `${hit} mark`), 'Lisbon');
  assert.ok(await page.$eval(`${hit} mark`, (e) => { const [box, row] = [e, e.closest('a')].map((x) => x.getBoundingClientRect()); return box.bottom <= row.bottom && box.right <= row.right; }), 'the match is in sight');
  await press(page, hit);
  await agrees(page, demo, 'demo-incident', 2);
  await write(page, part('search'), 'charged');
  const kinds = () => values(page, part('search-hit'), 'href').then((all) => all.map((a) => Number(a.split('@')[1])).toSorted((a, b) => a - b).join());
  await until('messages and a call', async () => (await kinds()) === '2,51,55');
  await choose(page, part('search-kind'), 'call');
  await until('the call', async () => (await kinds()) === '51');
  await choose(page, part('search-kind'), 'message');
  await until('the messages', async () => (await kinds()) === '2,55');
  await choose(page, part('search-kind'), '');
  await page.focus(part('search'));
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement === document.body), true, 'Escape leaves the field');
  await appears(page, row('list-plan'));
  await write(page, part('search'), 'list-'); // an id
  await until('both are found, and no other', async () => (await listed(page)).toSorted().join() === 'list-plan,list-tidy');
  await shoot(page, 'searched');
  await press(page, row('list-plan'));
  const { headSequence: head } = await demo.summary('list-plan');
  await settles(page, 'list-plan', head);
  assert.equal(await at(page), head);
  assert.ok(page.url().includes('#/list-plan'));
  await agrees(page, demo, 'list-plan', head);
  await close(page);
}

/** crowd has the daemon have 120 sessions, of which the first page of the list has 100. */
const crowd = (demo) => Promise.all(Array.from({ length: 120 }, (_, i) => demo.post(`/sessions/crowd-${i}/chunks`,
  [{ type: 'text_delta', delta: 'Hi', agentId: `crowd-${i}`, agentType: 'crowd', timestamp: Date.now(), step: 0 }])));

/** A hundred sessions are there without a hundred requests. */
export async function manySessions({ browser, demo }) {
  await crowd(demo);
  const page = await open(browser, `${demo.url}/`);
  const asked = new Set(); // once each: how often one is repeated is a matter of time
  page.on('request', (r) => { if (r.url().includes('/sessions')) asked.add(r.url()); });
  await choose(page, part('filter-agent'), 'crowd');
  await until('they are counted', async () => (await text(page, part('session-count'))).startsWith('120 '));
  const seen = new Set();
  await until('all of them, by scrolling', async () => {
    const now = await listed(page);
    assert.equal(new Set(now).size, now.length, 'none is there twice');
    for (const s of now) if (s.startsWith('crowd-')) seen.add(s);
    await page.evaluate((s) => { // over and over: a row may not have come when it is passed
      const list = document.querySelector(s)?.closest('.ls-rows');
      const ended = list.scrollTop + list.clientHeight >= list.scrollHeight - 1;
      list.scrollTop = ended ? 0 : list.scrollTop + list.clientHeight / 2;
    }, part('session-row'));
    return seen.size === 120;
  });
  assert.ok((await page.$$(part('session-row'))).length < 60, 'those in sight are enough');
  assert.ok(asked.size < 20, `${asked.size} requests: ${[...asked]}`);

  // That a request has failed whose filter is not chosen any more says nothing of the list.
  await page.setRequestInterception(true);
  let late;
  page.on('request', (r) => { if (!late && r.url().includes('status=failed')) late = r; else r.continue(); });
  await choose(page, part('filter-status'), 'failed');
  await until('it is asked', () => late);
  await choose(page, part('filter-status'), '');
  await until('they are counted again', async () => (await text(page, part('session-count'))).startsWith('120 '));
  await late.abort('connectionrefused');
  await drawn(page);
  await drawn(page);
  assert.equal(await visible(page, '.ls-away'), false);
  await close(page);
}

/** A part of the list that the server refuses is asked for again now and then, not all the time. */
export async function refused({ browser, demo }) {
  await crowd(demo);
  const page = await open(browser, `${demo.url}/`);
  await choose(page, part('filter-agent'), 'crowd');
  await until('they are counted', async () => (await text(page, part('session-count'))).startsWith('120 '));
  const asked = [];
  let refuses = true;
  await page.setRequestInterception(true);
  page.on('request', (r) => {
    if (!refuses || !r.url().includes('offset=100')) return r.continue();
    asked.push(Date.now());
    return r.respond({ status: 503, contentType: 'application/json', body: JSON.stringify({ error: 'not now', code: 'UNAVAILABLE' }) });
  });
  await page.evaluate((s) => { const list = document.querySelector(s).closest('.ls-rows'); list.scrollTop = list.scrollHeight; }, part('session-row'));
  await until('it is asked for again', () => asked.length > 2);
  assert.ok(asked[2] - asked[0] >= 2000, `three times in ${asked[2] - asked[0]} ms`);
  assert.ok((await text(page, '.ls-away')).includes('not now'));
  refuses = false;
  await until('it is there', async () => !(await page.$('.ls-row.blank')) && !(await visible(page, '.ls-away')));
  await close(page);
}
