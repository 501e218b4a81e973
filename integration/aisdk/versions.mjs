// The clients: each generation of the `ai` package at its beginning and at its
// newest, and the Chat classes made of them.

/** PlainState is what @ai-sdk/react's state is, without React. */
class PlainState {
  status = 'ready';
  error = undefined;
  constructor(messages = []) { this.messages = messages; }
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.with(index, this.snapshot(message)); };
  snapshot = (value) => structuredClone(value);
}

async function version(number, react) {
  const ai = await import(`ai-${number}`);
  const major = Number(number.split('.')[0]);
  let Chat = class extends ai.AbstractChat {
    constructor({ messages, ...init }) { super({ ...init, state: new PlainState(messages) }); }
  };
  if (react) ({ Chat } = await import(`react-${react}`));
  return {
    name: number,
    ai,
    Chat,
    chatName: react ? `@ai-sdk/react ${react}` : `AbstractChat ${number}`,
    /** approvals: it knows tool-approval-request. Without, the part kills its stream. */
    approvals: major >= 6,
    /**
     * replays: a Chat that reconnects begins the message from scratch, so it wants all
     * of it. Others have to reload.
     */
    replays: react !== undefined,
    /**
     * continues: a Chat whose network has broken keeps its parts and continues
     * them, so it names a position: 6 and 7 with resumeStreamIsReplay: false.
     */
    continues: react !== undefined,
    /** escapes: it escapes the session's id where it puts it in a path. */
    escapes: react !== undefined,
  };
}

export const versions = await Promise.all([
  version('5.0.200'),
  version('5.0.277', '2.0.280'),
  version('6.0.150'),
  version('6.0.326', '3.0.326'),
  version('7.0.0'),
  version('7.0.173', '4.0.177'),
]);

/** newest leads where one client is enough. */
export const newest = versions.at(-1);
