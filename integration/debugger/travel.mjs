// Forks, rollbacks, comparisons.
import assert from 'node:assert/strict';
import { appears, close, goes, link, open, part, press, settles, shoot, text, until, values, write } from './browser.mjs';
import { agrees, leaves } from './shown.mjs';

const incident = 'demo-incident';

/** comparable leaves out of a state what differs between a session and its fork. */
const comparable = ({ messages, customState }) => ({ messages: messages.map((m) => ({ role: m.role, content: m.content, result: m.result })), customState });

/** A fork begins after a confirmation, at the moment that is shown, and nothing happens to the original. */
export async function forks({ browser, demo }) {
  const before = await demo.summary(incident);
  const count = async () => (await demo.get('/sessions?limit=1')).total;
  const sessions = await count();
  const page = await open(browser, link(demo.url, incident, 197));
  await settles(page, incident, 197);
  await press(page, part('fork'));
  await appears(page, part('confirm'));
  const says = await page.$eval(part('confirm'), (e) => e.closest('dialog').textContent);
  assert.ok(says.includes('197') && says.includes(incident), says);
  await shoot(page, 'fork');
  await press(page, part('cancel'));
  await goes(page, part('confirm'));
  assert.equal(await count(), sessions, 'nothing was forked');

  await press(page, part('fork'));
  await press(page, part('confirm'));
  const session = await until('the fork is opened', async () => {
    const [, id] = /#\/([^@]+)/.exec(page.url()) ?? [];
    return id && decodeURIComponent(id) !== incident && decodeURIComponent(id);
  });
  const { headSequence: head } = await demo.summary(session);
  await settles(page, session, head);
  await agrees(page, demo, session, head);
  assert.deepEqual(comparable((await demo.state(session)).state), comparable((await demo.state(incident, 197)).state));
  assert.equal((await demo.summary(incident)).headSequence, before.headSequence);
  await until('it says where it comes from', async () => (await text(page, part('forked-from'))) === `${incident} #197`);

  // It waits as the original did, and takes another way.
  await appears(page, part('pending-call'));
  await press(page, part('deny'));
  await press(page, part('confirm'));
  const done = await demo.comes(session, 'completed');
  await settles(page, session, done.headSequence);
  await agrees(page, demo, session, done.headSequence);

  // A message of several lines counts as edited only if somebody edits it, whatever ends its lines.
  const lines = 't-lines';
  await demo.start(lines, 'planner', 'Plan.\r\nNothing before nine.');
  const { headSequence: end } = await demo.comes(lines, 'completed');
  await page.evaluate((hash) => { location.hash = hash; }, `#/${lines}`);
  await settles(page, lines, end);
  await press(page, part('fork'));
  await write(page, part('fork-id'), 't-lines-fork');
  await press(page, part('confirm'));
  await settles(page, 't-lines-fork');
  assert.deepEqual(comparable((await demo.state('t-lines-fork')).state), comparable((await demo.state(lines)).state));
  await close(page);
}

/** A rollback asks first, and says what it takes back. */
export async function rollsBack({ browser, demo }) {
  const session = 't-back';
  await demo.start(session, 'planner', 'Plan.');
  await demo.comes(session, 'completed');
  const { items } = await demo.get(`/sessions/${session}/checkpoints`);
  const to = items[0].streamSequence;
  const answer = await demo.ask('POST', '/chat', { id: session, messages: [{ id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Once more.' }] }], agent: 'planner' });
  assert.equal(answer.status, 200, answer.text);
  await demo.comes(session, 'completed');
  const { headSequence: head } = await demo.summary(session);
  const page = await open(browser, link(demo.url, session, to));
  await settles(page, session, to);
  await press(page, part('rollback'));
  await appears(page, part('confirm'));
  assert.ok((await page.$eval(part('confirm'), (e) => e.closest('dialog').textContent)).includes(String(to)));
  await press(page, part('cancel'));
  await goes(page, part('confirm'));
  assert.equal((await demo.summary(session)).headSequence, head);
  await press(page, part('rollback'));
  await press(page, part('confirm'));
  await until('it is rolled back', async () => (await demo.summary(session)).headSequence > head);
  const now = await demo.summary(session);
  await until('the page is there again', async () => text(page, part('head')).then((t) => Number(t) >= now.headSequence));
  await until('a mark tells of it', async () => (await values(page, part('mark'), 'data-kind')).includes('rollback'));
  assert.deepEqual(comparable((await demo.state(session)).state), comparable((await demo.state(session, to)).state));

  // What was taken back is not offered, nor counted again; no node has claimed the session for it.
  await settles(page, session, now.headSequence);
  assert.equal(await page.$eval(part('compare-from'), (e) => e.value), String(to));
  assert.ok(!(await text(page, '#moment')).includes('claimed by'));
  await page.evaluate((hash) => { location.hash = hash; }, `#/${session}@${to - 1}`);
  await settles(page, session, to - 1);
  await until('who had claimed it', async () => (await text(page, '#moment')).includes('last claimed by'));
  await press(page, part('rollback'));
  await appears(page, part('confirm'));
  assert.match(await page.$eval(part('confirm'), (e) => e.closest('dialog').textContent), /and 1 checkpoint\./);
  await close(page);
}

/** Two moments of a session, side by side. */
export async function comparesMoments({ browser, demo }) {
  const page = await open(browser, `${demo.url}/#/${incident}@107..205`);
  await settles(page, incident, 107);
  await until('there are differences', async () => (await values(page, part('diff-row'), 'data-test')).length > 0);
  await until('it is whole', () => page.$('#compare[data-ready]'));
  const { a, b, patch } = await demo.get(`/compare?a=${incident}&aAt=107&b=${incident}&bAt=205`);
  const shown = await text(page, '#compare');
  assert.ok(patch.length > 0);
  const words = [...patch.flatMap((op) => [...op.path.split('/').filter(Boolean), ...(typeof op.value === 'object' ? [] : leaves(op.value))]), ...b.toolCalls.filter((c) => !a.toolCalls.some((other) => other.toolCallId === c.toolCallId)).map((c) => c.toolName)];
  for (const w of [...words, String(a.messages.length), String(b.messages.length)]) assert.ok(shown.includes(w), `${w} in ${shown.slice(0, 3000)}`);
  await shoot(page, 'compare-moments');
  await page.reload();
  await until('after a reload, too', async () => (await values(page, part('diff-row'), 'data-test')).length > 0);
  await close(page);
}

/** A session and its fork, side by side. */
export async function comparesSessions({ browser, demo }) {
  const { sessionId: fork } = await demo.post(`/sessions/${incident}/fork`, { sequence: 197 });
  const { pendingToolCalls: [pending] } = await demo.summary(fork);
  await demo.post('/submit-tool-result', { sessionId: fork, kind: 'approval-response', toolCallId: pending.toolCallId, approved: false, reason: 'Forty-two, not four thousand.' });
  await demo.post('/resume', { sessionId: fork });
  const { headSequence: head } = await demo.comes(fork, 'completed');
  const page = await open(browser, `${demo.url}/#/${incident}@284vs/${encodeURIComponent(fork)}@${head}`);
  await settles(page, incident, 284);
  await until('both are there', async () => {
    const shown = await text(page, '#compare');
    return shown.includes('Forty-two, not four thousand.') && shown.includes('is locked after 2 declined refunds') && shown.includes(fork);
  });
  await shoot(page, 'compare-sessions');
  await close(page);
}
