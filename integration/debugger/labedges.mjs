// Labels in a lab, labs that attack the page, and large ones.
import assert from 'node:assert/strict';
import { appears, close, goes, link, open, part, press, shoot, text, until, write } from './browser.mjs';
import { bringSeven, decision, hashOf, judged, lane, opened, pressed, recordsOf, report, row, rows, seven } from './labs.mjs';
import { evil, harmless, overflows } from './shown.mjs';

/** Labels outlive the page, and other pages see them; a failure says so and changes nothing. */
export async function keepsLabels({ browser, demo }) {
  const id = 'lab-1abe15000000-1';
  const hash = hashOf('labels');
  const odd = '~a/b "c" é';
  const sessions = ['l-1', 'l-2', odd].map((s) => judged(s, 'regression', { observed: lane([]), candidate: [lane([])] }, { difference: { sequence: 1, kind: 'output', why: 'other words' } }));
  await demo.bring(id, recordsOf(id, { hash, sessions: 3 }, sessions, report(hash, 3)));
  const page = await open(browser, link(demo.url, id));
  const control = (session, what) => `${row(session.replaceAll('"', '\\"'))} ${part(what)}`;
  const is = (p, session, label) => until(`${session} is ${label || 'without a label'}`, async () => (await pressed(p, session.replaceAll('"', '\\"'))) === label && (await p.$eval(control(session, 'lab-label'), (e) => !e.hasAttribute('data-writing'))));
  await appears(page, control('l-1', 'lab-good'));
  await press(page, control('l-1', 'lab-good'));
  await is(page, 'l-1', 'good');
  await press(page, control(odd, 'lab-bad'));
  await is(page, odd, 'bad');
  await press(page, control('l-2', 'lab-good'));
  await is(page, 'l-2', 'good');
  await press(page, control('l-2', 'lab-good')); // again: none
  await is(page, 'l-2', '');
  const labels = `lab-labels-${hash.slice(0, 12)}`;
  assert.deepEqual((await demo.state(labels)).state.customState, { 'l-1': true, [odd]: false });
  assert.equal((await demo.summary(labels)).agentType, 'lab-labels');

  const other = await open(browser, link(demo.url, id));
  await is(other, 'l-1', 'good');
  await press(other, control('l-1', 'lab-bad'));
  await is(other, 'l-1', 'bad');
  await press(other, control(odd, 'lab-bad'));
  await is(other, odd, '');
  await press(page, control(odd, 'lab-bad')); // it has been removed meanwhile: removed it stays
  await is(page, odd, '');
  await page.reload();
  await is(page, 'l-1', 'bad');
  await is(page, odd, '');
  assert.deepEqual((await demo.state(labels)).state.customState, { 'l-1': false });
  assert.equal((await demo.summary(labels)).counts?.parked ?? 0, 0, 'no record is in vain');

  // In the lanes of a session they are the same ones.
  await press(page, `${row('l-2')} a`);
  await press(page, '[data-test="lab-lanes"] [data-test="lab-good"]');
  await until('it is kept', async () => (await demo.state(labels)).state.customState['l-2'] === true);
  await press(page, part('lab-back'));
  await is(page, 'l-2', 'good');

  // What fails is said, and the label is what it was. The key lets an answer that got lost be sent again.
  const keys = [];
  let fail = 3;
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    if (!request.url().endsWith('/chunks')) return request.continue();
    keys.push(request.headers()['idempotency-key']);
    return fail-- > 0 ? request.abort('connectionrefused') : request.continue();
  });
  await press(page, control('l-2', 'lab-bad'));
  await appears(page, `${row('l-2')} ${part('error')}`);
  await is(page, 'l-2', 'good');
  await press(page, control('l-2', 'lab-bad'));
  await is(page, 'l-2', 'bad');
  await goes(page, `${row('l-2')} ${part('error')}`);
  assert.equal(keys.length, 4);
  assert.ok(keys[0] === keys[1] && keys[2] === keys[3] && keys[0] !== keys[2], 'one key a change');
  assert.equal((await demo.state(labels)).state.customState['l-2'], false);
  await close(page);
  await close(other);
}

/** Whatever a lab holds, it is shown and does nothing. */
export async function runsNothing({ browser, demo }) {
  const id = 'lab-badbadbadbad-1';
  const hash = hashOf('bad');
  const words = {};
  const bad = (where) => (words[where] = evil(where));
  const bidi = 'pay \u202E0001\u202C euros\u200B';
  const huge = 'x'.repeat(300_000);
  const session = bad('session');
  const decisions = (side) => [
    decision('model-answer', 3, [{ text: bad(`${side} text`) }, { reasoning: bad(`${side} reasoning`) }, { call: bad(`${side} call`), arguments: { [bad(`${side} key`)]: bad(`${side} argument`) } }], { agent: bad(`${side} agent`) }),
    decision('tool-call', 4, { [bad(`${side} argument key`)]: [bad(`${side} value`)] }, { name: bad(`${side} tool`) }), decision('tool-result', 5, `${bidi} ${side}`, { name: 'bidi' }), decision('output', 6, huge + side), decision(bad(`${side} kind`), 7, bad(`${side} content`)),
    decision('model-request', 8, {}, { parts: { [words['observed part'] ?? bad('observed part')]: side } }),
  ];
  const observed = lane(decisions('observed'));
  const s = judged(session, 'regression', { observed, baseline: [observed], candidate: [lane(decisions('candidate'), { outcome: bad('outcome'), error: bad('error code'), unjudged: bad('unjudged'), judgement: { pass: false, reason: bad('judgement') } })] },
    { agent: bad('agent'), difference: { sequence: 4, agent: bad('difference agent'), kind: bad('difference kind'), why: `${bad('why')} ${bidi}` }, checks: [{ name: bad('check'), pass: false, message: bad('check message') }], stored: { candidate: ['../../x'] } });
  const long = judged('y'.repeat(250), bad('verdict').slice(0, 40), { observed, candidate: [lane([])] }, { difference: { sequence: 1, kind: 'z'.repeat(500), agent: 'a'.repeat(500), why: 'w'.repeat(20_000) } });
  await demo.bring(id, recordsOf(id, { hash, sessions: 2, baseline: 'recorded', name: bad('cohort') }, [s, long], report(hash, 2, { judge: { ...report(hash, 2).judge, model: bad('judge'), prompt: `${bad('prompt')}${'p'.repeat(5000)}` } })));
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    const page = await open(browser, link(demo.url, id), { width, height });
    const seen = new Set();
    const look = async (about) => {
      await until(`${about}: all is unfolded`, () => page.evaluate(() => {
        const folded = document.querySelectorAll('#lab details:not([open])');
        for (const d of folded) d.open = true;
        return folded.length === 0;
      }));
      const shown = await page.evaluate(() => document.querySelector('#lab').textContent + [...document.querySelectorAll('#lab [title]')].map((e) => e.title).join('\n'));
      for (const [where, w] of Object.entries(words)) if (shown.includes(w) || shown.includes(JSON.stringify(w).slice(1, -1))) seen.add(where);
      for (const c of ['\u202E', '\u202C', '\u200B']) assert.ok(!shown.includes(c), `${about}: U+${c.codePointAt(0).toString(16)} is shown, not obeyed`);
      await harmless(page, about);
      assert.deepEqual(await overflows(page), [], about);
      assert.ok(await page.$eval('#lab', (e) => e.scrollWidth <= e.clientWidth + 1), `${about}: it fits into ${width} px`);
      await shoot(page, `lab-hostile-${about}-${width}`);
    };
    await until('its rows', async () => (await rows(page)).length === 2);
    await appears(page, part('lab-judge'));
    await look('table');
    await page.evaluate((hash) => { location.hash = hash; }, `#/${id}+${encodeURIComponent(session)}`);
    await opened(page);
    await look('lanes');
    await page.evaluate((hash) => { location.hash = hash; }, `#/${id}+${'y'.repeat(250)}`);
    await opened(page);
    await look('long');
    assert.deepEqual(Object.keys(words).filter((w) => !seen.has(w) && w !== 'verdict'), [], 'everything is shown, as it is written');
    await close(page);
  }
  // A session whose lanes can't be read says so, and the rest works.
  const broken = 'lab-badbadbadbad-2';
  const records = recordsOf(broken, { hash, sessions: 1 }, [long]);
  records[1].data.data.text = '{"session": ';
  await demo.bring(broken, records);
  const page = await open(browser, `${link(demo.url, broken)}+${'y'.repeat(250)}`);
  await appears(page, `#lab ${part('error')}`);
  await press(page, part('lab-back'));
  await until('the table', async () => (await rows(page)).length === 1);
  await close(page);
}

/** Ten thousand sessions: two hundred rows at once, found at once. */
export async function has10000Sessions({ browser, demo, log }) {
  const id = 'lab-000000010000-1';
  const hash = hashOf('many');
  const none = lane([], { tokens: { input: 1, output: 1 } });
  const sessions = Array.from({ length: 10_000 }, (_, i) => judged(`m-${String(i).padStart(5, '0')}`, i % 100 === 99 ? 'regression' : 'same', { observed: none, baseline: [none], candidate: [none] }, i % 100 === 99 ? { difference: { sequence: 1, kind: 'output', why: `reason ${i}` } } : {}));
  await demo.bring(id, recordsOf(id, { hash, sessions: 10_000 }, sessions, report(hash, 10_000)));
  const began = Date.now();
  const page = await open(browser, link(demo.url, id));
  await until('all are known', async () => (await page.$eval(part('lab-verdict', '[data-verdict=""]'), (e) => e.textContent)) === '10,000 all');
  log(`10,000 sessions are shown after ${Date.now() - began} ms`);
  assert.equal((await rows(page)).length, 200);
  assert.equal((await rows(page))[0], 'm-00099');
  const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
  log(`${await elements()} elements`);
  assert.ok((await elements()) < 10_000);
  await press(page, part('lab-more'));
  assert.equal((await rows(page)).length, 400);
  const typed = Date.now();
  await write(page, part('lab-filter'), 'reason 4');
  await until('those', async () => (await rows(page)).length === 11 && (await rows(page))[0] === 'm-00499');
  log(`found after ${Date.now() - typed} ms`);
  await write(page, part('lab-filter'), 'm-09998');
  await until('that one', async () => (await rows(page)).join() === 'm-09998');
  await press(page, `${row('m-09998')} a`);
  await until('its lanes', async () => (await text(page, part('lab-lanes'))).includes('m-09998'));
  await close(page);
}

/** What can't be loaded is said, beside what can; it is there when it is asked for again. */
export async function saysWhatIsMissing({ browser, demo }) {
  await bringSeven(demo);
  const page = await open(browser, `${demo.url}/`);
  let broken = /./;
  await page.setRequestInterception(true);
  page.on('request', (request) => (/\/records\?/.test(request.url()) && !request.url().includes('follow') && broken.test(request.url()) ? request.abort('connectionrefused') : request.continue()));
  await page.evaluate((hash) => { location.hash = hash; }, `#/${seven.id}`);
  await appears(page, `#lab ${part('error')}`);
  broken = /v-worse-a/;
  await press(page, '#lab .failure + button');
  await until('its rows', async () => (await rows(page)).length === 7);
  await goes(page, `#lab ${part('error')}`);
  await page.evaluate((hash) => { location.hash = hash; }, `#/${seven.id}+v-worse-a`); // its lanes are not there
  await appears(page, `#lab ${part('error')}`);
  broken = /candidate-1/;
  await press(page, '#lab .failure + button');
  await opened(page);
  await appears(page, part('lab-again')); // the lanes are, and not the moments of one
  assert.ok((await text(page, part('lab-first'))).includes('First difference'));
  broken = /nothing/;
  await press(page, part('lab-again'));
  await until('all moments', () => page.$$eval('[data-moment]', (all) => all.length > 0 && all.every((e) => e.querySelector('a'))));
  await goes(page, `#lab ${part('error')}`);
  await close(page);
}
