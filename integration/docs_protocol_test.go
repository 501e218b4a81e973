package integration_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// recordRow is a row of the tables of protocol.md: type, fields, meaning.
var recordRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.*?) \\| (.+) \\|$")

// The protocol's page has a row for each chunk and each fact, with the fields of the code.
func TestDocsProtocol(t *testing.T) {
	path := filepath.Join(docsFolder, "reference/protocol.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(text)
	for _, table := range []struct {
		heading string
		types   []string
		decode  func([]byte) (any, error)
	}{
		{"### Chunks\n", eventlog.ChunkTypes(), func(b []byte) (any, error) { return eventlog.DecodeChunk(b) }},
		{"### Facts\n", eventlog.FactTypes(), func(b []byte) (any, error) { return eventlog.DecodeFact(b) }},
	} {
		before, rest, found := strings.Cut(page, table.heading)
		require.True(t, found, table.heading)
		section, after, _ := strings.Cut(rest, "\n#")
		var types []string
		filled := recordRow.ReplaceAllStringFunc(section, func(row string) string {
			cells := recordRow.FindStringSubmatch(row)
			types = append(types, cells[1])
			value, err := table.decode([]byte(`{"type":"` + cells[1] + `"}`))
			require.NoError(t, err, cells[1])
			return "| `" + cells[1] + "` | " + fieldsOf(reflect.TypeOf(value).Elem()) + " | " + cells[3] + " |"
		})
		slices.Sort(types)
		require.Equal(t, table.types, types, "%s%s: a row for each type", path, strings.TrimSpace(table.heading))
		page = before + table.heading + filled + "\n#" + after
	}
	if *updateDocs {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		return
	}
	require.Equal(t, page, string(text), "go test ./integration -run TestDocsProtocol -args -update-docs")
}

// fieldsOf lists a record's fields but for those that all have.
func fieldsOf(record reflect.Type) string {
	var names []string
	for i := range record.NumField() {
		field := record.Field(i)
		name, optional := strings.CutSuffix(field.Tag.Get("json"), ",omitempty")
		if field.Anonymous || name == "" {
			continue
		}
		if optional {
			name += "?"
		}
		names = append(names, "`"+name+"`")
	}
	return strings.Join(names, ", ")
}
