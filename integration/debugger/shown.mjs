// What the page shows, beside what the daemon says.
import assert from 'node:assert/strict';
import { part, settles } from './browser.mjs';

/** leaves are the texts that a JSON value must be shown by. */
export function leaves(value) {
  if (value === null || typeof value !== 'object') return [String(value)];
  if (Array.isArray(value)) return value.flatMap(leaves);
  return Object.entries(value).flatMap(([k, v]) => [k, ...leaves(v)]);
}

// MOST is how many keys and values of a state are looked for: a large one is folded.
const MOST = 80;

/** agrees: the page shows the session's root as the daemon has it at a sequence. */
export async function agrees(page, daemon, session, n) {
  await settles(page, session, n);
  const { sequence, state } = await daemon.state(session, n);
  assert.equal(sequence, n);
  const seen = await page.evaluate((message, tree, pending) => ({
    messages: [...document.querySelectorAll(message)].map((e) => ({ index: Number(e.dataset.index), role: e.dataset.role, text: e.textContent })),
    tree: document.querySelector(tree)?.textContent ?? '',
    pending: [...document.querySelectorAll(pending)].map((e) => e.dataset.call),
    moment: document.querySelector('#moment').textContent,
  }), part('message'), part('state-tree'), part('pending-call'));

  const messages = state.messages ?? [];
  const about = `${session}@${n}`;
  const shown = new Map(seen.messages.map((m) => [m.index, m]));
  const has = (what, where, words) => assert.ok(where.includes(words), `${about}: ${what} lacks ${JSON.stringify(words)}, it has ${JSON.stringify(where.slice(0, 2000))}`);
  for (const [i, m] of messages.entries()) {
    const wanted = [];
    if (m.content) wanted.push(m.content);
    for (const p of m.parts ?? []) {
      if (p.reasoning) wanted.push(p.reasoning);
      if (p.text) wanted.push(p.text);
      if (p.toolCall) wanted.push(p.toolCall.toolName.replace(/^(subagent|companion)__/, ''), ...leaves(p.toolCall.arguments));
    }
    if (m.error) wanted.push(typeof m.error === 'string' ? m.error : m.error.message);
    if (m.result !== undefined && !m.error) wanted.push(...leaves(m.result));
    if (m.role === 'tool') { // it may stand with the call that it answers
      for (const w of wanted) has(`the result ${i}`, seen.moment, w);
      continue;
    }
    assert.ok(shown.has(i), `${about}: message ${i} is there, not only ${[...shown.keys()]}`);
    assert.equal(shown.get(i).role, m.role, about);
    for (const w of wanted) has(`message ${i}`, shown.get(i).text, w);
  }
  assert.ok([...shown.keys()].every((i) => i <= messages.length), `${about}: no message that was not there, ${[...shown.keys()]}`);
  for (const p of state.turn?.step?.partial ?? []) if (p.text) has('what was being said', seen.moment, p.text);
  for (const w of leaves(state.customState ?? {}).slice(0, MOST)) has('the state', seen.tree, w);
  return { state, seen };
}
