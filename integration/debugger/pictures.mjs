// The pictures of the documentation, of the demo session.
import { appears, close, launch, link, open, part, press, settles, until } from './browser.mjs';
import { Daemon } from './daemon.mjs';

const folder = process.env.DEBUGGER_PICTURES;
const demo = new Daemon(JSON.parse(process.argv[2]).demo);
const incident = 'demo-incident';
const size = { width: 1200, height: 750 };

const browser = await launch();

async function picture(name, address, more, ready = () => {}) {
  const page = await open(browser, address, { ...size, ...more });
  await ready(page);
  await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(1, size.height - 1);
  await page.evaluate(() => document.fonts.ready.then(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))));
  await until('nothing is loading', () => page.evaluate(() => !document.querySelector('[data-loading],[aria-busy="true"]')));
  await page.screenshot({ path: `${folder}/${name}.png` });
  await close(page);
}

const at = (n) => link(demo.url, incident, n);

/** unfold opens what is folded in the conversation. */
async function unfold(page) {
  for (let i = 0; i < 3; i++) {
    const folded = await page.$$('#moment [role=log] [aria-expanded="false"], #moment [role=log] details:not([open]) > summary');
    for (const f of folded) await f.evaluate((e) => e.click());
  }
}

for (const dark of [false, true]) {
  await picture(`failed-${dark ? 'dark' : 'light'}`, at(), { dark }, async (page) => {
    await settles(page, incident, 284);
    await appears(page, part('span', '[data-struck]'));
    await page.evaluate(() => { const l = document.querySelector('#moment [role=log]'); l.scrollTop = l.scrollHeight; });
  });
}
await picture('reason-light', at(106), {}, async (page) => {
  await settles(page, incident, 106);
  await press(page, part('lane', `[data-lane="${incident}-sub-call_0_0"]`));
  await until('the sub-agent is shown', () => page.$eval('#moment', (e) => e.textContent.includes('list_payments')));
  await unfold(page);
  await until('its payments are shown', () => page.$eval('#moment', (e) => e.textContent.includes('amountCents')));
  await page.evaluate(() => { document.querySelector('#moment [role=log]').scrollTop = 60; });
});
await picture('compare-light', `${demo.url}/#/${incident}@107..205`, {}, async (page) => {
  await until('the comparison', () => page.$('#compare[data-ready]'));
});
await demo.start('tidy', 'janitor', 'Tidy up, please.');
await demo.waits('tidy');
await picture('approve-dark', link(demo.url, 'tidy'), { dark: true }, async (page) => {
  await settles(page, 'tidy');
  await appears(page, part('approve'));
});
await picture('phone-light', link(demo.url, 'tidy'), { width: 390, height: 844, touch: true }, async (page) => {
  await settles(page, 'tidy');
  await appears(page, part('approve'));
});
await browser.close();
process.exit();
