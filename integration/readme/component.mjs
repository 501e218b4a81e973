// The useChat component, with the demo agents.
import assert from 'node:assert/strict';
import { until } from '../aisdk/gates.mjs';
import { open, rests, say, shoot, shows, snapshot, texts } from './browser.mjs';

export const sessionOf = (page) => new URL(page.url()).hash.slice(1);

/** look returns what the page shows: of each message its texts and the states of its tools. */
export const look = (page) => page.evaluate(() => [...document.querySelectorAll('article')].map((message) => ({
  role: message.querySelector('b').textContent,
  texts: [...message.querySelectorAll('p')].map((p) => p.textContent),
  tools: [...message.querySelectorAll('pre')].map((pre) => pre.firstChild.textContent),
})));

/** agrees: the page shows the daemon's messages. */
export async function agrees(page, daemon) {
  await rests(page);
  assert.equal(await page.$('[role=alert]'), null);
  const { messages } = await snapshot(daemon, sessionOf(page));
  const seen = await look(page);
  assert.deepEqual(seen.map(({ role, texts }) => ({ role, texts })), messages.map((message) => ({ role: message.role, texts: texts(message) })));
  const tools = messages.map((message) => message.parts.filter((part) => part.toolCallId).map((part) => part.type.slice('tool-'.length)));
  assert.deepEqual(seen.map((message) => message.tools), tools);
}

/** weather talks, and reloads in the middle of the answer. */
export async function weather(browser, url, daemon) {
  const page = await open(browser, url);
  await say(page, 'The weather?');
  await agrees(page, daemon);
  await say(page, 'And now?');
  await page.waitForFunction(() => document.querySelectorAll('article').length === 4
    && document.querySelectorAll('article')[3].innerText.includes('Copenhagen has'));
  await page.reload();
  await shows(page, 'And now?');
  await page.waitForSelector('input:disabled');
  await shoot(page, 'weather-reloaded');
  await agrees(page, daemon);
  await shoot(page, 'weather');
  await page.close();
}

/**
 * late loads a page in the middle of the answer, whose reconnect reaches the
 * daemon only when the answer has ended.
 */
export async function late(browser, url, daemon) {
  const page = await open(browser, url);
  await say(page, 'The weather?');
  await shows(page, 'San Francisco has');
  await page.setRequestInterception(true);
  const reconnects = [];
  page.on('request', async (request) => {
    if (request.url().endsWith('/stream')) {
      reconnects.push(request.headers()['x-resume-from-sequence']);
      await until(async () => (await snapshot(daemon, sessionOf(page))).status !== 'active');
    }
    await request.continue();
  });
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('article').length === 2);
  await agrees(page, daemon);
  assert.ok(reconnects.length > 0, 'the page reconnects');
  await page.close();
}

/** janitor decides about a call, before or after it has loaded the page again. */
export async function janitor(browser, url, daemon, button, { reload, state, deleted }) {
  const page = await open(browser, `${url}?agent=janitor`);
  await say(page, 'Tidy up, please.');
  const selector = `::-p-text(${button})`;
  await page.waitForSelector(selector);
  await agrees(page, daemon);
  if (reload) {
    await page.reload();
    await page.waitForSelector(selector);
  }
  await shoot(page, `janitor-asks-${button}`);
  await page.click(selector);
  await shows(page, 'next to each other.');
  await agrees(page, daemon);
  await shows(page, state);
  assert.deepEqual((await snapshot(daemon, sessionOf(page))).state, { deleted });
  await shoot(page, `janitor-${button}`);
  await page.close();
}
