// A Chromium without a window, and what tests do with its pages.
import assert from 'node:assert/strict';
import puppeteer from 'puppeteer-core';

/** DEADLINE bounds every wait, in milliseconds. */
export const DEADLINE = 60_000;

// In milliseconds. Not by mutations, as waitForSelector does: the last one may come between its first look and its observer.
const POLLING = 20;

export function launch() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM,
    pipe: true, // it ends with this process, however that ends
    args: ['--no-sandbox', '--disable-dev-shm-usage'], // a container has neither
  });
}

/** open returns a page whose scripts must not fail. */
export async function open(browser, url) {
  const page = await browser.newPage();
  page.setDefaultTimeout(DEADLINE);
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(String(error)));
  await page.goto(url);
  await page.waitForSelector('input');
  return page;
}

/** say types into the page's only field. */
export async function say(page, text) {
  await page.type('input', text);
  await page.keyboard.press('Enter');
  await page.waitForSelector('input:disabled');
}

/** shows waits until the page has the text in it. */
export const shows = (page, text) => page.waitForFunction((want) => document.body.innerText.includes(want), { polling: POLLING }, text);

/** rests waits until the page takes input again. */
export async function rests(page) {
  await page.waitForFunction(() => document.querySelector('input:enabled'), { polling: POLLING });
  assert.deepEqual(page.problems, []);
}

/** shoot makes a picture if there is a folder for pictures. */
export async function shoot(page, name) {
  if (process.env.README_PICTURES) await page.screenshot({ path: `${process.env.README_PICTURES}/${name}.png` });
}

/** snapshot returns what the daemon has of a session. */
export async function snapshot(daemon, session) {
  const response = await fetch(`${daemon}/chat/${session}/snapshot`);
  assert.equal(response.status, 200);
  return response.json();
}

/** texts returns the texts of a message. */
export const texts = (message) => message.parts.filter((part) => part.type === 'text').map((part) => part.text);
