package projector

import (
	"bytes"
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// TranslateRestore maps the sequences in a marker's value from RestoreAt, for
// eventlog.Import. A value that no fold can use is returned unchanged. A member that this
// version does not know is a *eventlog.ValidationError, since it could be a sequence.
func TranslateRestore(f *eventlog.Truncated, seqs *eventlog.Sequences) (json.RawMessage, error) {
	raw := f.Restore
	var at restore
	if json.Unmarshal(raw, &at) != nil {
		return raw, nil
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	at = restore{}
	if err := strict.Decode(&at); err != nil {
		return nil, &eventlog.ValidationError{
			Field: "data.restore", Reason: "holds what this version does not know: " + err.Error(),
		}
	}
	if at.Sequence != f.AfterSequence {
		at.Sequence = 0 // after mapping they need not be equal
	}
	at.Sequence = seqs.UpTo(at.Sequence)
	for id, s := range at.Sessions {
		s.translate(seqs)
		at.Sessions[id] = s
	}
	return eventlog.Marshal(at)
}

func (at *sessionAt) translate(seqs *eventlog.Sequences) {
	at.CommittedAt = seqs.UpTo(at.CommittedAt)
	if at.Run != nil {
		at.Run.StartSequence = seqs.UpTo(at.Run.StartSequence)
	}
	if at.Stopped != nil {
		at.Stopped.Before, at.Stopped.At = seqs.UpTo(at.Stopped.Before), seqs.UpTo(at.Stopped.At)
	}
	if at.Turn == nil {
		return
	}
	if at.Turn.Before != nil {
		*at.Turn.Before = seqs.UpTo(*at.Turn.Before)
	}
	if st := at.Turn.Step; st != nil {
		st.Streamed.translate(seqs)
		for i := range st.Calls {
			st.Calls[i].Streamed.translate(seqs)
		}
	}
}

func (s *Span) translate(seqs *eventlog.Sequences) {
	if s != nil {
		s.From, s.To = seqs.From(s.From), seqs.UpTo(s.To)
	}
}
