// What the daemon's agents talk to: a model's server with the Chat Completions protocol, which
// does what the last message says, and HTTP tools.
import http from 'node:http';

const gates = new Map();

function gate(name) {
  if (!gates.has(name)) {
    let open;
    const opened = new Promise((resolve) => (open = resolve));
    gates.set(name, { opened, open });
  }
  return gates.get(name);
}

/** open lets models go on that hold at a gate. */
export const open = (name) => gate(name).open();

const flaky = new Set();

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
  const body = JSON.parse(raw);
  if (req.url === '/v1/chat/completions') return complete(body, res);
  const answers = {
    '/clock': { result: 'noon' },
    '/count': { result: 'counted', patches: [{ op: 'add', path: '/n', value: (body.state.n ?? 0) + 1 }] },
  };
  res.writeHead(200, { 'content-type': 'application/json' });
  return res.end(JSON.stringify(answers[req.url]));
}

const textOf = ({ content }) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(''));

async function complete({ messages }, res) {
  const last = messages.at(-1);
  const [word, name, ...args] = textOf(last).split(' ');
  if (word === 'fail') {
    res.writeHead(400, { 'content-type': 'application/json' });
    return res.end(JSON.stringify({ error: { message: 'no such thing', type: 'invalid_request_error' } }));
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  const event = (data) => res.write(`data: ${JSON.stringify(data)}\n\n`);
  const delta = (d, finish = null) => event({ choices: [{ index: 0, delta: d, finish_reason: finish }] });
  const say = (text) => delta({ content: text });
  const call = (id, tool, text) => {
    delta({ tool_calls: [{ index: 0, id, type: 'function', function: { name: tool, arguments: '' } }] });
    for (const piece of text.match(/[^]{1,8}/g)) delta({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
  };
  let finish = 'stop';
  if (textOf(messages[0]).startsWith('Help.')) {
    say('I help.');
    call('call_f', '__finish__', JSON.stringify({ answer: `help with ${textOf(last)}` }));
    finish = 'tool_calls';
  } else if (last.role === 'tool') {
    say(`The result is ${textOf(last)}.`);
  } else if (word === 'call') {
    delta({ reasoning_content: 'A tool helps.' });
    say('Let me see.');
    call('call_1', name, args.join(' ') || '{"city":"Lisbon"}');
    finish = 'tool_calls';
  } else if (word === 'hold') {
    delta({ reasoning_content: 'I wait.' });
    for (const piece of ['This ', 'is ', 'held ']) say(piece);
    await gate(name).opened;
    say('no more.');
  } else if (word === 'flaky' && !flaky.has(name)) {
    flaky.add(name);
    delta({ reasoning_content: 'Hm.' });
    say('Half an ');
    await new Promise((resolve) => setTimeout(resolve, 50));
    return res.destroy();
  } else if (word === 'context') {
    say(`${messages.length} messages: ${messages.map((m) => m.role).join(' ')}`);
  } else {
    for (const piece of ['They ', 'greet me.']) delta({ reasoning_content: piece });
    for (const piece of ['Hello ', 'to ', 'you.']) say(piece);
  }
  delta({}, finish);
  event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
  return res.end('data: [DONE]\n\n');
}
