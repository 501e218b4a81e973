// The transport in the AI SDK's own Chats, of every version, over a connection that breaks after every part.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HelixChatTransport, HelixClient } from '../dist/index.js';
import { history } from '../../../integration/aisdk/normal.mjs';
import { versions } from '../../../integration/aisdk/versions.mjs';
import { relay } from '../../../integration/readme/relay.mjs';

let line;
before(async () => { line = await relay(process.env.HELIX_URL); });
after(() => line.close());
const helix = new HelixClient({ url: process.env.HELIX_URL });

/** begin returns a Chat as a page makes it. */
async function begin({ ai, Chat, approvals }, id, agentType) {
  const transport = new HelixChatTransport({ url: line.url, minDelay: 5, approvals, body: { agentType } });
  const cutting = new TransformStreamOf(() => line.cut());
  const inner = { // the page's transport, whose connection breaks after every part
    resumeStreamIsReplay: transport.resumeStreamIsReplay,
    sendMessages: async (options) => cutting.of(await transport.sendMessages(options)),
    reconnectToStream: async (options) => cutting.of(await transport.reconnectToStream(options)),
  };
  const { resume, ...loaded } = await transport.load(id);
  const chat = new Chat({ ...loaded, transport: inner, sendAutomaticallyWhen: approvals ? ai.lastAssistantMessageIsCompleteWithApprovalResponses : undefined });
  transport.attach({ setMessages: (messages) => { chat.messages = messages; }, resumeStream: () => chat.resumeStream() });
  return { chat, resume, refresh: () => transport.refresh(id) };
}

/** Calls a function after each part of a stream. */
class TransformStreamOf {
  constructor(each) { this.each = each; }
  of(stream) {
    return stream?.pipeThrough(new TransformStream({ transform: (part, to) => { to.enqueue(part); this.each(); } })) ?? null;
  }
}

/** agrees: the Chat shows what a page that loads now shows. */
async function agrees(chat, id) {
  assert.equal(chat.error, undefined);
  assert.equal(chat.status, 'ready');
  assert.deepEqual(history(chat.messages), history((await helix.snapshot(id)).messages));
}

for (const version of versions) {
  test(`${version.name}: two turns, and a page that loads in the middle of the third`, async () => {
    const id = crypto.randomUUID();
    const { chat } = await begin(version, id, 'weather');
    for (const text of ['The weather?', 'And now?']) {
      await chat.sendMessage({ text });
      await agrees(chat, id);
    }
    await helix.say(id, 'And later?');
    const late = await begin(version, id, 'weather');
    assert.equal(late.resume, true);
    await late.chat.resumeStream();
    await agrees(late.chat, id);
    assert.equal(late.chat.messages.length, 6);
  });

  test(`${version.name}: an approval`, async () => {
    const id = crypto.randomUUID();
    const { chat, refresh } = await begin(version, id, 'janitor');
    await chat.sendMessage({ text: 'Tidy up, please.' });
    const { pendingToolCalls: [call] } = await helix.session(id);
    assert.equal(call.toolName, 'delete_files');
    if (version.approvals) {
      await chat.addToolApprovalResponse({ id: call.approvalId, approved: true });
    } else {
      await helix.approve(id, call.toolCallId);
      await refresh();
    }
    for (let i = 0; (await helix.status(id)).status !== 'completed' || chat.status !== 'ready'; i++) {
      assert.ok(i < 500, `it does not end: ${chat.status}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await agrees(chat, id);
  });
}
