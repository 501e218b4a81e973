package verify

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// checkBlob returns a record's blob. It returns nil if the blob was checked before, or if
// it is not the one that the record names, which it reports.
func (v *verification) checkBlob(r wire.Stored) ([]byte, error) {
	ref, err := wire.ParseBlobRef(r.Blob)
	if err != nil {
		v.tell(integrity.FoundBlobDamaged, r.Sequence, "%v %q", err, r.Blob)
		return nil, nil
	}
	var stands struct {
		Blob struct {
			SHA256 string
			Size   int
		} `json:"helixBlob"`
	}
	if json.Unmarshal(r.Payload, &stands) != nil || stands.Blob.SHA256 != ref.Hash || stands.Blob.Size != ref.Size {
		v.tell(integrity.FoundPayload, r.Sequence, "what stands for the payload, blob %s, does not name it", ref.Hash)
	}
	if v.blobs[ref.Hash] {
		return nil, nil
	}
	v.blobs[ref.Hash] = true
	payload, err := v.l.LoadBlob(v.ctx, v.session, r.Blob)
	if err == nil {
		return payload, nil
	}
	damaged := errors.Is(err, eventlog.ErrDamaged)
	for i := range ref.Parts() {
		m, err := v.l.LastMessage(v.ctx, layout.BlobStream, v.l.BlobPrefix(v.session)+ref.Hash+"."+strconv.Itoa(i))
		switch {
		case errors.Is(err, link.ErrNoMessage):
			v.tell(integrity.FoundBlobMissing, r.Sequence, "part %d of %d of the payload, blob %s, is lost", i, ref.Parts(), ref.Hash)
			return nil, nil
		case err != nil && m.Sequence > 0: // it can't be parsed
			damaged = true
		case err != nil:
			return nil, err
		}
	}
	if !damaged {
		return nil, err
	}
	v.tell(integrity.FoundBlobDamaged, r.Sequence, "%v", err)
	return nil, nil
}

// checkUnusedBlobs reports blobs that no record names.
func (v *verification) checkUnusedBlobs() error {
	prefix := v.l.BlobPrefix(v.session)
	subjects, err := link.Subjects(v.ctx, v.l.Conn, layout.BlobStream, prefix+">")
	if err != nil {
		return err
	}
	unused := map[string]bool{}
	for subject := range subjects {
		_, kind := v.l.owner(subject)
		if hash, _, _ := strings.Cut(subject[len(prefix):], "."); kind == layout.BlobSubjects && !v.blobs[hash] {
			unused[hash] = true
		}
	}
	if len(unused) > 0 {
		v.tell(integrity.FoundBlobUnused, 0, "no record names %d large payloads of the session: appends that failed or are under way, or retention", len(unused))
	}
	return nil
}
