// What two equal messages may differ in.

/**
 * normal returns a message as it is compared. Whether a text or reasoning still
 * streams is not compared, nor the block's id that 7 keeps with reasoning.
 * The approval of a call that has its result is not compared: only the client
 * that gave it has it, no part of a stream can tell another one.
 */
export function normal(message) {
  if (message === undefined) return undefined;
  const { id, role, metadata, parts } = JSON.parse(JSON.stringify(message));
  const out = [];
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'reasoning') {
      delete part.state;
      delete part.id;
    }
    if (part.state?.startsWith('output-')) delete part.approval;
    out.push(part);
  }
  return { id, role, ...(metadata === undefined ? {} : { metadata }), parts: out };
}

/**
 * history returns a chat's messages as they are compared. A user's message has
 * the id that its client gave it, which no server can know before.
 */
export function history(messages) {
  return messages.map((message) => {
    const { id, ...rest } = normal(message);
    return message.role === 'user' ? rest : { id, ...rest };
  });
}
