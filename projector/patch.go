package projector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/helixd/helixd/eventlog"
)

// MaxState is the largest custom state, in bytes, and the most that the copy
// operations of one patch may add.
const MaxState = 16 << 20

// Patch applies RFC 6902 operations to a custom state, all or none. The state
// stays an object of at most MaxState bytes.
func Patch(doc json.RawMessage, ops []eventlog.PatchOp) (next json.RawMessage, err error) {
	if len(ops) == 0 {
		return doc, nil
	}
	defer func() { // the fold is total, whatever the library does with strange input
		if p := recover(); p != nil {
			next, err = nil, fmt.Errorf("patch: %v", p)
		}
	}()
	raw, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	p, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	opts := jsonpatch.NewApplyOptions()
	opts.SupportNegativeIndices = false
	opts.EscapeHTML = false
	opts.AccumulatedCopySizeLimit = MaxState
	next, err = p.ApplyWithOptions(doc, opts)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	if len(next) > MaxState {
		return nil, fmt.Errorf("patch: the state would have more than %d bytes", MaxState)
	}
	if doc := bytes.TrimLeft(next, " \t\r\n"); len(doc) == 0 || doc[0] != '{' {
		return nil, errors.New("patch: the state must stay an object")
	}
	return next, nil
}
