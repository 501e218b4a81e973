// The two formats of streams.

/** An event of a stream of server-sent events, or a line of NDJSON in `data`. */
export interface Item {
  id?: string;
  data: string;
}

/** A kind of stream: its content type, and how its text is split. A heartbeat is yielded as undefined. */
export interface Format {
  type: string;
  split: (pieces: AsyncIterable<string>) => AsyncGenerator<Item | undefined>;
}

/** Server-sent events. A comment is yielded as undefined: the connection is alive. */
export const events: Format = {
  type: 'text/event-stream',
  async *split(pieces) {
    let item: Item = { data: '' };
    let some = false; // there is data
    for await (const line of lines(pieces)) {
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (line === '') {
        if (some) yield item;
        [item, some] = [{ data: '' }, false];
      } else if (field === '') yield undefined;
      else if (field === 'id') item.id = value;
      else if (field === 'data') [item.data, some] = [some ? `${item.data}\n${value}` : value, true];
    }
  },
};

/** NDJSON. An empty line is yielded as undefined. */
export const objects: Format = {
  type: 'application/x-ndjson',
  async *split(pieces) {
    for await (const line of lines(pieces)) yield line === '' ? undefined : { data: line };
  },
};

/** Yields the lines that are whole. Each piece is searched once: a line may come in many. */
export async function* lines(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let begun: string[] = []; // a line's pieces
  for await (const piece of pieces) {
    let from = 0;
    for (let end; (end = piece.indexOf('\n', from)) >= 0; from = end + 1) {
      begun.push(piece.slice(from, end));
      const line = begun.join('');
      begun = [];
      yield line.endsWith('\r') ? line.slice(0, -1) : line;
    }
    begun.push(piece.slice(from));
  }
}
