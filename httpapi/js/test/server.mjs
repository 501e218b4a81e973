// Servers that fail as the tests want.
import http from 'node:http';

/** serve answers each request with the next of some functions, the last one for all further ones. */
export async function serve(...answers) {
  const requests = [];
  const server = http.createServer((request, response) => {
    requests.push(request);
    return answers[Math.min(requests.length, answers.length) - 1](request, response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** json answers with a value. */
export const json = (value) => (_, response) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value));

/** event is a server-sent event. */
export const event = (value, id) => `${id === undefined ? '' : `id: ${id}\n`}data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
