// What the daemon's agent talks to: a model's server with the Chat Completions protocol, which
// does what the last message says, and HTTP tools.
import http from 'node:http';

const held = new Map();

/** hold returns a promise that open(name) fulfils, also if that came first. */
function gate(name) {
  if (!held.has(name)) {
    let open;
    const opened = new Promise((resolve) => (open = resolve));
    held.set(name, { opened, open });
  }
  return held.get(name);
}

/** open lets models go on that hold at a gate. */
export const open = (name) => gate(name).open();

/** listen serves on a free loopback port and returns its URL. */
export async function listen() {
  const server = http.createServer((req, res) => {
    serve(req, res).catch(() => res.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

async function serve(req, res) {
  let raw = '';
  for await (const bytes of req) raw += bytes;
  if (req.url === '/slow') await gate('slow').opened;
  if (req.url === '/clock' || req.url === '/slow') {
    res.writeHead(200, { 'content-type': 'application/json' });
    return res.end(JSON.stringify({ result: 'noon' }));
  }
  return complete(JSON.parse(raw), res);
}

const textOf = ({ content }) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(''));

async function complete({ messages, tools = [] }, res) {
  const last = messages.at(-1);
  const [word, name] = textOf(last).split(' ');
  if (word === 'fail') {
    res.writeHead(400, { 'content-type': 'application/json' });
    return res.end(JSON.stringify({ error: { message: 'no such thing', type: 'invalid_request_error' } }));
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  const event = (data) => res.write(`data: ${JSON.stringify(data)}\n\n`);
  const delta = (d, finish = null) => event({ choices: [{ index: 0, delta: d, finish_reason: finish }] });
  const say = (text) => delta({ content: text });
  let finish = 'stop';
  if (last.role === 'tool') {
    say(`The result is ${textOf(last)}.`);
  } else if (word === 'call') {
    delta({ reasoning_content: 'A tool helps.' });
    delta({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name, arguments: '' } }] });
    for (const piece of ['{"city"', ':"Lisbon"}']) delta({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
    finish = 'tool_calls';
  } else if (word === 'hold') {
    for (const piece of ['This ', 'is ', 'held ']) say(piece);
    await gate(name).opened;
    say('no more.');
  } else if (word === 'context') {
    say(`${messages.length} messages: ${messages.map((m) => m.role).join(' ')}`);
  } else if (tools.some((tool) => tool.function.name === 'get_weather') && /weather/.test(textOf(last))) {
    delta({ tool_calls: [{ index: 0, id: 'call_w', type: 'function', function: { name: 'get_weather', arguments: '{"location":"San Francisco, CA"}' } }] });
    finish = 'tool_calls';
  } else {
    for (const piece of ['They ', 'greet me.']) delta({ reasoning_content: piece });
    for (const piece of ['Hello ', 'to ', 'you.']) say(piece);
  }
  delta({}, finish);
  event({
    choices: [],
    usage: {
      prompt_tokens: 10, completion_tokens: 5, total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 2 },
    },
  });
  res.end('data: [DONE]\n\n');
}
