// Command log uses helixd as a log only, without its agents: a program claims a session, streams
// tokens into it, and follows it from a cursor. A second program takes over, and the first is refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/stream"
)

func main() { run("./helix-data", fmt.Sprintf("talk-%d", time.Now().Unix())) }

func run(dir, session string) {
	ctx := context.Background()
	srv, err := embed.Start(ctx, embed.Options{DataDir: dir}) // or nats.Connect, to your own deployment
	must(err)
	defer srv.Stop()
	nc, err := srv.Connect()
	must(err)
	defer nc.Close()
	store, err := jetstream.Open(ctx, nc, nil)
	must(err)
	defer store.Close()

	first := claim(ctx, store, session, 0)
	must(first.Write(ctx, text(session, "Hello, "))) // queued: the next append takes what has come by then
	must(first.Append(ctx, text(session, "Ada.")))   // durable when it returns
	head, err := store.Head(ctx, session)
	must(err)

	second := claim(ctx, store, session, head)
	must(second.Append(ctx, text(session, " And good night.")))
	err = first.Append(ctx, text(session, "lost"))
	fmt.Println("superseded:", errors.Is(err, eventlog.ErrSuperseded))

	chunks := eventlog.Chunks(store.Follow(ctx, session, 0)) // later: from the last sequence that you have
	for stored, err := range stream.Take(stream.FilterByType(chunks, "text_delta"), 3) {
		must(err)
		fmt.Printf("%q\n", stored.Chunk.(*eventlog.TextDelta).Delta)
	}
}

// claim makes a writer that fences all writers of the session before it.
func claim(ctx context.Context, store eventlog.Log, session string, head uint64) *eventlog.Writer {
	id := fmt.Sprintf("%s-%d", session, time.Now().UnixNano()) // never used before
	w := eventlog.NewWriter(store, session, eventlog.WriterOptions{ID: id, Head: head, NoMerge: true})
	must(w.Claim(ctx, &fact.RunClaimed{RunID: id, Node: "me", Attempt: 1, Base: fact.Base{SessionID: session, Timestamp: time.Now().UnixMilli()}}))
	return w
}

func text(session, delta string) eventlog.Entry {
	e, err := eventlog.NewChunk(&eventlog.TextDelta{
		Delta: delta, Base: eventlog.Base{AgentID: session, AgentType: "talker", Timestamp: time.Now().UnixMilli()},
	}, eventlog.Labels{})
	must(err)
	return e
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}
