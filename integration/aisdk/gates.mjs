// Gates are the places where the model's server and the tools wait for the
// test, so that it can look at a run that is under way.

const gates = new Map();

/** DEADLINE bounds every wait, in milliseconds. */
export const DEADLINE = 60_000;

/** within fails if promise is not settled by the deadline. */
export function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${DEADLINE} ms for ${what}`)), DEADLINE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** until fails if condition() does not get true by the deadline. */
export async function until(condition, what) {
  const deadline = Date.now() + DEADLINE;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited ${DEADLINE} ms for ${typeof what === 'function' ? what() : what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** hold closes the gate: a request that reaches it waits until it is opened. */
export function hold(key) {
  const gate = {};
  const reached = new Promise((resolve) => { gate.arrive = () => { gate.here = true; resolve(); }; });
  gate.opened = new Promise((resolve) => { gate.open = () => { gates.delete(key); resolve(); }; });
  gate.reached = () => within(reached, `somebody at the gate ${key}`);
  gates.set(key, gate);
  return gate;
}

/** pass waits at the gate if it is closed. */
export async function pass(key) {
  const gate = gates.get(key);
  if (!gate) return;
  gate.arrive();
  await gate.opened;
}
