// The debugger's page in a real browser: each scenario has its own pages, without storage of others.
import { launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import * as failures from './failures.mjs';
import * as hostile from './hostile.mjs';
import * as lab from './lab.mjs';
import * as labedges from './labedges.mjs';
import * as large from './large.mjs';
import * as layout from './layout.mjs';
import * as list from './list.mjs';
import * as live from './live.mjs';
import * as moments from './moments.mjs';
import * as states from './states.mjs';
import * as tokens from './tokens.mjs';
import * as travel from './travel.mjs';
import * as waiting from './waiting.mjs';

const { demo, secured } = JSON.parse(process.argv[2]);
const only = process.env.DEBUGGER_ONLY;
const world = { demo: new Daemon(demo), secured };

let failed = 0;
let browser; // a scenario that fails gets no other one into trouble: the next has a new browser
for (const [file, scenarios] of Object.entries({ moments, failures, list, waiting, travel, live, tokens, hostile, states, large, lab, labedges, layout })) {
  for (const [name, run] of Object.entries(scenarios)) {
    const title = `${file}: ${name.replace(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`)}`;
    if (only && !new RegExp(only).test(title)) continue;
    browser ??= await launch();
    const began = Date.now();
    try {
      await run({ ...world, browser, log: (line) => console.log(`      ${line}`) });
      console.log(`  ok  ${title} (${Date.now() - began} ms)`);
      for (const context of browser.browserContexts()) if (context !== browser.defaultBrowserContext()) await context.close();
    } catch (err) {
      failed++;
      console.log(`FAIL  ${title}: ${err.stack}`);
      for (const context of browser.browserContexts()) {
        for (const page of await context.pages()) {
          for (const problem of page.problems ?? []) console.log(`      ${problem}`);
          if (process.env.DEBUGGER_PICTURES && page.problems) await page.screenshot({ path: `${process.env.DEBUGGER_PICTURES}/failed-${file}-${name}.png` }).catch(() => {});
        }
      }
      await browser.close();
      browser = undefined;
    }
  }
}
process.exit(failed ? 1 : 0); // nothing else is to come
