// A network between the plain page and its daemon, which can be cut.
import net from 'node:net';

/** relay passes connections on to a URL's server; cut breaks all that there are. */
export async function relay(to) {
  const { hostname, port } = new URL(to);
  const open = new Set();
  const server = net.createServer((near) => {
    const far = net.connect(port, hostname);
    for (const [socket, other] of [[near, far], [far, near]]) {
      open.add(socket);
      socket.on('error', () => {}).on('close', () => { open.delete(socket); other.destroy(); });
      socket.pipe(other);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut: () => open.forEach((socket) => socket.destroy()),
    close() {
      this.cut();
      server.close();
    },
  };
}
