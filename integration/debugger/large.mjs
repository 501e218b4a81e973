// A session of 100,000 records.
import assert from 'node:assert/strict';
import { appears, at, close, link, open, part, settles, shoot, sleep, until, values } from './browser.mjs';
import { RECORDS, large as session, records } from './samples.mjs';
import { agrees } from './shown.mjs';

const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))];

/** frames returns the times from frame to frame while something is done, in milliseconds. */
async function frames(page, act) {
  await page.evaluate(() => {
    const gaps = (window.gaps = []);
    let last;
    const next = (now) => {
      if (window.gaps !== gaps) return;
      if (last !== undefined) gaps.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  await act();
  return page.evaluate(() => {
    const { gaps } = window;
    window.gaps = null;
    return gaps;
  });
}

const sum = (values) => values.reduce((all, v) => all + v, 0);
const lost = (gaps, frame) => sum(gaps.map((gap) => Math.max(0, Math.round(gap / frame) - 1)));
const rate = (gaps) => `${(gaps.length / sum(gaps) * 1000).toFixed(1)} frames a second, the longest ${Math.max(...gaps).toFixed(0)} ms`;

/** tasks returns the CPU times of the tasks of a page's main thread while something is done, in milliseconds. */
async function tasks(page, act) {
  await page.tracing.start({ categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline'] });
  await act();
  const { traceEvents } = JSON.parse(new TextDecoder().decode(await page.tracing.stop()));
  const thread = (e) => `${e.pid} ${e.tid}`;
  const drawn = new Map(); // how many frames, by thread: of several, the page that is in front has the most
  for (const e of traceEvents) if (e.name === 'Commit') drawn.set(thread(e), (drawn.get(thread(e)) ?? 0) + 1);
  const [[main, count]] = [...drawn].toSorted(([, a], [, b]) => b - a);
  return { spent: traceEvents.filter((e) => e.name === 'RunTask' && thread(e) === main).map((e) => e.tdur / 1000), count };
}

const FRAME = 1000 / 60; // of a browser without a display, in milliseconds
const TRIES = 6;

/**
 * keepsTheRate: while the position is dragged through the session the page draws as often as
 * while nothing is done. Frames are also lost to whatever else the machine does: one of a few
 * tries has to keep all but a few. If even the idle page loses some in each of them, then the
 * CPU time of the page's own tasks is what is known.
 */
async function keepsTheRate(page, log) {
  const box = await (await page.$(part('scrubber'))).boundingBox();
  const y = box.y + box.height / 2;
  const drag = async () => {
    await page.mouse.down();
    for (let i = 0; i < 300; i++) await page.mouse.move(box.x + 4 + (box.width - 8) * (i / 300), y);
    await page.mouse.up();
  };
  const begin = async () => {
    await page.mouse.move(box.x + 4, y);
    await settles(page, session);
    await sleep(500); // what a position leaves out until it rests
  };
  let idleTries = 0, kept = false;
  for (let i = 0; i < TRIES && !kept; i++) {
    await begin();
    const idle = await frames(page, () => sleep(1500));
    const dragged = await frames(page, drag);
    log(`while it is dragged: ${rate(dragged)}; idle: ${rate(idle)}`);
    if (lost(idle, FRAME) === 0) idleTries++;
    kept = lost(dragged, FRAME) <= lost(idle, FRAME) + dragged.length * 0.01;
  }
  await begin();
  const { spent, count } = await tasks(page, drag);
  log(`CPU of the page's thread while it is dragged: ${(sum(spent) / count).toFixed(1)} ms a frame, the longest task ${Math.max(...spent).toFixed(1)} ms`);
  assert.ok(kept || idleTries < TRIES / 2, 'frames are lost while it is dragged, and none are while the page is idle');
  assert.ok(sum(spent) / count < FRAME, 'the work of a frame leaves no time for 60 a second');
  assert.ok(Math.max(...spent) < 3 * FRAME, 'a task takes several frames\' time');
}

/** It is there in a moment, wherever one goes in it. Slow machines are given time; the time is reported. */
export async function isQuick({ browser, demo, log }) {
  const began = Date.now();
  const { firstSequence: first, lastSequence: head } = await demo.bring(session, records());
  log(`${RECORDS} records imported in ${Date.now() - began} ms`);

  // What an empty page takes on this machine is what the rest is measured by.
  const paint = (page) => page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null);
  const empty = await open(browser, `${demo.url}/`);
  const idle = await until('it is painted', () => paint(empty));
  await close(empty);
  const middle = first + RECORDS / 2;
  const start = Date.now();
  const page = await open(browser, link(demo.url, session, middle));
  const painted = await until('it is painted', () => paint(page));
  await appears(page, part('lane'));
  const lanes = Date.now() - start;
  await settles(page, session, middle);
  log(`first paint ${painted.toFixed(0)} ms (without a session ${idle.toFixed(0)} ms), its timeline after ${lanes} ms, the state at its middle after ${Date.now() - start} ms`);
  await agrees(page, demo, session, middle);

  // Scrubbing: from a key to the state that is shown.
  const took = [];
  await page.focus(part('scrubber'));
  for (let i = 0; i < 30; i++) {
    const n = await at(page);
    const t = performance.now();
    await page.keyboard.press('ArrowRight');
    await settles(page, session, n + 1);
    took.push(performance.now() - t);
  }
  log(`a record on, until its state is shown: p50 ${quantile(took, 0.5).toFixed(0)} ms, p95 ${quantile(took, 0.95).toFixed(0)} ms`);
  const jumps = [];
  for (let i = 0; i < 20; i++) {
    const n = first + 1 + Math.floor(((i * 7919) % 1000) / 1000 * (RECORDS - 2));
    const t = performance.now();
    await page.evaluate((hash) => { location.hash = hash; }, `#/${session}@${n}`);
    await settles(page, session, n);
    jumps.push(performance.now() - t);
  }
  log(`anywhere, until its state is shown: p50 ${quantile(jumps, 0.5).toFixed(0)} ms, p95 ${quantile(jumps, 0.95).toFixed(0)} ms`);
  await agrees(page, demo, session, await at(page));

  if (process.env.DEBUGGER_RATE) await keepsTheRate(page, log); // on an idle machine
  await agrees(page, demo, session, await settles(page, session));

  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  log(`${elements} elements, ${(await values(page, part('span'), 'data-test')).length} of them spans`);
  assert.ok(elements < 30_000, `${elements} elements`);
  assert.equal(await page.$eval(part('head'), (e) => e.textContent), String((await demo.summary(session)).headSequence));
  await shoot(page, 'large');
  await close(page);
}
