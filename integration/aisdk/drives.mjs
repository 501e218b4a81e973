// What pages do with a Chat, one function each.
import assert from 'node:assert/strict';
import { Page, reload } from './chat.mjs';
import { kill, restart } from './daemon.mjs';
import { hold, until } from './gates.mjs';
import { history } from './normal.mjs';
import { newSession } from './take.mjs';

const textOf = (message) => message.parts.map((part) => part.text ?? '').join('');
const located = { locate: { state: 'output-available', output: { lat: 54.3, lon: 10.1 } } };

/** rig returns a page of a new session, and its gate at point. */
function rig({ version, daemon }, name, options, point = 'model') {
  const session = newSession(name, version);
  return { page: new Page(version, daemon, session, options), session, gate: () => hold(`${session}:${point}`) };
}

async function turns(x) {
  const { page } = rig(x, 'turns', { agent: 'plain' });
  for (const text of ['One.', 'Two.', 'Three.']) await page.say(text);
  const messages = await page.agrees();
  assert.equal(messages.length, 6);
  assert.equal(page.posts, 3);
}

async function serverTools(x) {
  const { page } = rig(x, 'tools', { agent: 'parallel' });
  await page.say('Look.');
  await page.agrees();
  assert.equal(page.posts, 1, 'a Chat that has its answer asks for no other one');
  assert.deepEqual(page.asked, [], 'the browser runs no tool of the server');
  assert.ok(page.data.some((part) => part.type === 'data-noise'), 'transient parts reach onData');
}

async function clientTool(x) {
  const { page } = rig(x, 'client tool', { agent: 'client', tools: located });
  await page.say('Where am I?');
  await page.shows('a short walk');
  await page.agrees();
  assert.equal(page.posts, 2);
  assert.deepEqual(page.asked, ['locate'], 'the tool ran once');
}

async function clientToolFails(x) {
  const { page } = rig(x, 'client tool fails', { agent: 'client', tools: { locate: { state: 'output-error', errorText: 'no signal' } } });
  await page.say('Where am I?');
  await page.shows('a short walk');
  const messages = await page.agrees();
  assert.equal(messages[1].parts.find((part) => part.toolCallId).errorText, 'no signal');
}

async function decide(x, approved, state) {
  const { page } = rig(x, approved ? 'approve' : 'deny', { agent: 'approval' });
  await page.say('Tidy up.');
  const [part] = await page.open();
  await page.answer(part, { approved, reason: 'because' });
  await page.shows('settled.');
  const messages = await page.agrees();
  assert.equal(page.posts, 2);
  assert.equal(page.chat.messages[1].parts.find((p) => p.toolCallId).state, state);
  assert.equal(messages[1].parts.find((p) => p.toolCallId).state, state);
}

/** abandon: a new message instead of an answer. The page learns of the call's end when it reloads. */
async function abandon({ version, daemon }) {
  const { page, session } = rig({ version, daemon }, 'abandon', { agent: 'once' });
  await page.say('Where am I?');
  await page.open();
  await page.say('Never mind.');
  await page.shows('a short walk');
  await page.ready();
  assert.deepEqual(page.errors.map(String), []);
  const loaded = await reload(version, daemon, session);
  await loaded.agrees();
  const seen = history(loaded.chat.messages);
  assert.equal(seen.length, 4);
  assert.equal(seen[1].parts.find((part) => part.toolCallId).state, 'output-error');
  assert.deepEqual(history(page.chat.messages).at(-1), seen.at(-1));
}

/** stop only closes the page's connection: the run continues, and a reconnect shows the rest. */
async function stopAndReconnect({ version, daemon }) {
  let { page, session, gate } = rig({ version, daemon }, 'stop', { agent: 'text' });
  const held = gate();
  const sent = page.say('Tell me.');
  await page.meets(held);
  await page.shows('⟨here⟩');
  await page.chat.stop();
  await sent;
  await page.ready();
  assert.equal((await daemon.status(session)).isExecuting, true);
  if (!version.replays) page = await reload(version, daemon, session, { agent: 'text' });
  const resumed = page.resume();
  await until(() => page.chat.status === 'streaming', 'the reconnect'); // else the run may end first, and the answer is 204
  held.open();
  await resumed;
  await page.agrees();
}

/** stopAndReload: the run ends while no page is there. */
async function stopAndReload({ version, daemon }) {
  const { page, session, gate } = rig({ version, daemon }, 'away', { agent: 'text' });
  const held = gate();
  const sent = page.say('Tell me.');
  await page.meets(held);
  await page.chat.stop();
  await sent;
  held.open();
  await until(async () => (await daemon.status(session)).status === 'completed', 'the run to end');
  const loaded = await reload(version, daemon, session, { agent: 'text' });
  await loaded.resume();
  await loaded.agrees();
  assert.equal(loaded.chat.messages.length, 2);
  await loaded.say('Again.');
  assert.equal((await loaded.agrees()).length, 4);
}

/** halt ends the run for good or for now, while the page is open; then the user continues. */
async function halt({ version, daemon }, what) {
  const { page, session, gate } = rig({ version, daemon }, what, { agent: 'text' });
  const held = gate();
  const sent = page.say('Tell me.');
  await page.meets(held);
  await page.shows('⟨here⟩');
  await daemon.command(session, what, { reason: 'enough' });
  await sent;
  held.open();
  await page.ready();
  assert.equal(page.chat.status, 'ready');
  assert.deepEqual(page.errors.map(String), []);
  assert.ok(page.chat.messages.at(-1).role === 'assistant' && textOf(page.chat.messages.at(-1)).endsWith('⟨here⟩ '), 'what came stays');
  assert.equal((await daemon.reconnect(session)).status, 204);
  await page.say('And now?');
  await page.ready();
  assert.deepEqual(page.errors.map(String), []);
  const loaded = await reload(version, daemon, session);
  await loaded.agrees();
  assert.deepEqual(history(page.chat.messages).at(-1), history(loaded.chat.messages).at(-1));
}

/** crash: the daemon dies under the page's eyes. */
async function crash({ version, daemon }) {
  let { page, session, gate } = rig({ version, daemon }, 'crash', { agent: 'crash' });
  const first = gate();
  page.say('Look.');
  await page.meets(first);
  await page.shows('⟨here⟩');
  await kill();
  await until(() => page.chat.status === 'error', 'the broken connection');
  first.open();

  const second = gate(); // before the start: the run continues by itself
  await restart();
  await daemon.resume(session);
  await second.reached();
  if (!version.replays) page = await reload(version, daemon, session, { agent: 'crash' });
  page.errors = [];
  const resumed = page.resume();
  await until(() => page.chat.status === 'streaming', 'the reconnect');
  second.open();
  await resumed;
  await page.agrees();
}

/** busy: a second page can't talk into a run; the first one does not notice. */
async function busy({ version, daemon }) {
  const { page, session, gate } = rig({ version, daemon }, 'busy', { agent: 'text' });
  const held = gate();
  const sent = page.say('Tell me.');
  await page.meets(held);
  const second = new Page(version, daemon, session, { agent: 'text' });
  await second.say('Me, too.');
  assert.match(second.chat.error.message, /ALREADY_RUNNING/);
  held.open();
  await sent;
  assert.equal((await page.agrees()).length, 2);
}

async function regenerate(x) {
  const { page } = rig(x, 'regenerate', { agent: 'counting' });
  await page.say('One?');
  await page.say('Two?');
  await page.agrees();
  await page.chat.regenerate();
  let messages = await page.agrees();
  assert.equal(textOf(messages.at(-1)), 'This is answer 3.');
  await page.chat.regenerate({ messageId: page.chat.messages[1].id });
  messages = await page.agrees();
  assert.deepEqual(messages.map(textOf).at(-1), 'This is answer 4.');
  assert.equal(messages.length, 2, 'what followed is gone');
  await page.say('Three?');
  assert.equal((await page.agrees()).length, 4);
}

/** failing: the page is notified, and regenerates. */
async function failing({ version, daemon }) {
  const { page, session } = rig({ version, daemon }, 'failing', { agent: 'error' });
  await page.say('Try.');
  assert.equal(page.chat.status, 'error');
  assert.match(page.chat.error.message, /The model has given up/);
  assert.equal(page.errors.length, 1);
  assert.equal((await daemon.reconnect(session)).status, 204);
  const loaded = await reload(version, daemon, session, { agent: 'error' });
  await loaded.agrees();
  assert.deepEqual(history(loaded.chat.messages), history(page.chat.messages));
  await loaded.chat.regenerate();
  assert.match(loaded.chat.error.message, /The model has given up/);
}

/** refused: what the daemon says is the page's error. */
async function refused(x) {
  const { page } = rig(x, 'refused', { agent: 'nobody' });
  await page.say('Hello?');
  assert.equal(page.chat.status, 'error');
  assert.match(page.chat.error.message, /"code":/);
}

/** drives are [name, function, whether it needs approvals]. */
export const drives = [
  ['turns', turns],
  ['server tools', serverTools],
  ['client tool', clientTool],
  ['client tool fails', clientToolFails],
  ['approve', (x) => decide(x, true, 'output-available'), true],
  ['deny', (x) => decide(x, false, 'output-denied'), true],
  ['abandon', abandon],
  ['stop and reconnect', stopAndReconnect],
  ['stop and reload', stopAndReload],
  ['interrupt', (x) => halt(x, 'interrupt')],
  ['abort', (x) => halt(x, 'abort')],
  ['crash', crash],
  ['busy', busy],
  ['regenerate', regenerate],
  ['failing', failing],
  ['refused', refused],
];
