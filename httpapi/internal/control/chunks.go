package control

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// Chunks answers POST /sessions/{id}/chunks: chunks of an outside producer,
// as NDJSON or as a JSON array, are appended to the session or begin it.
//
// They may be appended while a run is open, too: the run's writer continues
// after them, and what it truncates after a crash are its own chunks.
func (s *Routes) Chunks(w http.ResponseWriter, r *web.Request) error {
	body, err := r.OpenBody(w, api.MaxChunksBody, chunksBodyTimeout)
	if err != nil {
		return err
	}
	entries, patches, agentType, err := s.chunkEntries(r, body)
	if err = cmp.Or(body.Close(), err); err != nil {
		return err
	}
	asked := func() string {
		parts := [][]byte{[]byte("chunks")}
		for _, e := range entries {
			parts = append(parts, e.Payload)
		}
		return digest(parts...)()
	}
	return s.produce(w, r, production{entries: entries, agentType: agentType, digest: asked, check: func(ctx context.Context, t *projector.Tree) error {
		switch {
		case t.StreamStatus.Terminal():
			return eventlog.ErrStreamEnded
		case t.Head > 0 && t.AgentType != "" && t.AgentType != agentType:
			return &ChunkError{0, &eventlog.ValidationError{
				Field: "agentType", Reason: fmt.Sprintf("must be %q, the session's", t.AgentType),
			}}
		}
		return s.checkPatches(ctx, t, patches)
	}})
}

// fewOperations is how many operations an append may have without a turn: they
// are checked in milliseconds.
const fewOperations = 64

// checkPatches is projector.Tree.CheckPatches, in its turn if it may be much work.
func (s *Routes) checkPatches(ctx context.Context, t *projector.Tree, patches []*eventlog.StatePatch) error {
	operations := 0
	for _, p := range patches {
		if p != nil {
			operations += len(p.Patches)
		}
	}
	if operations > fewOperations {
		done, err := s.patches.Take(ctx, auth.CallerOf(ctx))
		if err != nil {
			return err
		}
		defer done()
	}
	return t.CheckPatches(ctx, patches)
}

// chunkEntries returns the chunks of a body as entries, if all of them are
// valid and an outside producer may write them. Patches has those of
// them that change the state, each in its place.
func (s *Routes) chunkEntries(r *web.Request, body io.Reader) (entries []eventlog.Entry, patches []*eventlog.StatePatch, agentType string, err error) {
	in := &parsedBody{Reader: body, turn: func() (func(), error) { return r.ParseTurn() }}
	defer in.pause()
	for raw, err := range chunksOf(in, r.ContentLength) {
		if err != nil {
			return nil, nil, "", err
		}
		if len(entries) == eventlog.MaxAppendRecords {
			return nil, nil, "", &web.SizeError{Reason: "there are too many chunks", Limit: eventlog.MaxAppendRecords}
		}
		if err := in.parse(); err != nil {
			return nil, nil, "", err
		}
		e, c, err := s.chunkEntry(r.Session, len(entries), raw)
		if err != nil {
			return nil, nil, "", err
		}
		switch is := eventlog.BaseOf(c).AgentType; {
		case len(entries) == 0:
			agentType = is
		case is != agentType:
			return nil, nil, "", &ChunkError{len(entries), &eventlog.ValidationError{Type: c.Type(), Field: "agentType", Reason: "must be the same in all chunks"}}
		}
		entries = append(entries, e)
		patch, _ := c.(*eventlog.StatePatch)
		patches = append(patches, patch)
	}
	if len(entries) == 0 {
		return nil, nil, "", &eventlog.ValidationError{Reason: "the body must hold at least one chunk"}
	}
	return entries, patches, agentType, nil
}

// parsedBody is a body that is parsed as it comes, in turns: one for what has come.
// None is held while the client sends the rest.
type parsedBody struct {
	io.Reader
	turn func() (done func(), err error)
	done func() // nil: it is not its turn
}

func (b *parsedBody) Read(p []byte) (int, error) {
	b.pause()
	return b.Reader.Read(p)
}

// parse waits for a turn, unless it has one.
func (b *parsedBody) parse() (err error) {
	if b.done == nil {
		b.done, err = b.turn()
	}
	return err
}

// pause ends a turn.
func (b *parsedBody) pause() {
	if b.done != nil {
		b.done()
		b.done = nil
	}
}

// chunkEntry returns a chunk of a body as an entry.
func (s *Routes) chunkEntry(session string, index int, raw json.RawMessage) (e eventlog.Entry, c eventlog.Chunk, err error) {
	if c, err = eventlog.ParseChunk(raw); err != nil {
		return e, nil, chunkProblem(index, err)
	}
	refuse := func(field, reason string) error {
		return &ChunkError{index, &eventlog.ValidationError{Type: c.Type(), Field: field, Reason: reason}}
	}
	switch {
	case eventlog.RuntimeOnly(c.Type()):
		return e, nil, refuse("type", "is written by the runtime only")
	case eventlog.BaseOf(c).AgentID != session:
		return e, nil, refuse("agentId", "must be the session's id")
	}
	if e, err = eventlog.NewChunk(c, eventlog.Labels{}); err != nil {
		return e, nil, chunkProblem(index, err)
	}
	if limit := s.log.Info().MaxRecordBytes; limit > 0 && len(e.Payload) > limit {
		return e, nil, &web.SizeError{Reason: fmt.Sprintf("chunk %d is too large", index), Limit: limit}
	}
	return e, c, nil
}

func chunkProblem(index int, err error) error {
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok {
		return &ChunkError{index, problem}
	}
	return err
}

// chunksOf yields the chunks of a body, not parsed yet: the elements of a
// JSON array if it begins like one, else its lines that are not blank. It holds
// one of them at a time. size is the body's.
func chunksOf(body io.Reader, size int64) iter.Seq2[json.RawMessage, error] {
	in := bufio.NewReaderSize(body, int(min(size, web.FirstRead)))
	for {
		first, err := in.ReadByte()
		if err != nil {
			return func(func(json.RawMessage, error) bool) {} // the reader of a body says that it is lost
		}
		if strings.IndexByte(web.Space, first) < 0 {
			_ = in.UnreadByte() // it was read
			if first == '[' {
				return web.ElementsOf(in)
			}
			break
		}
	}
	return func(yield func(json.RawMessage, error) bool) {
		for {
			line, err := in.ReadBytes('\n')
			if line = bytes.Trim(line, web.Space); len(line) > 0 && !yield(json.RawMessage(line), nil) || err != nil {
				return
			}
		}
	}
}
