package config

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No file makes the reader panic, and free JSON is JSON.
func FuzzDecode(f *testing.F) {
	example, err := os.ReadFile("testdata/example.yaml")
	require.NoError(f, err)
	f.Add(string(example))
	f.Add("agents:\n  a:\n    initialState: {x: .inf, y: 0x1f, z: [a:1, 010]}\n    tools: {t: {<<: {client: true}}}\n")
	for _, tt := range badFiles {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file:") {
			t.Skip("would read files")
		}
		c := Default()
		root, problems := parse("helix.yaml", []byte(text))
		if root == nil {
			return
		}
		d := &decoder{config: c, file: "helix.yaml", references: references{getenv: env{}.lookup}, problems: problems}
		d.decode(reflect.ValueOf(c).Elem(), root, "")
		c.setTimeouts()
		_ = joined(append(d.problems, without(c.check(), d.problems)...))
		for _, a := range c.Agents {
			require.True(t, a.InitialState == nil || json.Valid(a.InitialState))
		}
	})
}
