package sizing

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/docs"
)

var update = flag.Bool("update", false, "write the table of the documentation")

// TestSizingDocs: the page of the documentation has the constants.
func TestSizingDocs(t *testing.T) {
	var rows [][]string
	for _, c := range Constants() {
		origin := "`" + c.Origin + "`"
		if strings.HasPrefix(c.Origin, "docs/") {
			origin = "[Limits](../reference/limits.md)"
		}
		rows = append(rows, []string{"`" + c.Name + "`", c.What, strconv.FormatFloat(c.Value, 'g', -1, 64) + " " + c.Unit, origin})
	}
	const path = "../../../docs/operations/sizing.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := docs.Fill(string(page), "constants", docs.Table([]string{"constant", "what", "value", "measured by"}, rows))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "go test ./cmd/helixd/sizing -update")
}
