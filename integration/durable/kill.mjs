// Writes to a stream with the protocol's own client, and reads it in both live modes, while the
// daemon is killed again and again. What is read must be what was written.
//
// usage: node kill.mjs URL
import { DurableStream, IdempotentProducer, stream } from '@durable-streams/client';

const url = `${process.argv[2]}/v1/stream/through-kills`;
const lines = 1500;

// again repeats a request that the daemon did not live to answer. The producer needs every other
// answer, 409 among them.
async function again(...request) {
  for (;;) {
    try {
      const answer = await fetch(...request);
      if (answer.status !== 503) return answer;
      await answer.body?.cancel();
    } catch (e) {
      if (request[1]?.signal?.aborted) throw e;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

const patience = { initialDelay: 50, maxDelay: 200, multiplier: 1.5, maxRetries: Infinity };

// read follows the stream to its end. The client does not come back by itself when a connection
// breaks off: what it has not handed over is read again, from the last offset that it has.
async function read(live) {
  let text = '';
  let offset = '-1';
  for (;;) {
    let over = false;
    try {
      const answer = await stream({ url, offset, live, backoffOptions: patience });
      const ended = await new Promise((resolve, reject) => {
        answer.subscribeText((part) => {
          if (over) return; // it is read again
          text += part.text;
          offset = part.offset;
          if (part.streamClosed) resolve(true);
        });
        // The answer may be closed before its last part is handed over.
        answer.closed.then(() => answer.streamClosed && answer.offset !== offset || resolve(answer.streamClosed), reject);
      });
      if (ended) return text;
    } catch {
      await new Promise((done) => setTimeout(done, 50));
    }
    over = true;
  }
}

// readAll reads what there is.
const readAll = async () => (await stream({ url, offset: '-1', live: false, backoffOptions: patience })).text();

const target = await DurableStream.create({ url, contentType: 'text/plain', backoffOptions: patience });
const readers = ['sse', 'long-poll'].map(read);
const failures = [];
const producer = new IdempotentProducer(target, 'writer', { fetch: again, maxBatchBytes: 64, lingerMs: 1, onError: (e) => failures.push(e) });
let written = '';
for (let i = 0; i < lines; i++) {
  const line = ` line ${i} ö\n`;
  written += line;
  producer.append(line);
  if (i % 10 === 9) {
    await producer.flush();
    console.log(`written ${i + 1}`);
  }
}
await producer.close('the end\n');
written += 'the end\n';

const all = await Promise.all([...readers, readAll()]);
for (const [i, text] of all.entries()) {
  if (text !== written) {
    let at = 0;
    while (text[at] === written[at]) at++;
    failures.push(new Error(`reader ${i} has ${text.length} characters, not ${written.length}; at ${at}: ${JSON.stringify(text.slice(at, at + 60))}, not ${JSON.stringify(written.slice(at, at + 60))}`));
  }
}
for (const e of failures) console.error(e);
console.log(failures.length ? 'FAILED' : 'the same');
process.exit(failures.length ? 1 : 0);
