// Wide and narrow windows, and no mouse.
import assert from 'node:assert/strict';
import { appears, at, close, goes, link, open, part, press, settles, shoot, text, until, values, visible } from './browser.mjs';
import { overflows } from './shown.mjs';

const incident = 'demo-incident';

/** small are texts of less than 12 pixels. */
const small = (page) => page.evaluate(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (node.data.trim() && e.checkVisibility() && parseFloat(getComputedStyle(e).fontSize) < 12) found.push(`${e.className}: ${node.data.slice(0, 40)}`);
  }
  return found;
});

async function fits({ browser, demo }, width, height, touch) {
  const { headSequence: head } = await demo.summary(incident);
  for (const dark of [false, true]) {
    const page = await open(browser, `${demo.url}/`, { width, height, dark, touch });
    const about = `${width} px, ${dark ? 'dark' : 'light'}`;
    await until(`${about}: the list`, () => page.$(part('session-row')));
    assert.deepEqual(await overflows(page), [], `${about}, the list`);
    await shoot(page, `list-${width}-${dark ? 'dark' : 'light'}`);
    for (const [hash, n] of [[`#/${incident}@150`, 150], [`#/${incident}`, head], [`#/${incident}@205..107`, 205]]) {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await settles(page, incident, n);
      await appears(page, part('scrubber'));
      await appears(page, part('position'));
      if (hash.includes('..')) await until('the comparison', () => visible(page, part('diff-row')));
      assert.deepEqual(await overflows(page), [], `${about}, ${hash}`);
      assert.deepEqual(await small(page), [], `${about}, ${hash}`);
      assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('button,select,input,textarea')].filter((e) => e.checkVisibility() && !e.textContent.trim() && !e.ariaLabel && !e.labels?.length && !e.title && !e.getAttribute('aria-labelledby')).map((e) => e.outerHTML.slice(0, 120))), [], `${about}: everything has a name`);
      await shoot(page, `incident-${width}-${dark ? 'dark' : 'light'}-${hash.includes('..') ? 'compare' : hash.includes('@') ? 'past' : 'head'}`);
    }
    await close(page);
  }
}

export const fitsWide = (world) => fits(world, 1440, 900);
export const fitsA1000PixelWindow = (world) => fits(world, 1000, 760);
export const fitsAPhone = (world) => fits(world, 390, 844, true);

/** On a phone what needs an answer is in the first view: it is approved without scrolling. */
export async function approvesOnAPhone({ browser, demo }) {
  await demo.start('p-tidy', 'janitor', 'Tidy up.');
  await demo.waits('p-tidy');
  const page = await open(browser, link(demo.url, 'p-tidy'), { width: 390, height: 844, touch: true });
  await settles(page, 'p-tidy');
  await appears(page, part('approve'));
  await until('it is in sight, with what it is about', () => page.evaluate((s) => [document.querySelector('.pending .input'), document.querySelector(s)].every((e) => { const box = e.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight && document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.closest('.input, button') === e; }), part('approve')));
  await shoot(page, 'phone-approve');
  const { x, y, width, height } = await (await page.$(part('approve'))).boundingBox();
  await page.touchscreen.tap(x + width / 2, y + height / 2);
  await demo.comes('p-tidy', 'completed');
  await close(page);
}

/** The colours are the reader's choice, and stay it. */
export async function hasAChoiceOfColours({ browser, demo }) {
  const page = await open(browser, link(demo.url, incident));
  await settles(page, incident);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await until('it is dark', async () => {
    await page.click(part('theme'));
    return (await ground()) !== light;
  });
  const dark = await ground();
  await page.reload();
  await settles(page, incident);
  assert.equal(await ground(), dark);
  await close(page);
}

/** The legend has what is on the timeline, and hides kinds of blocks. */
export async function hasALegend({ browser, demo }) {
  const { headSequence: head } = await demo.summary(incident);
  const page = await open(browser, link(demo.url, incident));
  await settles(page, incident, head);
  await appears(page, part('legend'));
  const words = await text(page, part('legend'));
  for (const word of ['message', 'reasoning', 'answer', 'tool', 'approval', 'sub-agent', 'paused', 'failed or refused', 'truncated', 'takeover', 'checkpoint', 'error']) assert.ok(words.includes(word), word);
  const kinds = new Set(await values(page, part('span'), 'data-kind'));
  for (const kind of kinds) if (kind !== 'run' && kind !== 'step') assert.ok(await page.$(part('legend-kind', `[data-kind="${kind}"]`)), kind);
  const tools = part('span', '[data-kind="tool"]');
  await appears(page, tools);
  await press(page, part('legend-kind', '[data-kind="tool"]'));
  await until('they are hidden', async () => (await page.$$(tools)).length === 0);
  await press(page, part('legend-kind', '[data-kind="tool"]'));
  await appears(page, tools);
  assert.equal((await page.$$eval(part('span', '[data-kind="run"]'), (all) => all.map((e) => e.firstChild.textContent))).toSorted().join(), 'turn 1,turn 1,turn 1, continued');
  await press(page, part('legend-toggle'));
  await goes(page, part('legend'));
  await page.reload();
  await settles(page, incident, head);
  assert.equal(await visible(page, part('legend')), false, 'it stays hidden');
  await close(page);
}

/** Everything goes without a mouse: open, look, search, approve. */
export async function worksByKeyboard({ browser, demo }) {
  await demo.start('k-tidy', 'janitor', 'Tidy up.');
  const { headSequence: head } = await demo.waits('k-tidy');
  const page = await open(browser, `${demo.url}/`);
  await until('the list', () => page.$(part('session-row')));
  const focused = () => page.evaluate(() => {
    const e = document.activeElement;
    return { test: e.dataset.test ?? e.closest('[data-test]')?.dataset.test, session: e.closest('[data-session]')?.dataset.session, tag: e.tagName };
  });
  const tabTo = async (what, is, key = 'Tab') => {
    for (let i = 0; i < 400; i++) {
      if (is(await focused())) return;
      await page.keyboard.press(key);
    }
    throw new Error(`Tab leads nowhere near ${what}`);
  };
  await until('the search is focused', async () => { // once the page listens to the keyboard
    if ((await focused()).test !== 'search') await page.keyboard.press('/');
    return (await focused()).test === 'search';
  });
  await page.keyboard.type('k-tidy');
  await until('it is found', async () => (await page.$$(part('session-row'))).length === 1);
  await tabTo('the session', ({ session }) => session === 'k-tidy');
  await page.keyboard.press('Enter');
  await settles(page, 'k-tidy', head);

  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('?');
  await until('the help', () => page.evaluate(() => [...document.querySelectorAll('dialog')].some((d) => d.open)));
  await shoot(page, 'help');
  await page.keyboard.press('Escape');
  await until('the help goes', () => page.evaluate(() => !document.querySelector('dialog') && !document.activeElement.closest('dialog')));
  await until('the beginning', async () => {
    await page.keyboard.press('Home');
    return (await at(page)) < head;
  });
  await page.keyboard.press(' ');
  await settles(page, 'k-tidy', head);
  await until('it can be forked', () => page.$(part('fork', ':enabled')));
  await page.keyboard.press('f');
  await appears(page, part('confirm'));
  await page.keyboard.press('Escape');
  await goes(page, part('confirm'));

  await appears(page, part('approve'));
  await tabTo('the approval', ({ test }) => test === 'approve');
  const outline = await page.evaluate(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' || s.boxShadow !== 'none'; });
  assert.ok(outline, 'one sees where one is');
  await page.keyboard.press('Enter');
  await demo.comes('k-tidy', 'completed');
  await close(page);
}
