// One line per test, and the failures after all of them.

const failures = [];
const only = new RegExp(process.env.AISDK_ONLY ?? '');
let began;
let passed = 0;

/** wanted tells whether AISDK_ONLY, a regular expression, asks for a test. */
export const wanted = (name) => only.test(name);

/**
 * run runs a test and writes its line. fn returns what else the line says, and
 * throws what is wrong.
 */
export async function run(name, fn) {
  const start = performance.now();
  began ??= start;
  const line = (mark, rest) => console.log(`${mark} ${name.padEnd(44)} ${rest} (${Math.round(performance.now() - start)} ms)`);
  try {
    const rest = await fn();
    passed++;
    line('ok  ', rest ?? '');
  } catch (error) {
    failures.push({ name, error });
    line('FAIL', error.message.split('\n')[0].slice(0, 150));
  }
}

/** finish writes the failures and returns the exit code. */
export function finish() {
  for (const { name, error } of failures) console.log(`\n--- ${name}\n${error.stack}`);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`\n${passed} passed, ${failures.length} failed, ${seconds} s`);
  return failures.length === 0 && passed > 0 ? 0 : 1;
}
