// The daemon belongs to the Go test that runs this program: it kills and starts it on request, on
// a line of our output that begins with "@", and answers with a line of JSON.
import readline from 'node:readline';

const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function tell(command) {
  process.stdout.write(`@${command}\n`);
  const { value, done } = await answers.next();
  if (done) throw new Error('nobody answers: run this by `make agui`');
  return JSON.parse(value);
}

/** start runs the daemon with the configuration file and returns its URL. */
export const start = async (config) => (await tell(`start ${config}`)).url;

/** kill is kill -9. */
export const kill = () => tell('kill');

/** restart starts the daemon again, on its data and its address. */
export const restart = () => tell('restart');
