package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// Draft is a memory that is to be saved.
type Draft struct {
	Scope eventlog.MemoryScope
	// Key names the memory within its scope: what is saved under a key that
	// there is already changes nothing. Empty: it is a new memory.
	Key      string
	Content  string   // at most eventlog.MaxMemory bytes, not blank
	Tags     []string // at most eventlog.MaxMemoryTags
	Metadata json.RawMessage
	Source   *eventlog.MemorySource // nil: outside of a session
}

// Save saves a memory; when it returns, that is as durable as the log. A draft
// whose key is known returns the memory that there is. Then the executor has
// its vector computed; a failure of that is no error of Save: the memory is
// pending.
//
// Under the key of a memory that was forgotten a new one is saved.
//
// Errors: a *eventlog.ValidationError; eventlog.ErrErasing while the scope is
// being erased; those of the log.
func (m *Manager) Save(ctx context.Context, d Draft) (readmodel.Memory, error) {
	if err := checkScope(d.Scope); err != nil {
		return readmodel.Memory{}, err
	}
	if strings.TrimSpace(d.Content) == "" {
		return readmodel.Memory{}, invalid("content", "must not be empty")
	}
	log := d.Scope.LogID()
	fact := &eventlog.MemorySaved{
		MemoryID: m.idOf(d), Content: d.Content, Tags: d.Tags, Metadata: d.Metadata, Source: d.Source, FactBase: m.base(log),
	}
	entry, err := eventlog.NewFact(log, fact, eventlog.Labels{})
	if err != nil {
		return readmodel.Memory{}, err
	}
	memory, err := m.append(ctx, d, fact, entry)
	if err != nil {
		return readmodel.Memory{}, err
	}
	if memory.EmbeddingStatus == readmodel.EmbeddingPending {
		memory.EmbeddingStatus = m.embedSaved(ctx, memory)
	}
	return memory, nil
}

func (m *Manager) idOf(d Draft) string {
	if d.Key == "" {
		return m.opts.NewID()
	}
	sum := sha256.Sum256([]byte(d.Scope.LogID() + "\x00" + d.Key))
	return hex.EncodeToString(sum[:16])
}

// append writes a memory exactly once, unless its key is known. The log's head
// is asked for before the key is looked up, so that whoever saves the same at
// the same time is seen or met.
func (m *Manager) append(ctx context.Context, d Draft, f *eventlog.MemorySaved, entry eventlog.Entry) (readmodel.Memory, error) {
	log, writer := d.Scope.LogID(), "memory:"+m.opts.NewID()
	for {
		head, err := m.opts.Log.Head(ctx, log)
		if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
			return readmodel.Memory{}, err
		}
		if d.Key != "" && head > 0 {
			known, err := m.lookUp(ctx, d.Scope, f.MemoryID)
			if !errors.Is(err, readmodel.ErrNoMemory) {
				return known, err
			}
		}
		last, err := eventlog.AppendOnce(ctx, m.opts.Log, log, writer, head, []eventlog.Entry{entry})
		_, conflict := errors.AsType[*eventlog.ConflictError](err)
		switch {
		case err == nil:
			return memoryOf(d.Scope, f, last), nil
		case conflict, errors.Is(err, eventlog.ErrSessionNotFound): // somebody wrote, or erased, meanwhile
		default:
			return readmodel.Memory{}, err
		}
	}
}

func memoryOf(scope eventlog.MemoryScope, f *eventlog.MemorySaved, sequence uint64) readmodel.Memory {
	return readmodel.Memory{
		ID: f.MemoryID, Scope: scope, Content: f.Content, Tags: f.Tags, Metadata: f.Metadata, Source: f.Source,
		CreatedAt: f.Timestamp, Sequence: sequence, EmbeddingStatus: readmodel.EmbeddingPending,
	}
}
