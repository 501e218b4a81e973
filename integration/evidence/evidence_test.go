package evidence

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// said is a producer's record: "p.1 " at sequence 11, and so on.
func said(t *testing.T, sequence uint64, text string) eventlog.Record {
	t.Helper()
	e, err := eventlog.NewChunk(&eventlog.TextDelta{
		Base: eventlog.Base{AgentID: "s", AgentType: "producer"}, Delta: text,
	}, eventlog.Labels{})
	require.NoError(t, err)
	return eventlog.Record{Sequence: sequence, Entry: e}
}

func claim(t *testing.T, sequence uint64, writer string) eventlog.Record {
	t.Helper()
	e, err := eventlog.NewFact("s", &fact.RunClaimed{
		RunID: "r", Node: writer, Attempt: 1, Base: fact.Base{SessionID: "s", Timestamp: 1},
	}, eventlog.Labels{})
	require.NoError(t, err)
	e.Writer, e.Ordinal = writer, 1
	return eventlog.Record{Sequence: sequence, Entry: e}
}

// The checker notices each way in which a log may break a promise.
func TestWhatIsNoticedInALog(t *testing.T) {
	promised := Promises{
		Session: "s", Acks: []Ack{{11, 12, []string{"p.1 ", "p.2 "}}}, Written: map[string]bool{"p.3 ": true},
	}
	one, two, three := said(t, 11, "p.1 "), said(t, 12, "p.2 "), said(t, 13, "p.3 ")
	late := said(t, 23, "p.3 ")
	late.Writer, late.Ordinal = "old", 2
	require.NoError(t, promised.Hold([]eventlog.Record{one, two}))
	require.NoError(t, promised.Hold([]eventlog.Record{one, two, three}))
	for name, test := range map[string]struct {
		records []eventlog.Record
		problem string
	}{
		"a lost one":     {[]eventlog.Record{one}, `"p.2 " was acknowledged at 12 and is lost`},
		"one elsewhere":  {[]eventlog.Record{one, said(t, 14, "p.2 ")}, "is at 14"},
		"one twice":      {[]eventlog.Record{one, two, said(t, 14, "p.2 ")}, "is there twice"},
		"another order":  {[]eventlog.Record{one, two, said(t, 13, "p.4 "), said(t, 14, "p.3 ")}, "comes after number 4"},
		"a foreign one":  {[]eventlog.Record{one, two, said(t, 13, "p.9 ")}, "nobody wrote"},
		"going back":     {[]eventlog.Record{one, two, said(t, 12, "p.3 ")}, "order"},
		"a fenced write": {[]eventlog.Record{one, two, claim(t, 21, "old"), claim(t, 22, "new"), late}, "fencing"},
	} {
		require.ErrorContains(t, promised.Hold(test.records), test.problem, name)
	}
	require.ErrorContains(t, Promises{Session: "s", Runs: []string{"r"}}.Hold(nil), "the run r was acknowledged and is lost")
	require.ErrorContains(t, Promises{Session: "s", Accepted: []string{"c"}}.Hold(nil), "the answer to call c was accepted and is lost")
}

// The state of an earlier version may lack fields, and have none that differs.
func TestStatesOfAnEarlierVersion(t *testing.T) {
	tree := projector.Fold(said(t, 11, "p.1 "))
	whole, err := json.Marshal(map[string]any{"sequence": tree.Head, "state": projector.StateOf(tree)})
	require.NoError(t, err)
	require.NoError(t, SameState(whole, tree))
	var answer map[string]any
	require.NoError(t, json.Unmarshal(whole, &answer))
	state := answer["state"].(map[string]any)
	require.Contains(t, state, "status")
	status := state["status"]
	delete(state, "status")
	older, err := json.Marshal(answer)
	require.NoError(t, err)
	require.ErrorContains(t, SameState(older, tree), "/status")
	require.NoError(t, KnownState(older, tree))
	state["status"] = "another than " + status.(string)
	other, err := json.Marshal(answer)
	require.NoError(t, err)
	require.ErrorContains(t, KnownState(other, tree), "/status")
}

// The checker notices what a reader lacks and what it should not have got;
// what is truncated it may have seen or not.
func TestWhatIsNoticedOfAReader(t *testing.T) {
	records := []eventlog.Record{said(t, 1, "a.1 "), said(t, 2, "a.2 "), said(t, 3, "a.3 ")}
	dead := eventlog.Truncations{{AgentID: "s", From: 2, To: 2, Scope: eventlog.ScopeContent}}
	see := func(records ...eventlog.Record) (shown []Shown) {
		for _, r := range records {
			shown = append(shown, Shown{r.Sequence, Hash(r.Payload)})
		}
		return shown
	}
	require.NoError(t, Complete(see(records...), records, dead))
	require.NoError(t, Complete(see(records[0], records[2]), records, dead))
	for name, test := range map[string]struct {
		shown   []Shown
		problem string
	}{
		"a gap":          {see(records[1], records[2]), "has not got {"},
		"no end":         {see(records[0]), "has not got the end"},
		"another text":   {see(records[0], said(t, 3, "a.4 ")), "something else"},
		"one too many":   {see(records[0], records[2], said(t, 4, "a.4 ")), "not in the log"},
		"nothing at all": {see(), "has not got the end"},
	} {
		require.ErrorContains(t, Complete(test.shown, records, dead), test.problem, name)
	}
}
