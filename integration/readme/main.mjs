// The documentation's web page and its useChat component in a real browser.
import { launch } from './browser.mjs';
import { janitor, late, weather } from './component.mjs';
import { kills } from './kills.mjs';
import { plainPage } from './plain.mjs';
import { relay } from './relay.mjs';
import { serve } from './site.mjs';

const [port, plain, demo] = process.argv.slice(2);
const url = `http://localhost:${port}/`;
const files = ['draft-1.md', 'draft-2.md'];

const line = await relay(plain);
const site = await serve(port, { plain: line.url, demo });
const browser = await launch();
try {
  await plainPage(browser, `${url}chat.html`, plain, line.cut);
  console.log('the page: talk, a broken connection, a killed daemon');
  await weather(browser, url, demo);
  await late(browser, url, demo);
  console.log('the component: talk, a reload in mid-stream, a reconnect after the end');
  await janitor(browser, url, demo, 'Approve', { state: 'output-available', deleted: files });
  await janitor(browser, url, demo, 'Approve', { reload: true, state: 'output-available', deleted: files });
  await janitor(browser, url, demo, 'Deny', { state: 'output-denied', deleted: [] });
  console.log('the component: approve, approve after a reload, deny');
  const took = await kills(browser, `${url}killed?agent=chapters`, plain);
  console.log(`the component: 20 kills, a dropped network, a sleeping tab and a reload, ${took} s`);
} finally {
  await browser.close();
}
process.exit(); // nothing else is to come
