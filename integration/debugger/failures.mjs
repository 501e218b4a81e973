// Why a session failed, and the way to what failed and was refused in it.
import assert from 'node:assert/strict';
import { appears, at, close, link, open, part, press, settles, shoot, text, until, values, visible } from './browser.mjs';
import { agrees } from './shown.mjs';

const incident = 'demo-incident';

/** The first view says why; a click or a key leads to each failure, the first one first. */
export async function jumpToIt({ browser, demo }) {
  const { headSequence: head } = await demo.summary(incident);
  const { state } = await demo.state(incident);
  const page = await open(browser, link(demo.url, incident));
  await settles(page, incident, head);
  await until('why', async () => (await text(page, part('why'))) === state.error.message);
  assert.equal(await page.$eval('#why', (e) => e.getBoundingClientRect().bottom < innerHeight / 3), true, 'it is in the first view');
  await until('how many', async () => (await text(page, part('why-place'))) === '4');

  const refunds = state.messages.filter((m) => m.role === 'tool' && m.toolName === 'refund');
  const [declined, again, locked] = refunds;
  await press(page, part('why-first'));
  await agrees(page, demo, incident, declined.sequence);
  await until('what it is', async () => (await text(page, part('why'))) === declined.result.reason);
  assert.equal(await text(page, part('why-place')), '1 of 4');
  assert.ok(await page.$eval(`${part('call')}[data-call="${declined.toolCallId}"]`, (e) => { const box = e.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight; }), 'the call is in sight');
  await shoot(page, 'first-failure');
  await page.evaluate(() => document.activeElement.blur());
  for (const m of [again, locked]) {
    await page.keyboard.press('e');
    await settles(page, incident, m.sequence);
  }
  await page.keyboard.press('e');
  await until('the run', async () => (await text(page, part('why'))) === state.error.message && (await at(page)) > locked.sequence);
  await page.keyboard.press('e'); // after the last one comes the first
  await settles(page, incident, declined.sequence);
  await page.keyboard.press('E');
  await until('the last one', async () => (await at(page)) > locked.sequence);
  await close(page);
}

/** A call that was refused does not look like one that succeeded. */
export async function refusedIsNotDone({ browser, demo }) {
  const { headSequence: head } = await demo.summary(incident);
  const { state } = await demo.state(incident);
  const page = await open(browser, link(demo.url, incident));
  await settles(page, incident, head);
  for (const m of state.messages.filter((m) => m.toolName === 'refund')) {
    const chip = await page.$eval(`${part('call')}[data-call="${m.toolCallId}"] .chip`, (e) => `${e.textContent} ${e.className}`);
    assert.equal(chip, m.error ? 'failed chip bad' : 'declined chip bad');
  }
  await until('its blocks are red', async () => (await values(page, `${part('span', '.s-failed[data-kind="tool"]')}`, 'data-from')).length === 3);
  await close(page);
}

/** A session without failures has no such bar; one denied call makes one. */
export async function onlyWhereThereAre({ browser, demo }) {
  await demo.start('f-deny', 'janitor', 'Go.');
  const { pendingToolCalls: [pending] } = await demo.waits('f-deny');
  const page = await open(browser, link(demo.url, 'f-deny'));
  await settles(page, 'f-deny');
  assert.equal(await visible(page, '#why'), false);
  await demo.post('/submit-tool-result', { sessionId: 'f-deny', kind: 'approval-response', toolCallId: pending.toolCallId, approved: false, reason: 'They are needed.' });
  await demo.post('/resume', { sessionId: 'f-deny' });
  const { headSequence: head } = await demo.comes('f-deny', 'completed');
  await settles(page, 'f-deny', head);
  await appears(page, part('why-first'));
  await press(page, part('why-first'));
  await until('the reason', async () => (await text(page, part('why'))) === 'They are needed.');
  await page.evaluate(() => { location.hash = '#/'; });
  await until('it goes with its session', async () => !(await visible(page, '#why')));
  await close(page);
}

/** A failed call says what the server that it needed has done: on its card, and where the page leads to it. */
export async function namesTheCause({ browser, demo }) {
  const session = 'f-cause', run = 'run-01M81H4P2KXMMR9JJF3GW784GG', step = { runId: run, stepId: 'turn-1-step-1', step: 1 };
  const cause = 'POST https://orders.example/refunds: 503 Service Unavailable (see tools.refund.http.url)';
  const call = { toolCallId: 'call_1', toolName: 'refund' };
  const records = [
    ['session_created', { agentType: 'clerk', state: {} }], ['user_message', { content: 'Refund it.' }], ['run_requested', { runId: run, mode: 'start' }], ['run_claimed', { runId: run, node: 'n', attempt: 1 }],
    ['workspace_failed', { name: 'files', error: 'no space' }], ['step_start', { stepId: step.stepId, step: 1 }, 'chunk'],
    ['model_failed', { ...step, attempt: 1, code: 'model_unavailable', error: 'overloaded', retryable: true }], ['model_turn', { ...step, model: 'm', stopReason: 'tool_use', parts: [{ toolCall: { ...call, arguments: {} } }] }],
    ['tool_start', { ...call, arguments: {}, step: 1 }, 'chunk'], ['tool_result', { ...step, ...call, result: null, error: 'the tool could not be asked', errorCode: 'tool_execution_failed', cause }],
  ];
  await demo.bring(session, records.map(([type, data, kind = 'fact'], i) => ({
    sequence: i + 1, time: new Date(1795347863000 + i).toISOString(), kind, type, agent: session, run, writer: 'w', ordinal: i + 1, ...(type.startsWith('tool_') ? { call: call.toolCallId } : {}),
    data: { type, ...data, ...(kind === 'fact' ? { sessionId: session } : { agentId: session, agentType: 'clerk' }), timestamp: 1795347863000 + i },
  })));
  const page = await open(browser, link(demo.url, session));
  await settles(page, session);
  await until('the card has it', async () => (await text(page, part('cause')))?.includes(cause));
  const says = (words) => until(words, async () => (await text(page, '#why .why-text')).replace(/\s+/g, ' ').trim() === words);
  await press(page, part('why-first'));
  await says('workspace failed: files: no space');
  await press(page, part('why-next'));
  await says('model call failed: overloaded model_unavailable'); // it is tried again: the run has not failed
  await press(page, part('why-next'));
  await until('the page says it', async () => (await text(page, part('why-cause'))) === cause);
  await shoot(page, 'cause');
  await close(page);
}
