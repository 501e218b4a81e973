// Runs the Durable Streams server on a folder, until SIGTERM:
//
//   node server.mjs FOLDER
//
// It prints its address when it is ready.
import { DurableStreamTestServer } from "@durable-streams/server"

const server = new DurableStreamTestServer({ port: 0, host: "127.0.0.1", dataDir: process.argv[2], compression: false })
console.log(await server.start())
process.once("SIGTERM", async () => {
  await server.stop()
  process.exit(0)
})
