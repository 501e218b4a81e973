// The AI SDK's own clients against a running daemon. TestAISDK runs this.
import { writeFile } from 'node:fs/promises';
import { chase, checkChase, checkPace } from './chase.mjs';
import { checkCrash, takeCrash } from './crash.mjs';
import { checkResumed, checkUncut, checkVersion } from './cut.mjs';
import { start } from './daemon.mjs';
import { drives } from './drives.mjs';
import { checkReplay } from './replay.mjs';
import { finish, run, wanted } from './runner.mjs';
import { scenarios } from './scenarios.mjs';
import { configuration } from './scripts.mjs';
import { take } from './take.mjs';
import { versions } from './versions.mjs';
import { Daemon } from './wire.mjs';
import { listen } from './world.mjs';

const [config] = process.argv.slice(2);
await writeFile(config, configuration(await listen()));
const daemon = new Daemon(await start(config));

const able = (needsApprovals) => versions.filter(({ approvals }) => approvals || !needsApprovals);

/** cut takes something once and proves the law of it for each version. */
async function cut(name, play, look, check, clients) {
  if (!wanted(`cut ${name}`)) return;
  let t;
  await run(`cut ${name}`, async () => {
    t = await play();
    return look(t);
  });
  if (!t) return;
  for (const version of clients) await run(`cut ${name}, ai ${version.name}`, () => check(version, t));
}

for (const scenario of scenarios) {
  await cut(scenario.name, () => take(daemon, scenario), checkUncut, checkVersion, able(scenario.approvals));
}
await cut('chase', () => chase(daemon), checkPace, checkChase, versions);
await cut('crash', () => takeCrash(daemon), checkResumed, checkCrash, versions);

for (const scenario of scenarios) {
  if (scenario.stop || scenario.errors) continue; // the drives have them
  for (const version of able(scenario.approvals)) {
    const name = `replay ${scenario.name}, ${version.chatName}`;
    if (wanted(name)) await run(name, () => checkReplay(version, daemon, scenario));
  }
}

for (const [name, drive, needsApprovals] of drives) {
  for (const version of able(needsApprovals)) {
    const full = `chat ${name}, ${version.chatName}`;
    if (wanted(full)) await run(full, () => drive({ version, daemon }));
  }
}

process.exitCode = finish();
process.exit();
