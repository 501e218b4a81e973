// The part of TestOneStory that AG-UI's client has: it watches a thread, URL THREAD, until a run
// waits for an approval, has that given elsewhere, and says what the thread's messages are.
import { createInterface } from 'node:readline';
import { Page } from './client.mjs';

const [url, threadId] = process.argv.slice(2);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = async (line) => {
  console.log(`@${line}`);
  await answers.next();
};
const look = async () => {
  const page = new Page({ url, threadId });
  await page.connectAgent();
  return page;
};
let page = await look();
if (page.pendingInterrupts.length !== 1) throw new Error(`it waits for ${JSON.stringify(page.pendingInterrupts)}`);
await tell('approve');
while (page.pendingInterrupts.length > 0) page = await look(); // a client that waits for an answer does not join again
await tell(`said ${JSON.stringify(page.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content ?? ''))}`);
process.exit(0);
