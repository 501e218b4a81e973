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
// unless Options.Listen or Options.WebSocket asks for one. A server started
// again on the same folder has the same streams; a second one on it at the same
// time is refused.
//
// Servers with Options.Cluster keep their streams together, in as many replicas
// as a stream asks for, and continue while most of them run. Such a server always opens a
// port on the loopback interface: nats-server connects to others only when it listens
// itself. That port accepts only clients that the other ports accept. A data folder belongs
// to one server of one cluster, for good: it can't be used under another name or without
// the cluster, and the folder of a single server can't join a cluster, which would delete its
// streams.
//
// Permissions:
//
//	Connect                          everything
//	outside, Options.User/Password   everything
//	outside, no credentials          with Options.User nothing, otherwise
//	                                 subscribe to helix.live.>
//	  and with Options.AllowRead     read all logs, e.g. through jetstream.Open
//	outside, a right signed by       subscribe to the one subject of helix.live.>
//	one of Options.Subscribers       that it names, until it expires or
//	                                 Options.Revoked reports it
//
// A client without credentials can neither write nor create consumers: a consumer delivers
// messages to any inbox, whatever its creator may subscribe to.
//
// With Options.MinFree a server watches its disk. [Server.Refuses] says when
// nothing more should be stored. Behind a disk that was full to the last byte
// the server writes no more. When there is room it is restarted, within the
// process, at the same addresses; what was acknowledged is there, but in mode
// SyncInterval for what was not yet synced.
//
// With Options.GroupSync the server does not sync each message. A caller that needs
// to know that what it has stored survives a power loss calls [Server.Sync], which
// syncs once for all that wait. eventlog/jetstream does, with Options.Server.
//
// A message that was removed keeps its bytes in its block for as long as the
// server keeps the block. [Server.Scrub] overwrites them in place, and
// [Server.ScrubAtStart] where that needs a server that does not run. A server that
// overwrites a message itself first stores that it is deleted. If it is killed in
// between, Start overwrites the message.
//
// A [Folder] looks at the files of a server that does not run: a server that
// starts may cut off what it can't read.
package embed
