package projector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/jsondoc"
)

const (
	// MaxState is the largest custom state, in bytes, and the most that the copy
	// operations of one patch may add.
	MaxState = jsondoc.MaxSize
	// MaxPatchWork bounds the work of a session tree's patches, in bytes that are read or
	// written. A patch that needs more is parked.
	MaxPatchWork = 1 << 30
	// PatchWorkBack is how many bytes of the used work each record restores.
	PatchWorkBack = 512 << 10
)

// ErrTooMuchWork: the patches of a session need more than [MaxPatchWork]. The work is
// counted from the records alone, so that every node parks the same ones.
var ErrTooMuchWork = jsondoc.ErrTooMuchWork

var emptyState = jsondoc.New([]byte("{}"))

// Patch applies RFC 6902 operations to a custom state, all or none. It returns the new
// state and the work in bytes. The state stays an object of at most MaxState bytes.
// Errors: an operation that can't be applied; ErrTooMuchWork if the work exceeds most,
// see [Tree.PatchWorkLeft].
func Patch(doc json.RawMessage, ops []eventlog.PatchOp, most int64) (json.RawMessage, int64, error) {
	next, work, err := jsondoc.New(doc).Patch(ops, most)
	if err != nil {
		return nil, work, fmt.Errorf("patch: %w", err)
	}
	return next.Bytes(), work, nil
}

// PatchWorkLeft is how much work the next record may need, in bytes, if it is a patch.
func (t *Tree) PatchWorkLeft() int64 { return MaxPatchWork - t.PatchWork }

// patch changes the custom state of a session of the tree.
func (t *Tree) patch(s *Session, ops []eventlog.PatchOp) error {
	next, work, err := s.CustomState.Patch(ops, t.PatchWorkLeft())
	t.PatchWork += work
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	s.CustomState = next
	return nil
}

// restWork restores PatchWorkBack bytes after a record.
func (t *Tree) restWork() { t.PatchWork = max(0, t.PatchWork-PatchWorkBack) }

// CheckPatches returns ErrTooMuchWork if one of the root's next records is a patch that
// needs more work than it may, so that it would be parked. A nil patch stands for another
// record. A patch that can't be applied is no error. If ctx ends first, it returns its
// cause.
func (t *Tree) CheckPatches(ctx context.Context, next []*eventlog.StatePatch) error {
	state, done := t.CustomState, t.PatchWork
	if t.SessionID == "" {
		state = emptyState
	}
	for _, p := range next {
		if p != nil {
			patched, work, err := state.PatchUntil(ctx, p.Patches, MaxPatchWork-done)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, ErrTooMuchWork):
				return err
			}
			state, done = patched, done+work
		}
		done = max(0, done-PatchWorkBack)
	}
	return nil
}
