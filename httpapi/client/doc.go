// Package client speaks to a helixd: it has a method for each route of package
// httpapi, and no part of the server.
//
//	c := client.New("http://127.0.0.1:8080", &client.Options{Token: client.StaticToken(token)})
//	started, err := c.Start(ctx, client.StartRequest{SessionID: "s", AgentType: "writer", Messages: client.Text("hi")})
//	for event, err := range c.Stream(ctx, "s", 0) { ... }
//
// What it promises:
//
//   - Every session id reaches its own session: ids are percent-encoded in
//     paths, and invalid ids are refused before a request is sent.
//   - Stream, StoreStream, Replay and Records yield each chunk once and in order,
//     across connections that break. Every iteration ends with an element that says that
//     it is complete, or with an error; breaking off closes its
//     connection.
//   - A call is repeated only where being carried out twice does no harm, by
//     these rules. A repeated stop may stop another run than the intended
//     one, if that has begun meanwhile.
//
// A call is repeated, as [Options] say, if the server fails (5xx, but for 501)
// or its answer is lost:
//
//	reads                             always
//	Start                             it answers with the run that continues
//	Resume that just continues        the same
//	Interrupt, Abort                  a second one finds it done
//	SubmitToolResult                  the first answer holds
//	Fork that names the new session   it is made once
//	AppendChunks, End, Fail           with an IdempotencyKey or an ExpectedSequence
//	SaveMemory                        with an IdempotencyKey
//	Import                            it continues where it broke off
//	Erase, Retain, EraseMemories      there is less left to do
//	ForgetMemory, ProcessMemories     the same
//	Unsubscribe                       the rights are revoked again
//	Subscribe                         a right too many expires like the other
//	Resume otherwise, Chat, Rollback  never
//	Backup                            never: its answer is not held
//
// The methods for chat clients that do the same are repeated likewise.
//
// A request that could not be sent, since there was no connection, is always sent again. A call that was repeated may answer with what a first try
// has left behind, such as ALREADY_COMPLETED; the methods say so. An error of
// 4xx is never repeated.
//
// Errors are [*Error], those of the variables below, and the cause of a
// context that has ended. Their texts hold no addresses and no headers.
package client
