package cohort

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// idMembers are helixd's own members whose values, or the names of whose members, are ids of sessions.
// The id of a session may be a word that records have elsewhere.
var idMembers = []string{
	"agentId", "child", "childSessionId", "childSessionIds", "children", "fromSessionId", "ownerSessionId", "parentSessionId", "rootSessionId",
	"session", "sessionId", "sessions", "streamId", "subSessionId",
}

// Named returns the records of a session as those of a session of another id and agent type: the ids
// of its sub-agents begin with that id, too.
func Named(records []eventlog.Record, from, to, agentType string) ([]eventlog.Record, error) {
	name := func(text string, whole bool) string {
		rest, ok := strings.CutPrefix(text, from)
		if ok && (rest == "" && whole || strings.HasPrefix(rest, projector.InfixCall) || strings.HasPrefix(rest, projector.InfixAgent) || strings.HasPrefix(rest, projector.InfixRemote)) {
			return to + rest
		}
		return text
	}
	out := make([]eventlog.Record, len(records))
	for i, r := range records {
		payload, err := rewrite(nil, r.Payload, func(path []string, v any) any {
			text, is := v.(string)
			switch {
			case !is:
				return v
			case r.Agent == from && (slices.Equal(path, []string{"agentType"}) || slices.Equal(path, []string{"state", "agentType"})): // a fork has it in its state
				return agentType
			}
			return name(text, len(path) > 0 && slices.Contains(idMembers, path[len(path)-1]))
		})
		if err != nil {
			return nil, fmt.Errorf("cohort: record %d: %w", r.Sequence, err)
		}
		r.Agent = name(r.Agent, true)
		r.Entry = eventlog.Entry{Envelope: r.Envelope, Payload: payload}
		out[i] = r
	}
	return out, nil
}

// rewrite returns JSON with its texts and numbers as value returns them, in their order and without
// space. The path has the names of the members around a value, after those around raw; value also gets
// the names themselves, as text with the path of their object.
//
// The value of a JSON Patch operation has the path that the operation names.
func rewrite(path []string, raw []byte, value func(path []string, v any) any) ([]byte, error) {
	w := &rewriter{d: json.NewDecoder(bytes.NewReader(raw)), value: value}
	w.d.UseNumber()
	if err := w.one(path); err != nil {
		return nil, err
	}
	if _, err := w.d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("cohort: there is more after a JSON value")
	}
	return w.out.Bytes(), nil
}

type rewriter struct {
	d     *json.Decoder
	out   bytes.Buffer
	value func(path []string, v any) any
}

func (w *rewriter) one(path []string) error {
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return w.object(path)
	case json.Delim('['):
		w.out.WriteByte('[')
		for first := true; w.d.More(); first = false {
			if !first {
				w.out.WriteByte(',')
			}
			if err := w.one(path); err != nil {
				return err
			}
		}
		w.out.WriteByte(']')
		_, err := w.d.Token()
		return err
	}
	return w.write(path, t)
}

func (w *rewriter) write(path []string, v any) error {
	raw, err := eventlog.Marshal(w.value(path, v))
	w.out.Write(raw)
	return err
}

func (w *rewriter) object(path []string) error {
	w.out.WriteByte('{')
	var pointer []string // of a JSON Patch operation
	for first := true; w.d.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		name, err := w.d.Token()
		if err != nil {
			return err
		}
		if err := w.write(path, name); err != nil {
			return err
		}
		w.out.WriteByte(':')
		inner := append(path[:len(path):len(path)], name.(string))
		if name == "value" && pointer != nil {
			inner = append(inner, pointer...)
		}
		from := w.out.Len()
		if err := w.one(inner); err != nil {
			return err
		}
		if text := w.out.Bytes()[from:]; name == "path" && len(path) > 0 && bytes.HasPrefix(text, []byte(`"/`)) {
			pointer = strings.Split(string(text[2:len(text)-1]), "/")
		}
	}
	w.out.WriteByte('}')
	_, err := w.d.Token()
	return err
}
