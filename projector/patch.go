package projector

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/helixd/helixd/eventlog"
)

// Patch applies RFC 6902 operations to a JSON document, all or none.
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
	next, err = p.ApplyWithOptions(doc, opts)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return next, nil
}
