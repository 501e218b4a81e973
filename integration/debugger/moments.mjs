// Any moment of a session is what the daemon says it was.
import assert from 'node:assert/strict';
import { appears, at, close, link, open, part, press, settles, shoot, signIn, text, until, values, drawn } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { agrees } from './shown.mjs';

const incident = 'demo-incident';

/** The address names a moment; all of them are right, one after the other in any order. */
export async function deepLinks({ browser, demo }) {
  const { headSequence: head } = await demo.summary(incident);
  const first = await open(browser, link(demo.url, incident, 150));
  await agrees(first, demo, incident, 150);
  await shoot(first, 'incident-150');
  await first.reload();
  await agrees(first, demo, incident, 150);
  for (const n of [2, head, 106, 107, 128, 129, 155, 157, 193, 197, 198, 205, 1, 240, 60, head - 1]) {
    await first.evaluate((hash) => { location.hash = hash; }, `#/${incident}@${n}`);
    await agrees(first, demo, incident, n);
  }
  await until('the head is shown', async () => (await text(first, part('head'))) === String(head));
  await first.goBack();
  await agrees(first, demo, incident, 60);
  await first.goForward();
  await agrees(first, demo, incident, head - 1);
  await close(first);
}

/** Every record can be reached with the arrow keys. */
export async function byKeys({ browser, demo }) {
  const { headSequence: head } = await demo.summary(incident);
  const page = await open(browser, link(demo.url, incident));
  await settles(page, incident, head);
  await page.focus(part('scrubber'));
  await page.keyboard.press('Home');
  await until('it moves', async () => (await at(page)) < head);
  const first = await settles(page, incident);
  assert.ok(first <= 1, `Home leads to the beginning, not to ${first}`);
  let n = first;
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press('ArrowRight');
    await until('one record on', async () => (await at(page)) === n + 1);
    n++;
    await agrees(page, demo, incident, n);
  }
  await page.keyboard.press('ArrowLeft');
  await agrees(page, demo, incident, n - 1);

  // Without waiting: what is shown in the end is what the position says.
  for (let i = 0; i < 80; i++) await page.keyboard.press('ArrowRight');
  await agrees(page, demo, incident, n - 1 + 80);

  const steps = new Set((await demo.records(incident)).filter((r) => r.type === 'step_start' || r.type === 'step_committed' || r.type === 'checkpoint_created' || r.type === 'step_end').map((r) => r.sequence));
  await page.keyboard.press('Home');
  await settles(page, incident, first);
  await page.keyboard.down('Shift');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.up('Shift');
  const step = await until('a step on', async () => (await settles(page, incident)) > first && at(page));
  assert.ok([...steps].some((s) => Math.abs(s - step) <= 1), `Shift+→ leads to a step, not to ${step}`);

  await page.keyboard.press('j');
  const next = await until('a mark on', async () => { const now = await settles(page, incident); return now > step && now; });
  await page.keyboard.press('k');
  await until('and back', async () => (await settles(page, incident)) < next);
  await page.keyboard.press('End');
  await agrees(page, demo, incident, head);
  await until('screen readers are notified', () => page.$eval(part('scrubber'), (e, n) => e.getAttribute('aria-valuenow') === n, String(head)));
  await close(page);
}

/** The records before the position, and the one before it, are read without all that was before, however much other sessions wrote in between. */
export async function acrossAGap({ browser, demo }) {
  const say = (session, count) => demo.post(`/sessions/${session}/chunks`, Array.from({ length: count }, () => ({ type: 'custom', eventName: 'tick', data: 1, step: 0, agentId: session, agentType: 'clock', timestamp: Date.now() })));
  const session = 'm-gap';
  await say(session, 300);
  const before = (await demo.summary(session)).headSequence;
  await say('m-gap-other', 500);
  await say(session, 1);
  const { headSequence: head } = await demo.summary(session);
  const page = await open(browser, `${demo.url}/`);
  // The conversation reads all chunks of an outside producer, and its requests don't count. Chromium does not
  // always keep a streamed answer, so the daemon is asked again for what each request returned.
  const asked = [];
  page.on('request', (r) => {
    const { pathname, search, searchParams: by } = new URL(r.url());
    if (pathname === `/sessions/${session}/records` && !by.has('follow') && by.get('kind') !== 'chunk') asked.push(pathname + search);
  });
  await page.evaluate((hash) => { location.hash = hash; }, `#/${session}@${head}`);
  await settles(page, session, head);
  await until('its records', async () => (await page.$(`#records[data-at="${head}"]`)) && (await values(page, part('record-row'), 'data-sequence')).length >= 50);
  await page.focus(part('scrubber'));
  await page.keyboard.press('ArrowLeft');
  await settles(page, session, before);
  await until('their records', () => page.$(`#records[data-at="${before}"]`));
  const counts = await Promise.all(asked.map(async (path) => (await demo.ask('GET', path)).text.split('\n').length - 1));
  const most = Math.max(...counts);
  assert.ok(most > 0 && most <= 100, `${most} records were read at once: ${asked[counts.indexOf(most)]}`);
  await close(page);
}

/** Every record can be reached with the mouse. */
export async function byMouse({ browser, demo }) {
  const page = await open(browser, link(demo.url, incident));
  const { headSequence: head } = await demo.summary(incident);
  await settles(page, incident, head);
  await appears(page, part('lane'));
  await drawn(page);
  const box = await (await page.$(part('scrubber'))).boundingBox();
  const x = (share) => box.x + 2 + (box.width - 4) * share;
  const y = box.y + box.height / 2;
  let last = 0, before = head;
  for (const share of [0.1, 0.25, 0.4, 0.55, 0.7, 0.85]) {
    await page.mouse.click(x(share), y);
    await drawn(page);
    const n = await until('it moves on', async () => { const now = await settles(page, incident); return now !== before && now; });
    assert.ok(n > last && n < head, `from ${last} to ${n}`);
    await agrees(page, demo, incident, n);
    last = before = n;
  }
  await page.mouse.move(x(0.9), y);
  await page.mouse.down();
  for (let i = 0; i <= 120; i++) await page.mouse.move(x(0.9 - 0.7 * (i / 120)), y); // nobody waits
  await page.mouse.up();
  await drawn(page);
  const n = await until('it is dragged there', async () => { const now = await settles(page, incident); return now > head * 0.05 && now < head * 0.45 && now; });
  await agrees(page, demo, incident, n);
  await shoot(page, 'dragged');
  await close(page);
}

/** Nothing of an erased session is shown once another one has its id, whatever the page had loaded. */
export async function erased({ browser, demo }) {
  const session = 'm-erased';
  const records = (words) => [['session_created', { agentType: 'clerk', state: {} }], ['user_message', { content: words }]].map(([type, data], i) => ({
    sequence: i + 1, time: new Date(1795347863000 + i).toISOString(), kind: 'fact', type, agent: session, writer: 'w', ordinal: i + 1, data: { type, ...data, sessionId: session, timestamp: 1795347863000 + i },
  }));
  const { lastSequence: n } = await demo.bring(session, records('My secret.'));
  const page = await open(browser, link(demo.url, session, n));
  await until('it is shown', async () => (await text(page, '#moment')).includes('My secret.'));
  await page.evaluate((hash) => { location.hash = hash; }, `#/${incident}@150`);
  await settles(page, incident, 150);
  assert.equal((await demo.ask('DELETE', `/sessions/${session}`)).status, 200);
  await demo.bring(session, records('Nothing to hide.'));
  await page.evaluate((hash) => { location.hash = hash; }, `#/${session}@${n}`);
  await until('the page has another one', async () => (await text(page, part('head'))) === String((await demo.summary(session)).headSequence));
  await until('what it was at that record', async () => (await page.$eval('#moment', (e) => !('loading' in e.dataset) && e.dataset.session !== 'demo-incident')));
  assert.ok(!(await text(page, 'body')).includes('My secret.'));
  await close(page);
}

/** What the page says of a failure leads to its reason, by clicks alone. */
export async function detective({ browser, demo, log }) {
  const page = await open(browser, `${demo.url}/`);
  await press(page, part('session-row', `[data-session="${incident}"]`));
  const { headSequence: head } = await demo.summary(incident);
  await settles(page, incident, head);
  for (const words of ['the agent did not finish within 5 steps', '4250.00 EUR exceeds the captured amount of pay_882, which is 42.50 EUR', 'is locked after 2 declined refunds']) {
    await until(`the page says ${words}`, async () => (await text(page, 'body')).includes(words));
  }
  await until('the sub-agent has a lane', async () => (await values(page, part('lane'), 'data-lane')).join() === `${incident},${incident}-sub-call_0_0`);
  for (const kind of ['takeover', 'checkpoint', 'error']) await until(`a mark ${kind}`, async () => (await values(page, part('mark'), 'data-kind')).includes(kind));
  log(`marks: ${(await values(page, part('mark'), 'data-kind')).join(' ')}`);
  await appears(page, part('span', '[data-truncated]')); // text that the dead node had streamed
  for (const kind of ['approval', 'child', 'tool']) await appears(page, part('span', `[data-kind="${kind}"]`));
  await close(page);
}

/** The state is the chosen agent's, also if what another one's is compared with comes late. */
export async function stateOfTheChosenAgent({ browser, demo }) {
  const [child, n] = [`${incident}-sub-call_0_0`, 240];
  const { state } = await demo.state(incident, n);
  const base = state.checkpoints.map((c) => c.streamSequence).filter((at) => at < n).at(-1);
  const page = await open(browser, `${demo.url}/`);
  await page.setRequestInterception(true);
  let late; // the root's
  page.on('request', (request) => {
    if (request.url().endsWith(`/state?at=${base}`)) late = request;
    else request.continue();
  });
  await page.evaluate((hash) => { location.hash = hash; }, `#/${incident}@${n}`);
  await until('it is asked for', () => late);
  await press(page, part('agent', `[data-session="${child}"]`));
  const tree = () => text(page, part('state-tree'));
  const wanted = await until('the state of the child', async () => (await page.$eval('#moment', (e) => e.dataset.agent)) === child && tree());
  const answered = page.waitForResponse(late.url());
  late.continue();
  await (await answered).text();
  await drawn(page);
  await drawn(page);
  assert.equal(await tree(), wanted);
  await close(page);
}

/** Files, memories, models and tools, and who asked for what: as the routes have it. */
export async function whatElseThereIs({ browser, secured }) {
  const daemon = new Daemon(secured.url, secured.all);
  const session = 'm-coder';
  await daemon.start(session, 'coder', 'Write something.');
  const { headSequence: head } = await daemon.comes(session, 'completed');
  const page = await open(browser, link(secured.url, session), { width: 1600 });
  await signIn(page, secured.all);
  await settles(page, session, head);
  const section = async (name) => {
    const where = part(`section-${name}`);
    await press(page, `${where} > summary`);
    return until(`${name} is there`, async () => { const words = await text(page, `${where} .entries`); return words && !words.includes('Loading') && words; });
  };
  const { workspace } = await daemon.get(`/workspace?sessionId=${session}`);
  const files = await section('files');
  await until('when it was so', async () => /as of \d\d:\d\d:\d\d$/.test(await text(page, `${part('section-files')} > summary`)));
  const { items } = await daemon.get(`/sessions/${session}/files`);
  assert.deepEqual(items.map(({ path, size }) => ({ path, size })), [{ path: 'notes.md', size: 5 }]);
  for (const w of [workspace.name, workspace.providerId, workspace.status, 'notes.md5 bytes']) assert.ok(files.includes(w), `${w}: ${files}`);
  const calls = (await daemon.records(session)).filter((r) => r.type === 'tool_start' && r.data.toolName.startsWith('workspace_'));
  for (const { data } of calls) if (data.arguments.path) assert.ok(files.includes(data.arguments.path), `${data.arguments.path}: ${files}`);
  assert.ok(calls.length > 0);
  assert.ok((await section('memories')).includes('Nothing is saved of this session'));
  const { rollup } = await daemon.get(`/sessions/${session}/usage`);
  const used = await section('models');
  for (const w of [...Object.keys(rollup.models), ...Object.keys(rollup.tools)]) assert.ok(used.includes(w), `${w}: ${used}`);
  assert.ok(used.includes('No budget limits this session'), used);
  const audit = await section('audit');
  const asked = (await daemon.records(session)).filter((r) => r.data.by);
  assert.ok(asked.length > 0);
  for (const r of asked) assert.ok(audit.includes(r.type) && audit.includes(r.data.by.requestId), `${r.type}: ${audit}`);
  await shoot(page, 'what-else');

  const red = new Daemon(secured.url, secured.red);
  await red.start('m-red', 'coder', 'Write something.');
  const { headSequence: end } = await red.comes('m-red', 'completed');
  await page.goto(link(secured.url, 'm-red'));
  await settles(page, 'm-red', end);
  const { budget } = await daemon.get('/sessions/m-red/usage');
  const spent = await section('models');
  for (const n of [budget.tokens, budget.tokensPerDay]) assert.ok(spent.replace(/\D/g, '').includes(String(n)), `${n}: ${spent}`);
  assert.ok(spent.includes('used today'), spent);
  await shoot(page, 'budget');
  await close(page);
}
