package backup_test

import (
	"bytes"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot/backup"
)

// FuzzRead: reading any lines ends, with as many records as the lines announce or with an
// error.
func FuzzRead(f *testing.F) {
	const header = `{"backup":{"version":1,"ends":[9]}}`
	for _, lines := range []string{
		"", header, header + "\n" + `{"end":{"sessions":0,"records":0,"bytes":0}}`,
		header + "\n" + `{"session":{"id":"s","floor":2}}` + "\n" + `{"fold":{"sequence":3,"state":{}}}` + "\n" +
			`{"record":{"sequence":3,"kind":"chunk","data":1}}` + "\n" + `{"sessionEnd":{"records":1}}` + "\n" +
			`{"end":{"sessions":1,"records":1,"bytes":1}}`,
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		sessions, records := 0, 0
		_, done, err := backup.Read(t.Context(), bytes.NewReader(sealed(t, strings.Split(lines, "\n")...)), backup.Visitor{
			Session: func(_ string, floor uint64, all iter.Seq2[eventlog.Copied, error]) error {
				sessions++
				last := floor
				for r, err := range all {
					if err != nil {
						return err
					}
					if r.Sequence <= last {
						t.Errorf("%d after %d", r.Sequence, last)
					}
					last, records = r.Sequence, records+1
				}
				return nil
			},
		})
		switch {
		case err == nil && (done.Sessions != sessions || done.Records != records):
			t.Errorf("%+v, of %d sessions and %d records", done, sessions, records)
		case err != nil && !errors.Is(err, backup.ErrDamaged) && !errors.Is(err, backup.ErrVersion):
			t.Errorf("%v", err)
		}
	})
}
