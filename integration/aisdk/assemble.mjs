// Streams become messages the way that each client makes them.

/**
 * assemble reads a stream's text with the version's own transport, parser,
 * schema and readUIMessageStream. It continues message if there is one.
 * Returns the last message and the errors that the client received.
 */
export async function assemble({ ai }, text, message) {
  const transport = new ai.DefaultChatTransport({
    fetch: async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const errors = [];
  let last = message;
  for await (const next of ai.readUIMessageStream({
    message: structuredClone(message),
    stream: await transport.reconnectToStream({ chatId: 'any' }),
    onError: (error) => errors.push(error.message),
  })) last = next;
  return { message: last, errors };
}

/** isOpen tells a part that is a call that waits for somebody at the client. */
export const isOpen = (part) => part.state === 'approval-requested'
  || (part.state === 'input-available' && !part.providerExecuted);

/** withAnswers returns a message in which each open call is answered as a Chat does it. */
export function withAnswers(message, answer) {
  return {
    ...message,
    parts: message.parts.map((part) => {
      if (!isOpen(part)) return part;
      if (part.state === 'input-available') return { ...part, ...answer(part) };
      return { ...part, state: 'approval-responded', approval: { ...part.approval, ...answer(part) } };
    }),
  };
}
