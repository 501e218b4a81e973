// Clients that lose their connection: HttpAgent with a fetch that cuts the stream, and one that
// joins a thread.
import { HttpAgent, runHttpRequest, transformHttpEventStream } from '@ag-ui/client';

/** frames yields the frames of an answer that arrive whole. */
export async function* frames(body) {
  let text = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const whole = (text + piece).split('\n\n');
    text = whole.pop();
    for (const frame of whole) if (frame.includes('data: ')) yield frame;
  }
}

const idOf = (frame) => /^id: (.*)$/m.exec(frame)?.[1];
const ends = (frame) => /"type":"RUN_(FINISHED|ERROR)"/.test(frame) && !frame.includes('STREAM_BROKEN_OFF');

/**
 * rejoining returns a fetch whose stream continues after the last event that came, by Last-Event-ID
 * or by a parameter, when the connection breaks. It breaks the connection itself after so many
 * frames. seen gets each frame.
 */
export function rejoining({ cutAfter = Infinity, seen = () => {}, byParameter = false } = {}) {
  return async (url, init) => {
    const { threadId } = JSON.parse(init.body);
    let last;
    const ask = async () => {
      if (last === undefined) return fetch(url, init);
      const headers = { ...init.headers, ...(byParameter ? {} : { 'Last-Event-ID': last }) };
      return fetch(`${url}/${threadId}${byParameter ? `?after=${last}` : ''}`, { headers });
    };
    const first = await ask();
    if (!first.ok) return first;
    async function* stream() {
      let left = cutAfter;
      for (let answer = first; ;) {
        try {
          for await (const frame of frames(answer.body)) {
            if (frame.includes('STREAM_BROKEN_OFF')) break;
            last = idOf(frame);
            seen(frame);
            yield new TextEncoder().encode(`${frame}\n\n`);
            if (ends(frame)) return;
            if (--left === 0) break; // which leaves the connection
          }
        } catch (error) {
          if (!(error instanceof TypeError)) throw error; // of the network
        }
        do {
          await new Promise((resolve) => setTimeout(resolve, left === 0 ? 0 : 50));
          answer = await ask().catch(() => undefined);
        } while (!answer?.ok);
        if (answer.status === 204) throw new Error(`nothing comes after ${last}, and the run has not ended`);
      }
    }
    return new Response(ReadableStream.from(stream()), { headers: first.headers });
  };
}

/** Page is a client that joins a thread with connectAgent. */
export class Page extends HttpAgent {
  connect() {
    return transformHttpEventStream(runHttpRequest(() => this.fetch(`${this.url}/${this.threadId}`, { headers: this.headers })));
  }
}
