// Chats in continuation mode: they keep their parts when the network breaks, and
// continue them with what resuming sends.
import { within } from './gates.mjs';

const mark = 'data: {"type":"data-mark","data":0,"transient":true}\n\n';

/**
 * continued returns the Chat of a page that sends messages, gets the pieces of a
 * stream one after the other, and loses its connection after each but the last.
 * An undefined piece is a 204. The position is the page's own business: the
 * pieces are what the server has sent for it.
 */
export async function continued(version, messages, pieces) {
  const { ai, Chat } = version;
  let next = 0;
  let marked;
  const chat = new Chat({
    id: 'any',
    messages: structuredClone(messages),
    transport: new ai.DefaultChatTransport({
      resumeStreamIsReplay: false,
      fetch: async () => {
        const piece = pieces[next++];
        if (piece === undefined) return new Response(null, { status: 204 });
        return new Response(next === pieces.length ? piece : broken(piece + mark, new Promise((resolve) => { marked = resolve; })));
      },
    }),
    onData: ({ type }) => { if (type === 'data-mark') marked(); },
  });
  await within(chat.sendMessage(), 'the first piece');
  while (next < pieces.length) await within(chat.resumeStream(), 'a further piece');
  return chat;
}

/** broken is a body whose connection breaks, as browsers say it, when its text has been read. */
function broken(text, read) {
  const bytes = new TextEncoder().encode(text);
  return new ReadableStream({
    start: async (controller) => {
      controller.enqueue(bytes);
      await read;
      controller.error(new TypeError('network error'));
    },
  });
}
