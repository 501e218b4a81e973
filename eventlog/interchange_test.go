package eventlog_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
)

// recordOf is a record with a payload of a type that no version knows.
func recordOf(payload string) eventlog.Record {
	return eventlog.Record{Sequence: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Entry: eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "x", Agent: "s"}, Payload: []byte(payload),
	}}
}

var oddPayloads = []string{
	``, `null`, `""`, `"not JSON"`, `0`, `1e400`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, ` {}`, "{}\n", `{ "a" : [ 1 , 2 ] }`, "{\"a\":\"\u2028<&>\"}",
	`{"a":"\u003c"}`, `{"a":"é"}`, `{"a":"\u00e9"}`, "not JSON", "\x00\x01", "\xff\xfe", "{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}",
	`{"a":"\ud800"}`, "\ufffd", "\"\ufffd\"", "{", "}{", "a\nb", strings.Repeat("\x00", eventlog.MaxShown+1),
}

// Whatever bytes a payload is, its line brings them back: exports are copies.
func TestInterchangeKeepsEveryByte(t *testing.T) {
	for _, payload := range oddPayloads {
		requireExact(t, payload)
	}
}

func FuzzInterchange(f *testing.F) {
	for _, payload := range oddPayloads {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) { requireExact(t, payload) })
}

func requireExact(t *testing.T, payload string) {
	t.Helper()
	want := recordOf(payload)
	line, err := want.MarshalJSON()
	require.NoError(t, err)
	require.True(t, utf8.Valid(line), "%q", line)
	require.NotContains(t, string(line), "\n")
	var got eventlog.Record
	require.NoError(t, json.Unmarshal(line, &got), "%s", line)
	require.Equal(t, payload, string(got.Payload), "%s", line)
	got.Payload = want.Payload
	require.Equal(t, want, got)
	if eventlog.Depth(want.Payload) > 10 {
		return // there is a limit
	}
	got, err = eventlog.ParseRecord(line)
	if problem, ok := err.(*eventlog.ValidationError); ok {
		require.Equal(t, "data", problem.Field, "a type of its own: %s", line)
		return
	}
	require.NoError(t, err, "%s", line)
	require.Equal(t, payload, string(got.Payload), "%s", line)
}

// Only what "data" can't hold costs a second form, and what is no JSON does
// not fill the screen.
func TestInterchangeForm(t *testing.T) {
	const head = `{"sequence":7,"time":"2026-01-02T03:04:05.000000006Z","kind":"fact","type":"x","agent":"s","data":`
	for payload, want := range map[string]string{
		`{"b":"<é","a":1}`: `{"b":"<é","a":1}}`,
		`{"a": 1}`:         `{"a":1},"base64":"eyJhIjogMX0="}`,
		"no":               `"no","base64":"bm8="}`,
		`"no"`:             `"no"}`,
		``:                 `"","base64":""}`,
	} {
		line, err := recordOf(payload).MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, head+want, string(line))
	}
	line, err := recordOf(strings.Repeat("\x01", 1<<20)).MarshalJSON()
	require.NoError(t, err)
	require.Less(t, len(line), 3<<19)

	r := recordOf(`{}`)
	r.Origin = eventlog.Origin{Sequence: 3, Time: time.Unix(0, 1).UTC()}
	line, err = r.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(line), `"agent":"s","origin":{"sequence":3,"time":"1970-01-01T00:00:00.000000001Z"},"data":{}}`)
	got, err := eventlog.ParseRecord(line)
	require.NoError(t, err)
	require.Equal(t, r, got)
}

func TestParseRecordIsStrict(t *testing.T) {
	testkit.OneGoroutine(t)
	const good = `{"sequence":7,"time":"2026-01-02T03:04:05Z","kind":"chunk","type":"x","agent":"s","run":"r","call":"c",` +
		`"writer":"w","ordinal":1,"origin":{"sequence":1,"time":"2026-01-02T03:04:05Z"},"data":{"type":"x"}}`
	_, err := eventlog.ParseRecord([]byte(good))
	require.NoError(t, err)
	with := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	long := strings.Repeat("x", 257)
	for name, tc := range map[string]struct{ line, want string }{
		"nothing":               {``, "is not a JSON object"},
		"an array":              {`[` + good + `]`, "is not a JSON object"},
		"two":                   {good + good, "is not a JSON object"},
		"cut off":               {good[:len(good)-1], "is not a JSON object"},
		"invalid UTF-8":         {with(`"s"`, "\"\xff\""), "is not valid UTF-8"},
		"no sequence":           {with(`"sequence":7,`, ``), "sequence is required"},
		"sequence 0":            {with(`"sequence":7`, `"sequence":0`), "sequence must not be 0"},
		"a negative sequence":   {with(`"sequence":7`, `"sequence":-7`), "cannot unmarshal number -7"},
		"no data":               {with(`,"data":{"type":"x"}`, ``), "data is required"},
		"a name twice":          {with(`"run":"r"`, `"run":"r","run":"q"`), "run is given twice"},
		"a name in capitals":    {with(`"run"`, `"Run"`), "Run is not a member of a record"},
		"an unknown name":       {with(`"run"`, `"runs"`), "runs is not a member of a record"},
		"an unknown origin":     {with(`"origin":{`, `"origin":{"from":"x",`), "origin.from is not a member of a record"},
		"half an origin":        {with(`"origin":{"sequence":1,`, `"origin":{`), "origin must have a sequence and a time"},
		"another kind":          {with(`"chunk"`, `"event"`), `kind "event" is none of [chunk fact]`},
		"no kind":               {with(`"chunk"`, `""`), `kind "" is none of`},
		"no type":               {with(`"type":"x","agent"`, `"type":"","agent"`), "type must not be empty"},
		"the payload's type":    {with(`"data":{"type":"x"}`, `"data":{"type":"y"}`), `data is of type "y", not of the record's`},
		"a long agent":          {with(`"s"`, `"`+long+`"`), "agent must be at most 256 bytes"},
		"a control character":   {with(`"s"`, `"a\u0000"`), "agent must not hold control characters"},
		"a replaced agent":      {with(`"s"`, `"\ufffd"`), "agent must be valid UTF-8"},
		"a long run":            {with(`"r"`, `"`+long+`"`), "run must be at most 256 bytes"},
		"a long call":           {with(`"c"`, `"`+long+`"`), "call must be at most 256 bytes"},
		"a long writer":         {with(`"w"`, `"`+strings.Repeat(long, 3)+`"`), "writer must be at most 517 bytes"},
		"no base64":             {with(`"data"`, `"base64":"*","data"`), "illegal base64"},
		"an erasure":            {strings.NewReplacer(`"chunk"`, `"fact"`, `"x"`, `"erased"`).Replace(good), "type is of an erased session"},
		"an erasing chunk":      {strings.Replace(with(`{"type":"x"}`, `{"type":"erased"}`), `"type":"x"`, `"type":"erased"`, 1), "type is of an erased session"},
		"a time before 1970":    {with(`"2026-01-02T03:04:05Z"`, `"1970-01-01T00:00:00+01:00"`), "time must be of a year from 1970 to 2261"},
		"a time beyond 2261":    {with(`"2026-01-02T03:04:05Z"`, `"2262-01-01T00:00:00Z"`), "time must be of a year from 1970 to 2261"},
		"an origin's time":      {with(`{"sequence":1,"time":"2026`, `{"sequence":1,"time":"3000`), "origin.time must be of a year from 1970 to 2261"},
		"too deep":              {with(`{"type":"x"}`, strings.Repeat("[", 501)+strings.Repeat("]", 501)), "must not be nested more than 500 deep"},
		"a payload beyond 16MB": {with(`{"type":"x"}`, `"`+strings.Repeat("x", eventlog.MaxPayload)+`"`), "data must be at most 16777216 bytes"},
	} {
		_, err := eventlog.ParseRecord([]byte(tc.line))
		require.ErrorContains(t, err, tc.want, name)
		require.IsType(t, &eventlog.ValidationError{}, err, name)
	}
	for _, year := range []string{"1970-01-01T00:00:00Z", "2261-12-31T23:59:59.999999999Z"} {
		r, err := eventlog.ParseRecord([]byte(with(`"2026-01-02T03:04:05Z"`, `"`+year+`"`)))
		require.NoError(t, err)
		require.Equal(t, year, time.Unix(0, r.Time.UnixNano()).UTC().Format(time.RFC3339Nano))
	}
	// A payload may be of any sort; a fold parks what it can't use.
	for _, payload := range []string{`null`, `7`, `"x"`, `{"type":7}`, `{"TYPE":"x"}`, `{"type":"x","type":"x"}`} {
		r, err := eventlog.ParseRecord([]byte(with(`{"type":"x"}`, payload)))
		require.NoError(t, err)
		require.True(t, bytes.Equal([]byte(payload), r.Payload))
	}
}
