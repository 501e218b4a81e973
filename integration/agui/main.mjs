// AG-UI's own client against a running daemon. TestAGUI runs this.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { buildResumeArray, HttpAgent } from '@ag-ui/client';
import { frames, Page, rejoining } from './client.mjs';
import { kill, restart, start } from './daemon.mjs';
import { listen, open } from './world.mjs';

const [config, only = ''] = process.argv.slice(2); // only: the tests with that in their name
const world = await listen();
const answers = '{type: object, properties: {answer: {type: string}}, required: [answer]}';
await writeFile(config, `
protocols: {agui: {enabled: true}}
modelRetryDelay: 10ms
agents:
  brain:
    systemPrompt: Do what you are told.
    model: {provider: openai, name: m-1, maxRetries: 3, apiKey: none, baseURL: "${world}/v1"}
    subAgents: [helper]
    tools:
      clock: {description: The time., inputSchema: {type: object}, http: {url: "${world}/clock"}}
      count: {description: Counts., inputSchema: {type: object}, http: {url: "${world}/count"}}
      pay: {description: Pays., inputSchema: {type: object}, http: {url: "${world}/clock"}, requireApproval: true}
  helper:
    systemPrompt: Help.
    description: Helps.
    outputSchema: ${answers}
    model: {provider: openai, name: m-1, maxRetries: 3, apiKey: none, baseURL: "${world}/v1"}
`);
const base = await start(config);
const url = `${base}/ag-ui/brain`;
const show = { name: 'show', description: 'Shows a place.', parameters: { type: 'object', properties: { city: { type: 'string' } } } };

// What the client finds wrong and repairs, it warns of.
const warnings = [];
console.warn = (...words) => warnings.push(words.join(' '));

/** newAgent returns a client of a new thread that says something. */
function newAgent(text, options = {}) {
  const agent = new HttpAgent({ url, threadId: randomUUID(), ...options });
  if (text) say(agent, text);
  return agent;
}

const say = (agent, text) => agent.messages.push({ id: randomUUID(), role: 'user', content: text });

/** run runs an agent and returns its events. */
async function run(agent, parameters = {}) {
  const events = [];
  await agent.runAgent(parameters, { onEvent: ({ event }) => { events.push(event); } });
  assert.deepEqual(warnings.splice(0), []);
  return events;
}

const types = (events) => events.map(({ type }) => type);
const textOf = (agent) => agent.messages.at(-1).content;
const find = (agent, role) => agent.messages.filter((message) => message.role === role);

/** said is a conversation without what only a client of the stream has. */
function said({ messages }) {
  return messages.filter(({ role, content }) => role !== 'activity' && !(role === 'reasoning' && content === '')).map((message) => {
    const { content, toolCalls, ...rest } = message;
    return {
      ...rest, ...(content ? { content } : {}),
      ...(toolCalls ? { toolCalls: toolCalls.map(({ id, function: f }) => ({ id, name: f.name, args: JSON.parse(f.arguments) })) } : {}),
    };
  });
}

/**
 * checkCuts repeats the last run of an agent in clients whose connection is cut after each of its
 * events, and in a page that joins the thread: all are where the agent is.
 */
async function checkCuts(agent, before, parameters) {
  const all = [];
  const make = (options) => {
    const again = new HttpAgent({ url, threadId: agent.threadId, ...options });
    again.messages = structuredClone(before.messages);
    again.state = structuredClone(before.state);
    return again;
  };
  await run(make({ fetch: rejoining({ seen: (frame) => all.push(frame) }) }), parameters);
  for (let cutAfter = 1; cutAfter < all.length; cutAfter++) {
    const got = [];
    const cut = make({ fetch: rejoining({ cutAfter, byParameter: cutAfter % 2 === 0, seen: (frame) => got.push(frame) }) });
    await run(cut, parameters);
    assert.deepEqual(got, all);
    assert.deepEqual(said(cut), said(agent));
    assert.deepEqual(cut.state, agent.state);
  }
  await checkPage(agent);
  return all.length;
}

/** checkPage joins a thread with a page that knows nothing. */
async function checkPage(agent) {
  const page = new Page({ url, threadId: agent.threadId });
  await page.connectAgent();
  assert.deepEqual(warnings.splice(0), []);
  assert.deepEqual(said(page), said(agent));
  assert.deepEqual(page.state, agent.state);
  assert.deepEqual(page.pendingInterrupts, agent.pendingInterrupts);
}

const state = (agent) => ({ messages: structuredClone(agent.messages), state: structuredClone(agent.state) });
let cuts = 0;

/** runAndCut runs an agent, and checks its stream cut after each event. */
async function runAndCut(agent, parameters = {}) {
  const before = state(agent);
  const named = { runId: randomUUID(), ...parameters };
  const events = await run(agent, named);
  cuts += await checkCuts(agent, before, named);
  return events;
}

const tests = [
  ['text and reasoning', async () => {
    const agent = newAgent('hello', { initialState: { k: 'v' } });
    const events = await runAndCut(agent);
    assert.equal(textOf(agent), 'Hello to you.');
    assert.equal(find(agent, 'reasoning')[0].content, 'They greet me.');
    assert.deepEqual(agent.state, { k: 'v' });
    assert.equal(events.at(-1).usage[0].totalTokens, 15);
  }],
  ['the whole history again, and the same request again', async () => {
    const agent = newAgent('hello');
    await run(agent);
    say(agent, 'context');
    const before = state(agent);
    const runId = randomUUID();
    await run(agent, { runId });
    assert.equal(textOf(agent), '4 messages: system user assistant user');
    const again = new HttpAgent({ url, threadId: agent.threadId });
    again.messages = before.messages;
    await run(again, { runId });
    assert.deepEqual(said(again), said(agent));
    const short = new HttpAgent({ url, threadId: agent.threadId }); // it sends only its new message
    say(short, 'context');
    await run(short);
    assert.equal(textOf(short), '6 messages: system user assistant user assistant user');
  }],
  ['server tools', async () => {
    const agent = newAgent('call clock');
    await runAndCut(agent);
    assert.equal(find(agent, 'tool')[0].content, 'noon');
    assert.match(textOf(agent), /noon/);
  }],
  ['front-end tools, over two runs', async () => {
    const agent = newAgent('call show');
    const pending = [];
    const ends = { onRunFinishedEvent: ({ outcome, pendingToolCallIds }) => { pending.push([outcome, pendingToolCallIds]); } };
    const { unsubscribe } = agent.subscribe(ends);
    const events = await runAndCut(agent, { tools: [show] });
    unsubscribe();
    assert(!types(events).includes('TOOL_CALL_RESULT'));
    assert.deepEqual(pending, [['success', ['call_1']]]);
    agent.messages.push({ id: randomUUID(), role: 'tool', toolCallId: 'call_1', content: '{"map":"shown"}' });
    await runAndCut(agent, { tools: [show] });
    assert.equal(find(agent, 'tool').length, 1);
    assert.match(textOf(agent), /shown/);
  }],
  ['state', async () => {
    const agent = newAgent('call count', { initialState: { n: 41 } });
    const events = await runAndCut(agent);
    assert(types(events).includes('STATE_DELTA'));
    assert.deepEqual(agent.state, { n: 42 });
    agent.state = { n: 1 }; // the front end changes it
    say(agent, 'call count');
    await runAndCut(agent);
    assert.deepEqual(agent.state, { n: 2 });
  }],
  ['an approval is an interrupt, and resuming answers it', async () => {
    for (const approved of [true, false]) {
      const agent = newAgent('call pay');
      await runAndCut(agent);
      const [interrupt] = agent.pendingInterrupts;
      assert.deepEqual([interrupt.reason, interrupt.toolCallId], ['tool_call', 'call_1']);
      await assert.rejects(agent.runAgent(), /pending interrupt/);
      const resume = buildResumeArray(agent.pendingInterrupts, { [interrupt.id]: { status: 'resolved', payload: { approved } } });
      const events = await runAndCut(agent, { resume });
      assert(!types(events).includes('TOOL_CALL_START'));
      assert.match(find(agent, 'tool')[0].content, approved ? /noon/ : /not approved/);
      assert.deepEqual(agent.pendingInterrupts, []);
    }
  }],
  ['a sub-agent is an activity', async () => {
    const agent = newAgent('call subagent__helper {"message":"it"}');
    await runAndCut(agent);
    const { agent: name, status, text, result } = find(agent, 'activity')[0].content;
    assert.deepEqual([name, status, text, result], ['helper', 'completed', 'I help.', { answer: 'help with it' }]);
    assert.match(find(agent, 'tool')[0].content, /help with it/);
  }],
  ['text that is taken back', async () => {
    const agent = newAgent('flaky once');
    const events = await runAndCut(agent);
    assert(types(events).includes('MESSAGES_SNAPSHOT'));
    assert.equal(textOf(agent) || agent.messages.at(-2).content, 'Hello to you.');
  }],
  ['errors', async () => {
    const agent = newAgent('fail');
    const events = await runAndCut(agent);
    assert.equal(events.at(-1).type, 'RUN_ERROR');
    assert.match(events.at(-1).message, /no such thing/);
    say(agent, 'hello');
    await run(agent);
    assert.equal(textOf(agent), 'Hello to you.');
    console.error = () => {};
    const nobody = new HttpAgent({ url: `${base}/ag-ui/nobody` });
    say(nobody, 'hello');
    const error = await nobody.runAgent().then(() => assert.fail('it was not refused'), (e) => e);
    assert.equal(error.status, 404);
    assert.equal(error.payload.type, 'RUN_ERROR');
  }],
  ['a page joins a run that continues', async () => {
    const agent = newAgent('hold page');
    let began;
    const begun = new Promise((resolve) => (began = resolve));
    const running = agent.runAgent({}, { onTextMessageContentEvent: () => { began(); } });
    await begun;
    const page = new Page({ url, threadId: agent.threadId });
    let joined;
    const there = new Promise((resolve) => (joined = resolve));
    const connected = page.connectAgent({}, { onMessagesSnapshotEvent: () => { joined(); } });
    await there;
    open('page');
    await Promise.all([running, connected]);
    assert.equal(textOf(page), 'This is held no more.');
    assert.deepEqual(said(page), said(agent));
    assert.deepEqual(warnings.splice(0), []);
  }],
  ['kill -9 in the middle of a run', async () => {
    const seen = [];
    const agent = newAgent('hold crash', { fetch: rejoining({ seen: (frame) => seen.push(frame) }) });
    let held;
    const enough = new Promise((resolve) => (held = resolve));
    let text = '';
    const before = state(agent);
    const runId = randomUUID();
    const running = agent.runAgent({ runId }, { onTextMessageContentEvent: ({ event }) => { if ((text += event.delta).endsWith('held ')) held(); } });
    await enough;
    await kill();
    open('crash');
    await restart();
    await running;
    assert.equal(find(agent, 'assistant').length, 1);
    assert.equal(find(agent, 'assistant')[0].content, 'This is held no more.');
    assert(seen.some((frame) => frame.includes('MESSAGES_SNAPSHOT')));
    assert.deepEqual(warnings.splice(0), []);
    cuts += await checkCuts(agent, before, { runId });
    const later = [];
    const answer = await fetch(`${url}/${agent.threadId}`, { headers: { 'Last-Event-ID': /^id: (.*)$/m.exec(seen[0])[1] } });
    for await (const frame of frames(answer.body)) later.push(frame);
    assert.deepEqual(later, seen.slice(1), 'what was read through the crash is what is read later');
  }],
  ['the program of the documentation', async () => {
    const page = await readFile(new URL('../../docs/guides/ag-ui.md', import.meta.url), 'utf8');
    const program = /```js\n([^]*?)```/.exec(page)[1];
    const node = spawn('node', ['--input-type=module', '--eval', program], {
      env: { ...process.env, AGENT_URL: url }, stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    node.stdout.on('data', (piece) => (out += piece));
    assert.deepEqual(await once(node, 'close'), [0, null]);
    assert.equal(out, 'Hello to you.\n');
  }],
];

let failed = 0;
for (const [name, test] of tests.filter(([name]) => name.includes(only))) {
  try {
    await test();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n${error.stack}`);
  }
}
console.log(`${tests.length - failed} of ${tests.length} passed; streams were cut after ${cuts} events`);
process.exit(failed === 0 ? 0 : 1);
