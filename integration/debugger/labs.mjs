// Labs as helixd lab run writes them, made up.
import { createHash } from 'node:crypto';
import { appears, part, values } from './browser.mjs';

export const hashOf = (text) => createHash('sha256').update(String(text)).digest('hex');

/** decision is one of a lane. */
export const decision = (kind, sequence, content, more = {}) => ({ sequence, kind, hash: hashOf(JSON.stringify(content) ?? ''), ...(content === undefined ? {} : { content }), ...more });

const parts = (prompt, messages) => ({ prompt: hashOf(prompt), model: hashOf('m'), tools: hashOf('t'), memory: hashOf(''), output: hashOf(''), messages: hashOf(messages) });

/** request asks a model. */
export const request = (sequence, prompt, messages, more = {}) => decision('model-request', sequence, parts(prompt, messages), { parts: parts(prompt, messages), ...more });

/** lane is what one set of agents did. */
export const lane = (decisions, more = {}) => ({ decisions, outcome: 'completed', output: 'Done.', prefix: hashOf(decisions.length), tokens: { input: 100, output: 20, cached: 0, reasoning: 0 }, cost: 0.002, steps: 2, latency: 1_500_000_000, ...more });

const taken = (l) => ({ outcome: l.outcome, cost: l.cost, tokens: l.tokens.input + l.tokens.output, steps: l.steps, latencyMs: l.latency / 1e6 });

/** judged is a session with its lanes and the lab's result. */
export function judged(session, verdict, lanes, { difference, stored, checks, agent = 'support' } = {}) {
  const [observed, baseline, candidate] = [lanes.observed, lanes.baseline ?? [lanes.observed], lanes.candidate];
  return {
    lanes: { session, agent, observed, baseline, candidate },
    result: { session, agent, verdict, difference: difference && { session, agent, observed: '', baseline: '', candidate: '', ...difference }, prefix: candidate[0].prefix, checks, observed: taken(observed), baseline: taken(baseline[0]), candidate: taken(candidate[0]), passed: [true, verdict !== 'regression'] },
    stored,
  };
}

const event = (id, eventName, data, timestamp) => ({ type: 'custom', eventName, data: { transient: true, ...data }, agentId: id, agentType: 'lab', timestamp, step: 0 });

/** begun and chunksOf are what a lab appends: {call, chunk}. */
export const begun = (id, { hash, sessions, baseline = 'driven', name = 'good.cohort' }, at = Date.now()) => ({ call: 'results', chunk: event(id, 'lab-begun', { name, hash, sessions, baseline, state: hashOf(id) }, at) });

export function chunksOf(id, { lanes, result, stored }, pieces = 1, at = Date.now()) {
  const text = JSON.stringify(lanes);
  const size = Math.ceil(text.length / pieces);
  return [
    ...Array.from({ length: pieces }, (_, i) => ({ call: result.session, chunk: event(id, 'lab-lanes', { session: result.session, part: i + 1, parts: pieces, text: text.slice(i * size, (i + 1) * size) }, at) })),
    { call: 'results', chunk: event(id, 'lab-result', { result, stored }, at) },
  ];
}

const interval = (low, high) => ({ low, high });

/** report is the output of a lab that has ended. */
export const report = (hash, sessions, more = {}) => ({
  cohort: 'good.cohort', hash, sessions, judged: sessions, regressions: [], improvements: [], flaky: [], changed: [], unjudged: [], cost: 0.42, tokens: 12345, seconds: 7.25,
  compared: {
    passed: { pairs: sessions, baseline: 0.94, candidate: 0.88, change: -0.06, interval: interval(-0.11, -0.012), p: 0.03, needed: 380 },
    cost: { pairs: sessions, baseline: 0.0021, candidate: 0.0026, change: 0.0005, interval: interval(0.0004, 0.0006), needed: 12 },
    tokens: { pairs: sessions, baseline: 1200.5, candidate: 1300.25, change: 99.75, interval: interval(80, 119.5), needed: 20 },
    steps: { pairs: sessions, baseline: 3.2, candidate: 3.2, change: 0, interval: interval(0, 0), needed: 0 },
    latencyMs: { pairs: sessions, baseline: 1500, candidate: 1620, change: 120, interval: interval(-30, 270), needed: 95 },
    arguments: 4, callsAdded: 1, callsMissing: 2, approvalsAdded: 0, approvalsAvoided: 1,
  },
  judge: { model: 'claude-sonnet-4-5', prompt: 'A good session answers the customer\'s question, and promises nothing that no tool has said.', agreement: { rated: 40, share: 0.925, kappa: 0.81, interval: interval(0.62, 1) } },
  results: null, ...more,
});

/** recordsOf are records to import: of a lab with these sessions, which has ended if there is a report. */
export function recordsOf(id, head, sessions, end) {
  const at = 1795347863000;
  const all = [begun(id, head, at), ...sessions.flatMap((s) => chunksOf(id, s, 1, at))]
    .map(({ call, chunk }, i) => ({ sequence: i + 1, time: new Date(at + i).toISOString(), kind: 'chunk', type: 'custom', agent: id, call, writer: 'w', ordinal: i + 1, data: chunk }));
  if (end) all.push({ sequence: all.length + 1, time: new Date(at + all.length).toISOString(), kind: 'fact', type: 'stream_end', agent: id, writer: 'w', ordinal: all.length + 1, data: { type: 'stream_end', streamId: id, timestamp: at, finalOutput: end } });
  return all;
}

/** conversation is a recorded session, whose records had these sequences where it was recorded. */
function conversation(session, answer) {
  const run = 'run-01M81H4P2KXMMR9JJF3GW784GG';
  const all = [];
  const add = (sequence, type, data, kind = 'fact') => all.push({
    sequence, time: new Date(1795347863000 + sequence).toISOString(), kind, type, agent: session, run, writer: 'w', ordinal: sequence,
    data: { type, ...data, ...(kind === 'fact' ? { sessionId: session } : { agentId: session, agentType: 'support' }), timestamp: 1795347863000 + sequence },
  });
  add(1, 'session_created', { agentType: 'support', state: {} });
  add(2, 'user_message', { content: 'Where is my order?' });
  add(3, 'run_requested', { runId: run, mode: 'start' });
  add(4, 'run_claimed', { runId: run, node: 'n', attempt: 1 });
  add(8, 'step_start', { stepId: 'turn-1-step-1', step: 1 }, 'chunk');
  add(9, 'model_turn', { runId: run, stepId: 'turn-1-step-1', step: 1, model: 'm', stopReason: 'tool_use', usage: { prompt: 10, completion: 5, total: 15 }, parts: [{ toolCall: { toolCallId: 'c1', toolName: 'track', arguments: { order: 'A1' } } }] });
  add(14, 'tool_result', { runId: run, stepId: 'turn-1-step-1', toolCallId: 'c1', toolName: 'track', result: { place: 'Oslo' } });
  add(16, 'step_end', { stepId: 'turn-1-step-1', step: 1, usage: { inputTokens: 10, outputTokens: 5 }, finishReason: 'tool-calls' }, 'chunk');
  add(17, 'step_committed', { runId: run, stepId: 'turn-1-step-1', checkpointId: `cpv1-${session}-s1-t1795347863000-000000`, step: 1 }, 'chunk');
  add(19, 'step_start', { stepId: 'turn-1-step-2', step: 2 }, 'chunk');
  add(20, 'model_turn', { runId: run, stepId: 'turn-1-step-2', step: 2, model: 'm', stopReason: 'end_turn', usage: { prompt: 20, completion: 5, total: 25 }, parts: [{ text: answer }] });
  add(22, 'run_ended', { runId: run, status: 'completed', output: answer });
  return all;
}

/** decisionsOf are a lane's of that session. seq: the observed lane; otherwise a driven one. */
export function decisionsOf(answer, { prompt = 'old', order = 'A1', driven = true } = {}) {
  const at = (n) => (driven ? { at: n } : {});
  const same = [
    request(9, prompt, 1, at(9)), decision('model-answer', 9, [{ call: 'track', arguments: { order } }], at(9)), decision('tool-call', 9, { order }, { name: 'track', ...at(9) }),
    decision('tool-result', 14, { place: 'Oslo' }, { name: 'track', ...at(14) }), request(20, prompt, 2, at(20)), decision('model-answer', 20, [{ text: answer }], at(20)), decision('output', 22, answer, at(22)),
  ];
  return same;
}

/** said are the answers of two lanes. */
export const said = ['Your order A1 is in Oslo and arrives tomorrow.', 'Your order A1 is in Oslo and may arrive next week.'];

/** sessionsOfSeven has a session of each verdict and more regressions. */
export function sessionsOfSeven() {
  const lanes = (answer = said[1], more = {}) => ({ observed: lane(decisionsOf(said[0], { driven: false })), baseline: [lane(decisionsOf(said[0]))], candidate: [lane(decisionsOf(answer, { prompt: 'new' }), { tokens: { input: 150, output: 30 }, cost: 0.003, steps: 3, ...more })] });
  const why = 'prompt changed in the request at sequence 9; the answer has other words';
  const difference = { sequence: 20, kind: 'model-answer', why };
  const judgements = { judgement: { pass: false, reason: 'It promises less than the tool has said.' } };
  return [
    judged('v-same', 'same', lanes(said[0])),
    judged('v-changed', 'changed', lanes(), { difference }),
    judged('v-better', 'improvement', lanes(), { difference: { ...difference, kind: 'assertion' } }),
    judged('v-flaky', 'flaky', { ...lanes(), baseline: [lane(decisionsOf(said[0])), lane(decisionsOf('Who knows.'))] }, { difference }),
    judged('v-unjudged', 'unjudged', lanes(undefined, { unjudged: 'the model was asked something else', outcome: '' }), { difference: { sequence: 22, kind: 'outcome', why: 'the model was asked something else' } }),
    judged('v-worse-b', 'regression', lanes(), { difference: { ...difference, agent: 'v-worse-b-sub-call_1' }, agent: 'desk' }),
    judged('v-worse-a', 'regression', lanes(undefined, { outcome: 'failed', error: 'agent_failed', ...judgements }), { difference, checks: [{ name: 'says where', pass: false, message: 'the output does not contain "tomorrow"' }, { name: 'is short', pass: true }], stored: { baseline: ['lab-0a1b2c3d4e5f-1.1-baseline-1'], candidate: ['lab-0a1b2c3d4e5f-1.1-candidate-1'] } }),
  ];
}

/** seven is a lab with these sessions. */
export const seven = { id: 'lab-0a1b2c3d4e5f-1', hash: hashOf('several') };

/** bringSeven imports the lab seven, and the sessions of one of its rows. */
export async function bringSeven(demo) {
  const found = await demo.ask('GET', `/sessions/${seven.id}`);
  if (found.status === 200) return;
  const sessions = sessionsOfSeven();
  await demo.bring(seven.id, recordsOf(seven.id, { hash: seven.hash, sessions: sessions.length }, sessions, report(seven.hash, sessions.length)));
  await demo.bring('v-worse-a', conversation('v-worse-a', said[0]));
  await demo.bring('lab-0a1b2c3d4e5f-1.1-baseline-1', conversation('lab-0a1b2c3d4e5f-1.1-baseline-1', said[0]));
  await demo.bring('lab-0a1b2c3d4e5f-1.1-candidate-1', conversation('lab-0a1b2c3d4e5f-1.1-candidate-1', said[1]));
}

// Parts of the page.
export const row = (session) => part('lab-row', `[data-session="${session}"]`);
export const rows = (page) => values(page, part('lab-row'), 'data-session');
export const place = (page) => page.evaluate(() => location.hash);
export const opened = (page) => appears(page, '[data-test="lab-lanes"][data-ready]');
export const pressed = async (page, session) => (await page.$eval(`${row(session)} ${part('lab-label')}`, (e) => e.dataset.label));
