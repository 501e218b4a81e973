package httpapi_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
)

// answersWithin is how long a request may keep a machine busy, waiting left
// out.
const answersWithin = 30 * time.Second

// Whatever is asked, no route panics, fails inside or leaves something running,
// and what it answers is well formed. What was accepted can be read: it does not
// make the session's other routes fail either. place and value put a value into
// the body's JSON, since few changed bytes leave it valid.
func FuzzHTTP(f *testing.F) {
	for i, r := range fuzzRequests(f) {
		f.Add(r.method, r.target, fuzzHeaders[i%len(fuzzHeaders)], []byte(r.body), uint16(0), "")
	}
	for i, r := range changes {
		f.Add(r.method, r.target, "", []byte(r.body), uint16(1+i%5), `{"a":[1,-0.5e300,"\u0000",null]}`)
	}
	f.Fuzz(func(t *testing.T, method, target, headers string, body []byte, place uint16, value string) {
		fuzz(t, method, target, headers, graft(body, int(place), value))
	})
}

// Every body of POST /chat, in every state that a session can be in.
func FuzzChatBody(f *testing.F) {
	ids := fuzzIDs(f)
	for i, session := range fuzzSessions {
		for _, messages := range chats {
			messages = ids.Replace(messages)
			for _, rest := range []string{
				`"trigger":"submit-message"`, `"trigger":"regenerate-message","messageId":"msg-1"`, `"agentType":"` + session + `","metadata":{"b":2}`,
			} {
				f.Add([]byte(`{"id":"`+session+`","messages":`+messages+`,`+rest+`}`), fuzzHeaders[i%4], i%2 == 0, uint16(0), "")
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, headers string, textParts bool, place uint16, value string) {
		target := "/chat"
		if textParts {
			target += "?format=text-stream-part"
		}
		fuzz(t, "POST", target, headers, graft(body, int(place), value))
	})
}

// fuzz sends a request to a fresh server. If it has changed a session, that is
// read by every route that reads one, and the request is sent again.
func fuzz(t *testing.T, method, target, headers string, body []byte) {
	began := time.Now()
	inFuzzWorld(t, func(w *fuzzWorld) {
		before := w.heads()
		got, ok := w.ask(method, target, headers, body)
		if !ok {
			return
		}
		w.check(target, got)
		if got.Code >= 300 || slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, got.method) {
			return
		}
		synctest.Wait()
		for session, head := range w.heads() {
			if head != before[session] {
				w.readAll(session)
			}
		}
		again, _ := w.ask(method, target, headers, body)
		w.check(target, again)
	})
	require.Less(t, time.Since(began), answersWithin)
}

// readAll asks every route that reads a session.
func (w *fuzzWorld) readAll(session string) {
	escaped := strings.ReplaceAll(url.PathEscape(session), ".", "%2E") // else it may be a step up
	for _, r := range httpapi.Routes() {
		if r.Method != "GET" || r.Operation == "" {
			continue
		}
		target := strings.ReplaceAll(r.Pattern, "{id}", escaped)
		if target == r.Pattern {
			target += "?sessionId=" + url.QueryEscape(session)
		}
		got, ok := w.ask(r.Method, target, "", nil)
		require.True(w.t, ok, target)
		require.NotEqual(w.t, 404, got.Code, target)
		w.check(target, got)
	}
}

// graft puts value in place of the place-th value of a JSON document or of its
// lines, counted from 1 in the order in which they begin.
func graft(body []byte, place int, value string) []byte {
	if place == 0 || !json.Valid([]byte(value)) {
		return body
	}
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(body))
	for d.More() {
		var v any
		if d.Decode(&v) != nil {
			return body
		}
		if v = replace(v, &place, json.RawMessage(value)); out.Len() > 0 {
			out.WriteByte('\n')
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return body
		}
		out.Write(raw)
	}
	return out.Bytes()
}

func replace(v any, place *int, value json.RawMessage) any {
	if *place--; *place == 0 {
		return value
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = replace(v[i], place, value)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = replace(v[name], place, value)
		}
	}
	return v
}
