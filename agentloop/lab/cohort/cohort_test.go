package cohort_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/verify"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
)

// desk is a deployment with an agent that looks people up.
type desk struct {
	log    *memory.Log
	agents []agentloop.Agent
	loop   *engine.Loop
}

func open(t *testing.T, found any) *desk {
	t.Helper()
	d := &desk{log: memory.New()}
	d.agents = []agentloop.Agent{
		{
			Name: "clerk", SystemPrompt: "You look people up.",
			Model: scripted.New([]scripted.Turn{
				{Text: "I look for you.", ToolCalls: []scripted.Call{{Name: "look_up", Arguments: json.RawMessage(`{"who":"the caller","email":"ann@x.org"}`)}}},
				{Text: "Ann Bo's address is ann@x.org, her number 4917612345678."},
			}, nil),
			Tools: []agentloop.Tool{{Name: "look_up", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return found, nil }}},
		},
		{Name: "mute", Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "nothing"}}}}, nil), MaxSteps: 1},
	}
	var err error
	d.loop, err = engine.New(d.log, d.agents, nil)
	require.NoError(t, err)
	t.Cleanup(d.loop.Stop)
	return d
}

func (d *desk) run(t *testing.T, req engine.StartRequest) {
	t.Helper()
	h, err := d.loop.Execute(t.Context(), req)
	require.NoError(t, err)
	_, _ = h.Result(t.Context()) // some fail
}

// sources are the sessions of a log, as a server's routes yield them.
func (d *desk) sources(ctx context.Context) iter.Seq2[cohort.Source, error] {
	return func(yield func(cohort.Source, error) bool) {
		for id, err := range d.log.Sessions(ctx) {
			if !yield(cohort.Source{ID: id, Records: func(ctx context.Context) iter.Seq2[eventlog.Record, error] { return d.log.Read(ctx, id, 0, 0) }}, err) {
				return
			}
		}
	}
}

func (d *desk) cohort(t *testing.T, o cohort.Options) *cohort.Cohort {
	t.Helper()
	c, err := cohort.Create(t.Context(), d.sources(t.Context()), o)
	require.NoError(t, err)
	return c
}

func written(t *testing.T, c *cohort.Cohort) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, c.Write(&b))
	return b.Bytes()
}

func ids(c *cohort.Cohort) (all []string) {
	for _, s := range c.Sessions {
		all = append(all, s.ID)
	}
	return all
}

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	d := open(t, "nothing")
	d.run(t, engine.StartRequest{SessionID: "b", AgentType: "clerk", Messages: []agentloop.Input{{Content: "Who <am> I?"}}, Tags: []string{"vip"}})
	d.run(t, engine.StartRequest{SessionID: "a", AgentType: "mute", Messages: []agentloop.Input{{Content: "Hm?"}}})
	c := d.cohort(t, cohort.Options{})
	raw := written(t, c)
	got, err := cohort.Read(bytes.NewReader(raw))
	require.NoError(t, err)
	require.Equal(t, c.Header, got.Header)
	require.Equal(t, []string{"a", "b"}, ids(got))
	require.Equal(t, cohort.Summary{ID: "b", Agent: "clerk", Status: "completed", Tags: []string{"vip"}, Records: len(got.Sessions[1].Log)}, got.Sessions[1].Summary)
	require.Equal(t, raw, written(t, got))
	require.Equal(t, got.Header.Hash, d.cohort(t, cohort.Options{}).Header.Hash, "the same sessions, the same hash")

	// Its sessions are whole but for the pieces of answers: the loop decides the same.
	for _, s := range got.Sessions {
		found, err := verify.Session(t.Context(), each(s.Log), d.agents, nil)
		require.NoError(t, err)
		require.Nil(t, found.Differs)
		require.NotZero(t, found.Decisions)
	}
	require.NotContains(t, string(raw), `"type":"text_delta"`)

	for name, damaged := range map[string][]byte{
		"empty": {}, "cut": raw[:len(raw)-10], "without a line": raw[:bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1],
		"changed": bytes.Replace(raw, []byte("Who <am>"), []byte("Who <is>"), 1), "no header": raw[bytes.IndexByte(raw, '\n')+1:],
	} {
		_, err := cohort.Read(bytes.NewReader(damaged))
		require.ErrorIs(t, err, cohort.ErrDamaged, name)
	}
	_, err = cohort.Read(strings.NewReader(`{"cohort":{"version":99,"helixd":"9.9"}}` + "\n"))
	require.ErrorContains(t, err, "helixd 9.9")
	require.ErrorContains(t, err, "reads formats up to 1", "of cohorts, not of logs")
}

func each(records []eventlog.Record) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestABackupMakesTheSameCohort(t *testing.T) {
	d := open(t, "nothing")
	d.run(t, engine.StartRequest{SessionID: "a", AgentType: "clerk", Messages: []agentloop.Input{{Content: "Hi"}}})
	var file bytes.Buffer
	_, err := backup.Take(t.Context(), d.log, snapshot.New(d.log, nil), &file, backup.Options{})
	require.NoError(t, err)
	raw := file.Bytes()
	c, err := cohort.Create(t.Context(), cohort.FromBackup(t.Context(), bytes.NewReader(raw)), cohort.Options{})
	require.NoError(t, err)
	require.Equal(t, d.cohort(t, cohort.Options{}).Header.Hash, c.Header.Hash)
	raw[len(raw)/2] ^= 1
	_, err = cohort.Create(t.Context(), cohort.FromBackup(t.Context(), bytes.NewReader(raw)), cohort.Options{})
	require.ErrorIs(t, err, backup.ErrDamaged)
}

// What a lab has stored on a daemon is not recorded work: a failed lane beside its session would count it twice.
func TestALabsOwnSessionsAreLeftOut(t *testing.T) {
	d := open(t, "nothing")
	d.run(t, engine.StartRequest{SessionID: "s", AgentType: "mute", Messages: []agentloop.Input{{Content: "Hm?"}}})
	recorded := d.cohort(t, cohort.Options{})
	for id, agent := range map[string]string{"lane": cohort.LaneType, "lab-0123456789ab-1": cohort.LabType, "labels": cohort.LabelsType} {
		named, err := cohort.Named(recorded.Sessions[0].Log, "s", id, agent)
		require.NoError(t, err)
		_, err = eventlog.Import(t.Context(), d.log, id, each(named), eventlog.ImportOptions{Restore: projector.TranslateRestore})
		require.NoError(t, err)
	}
	again := d.cohort(t, cohort.Options{Filter: cohort.Filter{Status: projector.SessionFailed}})
	require.Equal(t, []string{"s"}, ids(again))
	require.Equal(t, 1, again.Header.Found)
	require.Equal(t, []string{"lane"}, ids(d.cohort(t, cohort.Options{Filter: cohort.Filter{Agent: cohort.LaneType}})), "it is asked for")
}

func TestFiltersAndSampling(t *testing.T) {
	d := open(t, "nothing")
	for i := range 20 {
		agent := []string{"clerk", "mute"}[i%2]
		d.run(t, engine.StartRequest{
			SessionID: fmt.Sprintf("s%02d", i), AgentType: agent, UserID: fmt.Sprint("u", i%5),
			Tags: []string{fmt.Sprint("t", i%4)}, Messages: []agentloop.Input{{Content: "number " + strconv.Itoa(i)}},
		})
	}
	count := func(f cohort.Filter) int {
		t.Helper()
		c, err := cohort.Create(t.Context(), d.sources(t.Context()), cohort.Options{Filter: f})
		if err != nil {
			require.ErrorContains(t, err, "there is no session that the filter takes")
			return 0
		}
		return len(c.Sessions)
	}
	require.Equal(t, 20, count(cohort.Filter{}))
	require.Equal(t, 10, count(cohort.Filter{Agent: "mute"}))
	require.Equal(t, 10, count(cohort.Filter{Status: projector.SessionFailed}))
	require.Equal(t, 0, count(cohort.Filter{Agent: "clerk", Status: projector.SessionFailed}))
	require.Equal(t, 5, count(cohort.Filter{Tag: "t1"}))
	require.Equal(t, 4, count(cohort.Filter{User: "u3"}))
	require.Equal(t, 10, count(cohort.Filter{Tool: "look_up"}))
	require.Equal(t, 10, count(cohort.Filter{Error: agentloop.CodeMaxSteps}))
	require.Equal(t, 10, count(cohort.Filter{Error: agentloop.CodeToolNotFound}))
	require.Equal(t, 1, count(cohort.Filter{Text: "number 7"}))
	require.Equal(t, 0, count(cohort.Filter{Since: time.Now().Add(time.Hour)}))
	require.Equal(t, 20, count(cohort.Filter{Until: time.Now().Add(time.Hour)}))
	require.Equal(t, 0, count(cohort.Filter{Tokens: 1 << 40}))

	base, head := fact.Base{SessionID: "paused", Timestamp: 1}, uint64(0)
	for _, f := range []fact.Fact{&fact.SessionCreated{AgentType: "clerk", Base: base}, &fact.StreamPaused{Base: base}} {
		e, err := eventlog.NewFact("paused", f, eventlog.Labels{})
		require.NoError(t, err)
		head, err = d.log.Append(t.Context(), "paused", head, []eventlog.Entry{e})
		require.NoError(t, err)
	}
	require.Equal(t, []string{"paused"}, ids(d.cohort(t, cohort.Options{Filter: cohort.Filter{Status: projector.SessionPaused}})))
	_, err := d.log.Erase(t.Context(), "paused")
	require.NoError(t, err)

	sampled := d.cohort(t, cohort.Options{Limit: 5, Seed: 1})
	require.Equal(t, 20, sampled.Header.Found)
	require.Len(t, sampled.Sessions, 5)
	require.Equal(t, ids(sampled), ids(d.cohort(t, cohort.Options{Limit: 5, Seed: 1})))
	differs := false
	for seed := range uint64(5) {
		differs = differs || !slices.Equal(ids(sampled), ids(d.cohort(t, cohort.Options{Limit: 5, Seed: seed + 2})))
	}
	require.True(t, differs)
}

const rules = `
fields: [email, contact.phone, card]
patterns: ['Ann\s+Bo', 'key-[0-9a-f]{8}']
users: true
values: ["Straße 7"]
`

// The values that the rules find, and must not be in any byte.
var secrets = []string{"ann@x.org", "4917612345678", "4111111111111111", "Ann Bo", "key-0123abcd", "user-of-ann", "Straße 7", "10.0.0.7", "o'neil & <co>"}

func TestRedactedValuesAreInNoByte(t *testing.T) {
	inJSON := `{"email":"o'neil & <co>","note":"ann@x.org"}`
	d := open(t, map[string]any{
		"contact": map[string]any{"phone": "4917612345678", "city": "Oslo"}, "card": 4111111111111111, "people": 3,
		"text":    inJSON,
		"base64":  base64.StdEncoding.EncodeToString([]byte("To: ann@x.org\nat Straße 7")),
		"url64":   "data:text/plain;base64," + base64.URLEncoding.EncodeToString([]byte(inJSON)),
		"glued":   "Ab" + base64.RawStdEncoding.EncodeToString([]byte("xAnn Bo lives here; ann@x.org")),
		"binary":  base64.StdEncoding.EncodeToString([]byte("\xff\xfe\x00ann@x.org\xff")),
		"link":    "https://h/?to=" + url.QueryEscape("ann@x.org") + "&who=" + url.QueryEscape("o'neil & <co>") + "&%61nn%40x.org",
		"html":    "<b>" + html.EscapeString("o'neil & <co>") + "</b>",
		"hex":     hex.EncodeToString([]byte("Ann Bo")),
		"escaped": `said \"ann@x.org\" and Stra\u00dfe 7`,
		"nested":  `{"a":"{\"contact\":{\"phone\":\"4917612345678\"},\"card\":4111111111111111}"}`,
		"of":      map[string]any{"ann@x.org": "key-0123abcd", "number": 4111111111111111},
	})
	ctx := fact.WithActor(t.Context(), fact.Actor{User: "user-of-ann", Address: "10.0.0.7"})
	for i := range 3 {
		h, err := d.loop.Execute(ctx, engine.StartRequest{
			SessionID: fmt.Sprintf("of-user-of-ann-%d", i), AgentType: "clerk", UserID: "user-of-ann",
			Metadata: map[string]string{"email": "ann@x.org"}, State: json.RawMessage(`{"card":"4111111111111111"}`),
			Messages: []agentloop.Input{{Content: "I am Ann  Bo, of Straße 7: key-0123abcd.", Files: []fact.MessageFile{{
				MediaType: "text/plain", Data: "data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("my mail is ann@x.org")),
			}}}},
		})
		require.NoError(t, err)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
	}
	r, err := cohort.ParseRules([]byte(rules))
	require.NoError(t, err)
	c := d.cohort(t, cohort.Options{Rules: r})
	raw := written(t, c)
	for _, secret := range append(secrets, "Ann  Bo") {
		for name, form := range forms(secret) {
			require.NotContains(t, string(raw), form, "%s as %s", secret, name)
		}
		for _, text := range decoded(raw) {
			require.NotContains(t, text, secret)
		}
	}
	require.Contains(t, string(raw), `"city":"Oslo"`)
	require.Contains(t, string(raw), `"people":3`)
	require.GreaterOrEqual(t, c.Header.Redacted, len(secrets))

	// The same value has the same placeholder, in all sessions: what a replay needs.
	placeholder := map[string]bool{}
	for _, s := range c.Sessions {
		require.NoError(t, eventlog.ValidateSessionID(s.ID))
		for _, rec := range s.Log {
			f, err := fact.Fact(nil), error(nil)
			if rec.Kind == eventlog.KindFact {
				f, err = rec.Fact()
				require.NoError(t, err)
			}
			switch f := f.(type) {
			case *fact.SessionCreated:
				placeholder[f.Metadata["email"]] = true
			case *fact.ModelTurn:
				for _, p := range f.Parts {
					if p.ToolCall != nil {
						var args struct{ Email string }
						require.NoError(t, json.Unmarshal(p.ToolCall.Arguments, &args))
						placeholder[args.Email] = true
					}
				}
			case *fact.ToolResult:
				var result struct {
					Card   int64
					Base64 string
				}
				require.NoError(t, json.Unmarshal(f.Result, &result))
				require.NotZero(t, result.Card, "a number stays one")
				text, err := base64.StdEncoding.DecodeString(result.Base64)
				require.NoError(t, err, "what was Base64 still is")
				require.Contains(t, string(text), "To: redacted-")
			}
		}
		found, err := verify.Session(t.Context(), each(s.Log), d.agents, nil)
		require.NoError(t, err)
		require.Nil(t, found.Differs)
	}
	require.Len(t, placeholder, 1)
}

// forms are a value as programs may have written it into a text.
func forms(s string) map[string]string {
	quoted, _ := json.Marshal(s)
	twice, _ := json.Marshal(string(quoted))
	all := map[string]string{
		"text": s, "JSON": string(quoted[1 : len(quoted)-1]), "JSON in JSON": string(twice[3 : len(twice)-3]),
		"query": url.QueryEscape(s), "path": url.PathEscape(s), "HTML": html.EscapeString(s), "hex": hex.EncodeToString([]byte(s)),
		"ASCII": strings.Trim(strconv.QuoteToASCII(s), `"`),
	}
	for shift := range 3 {
		b := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + s))
		all[fmt.Sprint("base64 ", shift)] = b[cmp.Or(shift, 0)+min(shift, 1) : 8*(shift+len(s))/6]
	}
	return all
}

// decoded are the texts that a file has in Base64.
func decoded(raw []byte) (texts []string) {
	for _, run := range strings.FieldsFunc(string(raw), func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_", r)
	}) {
		for from := range min(4, len(run)) {
			part := run[from:]
			part = part[:len(part)/4*4]
			for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				if b, err := e.DecodeString(part); err == nil {
					texts = append(texts, string(b))
				}
			}
		}
	}
	return texts
}

func TestRulesThatCantBeUsed(t *testing.T) {
	for text, want := range map[string]string{
		"fields: [a, ]\nnames: [b]": "names",
		"patterns: ['[']":           "redaction: patterns[0]: ",
		"patterns: ['x*']":          "patterns[0]: it matches nothing at all",
		"fields: ['a..b']":          "fields[0]",
		"values: ['']":              "a value is empty",
	} {
		_, err := cohort.ParseRules([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	d := open(t, "nothing")
	d.run(t, engine.StartRequest{SessionID: "a", AgentType: "clerk", Messages: []agentloop.Input{{Content: "Hi"}}})
	for _, text := range []string{"values: [clerk, redacted]", "values: [session_created]", "patterns: ['toolName|turn-1.*']"} {
		r, err := cohort.ParseRules([]byte(text))
		require.NoError(t, err)
		_, err = cohort.Create(t.Context(), d.sources(t.Context()), cohort.Options{Rules: r})
		if strings.Contains(text, "patterns") {
			require.NoError(t, err, "ids are replaced as well, everywhere the same")
			continue
		}
		var bad *cohort.RuleError
		require.ErrorAs(t, err, &bad, text)
	}
}

func TestShortValuesAreWordsOfTheirOwn(t *testing.T) {
	d := open(t, map[string]any{"email": "Al", "text": "Al and Also", "card": 12, "n": 12})
	d.run(t, engine.StartRequest{SessionID: "a", AgentType: "clerk", Messages: []agentloop.Input{{Content: "Am I Al? All 12?"}}})
	r, err := cohort.ParseRules([]byte("fields: [email, card]"))
	require.NoError(t, err)
	raw := string(written(t, d.cohort(t, cohort.Options{Rules: r})))
	require.Regexp(t, `"content":"Am I redacted-\d\? All 12\?"`, raw)
	require.Regexp(t, `"text":"redacted-\d and Also"`, raw)
	require.Regexp(t, `"card":90000000\d\d,"email":"redacted-\d","n":12`, raw)
}

// Sessions of labs, which a daemon may have, are not taken. An agent may have a name of theirs.
func TestLabsAreNotTaken(t *testing.T) {
	for _, c := range []struct {
		id, agent string
		is        bool
	}{
		{"lab-0123456789ab-1", "lab", true}, {"lab-0123456789ab-1.2-candidate-1", "lab-lane", true}, {"lab-labels-0123456789ab", "lab-labels", true},
		{"s-1", "lab", false}, {"lab-0123456789ab-1", "clerk", false},
	} {
		require.Equal(t, c.is, cohort.OfLab(c.id, c.agent), c.id)
	}
	log := memory.New()
	for _, agent := range []string{"lab-lane", "lab"} {
		loop, err := engine.New(log, []agentloop.Agent{{Name: agent, Model: scripted.New([]scripted.Turn{{Text: "Done."}}, nil)}}, nil)
		require.NoError(t, err)
		run, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "s-" + agent, AgentType: agent, Messages: []agentloop.Input{{Content: "Hi."}}})
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
		loop.Stop()
	}
	c, err := cohort.Create(t.Context(), func(yield func(cohort.Source, error) bool) {
		for id, err := range log.Sessions(t.Context()) {
			if !yield(cohort.Source{ID: id, Records: func(ctx context.Context) iter.Seq2[eventlog.Record, error] { return log.Read(ctx, id, 0, 0) }}, err) {
				return
			}
		}
	}, cohort.Options{})
	require.NoError(t, err)
	require.Len(t, c.Sessions, 1)
	require.Equal(t, "s-lab", c.Sessions[0].ID)
}
