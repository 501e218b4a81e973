// Package embed runs a nats-server with JetStream inside the process.
//
//	srv, err := embed.Start(ctx, embed.Options{DataDir: "./helix-data"})
//	if err != nil {
//		return err
//	}
//	defer srv.Stop()
//	nc, err := srv.Connect()
//
// Clients inside the process are connected through a pipe; no port is opened
// unless Options.Listen asks for one. A server started again on the same
// folder has the same streams.
package embed
