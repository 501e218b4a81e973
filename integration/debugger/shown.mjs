// What the page shows, beside what the daemon says.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
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

// Each place has its own text, so that it can be found.
const forms = [
  (w) => `<img src=x onerror="window.taken='${w}'">`,
  (w) => `"><svg onload="window.taken='${w}'">`,
  (w) => `<script>window.taken='${w}'</script>`,
  (w) => `javascript:window.taken='${w}'//`,
  (w) => `'"\`\${window.taken='${w}'}{{taken}}<a href="javascript:window.taken='${w}'">`,
  (w) => `<iframe srcdoc="<script>parent.taken='${w}'</script>">`,
  (w) => `</textarea></title></style><style>*{display:none!important}</style>${w}`,
];
let turn = 0;

/** evil is a text that tries to take the page over. */
export const evil = (where) => forms[turn++ % forms.length](where);

/** harmless: nothing of what the page shows has run, or could. */
export async function harmless(page, about) {
  const found = await page.evaluate(() => ({
    taken: window.taken ?? null,
    handlers: [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).map((e) => e.outerHTML.slice(0, 200)),
    links: [...document.querySelectorAll('[href],[src],[action]')].map((e) => e.href || e.src || e.action).map(String).filter((to) => !/^(https?:|data:image\/|#)/.test(to)),
    foreign: [...document.querySelectorAll('iframe,object,embed,base,script:not([src]),style')].map((e) => e.outerHTML.slice(0, 200)),
    hidden: getComputedStyle(document.body).display === 'none',
  }));
  assert.deepEqual(found, { taken: null, handlers: [], links: [], foreign: [], hidden: false }, about);
  assert.deepEqual(page.problems, [], about);
}

/** overflows are the elements that make a page wider than its window. */
export const overflows = (page) => page.evaluate(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > width + 1).map((e) => `${e.tagName}#${e.id}.${e.className} ${Math.round(e.getBoundingClientRect().right)}`).slice(0, 10);
});

const axe = await readFile(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

const all = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
const ofColours = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };

/**
 * violations are what axe finds wrong with a page, by the rules of WCAG 2.2 AA. In a dark
 * scheme they are those of colours: the rest of a page is that of the light one.
 */
export async function violations(page, scheme) {
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate((runOnly) => window.axe.run(document, { runOnly }), scheme === 'dark' ? ofColours : all);
  return found.flatMap((v) => v.nodes.slice(0, 8).map((n) => `${v.id}: ${n.target} ${n.any.concat(n.all).map((c) => c.message).join('; ').slice(0, 160)} ${n.html.slice(0, 120)}`));
}
