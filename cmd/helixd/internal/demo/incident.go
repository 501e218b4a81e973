package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Incident is a run that failed, to try the debugger with.
const Incident = "demo-incident"

// incidentRecords are that session, as two nodes have recorded it;
// `go test ./integration -run TestTheDemoIncidentIsReal -args -record-incident` records it again.
//
//go:embed incident.ndjson
var incidentRecords []byte

// ImportIncident puts the demo session into the log, once in the life of a
// data folder: once erased, it does not come back.
func ImportIncident(ctx context.Context, log eventlog.Log, dataDir string) error {
	mark := filepath.Join(dataDir, Incident+".imported")
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err := eventlog.Import(ctx, log, Incident, incident(), eventlog.ImportOptions{Restore: projector.TranslateRestore})
	if err != nil && !errors.Is(err, eventlog.ErrSessionExists) { // a session of a user, or one that has continued
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

func incident() iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for line := range bytes.Lines(incidentRecords) {
			if r, err := eventlog.ParseRecord(bytes.TrimSpace(line)); !yield(r, err) || err != nil {
				return
			}
		}
	}
}
