// The members that the Open Responses specification requires of responses, items and events, with
// their types; "null" in a list allows null.
import assert from 'node:assert/strict';

const response = {
  id: 'string', object: 'string', created_at: 'integer', completed_at: 'integer|null', status: 'string', incomplete_details: 'object|null',
  model: 'string', previous_response_id: 'string|null', instructions: 'string|null', output: 'array', error: 'object|null', tools: 'array',
  tool_choice: 'string|object', truncation: 'string', parallel_tool_calls: 'boolean', text: 'object', top_p: 'number',
  presence_penalty: 'number', frequency_penalty: 'number', top_logprobs: 'integer', temperature: 'number', reasoning: 'object|null',
  usage: 'object|null', max_output_tokens: 'integer|null', max_tool_calls: 'integer|null', store: 'boolean', background: 'boolean',
  service_tier: 'string', metadata: 'object', safety_identifier: 'string|null', prompt_cache_key: 'string|null',
};

const items = {
  message: { id: 'string', status: 'string', role: 'string', content: 'array' },
  function_call: { id: 'string', call_id: 'string', name: 'string', arguments: 'string', status: 'string' },
  function_call_output: { id: 'string', call_id: 'string', output: 'string|array', status: 'string' },
  reasoning: { id: 'string', summary: 'array' },
};

const parts = {
  output_text: { text: 'string', annotations: 'array', logprobs: 'array' },
  summary_text: { text: 'string' },
};

const tool = { type: 'string', name: 'string', description: 'string|null', parameters: 'object|null', strict: 'boolean|null' };

const usage = { input_tokens: 'integer', output_tokens: 'integer', total_tokens: 'integer', input_tokens_details: 'object', output_tokens_details: 'object' };

const inItem = { item_id: 'string', output_index: 'integer' };
const ofResponse = { response: 'object' };
const ofItem = { output_index: 'integer', item: 'object' };
const ofPart = { ...inItem, content_index: 'integer', part: 'object' };
const events = {
  'response.created': ofResponse, 'response.queued': ofResponse, 'response.in_progress': ofResponse, 'response.completed': ofResponse,
  'response.failed': ofResponse, 'response.incomplete': ofResponse, 'response.output_item.added': ofItem, 'response.output_item.done': ofItem,
  'response.content_part.added': ofPart, 'response.content_part.done': ofPart,
  'response.output_text.delta': { ...inItem, content_index: 'integer', delta: 'string', logprobs: 'array' },
  'response.output_text.done': { ...inItem, content_index: 'integer', text: 'string', logprobs: 'array' },
  'response.function_call_arguments.delta': { ...inItem, delta: 'string' },
  'response.function_call_arguments.done': { ...inItem, arguments: 'string' },
  'response.reasoning_summary_part.added': { ...inItem, summary_index: 'integer', part: 'object' },
  'response.reasoning_summary_part.done': { ...inItem, summary_index: 'integer', part: 'object' },
  'response.reasoning_summary_text.delta': { ...inItem, summary_index: 'integer', delta: 'string' },
  'response.reasoning_summary_text.done': { ...inItem, summary_index: 'integer', text: 'string' },
};

function kindOf(value) {
  if (value === null) return ['null'];
  if (Array.isArray(value)) return ['array'];
  if (Number.isInteger(value)) return ['integer', 'number'];
  return [typeof value];
}

function check(value, shape, what) {
  for (const [name, types] of Object.entries(shape)) {
    const kinds = kindOf(value[name]);
    assert(types.split('|').some((type) => kinds.includes(type)), `${what}.${name} is ${JSON.stringify(value[name])}, not ${types}`);
  }
}

export function checkItem(item) {
  assert(items[item.type], `an item of type ${item.type}`);
  check(item, items[item.type], item.type);
  for (const part of [...(item.content ?? []), ...(item.summary ?? [])]) check(part, parts[part.type], part.type);
}

export function checkResponse(value) {
  check(value, response, 'response');
  value.output.forEach(checkItem);
  value.tools.forEach((each) => check(each, tool, 'tool'));
  if (value.usage) check(value.usage, usage, 'usage');
}

export function checkEvent(event) {
  assert(events[event.type], `an event of type ${event.type}`);
  check(event, { ...events[event.type], sequence_number: 'integer' }, event.type);
  if (event.response) checkResponse(event.response);
  if (event.item) checkItem(event.item);
}
