// The services next to the daemon: the server of the pages, which rewrites /api
// as Next does, and is the tool of the daemon that the plain page talks to.
import esbuild from 'esbuild';
import http from 'node:http';
import path from 'node:path';
import { block, swap } from './blocks.mjs';

/** mount is what Next adds to a page; its development server has StrictMode, too. */
const mount = `
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
createRoot(document.getElementById('root')!).render(<StrictMode><Page /></StrictMode>)
`;

async function bundle(source) {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: source + mount, loader: 'tsx', resolveDir: import.meta.dirname },
    alias: { '@helixd/client': process.env.HELIX_CLIENT ?? path.join(import.meta.dirname, '../../httpapi/js/src/index.ts') },
    bundle: true, write: false, format: 'esm', jsx: 'automatic', define: { 'process.env.NODE_ENV': '"development"' },
  });
  return outputFiles[0].text;
}

/** serve listens on the port: chat.html and the component on /killed talk to the daemon plain, the component on / to the daemon demo. */
export async function serve(port, { plain, demo }) {
  const component = await block('tsx', 'page.tsx');
  const page = (script) => html(`<!doctype html><meta charset="utf-8"><div id="root"></div><script type="module" src="${script}"></script>`);
  const html = (body) => ({ type: 'text/html', body });
  const files = {
    '/chat.html': html(swap(await block('html', 'chat.html'), 'http://localhost:8080', plain)),
    '/': page('/page.js'),
    '/page.js': { type: 'text/javascript', body: await bundle(component) },
    '/killed': page('/killed.js'),
    '/killed.js': { type: 'text/javascript', body: await bundle(swap(component, "'/api'", "'/plain'")) },
    '/favicon.ico': { type: 'image/x-icon', body: '' },
    '/tool': { type: 'application/json', body: '{"result":"fog"}' },
  };
  const server = http.createServer((req, res) => {
    const file = files[new URL(req.url, 'http://site').pathname];
    if (file) res.writeHead(200, { 'content-type': file.type }).end(file.body);
    else if (req.url.startsWith('/api/')) rewrite(req, res, demo + req.url.slice('/api'.length));
    else if (req.url.startsWith('/plain/')) rewrite(req, res, plain + req.url.slice('/plain'.length));
    else res.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(port, 'localhost', resolve));
  return server;
}

/** rewrite passes a request on, and ends when either side does. */
function rewrite(req, res, url) {
  const on = http.request(url, { method: req.method, headers: { ...req.headers, host: new URL(url).host } }, (answer) => {
    res.writeHead(answer.statusCode, answer.headers);
    answer.pipe(res);
    answer.on('error', () => res.destroy());
  });
  on.on('error', () => (res.headersSent ? res.destroy() : res.writeHead(500).end()));
  res.on('close', () => on.destroy());
  req.pipe(on);
}
