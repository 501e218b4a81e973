// A Chromium without a window, and what the scenarios do with its pages.
import assert from 'node:assert/strict';
import puppeteer from 'puppeteer-core';

/** DEADLINE bounds every wait, in milliseconds: CI machines are slow, and busy. */
export const DEADLINE = Number(process.env.DEBUGGER_DEADLINE ?? 60_000);

/** part is the selector of a part of the page, by the name that it has for tests. */
export const part = (name, more = '') => `[data-test="${name}"]${more}`;

export function launch() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM,
    pipe: true, // it ends with this process, however that ends
    protocolTimeout: 2 * DEADLINE,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--font-render-hinting=none'], // a container has neither
  });
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** until calls ask repeatedly until it returns a value. The last value is part of its failure. */
export async function until(what, ask, { deadline = DEADLINE, every = 25 } = {}) {
  const end = Date.now() + deadline;
  let last;
  do {
    try {
      const answer = await ask();
      if (answer) return answer;
      last = answer;
    } catch (err) {
      last = err;
    }
    await sleep(every);
  } while (Date.now() < end);
  throw new Error(`in vain: ${what} (${last?.stack ?? last})`);
}

/**
 * open returns a new page, without storage of others. Scripts must not
 * fail, nothing may violate the page's own policy, and no script may open a dialog
 * of the browser: page.problems lists violations, and close throws if there are any.
 */
export async function open(browser, url, { width = 1280, height = 900, dark = false, touch = false, reducedMotion = true } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width, height, hasTouch: touch, isMobile: touch });
  await page.emulateMediaFeatures([
    { name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' },
    { name: 'prefers-reduced-motion', value: reducedMotion ? 'reduce' : 'no-preference' },
  ]);
  page.setDefaultTimeout(DEADLINE);
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(`a script failed: ${error.stack ?? error}`));
  page.on('dialog', (dialog) => {
    page.problems.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('console', (message) => {
    const text = message.text();
    if (text.includes('Content Security Policy')) page.problems.push(text);
    // What a network says of a daemon that is away is no problem of the page's.
    else if (message.type() === 'error' && !text.startsWith('Failed to load resource')) page.problems.push(`the console: ${text}`);
  });
  await page.exposeFunction('tellOfViolation', (text) => page.problems.push(`the policy: ${text}`));
  await page.evaluateOnNewDocument(() => {
    addEventListener('securitypolicyviolation', (e) => window.tellOfViolation(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  return page;
}

/** close ends a page that has had no problems. */
export async function close(page) {
  assert.deepEqual(page.problems, []);
  await page.browserContext().close();
}

/** text returns what a part says, or null if there is none. */
export const text = (page, selector) => page.evaluate((s) => document.querySelector(s)?.textContent ?? null, selector);

/** values returns an attribute of every element. */
export const values = (page, selector, attribute) => page.evaluate((s, a) => [...document.querySelectorAll(s)].map((e) => e.getAttribute(a)), selector, attribute);

/** visible tells whether somebody could see an element. */
export const visible = (page, selector) => page.evaluate((s) => {
  const e = document.querySelector(s);
  return e !== null && e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getClientRects().length > 0;
}, selector);

/** appears waits for an element that can be seen. */
export const appears = (page, selector) => until(`${selector} appears`, () => visible(page, selector));

/** goes waits until an element is gone. */
export const goes = (page, selector) => until(`${selector} goes`, async () => !(await visible(page, selector)));

/** press clicks what must be there, be seen, be enabled and not be at work. */
export async function press(page, selector) {
  await until(`${selector} can be pressed`, () => page.evaluate((s) => {
    const e = document.querySelector(s);
    if (!e || e.disabled || e.getAttribute('aria-disabled') === 'true' || e.getAttribute('aria-busy') === 'true' || !e.checkVisibility()) return false;
    e.scrollIntoView({ block: 'center' });
    return true;
  }, selector));
  await page.click(selector);
}

/** write puts a text into a field, instead of what was there. */
export async function write(page, selector, words) {
  await appears(page, selector);
  await page.focus(selector);
  await page.evaluate((s) => document.querySelector(s).select?.(), selector);
  await page.keyboard.press('Backspace');
  await page.type(selector, words);
}

/** signIn gives a token to a page that asks for one. */
export async function signIn(page, token) {
  await write(page, part('token-input'), token);
  await press(page, part('token-submit'));
}

/** choose picks an option by its value. */
export async function choose(page, selector, value) {
  await until(`${selector} offers ${value}`, () => page.evaluate((s, v) => [...document.querySelector(s).options].some((o) => o.value === v), selector, value));
  await page.select(selector, value);
}

/** shoot makes a picture, if there is a folder for pictures. */
export async function shoot(page, name) {
  if (process.env.DEBUGGER_PICTURES) await page.screenshot({ path: `${process.env.DEBUGGER_PICTURES}/${name}.png` });
}

/** link is the address of a moment. */
export const link = (url, session, at) => `${url}/#/${encodeURIComponent(session)}${at === undefined ? '' : `@${at}`}`;

/** at is the position that the page shows. */
export const at = async (page) => Number(await page.evaluate((s) => {
  const e = document.querySelector(s);
  return e?.value || e?.textContent;
}, part('position')));

/** settles waits until the conversation is that of a position, and returns it. */
export async function settles(page, session, want) {
  const { n } = await until(`${session}@${want ?? ''} is shown`, async () => {
    const [shown, moment] = [await at(page), await page.evaluate(() => ({ ...document.querySelector('#moment').dataset }))];
    return moment.session === session && Number(moment.at) === shown && (want === undefined || shown === want) && { n: shown };
  });
  return n;
}

/** drawn waits until what was begun by the mouse or a key is on the screen. */
export const drawn = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true)))));
