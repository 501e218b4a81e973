// The documentation's web page and component, as their readers copy them.
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const page = path.join(import.meta.dirname, '../../docs/guides/chat-ui.md');

/** drafts, if set, is a folder whose files are taken instead of the page's blocks. */
const drafts = process.env.README_DRAFTS;

/** block returns the page's only block of a language; file is what a draft of it is called. */
export async function block(language, file) {
  if (drafts) return readFile(path.join(drafts, file), 'utf8');
  const found = [...(await readFile(page, 'utf8')).matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))];
  if (found.length !== 1) throw new Error(`the page has ${found.length} ${language} blocks, not one`);
  return found[0][1];
}

/** swap replaces a string that a text contains exactly once. */
export function swap(text, old, replacement) {
  const pieces = text.split(old);
  if (pieces.length !== 2) throw new Error(`it contains ${old} ${pieces.length - 1} times, not once`);
  return pieces.join(replacement);
}
