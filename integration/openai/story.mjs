// The part of TestOneStory that OpenAI's SDK has: `begin URL` has an agent pay, which a person must
// approve, and prints the conversation; `read URL CONVERSATION` prints what was
// said and done in it, a line each.
import OpenAI from 'openai';

const [part, url, known] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
if (part === 'begin') {
  const { id } = await client.conversations.create();
  const events = await client.responses.create({ model: 'payer', input: 'Pay them.', conversation: id, stream: true });
  let asked;
  for await (const event of events) {
    if (event.type === 'response.output_item.done' && event.item.type === 'mcp_approval_request') asked = event.item.name;
  }
  if (asked !== 'pay') throw new Error(`asked for ${asked}`);
  process.stdout.write(id);
} else {
  for await (const { id, approval_request_id, ...item } of client.conversations.items.list(known, { order: 'asc' })) {
    if (item.type.startsWith('mcp_approval')) continue; // who agreed to a call is the log's, and not what a fork goes on from
    console.log(item.content?.[0].text ?? JSON.stringify(item));
  }
}
