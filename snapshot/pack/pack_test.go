package pack_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
	"github.com/helixd/helixd/snapshot/pack"
)

type name string

type inner struct {
	N    name
	Raw  json.RawMessage
	F    float64
	Next *uint64
}

type whole struct {
	Inner inner
	Yes   bool
	Small int8
	Int   int64
	Uint  uint32
	Text  string
	Bytes []byte
	List  []inner
	Lists [][]string
	ByID  map[name]inner
	Named map[string]*inner
}

// TestADecodedValueIsTheEncodedOne, for any value, nil and empty ones included; encoding
// it again gives the same bytes.
func TestADecodedValueIsTheEncodedOne(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	c := &quick.Config{MaxCount: 200, Rand: rand.New(rand.NewSource(seed))}
	require.NoError(t, quick.Check(func(v whole) bool { return same(t, v) }, c))
	c.MaxCount = 20
	c.Values = func(args []reflect.Value, r *rand.Rand) { args[0] = reflect.ValueOf(randomTree(r)) }
	require.NoError(t, quick.Check(func(v projector.Tree) bool { return same(t, v) }, c))
	same(t, whole{Inner: inner{Raw: json.RawMessage{}}})
}

// randomTree has a state that encodes and decodes itself.
func randomTree(r *rand.Rand) (t projector.Tree) {
	for i := range reflect.TypeFor[projector.Session]().NumField() {
		field := reflect.ValueOf(&t.Session).Elem().Field(i)
		if field.Type() == reflect.TypeFor[jsondoc.Doc]() {
			field.Set(reflect.ValueOf(jsondoc.New([]byte(strings.Repeat("x", r.Intn(3)*5000)))))
		} else if v, ok := quick.Value(field.Type(), r); ok {
			field.Set(v)
		}
	}
	for i := 1; i < reflect.TypeFor[projector.Tree]().NumField(); i++ {
		field := reflect.ValueOf(&t).Elem().Field(i)
		if field.Type() == reflect.TypeFor[map[string]*projector.Session]() {
			continue
		}
		if v, ok := quick.Value(field.Type(), r); ok {
			field.Set(v)
		}
	}
	if r.Intn(2) == 0 {
		child := t.Session
		t.Children = map[string]*projector.Session{"child": &child, "none": nil}
	}
	return t
}

func same[T any](t *testing.T, v T) bool {
	b, cuts := pack.Encode(&v)
	var got T
	require.NoError(t, pack.Decode(b, &got))
	require.Equal(t, v, got)
	again, at := pack.Encode(&got)
	require.Equal(t, b, again)
	require.Equal(t, cuts, at)
	last := 0
	for _, cut := range cuts {
		require.Greater(t, cut, last)
		last = cut
	}
	require.LessOrEqual(t, last, len(b))
	return true
}

type row struct {
	ID   string
	Text string
}

type table struct {
	Head  int
	Rows  []row
	ByID  map[string]row
	Large string
}

// TestSuccessiveValuesShareTheirPieces: if a long list grows, or a large map gets an
// entry in its middle, most pieces are unchanged.
func TestSuccessiveValuesShareTheirPieces(t *testing.T) {
	v := table{ByID: map[string]row{}, Large: strings.Repeat("large ", 10_000)}
	rnd := rand.New(rand.NewSource(1))
	grow := func(n int) {
		for range n {
			r := row{ID: fmt.Sprint(rnd.Uint64()), Text: strings.Repeat(fmt.Sprint(rnd.Uint64()), 1+rnd.Intn(20))}
			v.Head++
			v.Rows = append(v.Rows, r)
			v.ByID[r.ID] = r
		}
	}
	pieces := func() (of map[string]bool, size, largest int) {
		of = map[string]bool{}
		b, cuts := pack.Encode(&v)
		from := 0
		for _, cut := range append(cuts, len(b)) {
			of[string(b[from:cut])] = true
			largest = max(largest, cut-from)
			from = cut
		}
		return of, len(b), largest
	}
	grow(10_000)
	before, size, largest := pieces()
	require.Greater(t, size, 4<<20)
	require.Less(t, largest, 80<<10)
	require.Less(t, len(before), size/pack.LeastPiece)
	grow(1)
	after, _, _ := pieces()
	fresh := 0
	for p := range after {
		if !before[p] {
			fresh += len(p)
		}
	}
	require.Less(t, fresh, 200<<10)
}

// TestDamageIsSeen: a change of any byte is found, and so is another type.
func TestDamageIsSeen(t *testing.T) {
	v := table{Head: 300, Rows: []row{{"a", "text"}, {"b", ""}}}
	b, _ := pack.Encode(&v)
	for i := range b {
		require.ErrorIs(t, pack.Decode(b[:i], new(table)), pack.ErrDamaged)
		damaged := append([]byte(nil), b...)
		damaged[i] ^= 1
		require.ErrorIs(t, pack.Decode(damaged, new(table)), pack.ErrDamaged)
	}
	require.ErrorIs(t, pack.Decode(b, new(row)), pack.ErrDamaged)
	require.NotEqual(t, pack.Schema[table](), pack.Schema[row]())
}

func TestWhatCantBeWritten(t *testing.T) {
	type within struct{ Next *struct{ Again []any } }
	for name, schema := range map[string]func() string{
		"unexported field": pack.Schema[struct{ hidden int }],
		"interface":        pack.Schema[within],
		"key":              pack.Schema[map[int]string],
		"array":            pack.Schema[[2]int],
		"no fields":        pack.Schema[[]struct{}],
		"itself":           pack.Schema[list],
	} {
		require.Panics(t, func() { schema() }, name)
	}
}

type list struct{ Next *list }

// FuzzDecode: decoding any bytes ends, and allocates no more memory than their length
// justifies.
func FuzzDecode(f *testing.F) {
	b, _ := pack.Encode(&projector.Tree{Session: projector.Session{SessionID: "s", Messages: []projector.Message{{Content: "text"}}}})
	f.Add(b[:len(b)-4])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, body []byte) {
		b := binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		var v projector.Tree
		if pack.Decode(b, &v) != nil {
			return
		}
		again, _ := pack.Encode(&v)
		var got projector.Tree
		require.NoError(t, pack.Decode(again, &got))
		require.True(t, reflect.DeepEqual(v, got) || strings.Contains(fmt.Sprint(v), "NaN"))
	})
}
