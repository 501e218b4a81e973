// A session of 100,000 records.
import assert from 'node:assert/strict';
import { appears, at, close, link, open, part, settles, shoot, until, values, drawn } from './browser.mjs';
import { agrees } from './shown.mjs';

const session = 'large';
const RECORDS = 100_000;

/** records are a long conversation: a step is two hundred records. */
function records() {
  const run = 'run-01M81H4P2KXMMR9JJF3GW784GG';
  const all = [];
  let time = 1795347863000;
  const add = (kind, type, data, more) => {
    time += 40;
    const sequence = all.length + 1;
    const who = kind === 'fact' ? { sessionId: session } : { agentId: session, agentType: 'talker' };
    all.push({ sequence, time: new Date(time).toISOString(), kind, type, agent: session, run, writer: 'w', ordinal: sequence, ...more, data: { type, ...data, ...who, timestamp: time } });
  };
  add('fact', 'session_created', { agentType: 'talker', state: { visited: {} } });
  add('fact', 'user_message', { content: 'Walk through the town, and tell me of every street.' });
  add('fact', 'run_requested', { runId: run, mode: 'start' });
  add('fact', 'run_claimed', { runId: run, node: 'node-1', attempt: 1 });
  for (let step = 1; all.length < RECORDS - 210; step++) {
    const stepId = `turn-1-step-${step}`;
    const call = `call_${step}`;
    const said = [];
    add('chunk', 'step_start', { stepId, step });
    for (let w = 0; w < 190; w++) {
      said.push(`word${step}-${w} `);
      add('chunk', 'text_delta', { delta: said.at(-1), step });
    }
    const args = { street: `Street ${step}` };
    add('fact', 'model_turn', { runId: run, stepId, step, model: 'talker-1', stopReason: 'tool_use', usage: { prompt: 100 + step, completion: 190, total: 290 + step }, parts: [{ text: said.join('') }, { toolCall: { toolCallId: call, toolName: 'visit', arguments: args } }] });
    add('chunk', 'tool_start', { toolCallId: call, toolName: 'visit', arguments: args, step }, { call });
    add('chunk', 'state_patch', { patches: [{ op: 'add', path: `/visited/${step}`, value: `Street ${step}` }], step }, { call });
    add('fact', 'tool_result', { runId: run, stepId, toolCallId: call, toolName: 'visit', result: { houses: step } }, { call });
    add('chunk', 'tool_end', { toolCallId: call, toolName: 'visit', result: { houses: step }, providerExecuted: true, step }, { call });
    const checkpointId = `cpv1-${session}-s${step}-t${time}-000000`;
    add('chunk', 'step_end', { stepId, usage: { inputTokens: 100 + step, outputTokens: 190 }, finishReason: 'tool-calls', step });
    add('chunk', 'step_committed', { runId: run, stepId, checkpointId, step });
    add('chunk', 'checkpoint_created', { runId: run, checkpointId, stepCount: step, step });
  }
  while (all.length < RECORDS) add('chunk', 'custom', { eventName: 'tick', data: all.length, step: 0 });
  return all;
}

const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))];

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

  // Dragging: the page draws on all the while.
  await page.evaluate(() => {
    const gaps = (window.gaps = []);
    let last = performance.now();
    const next = (now) => { gaps.push(now - last); last = now; requestAnimationFrame(next); };
    requestAnimationFrame(next);
  });
  const box = await (await page.$(part('scrubber'))).boundingBox();
  await page.mouse.move(box.x + 4, box.y + box.height / 2);
  await page.mouse.down();
  await page.evaluate(() => { window.gaps.length = 0; });
  const before = await page.metrics();
  for (let i = 0; i < 300; i++) await page.mouse.move(box.x + 4 + (box.width - 8) * (i / 300), box.y + box.height / 2);
  const gaps = await page.evaluate(() => [...window.gaps]);
  const after = await page.metrics();
  const work = ['ScriptDuration', 'RecalcStyleDuration', 'LayoutDuration'].reduce((sum, of) => sum + after[of] - before[of], 0) * 1000 / gaps.length;
  await page.mouse.up();
  await drawn(page);
  const n = await settles(page, session);
  log(`while it is dragged: ${gaps.length} frames, ${(gaps.length / gaps.reduce((sum, gap) => sum + gap, 0) * 1000).toFixed(0)} a second, ${work.toFixed(1)} ms of scripts and layout each, p50 ${quantile(gaps, 0.5).toFixed(0)} ms, p95 ${quantile(gaps, 0.95).toFixed(0)} ms, the longest ${Math.max(...gaps).toFixed(0)} ms`);
  assert.ok(work < 1000 / 60, `${work} ms of work a frame leave no time for 60 a second`);
  await agrees(page, demo, session, n);

  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  log(`${elements} elements, ${(await values(page, part('span'), 'data-test')).length} of them spans`);
  assert.ok(elements < 30_000, `${elements} elements`);
  assert.equal(await page.$eval(part('head'), (e) => e.textContent), String((await demo.summary(session)).headSequence));
  await shoot(page, 'large');
  await close(page);
}
