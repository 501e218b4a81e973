// The useChat component while its daemon is killed 20 times: it shows what an undisturbed page shows, and nobody clicks.
import assert from 'node:assert/strict';
import { agrees, look, sessionOf } from './component.mjs';
import { open, say, shoot, shows } from './browser.mjs';
import { kill, restart } from '../aisdk/daemon.mjs';

const KILLS = 20;

/** kills plays the agent "chapters" on two pages, the second of which loses its daemon in each chapter. Returns the seconds that it took. */
export async function kills(browser, url, daemon) {
  const undisturbed = await open(browser, url);
  await say(undisturbed, 'A story, please.');
  await shows(undisturbed, 'That was all.');
  await agrees(undisturbed, daemon);
  const want = await look(undisturbed);
  await undisturbed.close();

  const page = await open(browser, url);
  const devtools = await page.createCDPSession();
  await say(page, 'A story, please.');
  const session = sessionOf(page);
  const begun = Date.now();
  for (let chapter = 1; chapter <= KILLS; chapter++) {
    await shows(page, `Chapter ${chapter}, of which`);
    if (chapter === 5) await page.setOfflineMode(true);
    if (chapter === 10) await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
    await kill();
    if (chapter === 1) await page.waitForSelector('[role=status]'); // the page says that it reconnects
    await restart();
    if (chapter === 5) await page.setOfflineMode(false);
    if (chapter === 10) await devtools.send('Page.setWebLifecycleState', { state: 'active' });
    if (chapter === 15) await page.reload();
  }
  await shows(page, 'That was all.');
  await agrees(page, daemon);
  assert.equal(sessionOf(page), session);
  assert.deepEqual(await look(page), want);
  await shoot(page, 'killed');
  await page.close();
  return Math.round((Date.now() - begun) / 1000);
}
