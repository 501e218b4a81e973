// The plain page, whose network and whose daemon go away.
import assert from 'node:assert/strict';
import { kill, restart } from '../aisdk/daemon.mjs';
import { open, rests, say, shoot, shows, snapshot, texts } from './browser.mjs';

/** watch keeps what the last answer on the page has looked like. */
const watch = (page) => page.evaluate(() => {
  globalThis.looks = [];
  new MutationObserver(() => looks.push(out.lastChild.textContent)).observe(out, { childList: true, subtree: true, characterData: true });
});

/** takeLooks returns whether the answer only grew since the last call, and what it is. */
const takeLooks = (page) => page.evaluate(() => {
  const seen = looks.splice(0);
  return { grew: seen.every((text, i) => i === 0 || text.startsWith(seen[i - 1])), times: seen.length, answer: out.lastChild.textContent };
});

/** begin opens the page and tells which session it talks in. */
async function begin(browser, url) {
  const page = await open(browser, url);
  await watch(page);
  const asked = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') asked.push({ body: JSON.parse(request.postData()) });
  });
  return { page, asked };
}

/** agrees: the page shows the daemon's last answer, no character lost or doubled. */
async function agrees(page, daemon, session) {
  await rests(page);
  const seen = await takeLooks(page);
  const { messages } = await snapshot(daemon, session);
  assert.equal(seen.answer, texts(messages.at(-1)).map((text) => `${text}\n`).join(''));
  assert.ok(seen.times > 5, 'the text grows');
  return seen;
}

/** plainPage runs all of it; url is the page's, cut breaks its connections. */
export async function plainPage(browser, url, daemon, cut) {
  const { page, asked } = await begin(browser, url);
  const last = () => asked.at(-1);

  await say(page, 'The weather?');
  assert.ok((await agrees(page, daemon, last().body.id)).grew);
  assert.equal(asked.length, 1);

  // A connection that breaks costs one more request.
  await say(page, 'And over a bad line?');
  await shows(page, 'And over a bad line?\nLet me look that up.\nSan Francisco has');
  cut();
  await agrees(page, daemon, last().body.id);
  assert.equal(asked.length, 3);

  // A daemon that is killed takes back the words that it had not recorded.
  for (const words of ['San Francisco has fog', 'Let me look']) {
    await say(page, `Killed at "${words}"?`);
    await shows(page, `Killed at "${words}"?\n`);
    await page.waitForFunction((want) => out.lastChild.textContent.includes(want), { polling: 'mutation' }, words);
    await kill();
    await shoot(page, 'chat-killed');
    await restart();
    await agrees(page, daemon, last().body.id);
  }
  const messages = (await snapshot(daemon, last().body.id)).messages;
  assert.deepEqual(messages.map((message) => message.role), Array(4).fill(['user', 'assistant']).flat());
  await shoot(page, 'chat');
  await page.close();
}
