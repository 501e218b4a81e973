// Pictures of the page: those of the documentation and, if DEBUGGER_STATES names a folder,
// every state in both colour schemes there, to look at.
import { appears, at, close, drawn, launch, link, open, part, press, settles, text, until, write } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { bringSeven, opened, seven } from './labs.mjs';
import { answering, chunks, large, none, records } from './samples.mjs';

const docs = process.env.DEBUGGER_PICTURES;
const states = process.env.DEBUGGER_STATES;
const only = new RegExp(process.env.DEBUGGER_ONLY ?? '');
const { demo: url, secured } = JSON.parse(process.argv[2]);
const demo = new Daemon(url);
const incident = 'demo-incident';
const size = { width: 1200, height: 750 };
const phone = { width: 390, height: 844, touch: true };

/** shown are the pictures that the documentation shows. */
const shown = new Set(['failed-light', 'failed-dark', 'reason-light', 'compare-light', 'approve-dark', 'phone-light']);

const browser = await launch();

/** picture is of a state, in each scheme that is wanted. rests: nothing on the page is still loading. */
async function picture(name, address, ready = () => {}, more = {}, rests = true) {
  const wanted = ['light', 'dark'].map((scheme) => ({ scheme, file: `${name}-${scheme}`, folders: [shown.has(`${name}-${scheme}`) && docs, states].filter(Boolean) }))
    .filter(({ file, folders }) => folders.length && only.test(file));
  if (!wanted.length) return;
  const page = await open(browser, address, { ...size, ...more });
  await ready(page);
  if (!(await page.$('dialog[open]'))) await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(1, (more.height ?? size.height) - 1);
  if (rests) await until('nothing is loading', () => page.evaluate(() => ![...document.querySelectorAll('[data-loading],[aria-busy="true"]')].some((e) => e.checkVisibility()) && !/Loading/.test(document.body.innerText)));
  for (const { scheme, file, folders } of wanted) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
    await page.evaluate(() => document.fonts.ready);
    await drawn(page);
    for (const folder of folders) await page.screenshot({ path: `${folder}/${file}.png` });
    console.log(file);
  }
  await close(page);
}

const moment = (n) => link(demo.url, incident, n);
const settled = (session, n) => (page) => settles(page, session, n);

/** unfold opens what is folded in the conversation. */
async function unfold(page) {
  for (let i = 0; i < 3; i++) {
    const folded = await page.$$('#moment [role=log] [aria-expanded="false"], #moment [role=log] details:not([open]) > summary');
    for (const f of folded) await f.evaluate((e) => e.click());
  }
}

const toEnd = (page) => page.evaluate(() => { const l = document.querySelector('#moment [role=log]'); l.scrollTop = l.scrollHeight; });

const failed = async (page) => {
  await settles(page, incident, 284);
  await appears(page, part('span', '[data-truncated]'));
  await toEnd(page);
};

const asks = async (page) => {
  await settles(page, 'tidy');
  await appears(page, part('approve'));
};

await picture('failed', moment(), failed);
await picture('reason', moment(106), async (page) => {
  await settles(page, incident, 106);
  await press(page, part('lane', `[data-lane="${incident}-sub-call_0_0"]`));
  await until('the sub-agent is shown', () => page.$eval('#moment', (e) => e.textContent.includes('list_payments')));
  await unfold(page);
  await until('its payments are shown', () => page.$eval('#moment', (e) => e.textContent.includes('amountCents')));
  await page.evaluate(() => { document.querySelector('#moment [role=log]').scrollTop = 60; });
});
await picture('compare', `${demo.url}/#/${incident}@107..205`, (page) => until('the comparison', () => page.$('#compare[data-ready]')));
await demo.start('tidy', 'janitor', 'Tidy up, please.');
await demo.waits('tidy');
await picture('approve', link(demo.url, 'tidy'), asks);
await picture('phone', link(demo.url, 'tidy'), asks, phone);

if (states) {
  const dialog = (test) => async (page) => {
    await press(page, part(test));
    await appears(page, 'dialog[open]');
  };
  const all = (...steps) => async (page) => { for (const step of steps) await step(page); };
  await demo.start('where', 'guide', 'What is near me?');
  await demo.waits('where');
  await demo.bring(large, records());
  await demo.post('/sessions/outside/chunks', chunks('outside'));

  await picture('list', `${demo.url}/`, (page) => appears(page, part('session-row')));
  await picture('search', `${demo.url}/`, async (page) => { await write(page, part('search'), 'Lisbon'); await appears(page, part('search-hit')); });
  await picture('empty', `${demo.url}/`, async (page) => {
    await answering(page, none);
    await until('it is empty', async () => (await text(page, '#sessions')).includes('No sessions yet'));
  });
  await picture('loading', moment(), async (page) => {
    await answering(page, { '/sessions': null });
    for (const where of ['#sessions', '#timeline', '#moment', '#actions', '#records']) await until(`${where} loads`, () => page.$eval(where, (e) => /Loading/.test(e.innerText)));
  }, {}, false);
  const away = async (page) => {
    await answering(page, { '/sessions': new Error('away') });
    await until('it is away', async () => (await page.$eval(part('connection'), (e) => e.dataset.state)) === 'retrying' && (await page.$eval('#sessions', (e) => e.innerText)).includes('cannot be reached'));
  };
  await picture('unreachable', moment(), away);
  await picture('unreachable-later', moment(), async (page) => { // what was shown stays
    await settles(page, incident, 284);
    await page.setOfflineMode(true);
    await until('it says so', () => page.$eval('#sessions', (e) => e.innerText.includes('out of date')));
  }, {}, false);
  await picture('gone', link(demo.url, 'no-such-session'), (page) => until('it says so', () => page.$eval('#trouble', (e) => /no such session/.test(e.innerText))));
  await picture('sign-in', `${secured.url}/`, (page) => appears(page, part('token-input')));
  await picture('past', moment(150), settled(incident, 150));
  await picture('first-failure', moment(), all(failed, async (page) => { await press(page, part('why-first')); await until('it moves', async () => (await at(page)) < 284); await settles(page, incident); }));
  await picture('time', moment(), all(failed, (page) => press(page, part('axis-time'))));
  await picture('state', moment(), all(failed, (page) => press(page, part('pane-facts'))));
  await picture('client-tool', link(demo.url, 'where'), async (page) => { await settles(page, 'where'); await appears(page, part('answer')); });
  await picture('outside', link(demo.url, 'outside'), (page) => appears(page, part('outside')));
  await bringSeven(demo);
  const lanes = async (page) => { await opened(page); await until('the moments', () => page.$(part('lab-compare'))); };
  await picture('lab', link(demo.url, seven.id), (page) => appears(page, part('lab-measure')));
  await picture('lab-lanes', `${link(demo.url, seven.id)}+v-worse-a`, lanes);
  await picture('phone-lab', link(demo.url, seven.id), (page) => appears(page, part('lab-measure')), phone);
  await picture('phone-lab-lanes', `${link(demo.url, seven.id)}+v-worse-a`, lanes, phone);
  await picture('large', link(demo.url, large), async (page) => { await settles(page, large); await appears(page, part('lane')); });
  await picture('large-past', link(demo.url, large, 50_000), async (page) => { await settles(page, large, 50_000); await appears(page, part('lane')); });
  await picture('wide', moment(), failed, { width: 1680, height: 1000 });
  await picture('help', moment(), all(settled(incident, 284), dialog('help')));
  await picture('deny', link(demo.url, 'tidy'), all(asks, dialog('deny')));
  await picture('fork', moment(150), all(settled(incident, 150), dialog('fork')), {}, false);
  await picture('roll-back', moment(150), all(settled(incident, 150), dialog('rollback')), {}, false);
  await demo.start('story', 'storyteller', 'Tell me a story.');
  await picture('running', link(demo.url, 'story'), (page) => until('it speaks', async () => (await text(page, '#moment')).includes('lighthouse') || (await text(page, '#moment')).length > 400), {}, false);

  await picture('phone-list', `${demo.url}/`, (page) => appears(page, part('session-row')), phone);
  await picture('phone-new', `${demo.url}/`, async (page) => { await press(page, part('new-session')); await appears(page, part('chat-input')); }, phone);
  await picture('phone-empty', `${demo.url}/`, async (page) => { await answering(page, none); await until('it is empty', async () => (await text(page, '#welcome')).includes('No sessions yet') && page.evaluate(() => document.body.hasAttribute('data-none'))); }, phone);
  await picture('phone-failed', moment(), settled(incident, 284), phone);
  await picture('phone-past', moment(150), settled(incident, 150), phone);
  await picture('phone-compare', `${demo.url}/#/${incident}@107..205`, (page) => until('the comparison', () => page.$('#compare[data-ready]')), phone);
  await picture('phone-large', link(demo.url, large), settled(large), phone);
  await picture('phone-legend', moment(), all(settled(incident, 284), (page) => press(page, part('legend-toggle'))), phone);
}
await browser.close();
process.exit();
