// The runs that are cut: what a user asks of which agent, where the run is
// held for a look at it, and how open calls are answered.

const here = {
  what: 'the piece before the gate',
  test: (frame) => frame.text.includes('⟨here⟩'),
  shows: (message) => JSON.stringify(message).includes('⟨here⟩'),
};
const output = (of) => ({
  what: `the output of ${of}`,
  test: ({ chunk }) => chunk?.type === 'tool-output-available' && chunk.toolCallId === of,
  shows: (message) => message.parts.some((part) => part.toolCallId === of && part.state === 'output-available'),
});

const approve = () => ({ approved: true });
const deny = () => ({ approved: false, reason: 'not mine' });
const found = () => ({ state: 'output-available', output: { lat: 54.3, lon: 10.1 } });
const lost = () => ({ state: 'output-error', errorText: 'no signal' });
const either = (part) => (part.state === 'approval-requested' ? approve() : found());

/** What follows a first turn: another one, or the same again. The request's body, and what a page does. */
const another = {
  body: (body, reply) => ({ ...body, messages: [...body.messages, reply, { ...body.messages[0], id: 'u2' }] }),
  page: (page) => page.say('And now?'),
};
const again = {
  body: (body, reply) => ({ ...body, trigger: 'regenerate-message', messageId: reply.id }),
  page: (page) => page.chat.regenerate(),
};

/**
 * A scenario is a list of requests. Each is held at the gate `hold`, when the
 * client has `seen` something; `answer` answers the calls that the request
 * before has left open. `stop` is what happens at the gate instead of its
 * opening. `errors` is how many the client receives. `then` lets a whole turn
 * come first.
 */
export const scenarios = [
  { name: 'text', requests: [{ hold: 'model', seen: here }] },
  { name: 'reasoning', requests: [{ hold: 'model', seen: here }] },
  { name: 'input', requests: [{ hold: 'model', seen: here }] },
  { name: 'parallel', requests: [{ hold: 'peek', seen: output('a') }] },
  { name: 'approval', approvals: true, requests: [{}, { answer: approve, hold: 'remove' }] },
  { name: 'approval, held later', agent: 'approval', approvals: true, requests: [{}, { answer: approve, hold: 'model', seen: here }] },
  { name: 'denial', agent: 'approval', approvals: true, requests: [{}, { answer: deny, hold: 'model', seen: here }] },
  { name: 'client', requests: [{}, { answer: found, hold: 'model', seen: here }] },
  { name: 'client fails', agent: 'client', requests: [{}, { answer: lost, hold: 'model', seen: here }] },
  { name: 'client torn', agent: 'torn', requests: [{ hold: 'model', seen: here }, { answer: found, hold: 'model', seen: here }] },
  { name: 'mixed', approvals: true, requests: [{}, { answer: either, hold: 'model', seen: here }] },
  { name: 'sub-agent', agent: 'editor', requests: [{ hold: 'peek' }] },
  { name: 'sub-agent approval', agent: 'chief', approvals: true, requests: [{}, { answer: approve, hold: 'model', seen: here }] },
  { name: 'sub-agent client', agent: 'guide', requests: [{}, { answer: found, hold: 'model', seen: here }] },
  { name: 'output', agent: 'writer', requests: [{ hold: 'peek' }] },
  { name: 'second turn', agent: 'input', then: another, requests: [{ hold: 'model', seen: here }] },
  { name: 'regenerate', agent: 'reasoning', then: again, requests: [{ hold: 'model', seen: here }] },
  { name: 'error', errors: 1, requests: [{ hold: 'model', seen: here }] },
  { name: 'interrupt', agent: 'text', stop: 'interrupt', requests: [{ hold: 'model', seen: here }] },
  { name: 'abort', agent: 'text', stop: 'abort', requests: [{ hold: 'model', seen: here }] },
];

for (const scenario of scenarios) scenario.agent ??= scenario.name;
