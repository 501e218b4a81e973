// A Chat against the daemon, as a page would set it up.
import assert from 'node:assert/strict';
import { isOpen } from './assemble.mjs';
import { until } from './gates.mjs';
import { history } from './normal.mjs';
import { framesOf, lastID } from './wire.mjs';

/**
 * Page is a page with a chat in it: a version's Chat with its default
 * transport. Options: agent; messages to begin with; tools, by name what the
 * browser answers a client tool with.
 */
export class Page {
  posts = 0;
  errors = [];
  data = [];
  asked = []; // the tools that onToolCall was asked to run

  constructor(version, daemon, session, { agent, messages = [], tools = {} } = {}) {
    this.version = version;
    this.daemon = daemon;
    this.session = session;
    const { ai } = version;
    this.chat = new version.Chat({
      id: session,
      messages,
      transport: new ai.DefaultChatTransport({
        api: daemon.api, body: { agentType: agent }, fetch: (url, init) => this.#fetch(url, init),
      }),
      sendAutomaticallyWhen: (state) => ai.lastAssistantMessageIsCompleteWithToolCalls(state)
        || (version.approvals && ai.lastAssistantMessageIsCompleteWithApprovalResponses(state)),
      onToolCall: ({ toolCall }) => {
        this.asked.push(toolCall.toolName);
        const answer = tools[toolCall.toolName];
        // Not awaited: the Chat says that this would be a deadlock.
        if (answer) this.chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, ...answer });
      },
      onData: (part) => this.data.push(part),
      onError: (error) => this.errors.push(error),
    });
  }

  /** #fetch counts the requests and keeps the cursor, as a page's own fetch may. */
  async #fetch(url, init) {
    if (init.method === 'POST') this.posts++;
    const response = await fetch(url, init);
    if (!response.body || !response.ok) return response;
    let rest = '';
    const decoder = new TextDecoder();
    const watched = response.body.pipeThrough(new TransformStream({
      transform: (bytes, controller) => {
        rest += decoder.decode(bytes, { stream: true });
        const end = rest.lastIndexOf('\n\n') + 2;
        if (end > 1) {
          this.cursor = lastID(framesOf(rest.slice(0, end)), this.cursor);
          rest = rest.slice(end);
        }
        controller.enqueue(bytes);
      },
    }));
    return new Response(watched, { status: response.status, headers: response.headers });
  }

  say(text) { return this.chat.sendMessage({ text: `[${this.session}] ${text}` }); }

  /** resume reconnects, as useChat does with `resume`; after position if there is one. */
  resume(position) {
    return this.chat.resumeStream(position === undefined ? {} : { headers: { 'X-Resume-From-Sequence': String(position) } });
  }

  /** sees waits until test says yes to the last message; what says what for. */
  sees(test, what) { return this.#until(() => test(this.chat.messages.at(-1)), what); }

  /** meets waits until the run has come to the gate. */
  meets(gate) { return this.#until(() => gate.here, 'the gate'); }

  /** #until waits for condition while the page has no error. */
  #until(condition, what) {
    return until(() => {
      assert.notEqual(this.chat.status, 'error', `waiting for ${what}, seeing ${this.#looks()}`);
      return condition();
    }, () => `${what}, seeing ${this.#looks()}`);
  }

  /** shows waits until the last message has the text in it. */
  shows(text) { return this.sees((message) => JSON.stringify(message ?? '').includes(text), text); }

  /** open returns the calls that wait for somebody here, once there are some and the page is ready. */
  async open() {
    const calls = () => this.chat.messages.at(-1)?.parts.filter(isOpen) ?? [];
    await this.#until(() => calls().length > 0, 'an open call');
    await this.ready();
    return calls();
  }

  /** answer answers a call as its user would; answer is what withAnswers takes. */
  answer(part, answer) {
    if (part.state === 'approval-requested') {
      return this.chat.addToolApprovalResponse({ id: part.approval.id, ...answer });
    }
    return this.chat.addToolOutput({ tool: part.type.slice('tool-'.length), toolCallId: part.toolCallId, ...answer });
  }

  ready() {
    return until(() => this.chat.status === 'ready' || this.chat.status === 'error', () => `ready, seeing ${this.#looks()}`);
  }

  /** agrees: no error, and the messages are the server's. */
  async agrees() {
    await this.ready();
    assert.deepEqual(this.errors.map(String), []);
    assert.equal(this.chat.error, undefined);
    assert.equal(this.chat.status, 'ready');
    const { messages } = await this.daemon.snapshot(this.session);
    assert.deepEqual(history(this.chat.messages), history(messages));
    const valid = await this.version.ai.safeValidateUIMessages({ messages });
    assert.ok(valid.success, `the snapshot's messages are not valid: ${valid.error?.message}`);
    return messages;
  }

  /** looks says what there is to see. */
  #looks() { return `${this.chat.status} ${this.chat.error ?? ''} ${JSON.stringify(this.chat.messages)}`; }
}

/** reload returns a page that shows the snapshot of a session. */
export async function reload(version, daemon, session, options = {}) {
  const { messages, streamSequence } = await daemon.snapshot(session);
  const page = new Page(version, daemon, session, { ...options, messages });
  page.cursor = streamSequence;
  return page;
}
