package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/memory/embedder/local"
	"github.com/helixd/helixd/agentloop/memory/embedder/openai"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog"
)

// embedTimeout is how long vectors that are being computed may take when the
// daemon stops. What is not done then, a later run finds.
const embedTimeout = 5 * time.Second

// openMemories begins to manage memories, if there is an index to find them in.
func (d *daemon) openMemories(c config.Memory, store eventlog.Log, measured *memory.Metrics, log *slog.Logger) {
	if d.models == nil {
		return
	}
	executor := memory.Inline()
	if c.Executor == config.ExecutorBackground {
		executor = memory.Background(c.MaxConcurrency)
	}
	d.memories = memory.New(memory.Options{
		Log: store, Index: d.models, Embedder: embedderOf(c.Embedder), Executor: executor, Logger: log, Metrics: measured,
	})
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), embedTimeout)
		defer cancel()
		if err := d.memories.Shutdown(ctx); err != nil {
			log.Warn("memories are left without vectors for now", "error", err)
		}
	})
}

// embedderOf returns nil if memories are to be found by words only.
func embedderOf(e config.Embedder) memory.Embedder {
	switch e.Provider {
	case config.EmbedderLocal:
		return local.New(e.Dimensions)
	case config.EmbedderOpenAI:
		return openai.New(e.Name, &openai.Options{APIKey: e.APIKey.Reveal(), BaseURL: e.BaseURL, Dimensions: e.Dimensions})
	}
	return nil
}
