package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/helixd/helixd/projector"
)

// SameState compares the answer of …/state with a fold.
func SameState(raw []byte, tree *projector.Tree) error { return sameState(raw, tree, false) }

// KnownState is SameState for the answer of an earlier version: it may lack fields.
func KnownState(raw []byte, tree *projector.Tree) error { return sameState(raw, tree, true) }

func sameState(raw []byte, tree *projector.Tree, earlier bool) error {
	var got struct {
		Sequence uint64
		State    json.RawMessage
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	want, err := json.Marshal(projector.StateOf(tree))
	if err != nil {
		return err
	}
	a, b := plain(got.State), plain(want)
	if earlier {
		b = known(a, b)
	}
	if got.Sequence != tree.Head || !reflect.DeepEqual(a, b) {
		return Wrong([]uint64{got.Sequence, tree.Head}, "the state is not the fold of the records: %s", unlike(a, b, ""))
	}
	return nil
}

// known leaves out of b the fields of objects that are not in a.
func known(a, b any) any {
	switch b := b.(type) {
	case map[string]any:
		if a, ok := a.(map[string]any); ok {
			out := map[string]any{}
			for k, v := range b {
				if has, ok := a[k]; ok {
					out[k] = known(has, v)
				}
			}
			return out
		}
	case []any:
		if a, ok := a.([]any); ok && len(a) == len(b) {
			out := make([]any, len(b))
			for i := range b {
				out[i] = known(a[i], b[i])
			}
			return out
		}
	}
	return b
}

func plain(raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	return v
}

// Difference names the first place where two JSON texts differ.
func Difference(a, b []byte) string { return unlike(plain(a), plain(b), "") }

// unlike names the first place where two JSON values differ.
func unlike(a, b any, path string) string {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if aok && bok {
		keys := maps.Clone(am)
		maps.Copy(keys, bm)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			if !reflect.DeepEqual(am[k], bm[k]) {
				return unlike(am[k], bm[k], path+"/"+k)
			}
		}
	}
	as, aok := a.([]any)
	bs, bok := b.([]any)
	if aok && bok && len(as) == len(bs) {
		for i := range as {
			if !reflect.DeepEqual(as[i], bs[i]) {
				return unlike(as[i], bs[i], fmt.Sprintf("%s/%d", path, i))
			}
		}
	}
	return fmt.Sprintf("%s is %.300v and not %.300v", path, a, b)
}
