// What a session holds was written by models, tools and strangers. The page
// shows it, and obeys none of it.
import assert from 'node:assert/strict';
import { appears, close, goes, link, open, part, press, settles, shoot, text, until, write } from './browser.mjs';
import { evil, harmless } from './shown.mjs';

/** records are a session that has something bad everywhere. */
function records(session) {
  const T = 1795347863000;
  const run = 'run-01M81H4P2KXMMR9JJF3GW784GG';
  const words = {};
  const bad = (where) => (words[where] = evil(where));
  const agentType = bad('agent type');
  const all = [];
  const add = (kind, type, data, more = {}) => {
    const sequence = all.length + 1;
    const who = kind === 'fact' ? { sessionId: session } : { agentId: session, agentType, step: 1 };
    all.push({
      sequence, time: new Date(T + sequence * 100).toISOString(), kind, type, agent: session, run, writer: 'w', ordinal: sequence, ...more,
      data: { type, ...data, ...who, timestamp: T + sequence * 100 },
    });
  };
  const tool = bad('tool name');
  const args = { [bad('argument key')]: bad('argument'), url: bad('url') };
  add('fact', 'session_created', { agentType, state: { [bad('initial key')]: { [bad('initial inner key')]: [bad('initial value')] } }, userId: bad('user'), tags: [bad('tag')] });
  add('fact', 'user_message', { content: bad('user message') });
  add('fact', 'run_requested', { runId: run, mode: 'start' });
  add('fact', 'run_claimed', { runId: run, node: bad('node'), attempt: 1 });
  add('chunk', 'step_start', { stepId: 'turn-1-step-1' });
  add('chunk', 'thinking', { content: bad('streamed reasoning'), isComplete: false });
  add('chunk', 'text_delta', { delta: bad('streamed text') });
  add('fact', 'model_turn', {
    runId: run, stepId: 'turn-1-step-1', step: 1, model: bad('model'), stopReason: 'tool_use', usage: { prompt: 1, completion: 1, total: 2 },
    parts: [{ reasoning: bad('reasoning') }, { text: bad('text') }, ...['c1', 'c2', 'c3', 'c4'].map((toolCallId) => ({ toolCall: { toolCallId, toolName: tool, arguments: args } }))],
  });
  add('chunk', 'tool_start', { toolCallId: 'c1', toolName: tool, arguments: args }, { call: 'c1' });
  add('chunk', 'custom', { eventName: bad('event name'), data: { [bad('event key')]: bad('event value') } }, { call: 'c1' });
  add('chunk', 'state_patch', { patches: [{ op: 'add', path: '/patched', value: { [bad('state key')]: bad('state value') } }] }, { call: 'c1' });
  add('fact', 'tool_result', { runId: run, stepId: 'turn-1-step-1', toolCallId: 'c1', toolName: tool, result: { [bad('result key')]: bad('result') } }, { call: 'c1' });
  add('chunk', 'tool_end', { toolCallId: 'c1', toolName: tool, result: { [words['result key']]: words.result }, providerExecuted: true }, { call: 'c1' });
  add('chunk', 'tool_start', { toolCallId: 'c2', toolName: tool, arguments: args }, { call: 'c2' });
  add('fact', 'tool_result', { runId: run, stepId: 'turn-1-step-1', toolCallId: 'c2', toolName: tool, error: bad('tool error'), errorCode: 'tool_execution_failed' }, { call: 'c2' });
  add('chunk', 'tool_end', { toolCallId: 'c2', toolName: tool, error: words['tool error'], errorCode: 'tool_execution_failed', providerExecuted: true }, { call: 'c2' });
  for (const c of ['c3', 'c4']) {
    add('fact', 'call_suspended', { runId: run, stepId: 'turn-1-step-1', toolCallId: c, toolName: tool, kind: c === 'c3' ? 'approval' : 'client', ...(c === 'c3' ? { approvalId: `${run}::c3` } : {}) }, { call: c });
    if (c === 'c3') add('chunk', 'tool_approval_request', { toolCallId: c, toolName: tool, approvalId: `${run}::c3`, input: args }, { call: c });
  }
  const waits = all.length;
  add('fact', 'result_submitted', { toolCallId: 'c3', kind: 'approval-response', approved: false, reason: bad('reason') });
  add('chunk', 'error', { error: bad('error'), code: 'agent_failed', errorDetail: { message: words.error, code: 'agent_failed', category: 'agent', retryable: false }, recoverable: false });
  add('fact', 'run_ended', { runId: run, status: 'failed', error: bad('run error'), errorCode: 'agent_failed' });
  add('fact', bad('unknown fact').slice(0, 60), {});
  all.at(-1).data.type = all.at(-1).type;
  add('fact', 'stream_failed', { error: bad('stream error') });
  return { all, words, waits };
}

/** Everything is shown as it is written, and nothing of it runs. */
export async function runsNothing({ browser, demo }) {
  const session = `<img src=x onerror="window.taken='id'">/../"'&?#%41@9..3`;
  const { all, words, waits } = records(session);
  const imported = await demo.bring(session, all);
  const first = imported.firstSequence;
  const last = imported.lastSequence;
  const page = await open(browser, `${demo.url}/`);
  // What is folded is built when it is opened, with more that is folded.
  const unfold = () => until('all is unfolded', () => page.evaluate(() => {
    const folded = document.querySelectorAll('details:not([open])');
    for (const d of folded) d.open = true;
    return folded.length === 0;
  }));
  const seen = new Set();
  const look = async () => {
    const shown = await page.evaluate(() => [document.body.textContent, ...[...document.querySelectorAll('input,textarea')].map((e) => e.value), ...[...document.querySelectorAll('[title],[aria-label]')].flatMap((e) => [e.title, e.ariaLabel])].join('\n'));
    for (const [where, w] of Object.entries(words)) if (shown.includes(w) || shown.includes(JSON.stringify(w).slice(1, -1))) seen.add(where); // in a JSON value it is quoted
    await harmless(page, page.url());
  };

  // The list, its filters and its search.
  await write(page, part('search'), 'window.taken');
  await until('it is found', () => page.evaluate((s, id) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(id)), part('session-row'), 'window.taken'));
  await look();
  await write(page, part('search'), '<img src=x onerror');
  await look();
  await write(page, part('search'), ' ');

  // Each record, and what the state was there.
  for (let n = first; n <= last; n++) {
    await page.evaluate((hash) => { location.hash = hash; }, `#/${encodeURIComponent(session)}@${n}`);
    await settles(page, session, n);
    await unfold();
    await look();
  }
  await until('the records around it are shown', () => page.$(`#records[data-at="${last}"]`));
  await look();
  await shoot(page, 'hostile');

  // What one can do with it: each asks first, and its question tells names.
  await page.evaluate((hash) => { location.hash = hash; }, `#/${encodeURIComponent(session)}`);
  await settles(page, session, (await demo.summary(session)).headSequence); // after what was imported, who did it
  for (const [action, n] of [['fork', last], ['rollback', last - 1]]) {
    await page.evaluate((hash) => { location.hash = hash; }, `#/${encodeURIComponent(session)}@${n}`);
    await settles(page, session, n);
    await press(page, part(action));
    await appears(page, part('cancel'));
    await look();
    await press(page, part('cancel'));
    await goes(page, part('cancel'));
  }
  // Two moments, and the session beside a fork of it.
  await page.evaluate((hash) => { location.hash = hash; }, `#/${encodeURIComponent(session)}@${last}..${first + 1}`);
  await until('the comparison', () => page.$('#compare[data-ready]'));
  await unfold();
  await look();
  const { sessionId: fork } = await demo.post(`/sessions/${encodeURIComponent(session).replaceAll('.', '%2E')}/fork`, { sequence: first + waits - 1 });
  await page.evaluate((hash) => { location.hash = hash; }, `#/${encodeURIComponent(session)}@${last}vs/${encodeURIComponent(fork)}@${(await demo.summary(fork)).headSequence}`);
  await until('the other comparison', async () => (await page.$('#compare[data-ready]')) && (await text(page, '#compare')).includes(fork));
  await unfold();
  await look();

  // The fork's calls wait: their forms show what they are about.
  await page.goto(link(demo.url, fork));
  await appears(page, part('pending-call'));
  await unfold();
  await look();
  const hidden = Object.keys(words).filter((w) => !seen.has(w));
  assert.deepEqual(hidden, [], 'everything is shown, as it is written');
  await close(page);
}

/** Text that could hide or reorder other text is shown by name. */
export async function hidesNothing({ browser, demo }) {
  const session = 'h-bidi';
  const words = 'pay \u202E0001\u202C euros\u200B\u0007 now';
  await demo.post(`/sessions/${session}/chunks`, [{ type: 'text_delta', delta: words, agentId: session, agentType: 'bot', timestamp: Date.now(), step: 0 }]);
  const page = await open(browser, link(demo.url, session));
  await settles(page, session);
  await until('its record', async () => (await text(page, '#records'))?.includes('euros'));
  const shown = await text(page, '#stage');
  for (const c of ['\u202E', '\u202C', '\u200B', '\u0007']) assert.ok(!shown.includes(c), `U+${c.codePointAt(0).toString(16)} is shown, not obeyed`);
  await close(page);
}
