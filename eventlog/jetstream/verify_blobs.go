package jetstream

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

// checkBlob returns a record's payload that lies outside of the log; nil if it
// was looked at before, or is not what the record names, which it tells.
func (v *verification) checkBlob(r stored) ([]byte, error) {
	ref, err := parseBlobRef(r.blob)
	if err != nil {
		v.tell(eventlog.FoundBlobDamaged, r.Sequence, "%v %q", err, r.blob)
		return nil, nil
	}
	var stands struct {
		Blob struct {
			SHA256 string
			Size   int
		} `json:"helixBlob"`
	}
	if json.Unmarshal(r.Payload, &stands) != nil || stands.Blob.SHA256 != ref.hash || stands.Blob.Size != ref.size {
		v.tell(eventlog.FoundPayload, r.Sequence, "what stands for the payload, blob %s, does not name it", ref.hash)
	}
	if v.blobs[ref.hash] {
		return nil, nil
	}
	v.blobs[ref.hash] = true
	payload, err := v.l.loadBlob(v.ctx, v.session, r.blob)
	if err == nil {
		return payload, nil
	}
	damaged := errors.Is(err, eventlog.ErrDamaged)
	for i := range ref.parts() {
		m, err := v.l.lastMessage(v.ctx, blobStream, v.l.blobPrefix(v.session)+ref.hash+"."+strconv.Itoa(i))
		switch {
		case errors.Is(err, errNoMessage):
			v.tell(eventlog.FoundBlobMissing, r.Sequence, "part %d of %d of the payload, blob %s, is lost", i, ref.parts(), ref.hash)
			return nil, nil
		case err != nil && m.sequence > 0: // it can't be taken apart
			damaged = true
		case err != nil:
			return nil, err
		}
	}
	if !damaged {
		return nil, err
	}
	v.tell(eventlog.FoundBlobDamaged, r.Sequence, "%v", err)
	return nil, nil
}

// checkUnusedBlobs looks for payloads that no record names.
func (v *verification) checkUnusedBlobs() error {
	s, err := v.l.js.Stream(v.ctx, blobStream)
	if err != nil {
		return err
	}
	prefix := v.l.blobPrefix(v.session)
	info, err := s.Info(v.ctx, natsjs.WithSubjectFilter(prefix+">"))
	if err != nil {
		return err
	}
	unused := map[string]bool{}
	for subject := range info.State.Subjects {
		_, kind := v.l.owner(subject)
		if hash, _, _ := strings.Cut(subject[len(prefix):], "."); kind == blobSubjects && !v.blobs[hash] {
			unused[hash] = true
		}
	}
	if len(unused) > 0 {
		v.tell(eventlog.FoundBlobUnused, 0, "no record names %d large payloads of the session: appends that failed or are under way, or retention", len(unused))
	}
	return nil
}
