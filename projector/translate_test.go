package projector_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// The import of any session folds to the same state at every sequence; only the sequences
// differ.
func TestAnImportFoldsToTheSameState(t *testing.T) {
	testkit.Sequential(t)
	rnd := testkit.Random(t)
	for range testkit.Times(40) {
		original := slices.DeleteFunc(randomLog(rnd, 120), func(r eventlog.Record) bool {
			f, _ := r.Fact()
			marker, _ := f.(*eventlog.Truncated)
			// An import refuses records without a kind, and a rollback to before the
			// first record has no meaning.
			return r.Kind == "" || marker != nil && marker.AfterSequence == 1
		})
		for i := range original {
			original[i].Time = time.Unix(int64(i), 0)
		}
		imported := importOf(t, original, rnd.IntN(3)+1)
		require.Len(t, imported, len(original))
		want, got := new(projector.Tree), new(projector.Tree)
		for i := range original {
			projector.Apply(want, original[i])
			projector.Apply(got, imported[i])
			if i%10 == 0 || i == len(original)-1 {
				require.Equal(t, placed(t, want, original[:i+1]), placed(t, got, imported[:i+1]))
			}
		}
	}
}

// importOf imports records into a log to which others also append.
func importOf(t *testing.T, records []eventlog.Record, noise int) []eventlog.Record {
	t.Helper()
	log := memory.New()
	last := uint64(0)
	source := func(yield func(eventlog.Record, error) bool) {
		for i, r := range records {
			if i%7 == 0 {
				var err error
				last, err = log.Append(t.Context(), "noise", last, slices.Repeat(opening()[:1], noise))
				require.NoError(t, err)
			}
			if !yield(r, nil) {
				return
			}
		}
	}
	_, err := eventlog.Import(t.Context(), log, "s", source, eventlog.ImportOptions{Restore: projector.TranslateRestore})
	require.NoError(t, err)
	return logtest.Records(t, log, "s")
}

// placed is a state in which sequences are replaced by places in its log: that of the
// last record up to a sequence, or of the first record from it on.
func placed(t *testing.T, state *projector.Tree, log []eventlog.Record) string {
	t.Helper()
	var tree any
	d := json.NewDecoder(strings.NewReader(encoded(t, state)))
	d.UseNumber()
	require.NoError(t, d.Decode(&tree))
	place := func(v any, from bool) int {
		n, err := v.(json.Number).Int64()
		require.NoError(t, err)
		i := sort.Search(len(log), func(i int) bool { return log[i].Sequence >= uint64(n) })
		if !from && (i == len(log) || log[i].Sequence > uint64(n)) {
			i--
		}
		return i
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			if reason, ok := v["reason"].(string); ok { // it may quote sequences
				v["reason"] = regexp.MustCompile(`[0-9]+`).ReplaceAllString(reason, "n")
			}
			for name, inner := range v {
				if _, number := inner.(json.Number); !number {
					v[name] = walk(inner)
					continue
				}
				switch name {
				case "head", "sequence", "committedAt", "startSequence", "streamSequence", "lastSequence", "before", "at", "to":
					v[name] = place(inner, false)
				case "from", "firstSequence":
					v[name] = place(inner, true)
				}
			}
		case []any:
			for i, inner := range v {
				v[i] = walk(inner)
			}
			return slices.DeleteFunc(v, func(v any) bool { // a range between records
				g, _ := v.(map[string]any)
				from, ok := g["from"].(int)
				return ok && from > g["to"].(int)
			})
		}
		return v
	}
	tree = walk(tree)
	delete(tree.(map[string]any), "bytes") // records contain sequences, which have other lengths
	if m := tree.(map[string]any); m["dead"] != nil && len(m["dead"].([]any)) == 0 {
		delete(m, "dead")
	}
	raw, err := json.MarshalIndent(tree, "", " ")
	require.NoError(t, err)
	return string(raw)
}

func TestTranslateRestore(t *testing.T) {
	var seqs *eventlog.Sequences
	// A value that no fold can use stays: the fold of the import parks it, too.
	for _, damaged := range []string{`{"sequence":"x"}`, `{"sequence":1,"sessions":[]}`, `{"sessions":{"s":7}}`} {
		got, err := projector.TranslateRestore(&eventlog.Truncated{Restore: json.RawMessage(damaged)}, seqs)
		require.NoError(t, err)
		require.Equal(t, damaged, string(got))
	}
	// A later version's addition could be a sequence.
	for _, later := range []string{`{"sequence":1,"at":7}`, `{"sequence":1,"sessions":{"s":{"turn":{"from":7}}}}`} {
		_, err := projector.TranslateRestore(&eventlog.Truncated{Restore: json.RawMessage(later)}, seqs)
		require.ErrorContains(t, err, "data.restore holds what this version does not know")
	}
}
