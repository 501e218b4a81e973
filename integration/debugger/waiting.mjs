// Runs that wait for somebody, and runs that are stopped.
import assert from 'node:assert/strict';
import { appears, close, goes, link, open, part, press, settles, shoot, signIn, text, until, write } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { agrees } from './shown.mjs';

const call = (id) => part('pending-call', `[data-call="${id}"]`);

async function waits(world, session, agent) {
  await world.demo.start(session, agent, 'Go.');
  const { pendingToolCalls: [pending], headSequence } = await world.demo.waits(session);
  const page = await open(world.browser, link(world.demo.url, session));
  await settles(page, session, headSequence);
  await appears(page, call(pending.toolCallId));
  return { page, id: pending.toolCallId };
}

async function ends(daemon, page, session, status) {
  const { headSequence: head } = await daemon.comes(session, status);
  await settles(page, session, head);
  await agrees(page, daemon, session, head);
}

/** A call is approved: it runs with the arguments that it shows, and the run continues. */
export async function approves(world) {
  const { page, id } = await waits(world, 'w-approve', 'janitor');
  assert.ok((await page.$eval(call(id), (e) => e.textContent)).includes('draft-1.md'));
  await shoot(page, 'asks');
  // A session that waits is paused, wherever its status is shown, and can still grow.
  const statuses = () => page.evaluate(() => ['[data-test="session-status"]', '[data-test="run-status"]', '#moment > .head .chip', '.ls-row[data-session="w-approve"] .ls-state', '[data-test="live-toggle"]'].map((s) => document.querySelector(s)?.textContent).join());
  await until('one word', async () => (await statuses()) === 'paused,paused,paused,paused,Live');
  await press(page, part('approve'));
  await goes(page, call(id));
  await ends(world.demo, page, 'w-approve', 'completed');
  const { state } = await world.demo.state('w-approve');
  assert.deepEqual(state.customState, { deleted: ['draft-1.md', 'draft-2.md'] });
  await until('another word', async () => (await statuses()) === 'completed,completed,completed,completed,Ended');
  await close(page);
}

/** A call is denied, with the reason that was given. */
export async function denies(world) {
  const { page, id } = await waits(world, 'w-deny', 'janitor');
  const reason = 'They are "still" <b>needed</b>.';
  await press(page, part('deny'));
  await write(page, part('reason'), reason);
  await press(page, part('confirm'));
  await goes(page, call(id));
  await ends(world.demo, page, 'w-deny', 'completed');
  const { state } = await world.demo.state('w-deny');
  assert.deepEqual(state.customState, { deleted: [] });
  assert.ok(JSON.stringify(state.messages).includes(JSON.stringify(reason).slice(1, -1)));
  await close(page);
}

/** A client's call is answered by hand; what does not fit is refused before anything is stored. */
export async function answers(world) {
  const { page, id } = await waits(world, 'w-answer', 'guide');
  const answer = async (json) => {
    await write(page, part('answer-input'), json);
    await press(page, part('answer'));
  };
  await write(page, part('answer-input'), '{"lat": ');
  await until('it says why it can not be sent', async () => (await text(page, call(id))).includes('Not JSON'));
  assert.ok(await page.$eval(part('answer'), (e) => e.disabled));
  await answer('{"lat": "north"}');
  await until('the daemon\'s refusal is shown', () => page.evaluate((s) => [...document.querySelectorAll(s)].some((e) => e.checkVisibility() && /lat|lon|schema|INVALID/i.test(e.textContent)), part('error')));
  assert.equal((await world.demo.summary('w-answer')).pendingToolCalls.length, 1);
  await answer('{"lat": 55.7, "lon": 12.6}');
  await goes(page, call(id));
  await ends(world.demo, page, 'w-answer', 'completed');
  await close(page);
}

/** A number as an answer keeps its digits. */
export async function answersWithANumber(world) {
  const { page, id } = await waits(world, 'w-number', 'guide');
  const sent = [];
  await page.setRequestInterception(true);
  page.on('request', (r) => {
    if (!r.url().endsWith('/submit-tool-result')) return r.continue();
    sent.push(r.postData());
    return r.respond({ status: 400, contentType: 'application/json', body: JSON.stringify({ error: 'not that', code: 'INVALID_REQUEST' }) });
  });
  for (const json of ['12345678901234567890', '[12345678901234567890]']) {
    await write(page, part('answer-input'), json);
    await press(page, part('answer'));
    await until(`${json} is sent`, () => sent.at(-1)?.includes(`"result":${json}`));
  }
  assert.ok(sent.every((body) => body.includes(`"toolCallId":"${id}"`)));
  await close(page);
}

/** A run is interrupted in mid-sentence, and taken up again. */
export async function interrupts({ browser, secured }) {
  const daemon = new Daemon(secured.url, secured.all);
  const page = await open(browser, `${secured.url}/`); // so that it is warm
  await signIn(page, secured.all);
  await goes(page, part('token-input'));
  await daemon.start('w-stop', 'slow', 'How is it?');
  await page.evaluate(() => { location.hash = '#/w-stop'; });
  await until('it speaks', async () => (await text(page, '#moment')).includes('word'));
  await press(page, part('interrupt'));
  await ends(daemon, page, 'w-stop', 'interrupted');
  await press(page, part('resume'));
  await ends(daemon, page, 'w-stop', 'completed');
  await close(page);
}

/** The past can't be approved: the page says so. */
export async function pastIsPast(world) {
  const { page, id } = await waits(world, 'w-past', 'janitor');
  const asked = (await world.demo.summary('w-past')).headSequence;
  await world.demo.post('/submit-tool-result', { sessionId: 'w-past', kind: 'approval-response', toolCallId: id, approved: false });
  await world.demo.post('/resume', { sessionId: 'w-past' });
  await ends(world.demo, page, 'w-past', 'completed');
  await page.evaluate((hash) => { location.hash = hash; }, `#/w-past@${asked}`);
  await settles(page, 'w-past', asked);
  await until('nothing of the past can be approved', () => page.evaluate((s) => ![...document.querySelectorAll(s)].some((e) => e.checkVisibility() && !e.disabled), part('approve')));
  await close(page);
}
