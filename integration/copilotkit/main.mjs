// CopilotKit's runtime, unchanged, in front of a daemon, and CopilotKit's client in front of that.
// TestCopilotKit runs this.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import { HttpAgent } from '@ag-ui/client';
import { CopilotKitCore, ProxiedCopilotRuntimeAgent } from '@copilotkit/core';
import { CopilotRuntime } from '@copilotkit/runtime/v2';
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node';
import { z } from 'zod';
import { kill, restart, start } from '../agui/daemon.mjs';
import { listen } from '../agui/world.mjs';

const [config] = process.argv.slice(2);
const world = await listen();
await writeFile(config, `
protocols: {agui: {enabled: true}}
agents:
  brain:
    systemPrompt: Do what you are told.
    model: {provider: openai, name: m-1, apiKey: none, baseURL: "${world}/v1"}
    tools:
      clock: {description: The time., inputSchema: {type: object}, http: {url: "${world}/clock"}}
      count: {description: Counts., inputSchema: {type: object}, http: {url: "${world}/count"}}
      pay: {description: Pays., inputSchema: {type: object}, http: {url: "${world}/clock"}, requireApproval: true}
`);
const base = await start(config);

/** runtime serves CopilotKit's runtime on a free loopback port and returns its URL. */
async function runtime() {
  const agents = { brain: new HttpAgent({ url: `${base}/ag-ui/brain` }) };
  const server = http.createServer(createCopilotNodeListener({ runtime: new CopilotRuntime({ agents }), basePath: '/api/copilotkit' }));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${server.address().port}/api/copilotkit`;
}

const runtimeUrl = await runtime();

/** page returns a client of a thread: CopilotKit's core, and its agent. */
function page(threadId = randomUUID(), tools = [], url = runtimeUrl) {
  const agent = new ProxiedCopilotRuntimeAgent({ runtimeUrl: url, agentId: 'brain', threadId });
  const core = new CopilotKitCore({ agents__unsafe_dev_only: { brain: agent }, tools });
  const ask = async (text, parameters = {}) => {
    if (text) agent.addMessage({ id: randomUUID(), role: 'user', content: text });
    await core.runAgent({ agent, ...parameters });
  };
  return { agent, core, ask };
}

const textOf = (agent) => agent.messages.findLast(({ role }) => role === 'assistant').content;

const tests = [
  ['text and reasoning', async () => {
    const { agent, ask } = page();
    await ask('hello');
    assert.deepEqual(agent.messages.map(({ role }) => role), ['user', 'reasoning', 'assistant']);
    assert.equal(textOf(agent), 'Hello to you.');
    await ask('context');
    assert.equal(textOf(agent), '4 messages: system user assistant user');
  }],
  ['server tools and state', async () => {
    const { agent, ask } = page();
    await ask('call count');
    assert.deepEqual(agent.state, { n: 1 });
    await ask('call count');
    assert.deepEqual(agent.state, { n: 2 });
    assert.equal(agent.messages.filter(({ role }) => role === 'tool').length, 2);
  }],
  ['a front-end tool runs in the page, and its result goes back', async () => {
    const shown = [];
    const { agent, ask } = page(randomUUID(), [{
      name: 'show', description: 'Shows a place.', parameters: z.object({ city: z.string() }),
      handler: async (args) => { shown.push(args); return 'a map'; },
    }]);
    await ask('call show');
    assert.deepEqual(shown, [{ city: 'Lisbon' }]);
    assert.match(textOf(agent), /a map/);
  }],
  ['an approval', async () => {
    const { agent, ask } = page();
    await ask('call pay');
    const [{ id }] = agent.pendingInterrupts;
    await agent.runAgent({ resume: [{ interruptId: id, status: 'resolved', payload: { approved: true } }] });
    assert.match(textOf(agent), /noon/);
  }],
  ['a thread outlives the runtime, the page and the daemon', async () => {
    const first = page();
    await first.ask('hello');
    await kill();
    await restart();
    const second = page(first.agent.threadId, [], await runtime());
    await second.ask('context');
    assert.equal(textOf(second.agent), '4 messages: system user assistant user');
  }],
];

let failed = 0;
for (const [name, test] of tests) {
  try {
    await test();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n${error.stack}`);
  }
}
console.log(`${tests.length - failed} of ${tests.length} passed`);
process.exit(failed === 0 ? 0 : 1);
