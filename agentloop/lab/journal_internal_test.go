package lab

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog/memory"
)

// The report of a lab with very many regressions is larger than a record.
func TestTheOutputOfALargeLab(t *testing.T) {
	one := result.Difference{Why: strings.Repeat("x", 2000)}
	report := &result.Report{Sessions: 10_000}
	for range report.Sessions {
		report.Regressions = append(report.Regressions, one)
	}
	j := &journal{log: memory.New(), id: "lab-x-1"}
	require.NoError(t, j.end(t.Context(), report))
	require.Len(t, report.Regressions, 10_000)
}
