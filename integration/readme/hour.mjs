// The pages of a newcomer's first hour: the useChat component, and the debugger.
import { janitor, weather } from './component.mjs';
import { launch, open, shoot, shows } from './browser.mjs';
import { serve } from './site.mjs';

const [port, daemon] = process.argv.slice(2);
const url = `http://localhost:${port}/`;

await serve(port, { plain: daemon, demo: daemon });
const browser = await launch();
try {
  await weather(browser, url, daemon);
  await janitor(browser, url, daemon, 'Approve', { state: 'output-available', deleted: ['draft-1.md', 'draft-2.md'] });
  console.log('the component: talk, a reload in mid-stream, approve');
  const page = await open(browser, `${daemon}/#/demo-incident`);
  await shows(page, 'the agent did not finish within 5 steps');
  await shoot(page, 'debugger');
  console.log('the debugger: why the session failed');
} finally {
  await browser.close();
}
process.exit(); // nothing else is to come
