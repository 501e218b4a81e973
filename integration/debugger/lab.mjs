// A lab: the table of its sessions, lanes side by side, and ways to their moments.
import assert from 'node:assert/strict';
import { appears, at, choose, close, goes, link, open, part, press, settles, shoot, text, until, values, visible, write } from './browser.mjs';
import { Daemon, grow, runLab, startGrowing, startLab } from './daemon.mjs';
import { begun, bringSeven, chunksOf, decision, decisionsOf, hashOf, judged, lane, opened, place, pressed, recordsOf, report, row, rows, said, seven, sessionsOfSeven } from './labs.mjs';
import { overflows, violations } from './shown.mjs';

const verdicts = ['regression', 'unjudged', 'flaky', 'improvement', 'changed', 'same'];

/** The table is what the records say, the worst first; filters choose; the address says what is shown. */
export async function showsResults({ browser, demo }) {
  await bringSeven(demo);
  const page = await open(browser, link(demo.url, seven.id));
  const all = ['v-worse-a', 'v-worse-b', 'v-unjudged', 'v-flaky', 'v-better', 'v-changed', 'v-same'];
  await until('all of them, in their order', async () => (await rows(page)).join() === all.join());
  await appears(page, part('lab-measure'));
  for (const [what, words] of Object.entries({ passed: ['94.0 %', '88.0 %', '−6.0 %', '−11.0 %', '−1.2 %', '380'], cost: ['$0.0021', '$0.0026', '+$0.0005', '12'], tokens: ['1,201', '1,300', '+99.75', '20'], steps: ['3.2', '–'], latencyMs: ['1.5 s', '+120 ms', '95'] })) {
    const line = await text(page, part('lab-measure', `[data-what="${what}"]`));
    for (const w of words) assert.ok(line.includes(w), `${what} lacks ${w}: ${line}`);
  }
  for (const w of ['claude-sonnet-4-5', '92.5 %', '40 labels', 'kappa 0.81', 'promises nothing']) assert.ok((await text(page, part('lab-judge'))).includes(w), w);
  for (const r of sessionsOfSeven()) {
    const line = (await text(page, row(r.result.session))).replaceAll('\u00a0', ' ');
    for (const w of [r.result.verdict, r.result.session, r.result.difference?.kind ?? '', r.result.difference?.why ?? '', r.result.difference ? `#${r.result.difference.sequence}` : '']) assert.ok(line.includes(w), `${r.result.session} lacks ${w}: ${line}`);
  }
  const worst = await text(page, row('v-worse-a'));
  for (const w of ['completed → failed', '180', '+60', '$0.003', '+$0.001']) assert.ok(worst.includes(w), `${w}: ${worst}`);
  assert.ok((await text(page, row('v-worse-b'))).includes('v-worse-b-sub-call_1'), 'the agent that parted');
  assert.equal(await text(page, part('lab-hash')), seven.hash.slice(0, 12));
  assert.ok((await page.$eval(part('lab-hash'), (e) => e.title)).includes(seven.hash));
  await press(page, part('lab-hash'));
  assert.equal(await text(page, part('lab-hash')), seven.hash);
  await shoot(page, 'lab');

  for (const v of verdicts) {
    await press(page, part('lab-verdict', `[data-verdict="${v}"]`));
    await until(`those alone: ${v}`, async () => (await values(page, part('lab-row'), 'data-verdict')).every((x) => x === v));
    assert.equal((await rows(page)).length, v === 'regression' ? 2 : 1, v);
  }
  await press(page, part('lab-verdict', '[data-verdict=""]'));
  await until('all again', async () => (await rows(page)).length === all.length);
  await write(page, part('lab-filter'), 'DESK');
  await until('by its agent', async () => (await rows(page)).join() === 'v-worse-b');
  await write(page, part('lab-filter'), 'something else');
  await until('by the reason', async () => (await rows(page)).join() === 'v-unjudged');
  await write(page, part('lab-filter'), 'v-');
  await until('by their names', async () => (await rows(page)).length === all.length);

  // Its records are those of any session, and the way back is there.
  await press(page, part('lab-plain'));
  await appears(page, part('scrubber'));
  assert.equal(await place(page), `#/${seven.id}@live`);
  await goes(page, part('lab-row'));
  await page.reload();
  await appears(page, part('scrubber'));
  const { headSequence: head } = await demo.summary(seven.id);
  await page.evaluate((hash) => { location.hash = hash; }, `#/${seven.id}@${head - 1}`);
  await settles(page, seven.id, head - 1);
  await press(page, part('lab-return'));
  await appears(page, part('lab-row'));
  assert.equal(await place(page), `#/${seven.id}`);

  // A session that the lab does not have, and one that it has: the address says so.
  await page.evaluate((hash) => { location.hash = hash; }, `#/${seven.id}+nobody`);
  await until('there is none', async () => (await text(page, '#lab')).includes('has not judged this session'));
  await page.goBack();
  await appears(page, part('lab-row'));
  await page.click(`${row('v-flaky')} [data-name="why"]`); // anywhere in a row
  await opened(page);
  assert.equal(await place(page), `#/${seven.id}+v-flaky`);
  await page.goBack();
  await appears(page, part('lab-row'));
  assert.equal(await page.evaluate(() => document.activeElement.closest('tr')?.dataset.session), 'v-flaky', 'the focus is where it was');
  await close(page);
}

/** Lanes stand side by side; where they part is in sight; each decision leads to its moment. */
export async function putsLanesSideBySide({ browser, demo }) {
  await bringSeven(demo);
  const page = await open(browser, `${link(demo.url, seven.id)}+v-worse-a`);
  await opened(page);
  await until('three lanes', async () => (await values(page, `.lab-row.first ${part('lab-decision')}`, 'data-lane')).join() === 'observed,baseline,candidate');
  const first = await text(page, part('lab-first'));
  for (const w of ['First difference', 'model-answer', '#20', 'prompt changed in the request at sequence 9']) assert.ok(first.includes(w), first);
  await until('it is in sight', () => page.$eval(part('lab-first'), (e) => { const { top, bottom } = e.getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; }));
  assert.deepEqual(await page.$$eval('.lab-row.first mark', (all) => all.map((m) => m.textContent)), ['arrives tomorrow', 'arrives tomorrow', 'may arrive next week'], 'what differs is marked');
  const kinds = await page.$$eval(part('lab-lanes-row'), (all) => all.map((r) => [...r.querySelectorAll('[data-test="lab-decision"]')].map((d) => d.dataset.kind)));
  for (const k of kinds) assert.equal(new Set(k).size, 1, 'the same kinds stand beside each other');
  assert.equal(await text(page, '.lab-changed'), 'changed: prompt');
  const seen = await text(page, part('lab-lanes'));
  for (const w of ['failed (agent_failed)', 'says where', 'does not contain "tomorrow"', 'It promises less than the tool has said.', '+60', '+$0.001']) assert.ok(seen.includes(w), w);
  assert.ok(!seen.includes('is short'), 'checks that hold are not listed');
  await shoot(page, 'lab-lanes');

  // Each decision's link is to the record that it was made of: sequences of where it was recorded first.
  await until('the moments are known', async () => (await page.$$(part('lab-moment'))).length === 21);
  const links = await page.$$eval(part('lab-moment'), (all) => all.map((a) => [a.getAttribute('href'), Number(a.textContent.slice(1)), a.dataset.lane]));
  const sessions = { observed: 'v-worse-a', baseline: 'lab-0a1b2c3d4e5f-1.1-baseline-1', candidate: 'lab-0a1b2c3d4e5f-1.1-candidate-1' };
  for (const session of Object.values(sessions)) sessions[session] = new Map((await demo.records(session)).map((r) => [r.sequence, r.origin?.sequence]));
  for (const [href, n, name] of links) {
    const [, session, sequence] = /^#\/(.+)@(\d+)$/.exec(href);
    assert.equal(session, sessions[name]);
    assert.equal(sessions[session].get(Number(sequence)), n, href);
    assert.notEqual(Number(sequence), n, 'this log has other sequences');
  }
  const [href] = links.findLast(([, n, name]) => n === 20 && name === 'candidate');
  await page.click(`${part('lab-moment')}[href="${href}"]`);
  const [session, n] = [sessions.candidate, Number(href.split('@')[1])];
  await settles(page, session, n);
  assert.ok((await text(page, '#moment')).includes(said[1]));
  assert.equal(await at(page), n);
  await page.goBack();
  await opened(page);
  await until('the way to compare', () => page.$(part('lab-compare')));
  await press(page, part('lab-compare'));
  await until('the comparison', async () => (await page.$('#compare[data-ready]')) && (await text(page, '#compare')).includes('may arrive next week'));
  const where = await place(page);
  assert.ok(where.startsWith('#/v-worse-a@') && where.includes(`vs/${session}@${n}`), where);

  // A session that the log does not have has no links, and the page says so. A recorded baseline is the observed lane.
  await page.evaluate((hash) => { location.hash = hash; }, `#/${seven.id}+v-same`);
  await appears(page, part('lab-absent'));
  assert.deepEqual(await page.$$(part('lab-moment')), []);
  assert.equal(await page.$(part('lab-compare')), null);
  await page.evaluate((hash) => { location.hash = hash; }, `#/${seven.id}+v-flaky`);
  await until('the repeat that differs', async () => page.$$eval(part('lab-repeat'), ([s]) => s?.value === 'baseline 2'));
  assert.ok((await text(page, part('lab-lanes'))).includes('Who knows.'));
  await choose(page, part('lab-repeat'), 'candidate');
  await until('the candidate', async () => (await text(page, part('lab-lanes'))).includes('may arrive next week'));

  const recorded = 'lab-0a1b2c3d4e5f-2';
  const sub = 'v-two-sub-call_0';
  const many = (driven) => Array.from({ length: 600 }, (_, i) => decision(i % 2 ? 'tool-result' : 'tool-call', i + 30, { i }, { name: 'step', ...(i % 3 ? {} : { agent: sub }), ...(driven ? { at: i + 30 } : {}) }));
  const ended = (driven, words) => [...many(driven), decision('output', 700, words, driven ? { at: 700 } : {})];
  const shuffled = ended(true, 'Other.').sort((a, b) => (a.agent ?? '').localeCompare(b.agent ?? '')); // agents that work at the same time
  const two = judged('v-two', 'regression', { observed: lane(ended(false, 'One.')), candidate: [lane(shuffled), lane(ended(true, 'A third.'))] }, { difference: { sequence: 700, kind: 'output', why: 'the output is another one' } });
  await demo.bring(recorded, recordsOf(recorded, { hash: seven.hash, sessions: 1, baseline: 'recorded' }, [two], report(seven.hash, 1, { judge: undefined })));
  await page.evaluate((hash) => { location.hash = hash; }, `#/${recorded}+v-two`);
  await until('two lanes', async () => (await values(page, `.lab-row.first ${part('lab-decision')}`, 'data-lane')).join() === 'observed,candidate');
  assert.deepEqual(await values(page, part('common'), 'data-count'), ['599'], 'each agent is aligned by itself, and what is the same is folded');
  assert.equal((await page.$$(part('lab-lanes-row', '[data-differs]'))).length, 1);
  await press(page, `${part('common')} > summary`);
  await until('it unfolds', async () => (await page.$$(part('lab-lanes-row'))).length === 601);
  assert.equal((await page.$$(`.lab-agent[title="Agent ${sub}"]`)).length, 400, 'sub-agents by their path');
  await choose(page, part('lab-repeat'), 'candidate 2');
  await until('the other repeat', async () => (await text(page, '.lab-row.first')).includes('A third.'));
  await close(page);
}

/** A lab that helixd has run: from the list to a moment of the candidate. */
export async function showsARealLab({ browser, log }) {
  const daemon = new Daemon(await startLab());
  for (const session of ['ada-1', 'ada-2']) {
    await daemon.start(session, 'support', 'Where is my order?');
    for (const result of [{ order: 'A1' }, { place: 'Oslo' }]) {
      const { pendingToolCalls: [{ toolCallId }] } = await daemon.waits(session);
      await daemon.post('/submit-tool-result', { sessionId: session, kind: 'client-tool-result', toolCallId, result });
      await daemon.post('/resume', { sessionId: session });
      await until(`${session} goes on`, async () => !(await daemon.summary(session)).pendingToolCalls?.some((c) => c.toolCallId === toolCallId));
    }
    await daemon.comes(session, 'completed');
  }
  assert.equal(await runLab(), 1, 'the planted regressions are found');
  const page = await open(browser, `${daemon.url}/`);
  const listed = () => values(page, part('session-row'), 'data-session');
  await until('the lab is listed', async () => (await listed()).some((s) => /^lab-[0-9a-f]{12}-1$/.test(s)));
  const lab = (await listed()).find((s) => s.startsWith('lab-'));
  assert.deepEqual((await listed()).toSorted(), ['ada-1', 'ada-2', lab].toSorted(), 'lanes are not listed');
  assert.equal(await text(page, part('session-count')), '3 sessions');
  await choose(page, part('filter-agent'), 'lab-lane');
  await until('lanes are listed if they are asked for', async () => (await listed()).length === 8 && (await listed()).every((s) => s.startsWith(`${lab}.`)));
  await choose(page, part('filter-agent'), 'lab');
  await until('labs alone', async () => (await listed()).join() === lab);
  await choose(page, part('filter-agent'), '');
  await until('all but the lanes', async () => (await listed()).length === 3);

  await press(page, part('session-row', `[data-session="${lab}"]`));
  await until('its sessions', async () => (await rows(page)).join() === 'ada-1,ada-2');
  const { state: { output } } = await daemon.state(lab);
  assert.equal(output.regressions.length, 2);
  for (const d of output.regressions) {
    const line = await text(page, row(d.session));
    for (const w of [d.kind, `#${d.sequence}`, d.why]) assert.ok(line.includes(w), `${w}: ${line}`);
  }
  await press(page, `${row('ada-2')} a`);
  await opened(page);
  const difference = output.regressions[1];
  await until('the first difference', async () => (await text(page, '.lab-row.first')).includes('A2'));
  assert.ok((await text(page, part('lab-first'))).includes(difference.why));
  assert.ok((await text(page, part('lab-check'))).includes('says when'), 'the assertion that fails');
  await until('all moments are known', () => page.$$eval('[data-moment]', (all) => all.length > 0 && all.every((e) => e.querySelector('a'))));
  await shoot(page, 'lab-real');
  const links = await page.$$eval(part('lab-moment'), (all) => all.map((a) => ({ href: a.getAttribute('href'), n: Number(a.textContent.slice(1)), kind: a.closest('article').dataset.kind })));
  log(`${links.length} links to moments`);
  const types = { 'model-request': ['model_turn'], 'model-answer': ['model_turn'], 'tool-call': ['model_turn'], 'sub-agent': ['model_turn'], 'tool-result': ['tool_result'], output: ['run_ended'] };
  const records = new Map();
  for (const { href, n, kind } of links) {
    const [session, sequence] = decodeURIComponent(href.slice(2)).split('@');
    if (!records.has(session)) records.set(session, await daemon.records(session));
    const record = records.get(session).find((r) => r.sequence === Number(sequence));
    assert.equal(record.origin?.sequence ?? record.sequence, n, href);
    assert.ok(types[kind].includes(record.type), `${href} is a ${kind}, and leads to ${record.type}`);
  }
  assert.ok(links.some(({ href }) => href.includes('candidate-1')) && links.some(({ href }) => href.startsWith('#/ada-2@')));
  await press(page, part('lab-compare'));
  await until('the comparison', async () => (await page.$('#compare[data-ready]')) && (await text(page, '#compare')).includes('A2'));
  await close(page);
}

/** While a lab runs, its table grows by itself. */
export async function growsLive({ browser }) {
  const demo = new Daemon(await startGrowing());
  const id = 'lab-00000000aaaa-1';
  const hash = hashOf('live');
  await grow(id, [begun(id, { hash, sessions: 3 })]);
  const page = await open(browser, link(demo.url, id));
  await until('none yet', async () => (await text(page, part('lab-progress'))) === '0 of 3 sessions');
  const one = (session, verdict, words) => judged(session, verdict, { observed: lane(decisionsOf(said[0], { driven: false })), baseline: [lane(decisionsOf(said[0]))], candidate: [lane(decisionsOf(words))] }, verdict === 'same' ? {} : { difference: { sequence: 20, kind: 'model-answer', why: 'other words' } });
  await grow(id, chunksOf(id, one('g-same', 'same', said[0])));
  await until('the first', async () => (await rows(page)).join() === 'g-same');
  await page.focus(`${row('g-same')} a`);
  await grow(id, chunksOf(id, one('g-worse', 'regression', said[1]), 3)); // lanes in pieces
  await until('the second, before it', async () => (await rows(page)).join() === 'g-worse,g-same');
  assert.equal(await page.evaluate(() => document.activeElement.closest('tr')?.dataset.session), 'g-same', 'the focus stays');
  assert.equal(await text(page, part('lab-progress')), '2 of 3 sessions');
  assert.equal(await visible(page, '#lab progress'), true);
  assert.equal(await page.$eval(part('lab-verdict', '[data-verdict="regression"]'), (e) => e.textContent), '1 regression');
  // A session that is opened before it is judged appears by itself.
  await page.evaluate((hash) => { location.hash = hash; }, `#/${id}+g-third`);
  await until('it is not judged', async () => (await text(page, '#lab')).includes('has not judged this session'));
  await grow(id, chunksOf(id, one('g-third', 'changed', said[1])));
  await opened(page);
  await until('it is there', async () => (await text(page, part('lab-first'))).includes('other words'));
  await demo.post(`/sessions/${id}/end`, { finalOutput: report(hash, 3) });
  await press(page, part('lab-back'));
  await until('it has ended', async () => (await text(page, part('lab-progress'))).startsWith('3 sessions, 7.25 s'));
  await appears(page, part('lab-measure'));
  assert.equal(await visible(page, '#lab progress'), false);
  await close(page);
}

/** Everything goes without a mouse. */
export async function worksByKeyboard({ browser, demo }) {
  await bringSeven(demo);
  const page = await open(browser, link(demo.url, seven.id));
  await until('its rows', async () => (await rows(page)).length === 7);
  const focused = () => page.evaluate(() => document.activeElement.closest('tr')?.dataset.session ?? '');
  await page.keyboard.press('ArrowDown');
  assert.equal(await focused(), 'v-worse-a');
  await page.keyboard.press('ArrowDown');
  assert.equal(await focused(), 'v-worse-b');
  await page.keyboard.press('b');
  await until('it is labelled', async () => (await pressed(page, 'v-worse-b')) === 'bad');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter'); // the button good
  await until('the other label', async () => (await pressed(page, 'v-worse-b')) === 'good');
  await page.keyboard.press('ArrowUp');
  assert.equal(await focused(), 'v-worse-a');
  await page.keyboard.press('Enter');
  await opened(page);
  assert.equal(await place(page), `#/${seven.id}+v-worse-a`);
  await page.keyboard.press('g');
  await until('it is labelled here', () => page.$eval('[data-test="lab-lanes"] [data-test="lab-label"]', (e) => e.dataset.label === 'good'));
  await page.keyboard.press('n');
  await until('the next one', async () => (await place(page)).endsWith('+v-worse-b'));
  await opened(page);
  await page.keyboard.press('p');
  await until('the one before', async () => (await place(page)).endsWith('+v-worse-a'));
  await opened(page);
  await page.evaluate(() => { document.querySelector('#lab').scrollTop = 0; });
  await page.keyboard.press('d');
  await until('the difference is in sight', () => page.$eval(part('lab-first'), (e) => { const { top, bottom } = e.getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; }));
  await page.keyboard.press('ArrowLeft'); // the timeline is not there: nothing moves
  assert.equal(await place(page), `#/${seven.id}+v-worse-a`);
  await page.keyboard.press('Escape');
  await until('the table', async () => (await rows(page)).length === 7 && (await place(page)) === `#/${seven.id}`);
  assert.equal(await focused(), 'v-worse-a');
  await page.keyboard.press('?');
  await until('the help', () => page.evaluate(() => document.querySelector('dialog[open]')?.textContent.includes('in a lab')));
  await close(page);
}

/** Everybody can read it, in both schemes, on wide and narrow screens. */
export async function isAccessible({ browser, demo }) {
  await bringSeven(demo);
  const wrong = [];
  for (const [width, height] of [[1440, 900], [1000, 760], [390, 844]]) {
    for (const [name, hash] of [['table', ''], ['lanes', '+v-worse-a'], ['flaky', '+v-flaky']]) {
      const page = await open(browser, link(demo.url, seven.id) + hash, { width, height });
      if (hash) await opened(page);
      else await appears(page, part('lab-measure'));
      if (hash === '+v-worse-a') await until('the moments', () => page.$(part('lab-compare')));
      for (const scheme of ['light', 'dark']) {
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
        await shoot(page, `lab-${name}-${width}-${scheme}`);
        for (const v of await violations(page, scheme)) wrong.push(`${name}, ${width}, ${scheme}: ${v}`);
        assert.deepEqual(await overflows(page), [], `${name} ${width}`);
        assert.ok(await page.$eval('#lab', (e) => e.scrollWidth <= e.clientWidth + 1), `${name} fits into ${width} px`);
      }
      await close(page);
    }
  }
  assert.deepEqual(wrong, []);
}
