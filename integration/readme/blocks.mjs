// The README's web page and component, as their readers copy them.
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const readme = path.join(import.meta.dirname, '../../README.md');

/** drafts, if set, is a folder whose files are taken instead of the README's blocks. */
const drafts = process.env.README_DRAFTS;

/** block returns the only block of a language under the heading; file is what a draft of it is called. */
export async function block(language, file) {
  if (drafts) return readFile(path.join(drafts, file), 'utf8');
  const [, section] = (await readFile(readme, 'utf8')).split('\n## Talk to it from a web page\n');
  if (!section) throw new Error('the README says nothing about web pages');
  const found = [...section.split('\n## ')[0].matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))];
  if (found.length !== 1) throw new Error(`the README has ${found.length} ${language} blocks about web pages, not one`);
  return found[0][1];
}

/** swap replaces what stands in a text exactly once. */
export function swap(text, old, replacement) {
  const pieces = text.split(old);
  if (pieces.length !== 2) throw new Error(`${old} stands in it ${pieces.length - 1} times, not once`);
  return pieces.join(replacement);
}
