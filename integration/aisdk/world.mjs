// What the daemon's agents talk to: a model's server with the Chat
// Completions protocol, and HTTP tools. Both play what scripts.mjs says, and
// wait at gates.
import http from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { pass } from './gates.mjs';
import { PACE, scripts, straight, tools } from './scripts.mjs';

/** listen serves on a free loopback port and returns its URL. */
export async function listen() {
  const server = http.createServer((req, res) => {
    serve(req, res).catch((error) => {
      console.error('the world:', error);
      res.destroy();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

async function serve(req, res) {
  let raw = '';
  for await (const bytes of req) raw += bytes;
  const body = JSON.parse(raw);
  if (req.url === '/v1/chat/completions') return complete(body, res);
  return runTool(req, body, res);
}

/** calls counts the model's calls of a session. */
const calls = new Map();

/** complete streams the script's turn that the conversation has come to. */
async function complete({ model, messages }, res) {
  const asked = messages.findLastIndex((message) => message.role === 'user');
  const session = sessionOf(messages[asked]);
  const before = calls.get(session) ?? 0;
  calls.set(session, before + 1);
  const turns = scripts[model] ?? straight[model];
  const answered = messages.slice(asked + 1).filter((message) => message.role === 'assistant').length;
  const turn = turns[Math.min(model in straight ? before : answered, turns.length - 1)];

  const event = (data) => res.write(`data: ${JSON.stringify(data)}\n\n`);
  const delta = async (d, finish = null) => {
    if (PACE[model]) await setTimeout(PACE[model]);
    event({ choices: [{ index: 0, delta: d, finish_reason: finish }] });
  };
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  let index = 0;
  for (const piece of turn) {
    if (piece.hold) await pass(`${session}:${piece.hold}`);
    if (piece.fail) {
      event({ error: { message: piece.fail, type: 'invalid_request_error' } });
      return res.end();
    }
    for (const text of words(piece.think)) await delta({ reasoning_content: text });
    for (const text of words(piece.say)) await delta({ content: text.replace('{call}', calls.get(session)) });
    if (piece.call) {
      await delta({ tool_calls: [{ index, id: piece.call, type: 'function', function: { name: piece.tool, arguments: '' } }] });
    }
    for (const text of words(piece.args)) await delta({ tool_calls: [{ index, function: { arguments: text } }] });
    if (piece.last) index++;
  }
  await delta({}, index > 0 ? 'tool_calls' : 'stop');
  res.end('data: [DONE]\n\n');
}

const words = (text = '') => text.split(/(?<= )/).filter((word) => word !== '');

/** sessionOf tells whose message it is: it begins with the session's id, in brackets. */
function sessionOf({ content }) {
  const text = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('');
  return /^\[([^\]]*)\]/.exec(text)?.[1];
}

/** runTool answers as the tool says, once its gate is open. */
async function runTool(req, { toolName, arguments: args }, res) {
  const root = req.headers['idempotency-key'].split(':')[0];
  await pass(`${root}:${toolName}`);
  const answer = tools[toolName](args);
  res.writeHead(answer.refuse ? 500 : 200, { 'content-type': 'application/json' });
  res.end(answer.refuse ?? JSON.stringify(answer));
}
