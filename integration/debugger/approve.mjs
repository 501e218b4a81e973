// The part of TestOneStory that the debugger has: a person approves what a session, URL SESSION,
// waits for, and sees the answer.
import { appears, close, goes, launch, link, open, part, press, until } from './browser.mjs';

const [url, session, answer] = process.argv.slice(2);
const browser = await launch();
const page = await open(browser, link(url, session));
await appears(page, part('approve'));
await press(page, part('approve'));
await goes(page, part('approve'));
await until('the answer is shown', () => page.evaluate((text) => document.body.textContent.includes(text), answer));
await close(page);
await browser.close();
