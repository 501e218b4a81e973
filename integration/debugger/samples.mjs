// Sessions and answers that several programs of this folder use.

/** large is a session of RECORDS records. */
export const large = 'large';
export const RECORDS = 100_000;

/** records are a long conversation: a step is two hundred records. */
export function records() {
  const run = 'run-01M81H4P2KXMMR9JJF3GW784GG';
  const all = [];
  let time = 1795347863000;
  const add = (kind, type, data, more) => {
    time += 40;
    const sequence = all.length + 1;
    const who = kind === 'fact' ? { sessionId: large } : { agentId: large, agentType: 'talker' };
    all.push({ sequence, time: new Date(time).toISOString(), kind, type, agent: large, run, writer: 'w', ordinal: sequence, ...more, data: { type, ...data, ...who, timestamp: time } });
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
    const checkpointId = `cpv1-${large}-s${step}-t${time}-000000`;
    add('chunk', 'step_end', { stepId, usage: { inputTokens: 100 + step, outputTokens: 190 }, finishReason: 'tool-calls', step });
    add('chunk', 'step_committed', { runId: run, stepId, checkpointId, step });
    add('chunk', 'checkpoint_created', { runId: run, checkpointId, stepCount: step, step });
  }
  while (all.length < RECORDS) add('chunk', 'custom', { eventName: 'tick', data: all.length, step: 0 });
  return all;
}

/** answering loads a page again, with answers of the routes that a test gives: a body, null for none ever, or an Error for a broken connection. */
export async function answering(page, routes) {
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    const [, answer] = Object.entries(routes).find(([path]) => new RegExp(path).test(pathname)) ?? [];
    if (answer === undefined || page.answersItself) request.continue();
    else if (answer instanceof Error) request.abort('connectionrefused');
    else if (answer !== null) request.respond({ contentType: 'application/json', body: JSON.stringify(answer) });
  });
  await page.reload({ waitUntil: 'domcontentloaded' });
}

export const none = { '/sessions$': { items: [], total: 0, offset: 0, limit: 100, hasMore: false, current: true } };

/** chunks of an agent that runs elsewhere. */
export const chunks = (session) => [
  { type: 'thinking', content: 'They ask for tea.', isComplete: false, step: 1 }, { type: 'thinking', content: 'They ask for tea.', isComplete: true, step: 1 }, { type: 'text_delta', delta: 'I look ', step: 1 }, { type: 'text_delta', delta: 'for tea.', step: 1 },
  { type: 'tool_start', toolCallId: 'c1', toolName: 'lookup', arguments: { what: 'tea' }, step: 1 },
  { type: 'tool_end', toolCallId: 'c1', toolName: 'lookup', result: { found: 'green' }, providerExecuted: true, step: 1 },
  { type: 'thinking', content: 'Green will do.', isComplete: true, step: 2 }, { type: 'text_delta', delta: 'There is green tea.', step: 2 },
].map((c) => ({ ...c, agentId: session, agentType: 'barista', timestamp: Date.now() }));
