// What the agents' models say, what their tools answer, and the daemon's
// configuration made of it.

/** A model's pieces. Text and arguments are streamed word by word. */
const think = (text) => ({ think: text });
const say = (text) => ({ say: text });
const wait = (point) => ({ hold: point });
const fail = (message) => ({ fail: message });
const call = (id, tool, args) => ({ call: id, tool, args: JSON.stringify(args).replaceAll(',', ', '), last: true });

/** torn is a call whose arguments stop at a gate. */
const torn = (id, tool, head, point, tail) => [{ call: id, tool, args: head }, { hold: point, args: tail, last: true }];

/** The scripts: the turns that follow a user's message, by model. */
export const scripts = {
  text: [[say('It was a dark and stormy night, ⟨here⟩ '), wait('model'), say('and the rain fell in "torrents" — \\ ☃ 🜛.\n')]],
  reasoning: [[
    think('First I think about it, ⟨here⟩ '), wait('model'), think('then I think again. '), say('So it is settled.'),
  ]],
  input: [
    [say('I look. '), ...torn('c1', 'look', '{"city": "Paris", "why": "⟨here⟩ ', 'model', 'and \\"there\\"", "deep": {"n": [1, 2, {}]}}')],
    [think('Nice. '), say('Paris is grey.')],
  ],
  parallel: [
    [think('Two at once. '), say('I look twice. '), call('a', 'look', { city: 'Oslo' }), call('b', 'peek', { city: 'Rome' })],
    [say('One fails now. '), call('c', 'refuse', {})],
    [say('That is all.')],
  ],
  approval: [
    [say('May I? '), call('d', 'remove', { path: 'draft one.md' })],
    [say('Then it is ⟨here⟩ '), wait('model'), say('settled.')],
  ],
  client: [
    [think('Where? '), say('Let me see where you are. '), call('l', 'locate', { precise: true, of: 'you there' })],
    [say('From there ⟨here⟩ '), wait('model'), say('it is a short walk.')],
  ],
  torn: [
    [say('Let me see. '), ...torn('l', 'locate', '{"precise": true, "of": "⟨here⟩ ', 'model', 'you there"}')],
    [say('From there ⟨here⟩ '), wait('model'), say('it is a short walk.')],
  ],
  mixed: [
    [
      say('All at once. '), call('m1', 'look', { city: 'Bonn' }), call('m2', 'locate', { precise: false }),
      call('m3', 'remove', { path: 'x' }),
    ],
    [say('Three ⟨here⟩ '), wait('model'), say('results.')],
  ],
  editor: [
    [say('I ask the writer. '), call('w', 'subagent__writer', { message: 'A headline, please.' })],
    [say('It stands.')],
  ],
  writer: [
    [think('Short is good. '), say('A look at the desk. '), call('k', 'peek', { city: 'Desk' })],
    [call('f', '__finish__', { text: 'Nothing was lost' })],
  ],
  chief: [
    [say('I ask the cleaner. '), call('w', 'subagent__cleaner', { message: 'Clean up.' })],
    [say('All ⟨here⟩ '), wait('model'), say('clean.')],
  ],
  cleaner: [
    [say('May I clean? '), call('k', 'remove', { path: 'dust' })],
    [call('f', '__finish__', { text: 'cleaned' })],
  ],
  guide: [
    [say('I ask the scout. '), call('w', 'subagent__scout', { message: 'Where are we?' })],
    [say('We are ⟨here⟩ '), wait('model'), say('then.')],
  ],
  scout: [
    [think('They know. '), call('k', 'locate', { precise: true })],
    [call('f', '__finish__', { text: 'here' })],
  ],
  error: [[say('So far ⟨here⟩ '), wait('model'), fail('The model has given up.')]],
  crash: [
    [say('I look. '), call('x1', 'look', { city: 'Kiel' })],
    [think('Well. '), say('Kiel is ⟨here⟩ '), wait('model'), say('grey and wet.')],
  ],
  slow: [
    [
      think('One word comes after the other, not all of them at once. '), say('So I look at two cities. '),
      call('s1', 'look', { city: 'Riga', why: 'it is there' }), call('s2', 'look', { city: 'Oslo', why: 'it is there as well' }),
    ],
    [think('Both were grey. '), say('Now I have seen them both, and there is nothing more to tell.')],
  ],
  counting: [[say('This is answer {call}.')]],
};

/** Scripts whose turns follow the session's calls, whatever the user says. */
export const straight = { once: scripts.client };

/** PACE is the pause before a word, by model, in milliseconds. */
export const PACE = { slow: 4 };

/** What the tools answer: the body, or refuse, the text of a failure. */
export const tools = {
  look: ({ city }) => ({
    result: { city, sky: 'grey' },
    patches: [{ op: 'add', path: `/${city}`, value: 'seen' }],
    events: [{ name: 'progress', data: { id: 'p', city } }, { name: 'noise', data: { transient: true } }],
  }),
  peek: ({ city }) => ({ result: `a glimpse of ${city}` }),
  remove: ({ path }) => ({ result: { removed: [path], left: null } }),
  refuse: () => ({ refuse: 'not today' }),
};

/** configuration returns the daemon's configuration file: JSON is YAML. */
export function configuration(world) {
  const http = (name) => ({ description: name, http: { url: `${world}/tool/${name}` } });
  const all = {
    look: http('look'),
    peek: http('peek'),
    refuse: http('refuse'),
    remove: { ...http('remove'), requireApproval: true },
    locate: { description: 'Where the user is.', client: true },
  };
  const agents = Object.fromEntries(Object.keys({ ...scripts, ...straight }).map((name) => [name, {
    systemPrompt: `You are ${name}.`,
    model: { provider: 'openai', name, apiKey: 'none', baseURL: `${world}/v1`, maxRetries: 0 },
    tools: all,
    initialState: {},
  }]));
  const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
  for (const name of ['writer', 'cleaner', 'scout']) agents[name].outputSchema = text;
  agents.editor.subAgents = ['writer'];
  agents.chief.subAgents = ['cleaner'];
  agents.guide.subAgents = ['scout'];
  agents.plain = {
    systemPrompt: 'You are plain.',
    model: { provider: 'scripted', script: [{ reasoning: 'Hm, well.', text: 'What I always say, word by word.' }] },
  };
  return JSON.stringify({ agents });
}
