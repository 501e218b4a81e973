// The cases of the Open Responses compliance suite, as its web page runs them.
import assert from 'node:assert/strict';
import { checkEvent, checkResponse } from './shape.mjs';

const user = (content) => ({ type: 'message', role: 'user', content });
const weather = {
  type: 'function', name: 'get_weather', description: 'The weather at a location.',
  parameters: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
};
const pixel = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const cases = [
  ['basic text', { input: [user('Say hello in exactly 3 words.')] }],
  ['streaming', { input: [user('Count from 1 to 5.')], stream: true }],
  ['system prompt', { input: [{ type: 'message', role: 'system', content: 'Speak like a pirate.' }, user('Say hello.')] }],
  ['tool calling', { input: [user("What's the weather like?")], tools: [weather] }, 'function_call'],
  ['tool calling, streaming', { input: [user("What's the weather like?")], tools: [weather], stream: true }, 'function_call'],
  ['image input', { input: [user([{ type: 'input_text', text: 'What is this?' }, { type: 'input_image', image_url: pixel }])] }],
  ['multi-turn', { input: [user('My name is Alice.'), { type: 'message', role: 'assistant', content: 'Hello Alice!' }, user('What is my name?')] }],
];

/** compliance returns the cases as tests, by name. */
export function compliance(url) {
  return cases.map(([name, body, wanted = 'message']) => [`Open Responses: ${name}`, async () => {
    const answer = await fetch(`${url}/v1/responses`, {
      method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer any' }, body: JSON.stringify({ model: 'brain', ...body }),
    });
    assert.equal(answer.status, 200, await (answer.ok ? '' : answer.text()));
    let response;
    if (body.stream) {
      const types = new Set();
      const frames = (await answer.text()).split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'));
      assert.equal(frames.pop(), 'data: [DONE]');
      for (const frame of frames) {
        const [event, data, ...more] = frame.split('\n');
        assert.equal(more.length, 0);
        const parsed = JSON.parse(data.slice('data: '.length));
        assert.equal(event, `event: ${parsed.type}`);
        checkEvent(parsed);
        types.add(parsed.type);
        if (parsed.item) types.add(`${parsed.type} of a ${parsed.item.type}`);
        response = parsed.response ?? response;
      }
      if (wanted === 'function_call') {
        for (const type of ['response.function_call_arguments.delta', 'response.function_call_arguments.done']) assert(types.has(type), type);
        for (const type of ['response.output_item.added', 'response.output_item.done']) assert(types.has(`${type} of a function_call`), type);
      }
    } else {
      response = await answer.json();
    }
    checkResponse(response);
    assert.equal(response.status, 'completed');
    assert(response.output.some((item) => item.type === wanted));
  }]);
}
