package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// Draft is a memory that is to be saved.
type Draft struct {
	Scope eventlog.MemoryScope
	// Key names the memory within its scope, for good: what is saved under a
	// key that was used before changes nothing. Empty: it is a new memory.
	Key      string
	Content  string             // at most fact.MaxMemory bytes, not blank
	Tags     []string           // at most fact.MaxMemoryTags
	Metadata json.RawMessage    // an object of at most fact.MaxMemoryMetadata bytes, or nil
	Source   *fact.MemorySource // nil: outside of a session
}

// Save saves a memory; when it returns, that is as durable as the log. A draft
// whose key is known returns the memory that there is. Then the executor has
// its vector computed; a failure of that is no error of Save: the memory is
// pending.
//
// Errors: a *eventlog.ValidationError; readmodel.ErrForgotten for the key of a
// memory that was forgotten, which stays so; eventlog.ErrErasing while the scope is
// being erased; eventlog.ErrSessionNotFound for a session that is not there;
// those of the log.
func (m *Manager) Save(ctx context.Context, d Draft) (readmodel.Memory, error) {
	if err := d.Scope.Validate(); err != nil {
		return readmodel.Memory{}, err
	}
	if strings.TrimSpace(d.Content) == "" {
		return readmodel.Memory{}, invalid("content", "must not be empty")
	}
	log := d.Scope.LogID()
	saved := &fact.MemorySaved{
		MemoryID: m.idOf(d), Content: d.Content, Tags: d.Tags, Metadata: d.Metadata, Source: d.Source, Base: m.base(log),
	}
	entry, err := eventlog.NewFact(log, saved, eventlog.Labels{})
	if err != nil {
		return readmodel.Memory{}, err
	}
	owner := uint64(0) // a record of the session whose memory it is
	if d.Scope.Kind == eventlog.MemoryOfSession {
		if owner, err = m.opts.Log.Head(ctx, d.Scope.ID); err != nil {
			return readmodel.Memory{}, err
		}
	}
	memory, known, err := m.append(ctx, d, saved, entry)
	if owner > 0 && (err == nil || errors.Is(err, eventlog.ErrOutcomeUnknown)) {
		err = cmp.Or(m.undoIfGone(ctx, d.Scope, owner, saved.MemoryID, known), err)
	}
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

// append writes a memory exactly once, unless it is there already, by its key. The log's head
// is read before the key is looked up, so that a save of the same memory at
// the same time is either found or conflicts; then only what came after that head is looked at.
func (m *Manager) append(ctx context.Context, d Draft, f *fact.MemorySaved, entry eventlog.Entry) (memory readmodel.Memory, there bool, err error) {
	log := d.Scope.LogID()
	head, err := m.opts.Log.Head(ctx, log)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return memory, false, err
	}
	known, err := readmodel.Memory{}, readmodel.ErrNoMemory
	if d.Key != "" && head > 0 {
		known, err = m.lookUp(ctx, d.Scope, f.MemoryID)
	}
	done, late := m.locks.Lock(ctx, log)
	if late != nil {
		return memory, false, late
	}
	defer done()
	o := eventlog.UpdateOptions{Head: head, Current: true, Writer: m.writer, CatchUp: func(ctx context.Context) (uint64, error) {
		known, head, err = m.fromLog(ctx, d.Scope, f.MemoryID, head)
		return head, nil // err is propose's
	}}
	for {
		last, failed := eventlog.Update(ctx, m.opts.Log, log, o, func(uint64) ([]eventlog.Entry, error) {
			if !errors.Is(err, readmodel.ErrNoMemory) || errors.Is(err, readmodel.ErrForgotten) {
				return nil, err
			}
			return []eventlog.Entry{entry}, nil
		})
		switch {
		case errors.Is(failed, eventlog.ErrSessionNotFound): // it was erased meanwhile
			o.Head, o.Current = 0, false
		case failed == nil && known.ID == "":
			return memoryOf(d.Scope, f, last), false, nil
		default:
			return known, known.ID != "", failed
		}
	}
}

// undoTimeout is how long it may take to erase what was saved for a session that
// is gone.
const undoTimeout = 10 * time.Second

// undoIfGone erases the memories of a session that was erased while one was
// saved. An erasure erases the session, and then its memories: either that sees
// what was saved, or this sees that the session, which had the record owner, is gone. If
// there is another one of its id by now, the memory is forgotten, unless it was known: the
// others are that one's. The session's run was stopped with it, so ctx may have ended.
func (m *Manager) undoIfGone(ctx context.Context, scope eventlog.MemoryScope, owner uint64, id string, known bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	head, err := m.opts.Log.Head(ctx, scope.ID)
	if err == nil && head != owner {
		_, err = m.headOver(ctx, scope.ID, owner)
	}
	switch {
	case !errors.Is(err, eventlog.ErrSessionNotFound):
		return err
	case head > 0 && known:
		return err
	case head > 0:
		if failed := m.Forget(ctx, scope, id); failed != nil && !errors.Is(failed, readmodel.ErrNoMemory) {
			return failed
		}
		return err
	}
	erasure, failed := m.opts.Log.Erase(ctx, scope.LogID())
	if erasure.Pending {
		m.opts.Logger.Warn("a memory was saved while all were erased, and some of its bytes may be left: erase them again", "scope", scope.Kind)
	}
	return cmp.Or(failed, err) // that there is nothing to erase says the same
}

func memoryOf(scope eventlog.MemoryScope, f *fact.MemorySaved, sequence uint64) readmodel.Memory {
	return readmodel.Memory{
		ID: f.MemoryID, Scope: scope, Content: f.Content, Tags: f.Tags, Metadata: f.Metadata, Source: f.Source,
		CreatedAt: f.Timestamp, Sequence: sequence, EmbeddingStatus: readmodel.EmbeddingPending,
	}
}
