package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot/backup"
)

// TestDamageIsFound: a file that was truncated anywhere, or of which a byte differs, is
// not a backup.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	s := newStore(t, 1)
	noise := rand.NewChaCha8([32]byte{1})
	random := make([]byte, 80<<10)
	noise.Read(random)
	s.append("s", logtest.Text("s", base64.StdEncoding.EncodeToString(random)), logtest.Text("s", "and"))
	file := s.take(backup.Options{})
	require.Greater(t, len(file), 64<<10)
	bad := func(what string, at int, b []byte) {
		var found []integrity.Code
		_, _, err := backup.Verify(t.Context(), bytes.NewReader(b), func(f integrity.Finding) { found = append(found, f.Code) })
		require.NoError(t, err, "%s at %d", what, at)
		require.Contains(t, found, integrity.FoundBackup, "%s at %d", what, at)
	}
	places := []int{0, 1, 4, 5, 6, len(file) - 1, len(file) - 33, len(file) - 36, len(file) - 40, len(file) - 41}
	for at := 0; at < len(file); at += 1 << 10 {
		places = append(places, at)
	}
	for _, at := range places {
		bad("cut", at, file[:at])
		flipped := bytes.Clone(file)
		flipped[at] ^= 1 << (at % 8)
		bad("flip", at, flipped)
	}
	bad("more", len(file), append(bytes.Clone(file), 0))
	bad("twice", len(file), append(bytes.Clone(file), file...))
}

// sealed returns a file with the given lines, compressed and sealed like a backup.
func sealed(t *testing.T, lines ...string) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	_, err = w.Write([]byte(strings.Join(lines, "\n")))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	sum := sha256.Sum256(out.Bytes())
	b := binary.LittleEndian.AppendUint32(out.Bytes(), 0x184D2A5E)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(sum))), sum[:]...)
}

// TestTheFormat: version 1 can be read for ever; a file that violates it is refused.
func TestTheFormat(t *testing.T) {
	t.Parallel()
	const (
		header  = `{"backup":{"version":1,"createdAt":"2026-01-02T03:04:05Z","log":{"backend":"jetstream","durability":"fsync","partitions":1,"maxRecordBytes":1},"ends":[9]}}`
		session = `{"session":{"id":"s"}}`
		first   = `{"record":{"sequence":3,"time":"2026-01-02T03:04:05Z","kind":"fact","type":"session_created","agent":"s","data":{"type":"session_created","sessionId":"s","timestamp":1,"agentType":"a"}}}`
		second  = `{"record":{"sequence":5,"time":"2026-01-02T03:04:05Z","kind":"","type":"","agent":"","data":"x","base64":"eA=="},"unlinked":true}`
		ends    = `{"sessionEnd":{"records":2}}`
		end     = `{"end":{"sessions":1,"records":2,"bytes":73}}`
	)
	whole := sealed(t, header, session, first, second, ends, end, "")
	h, done, err := backup.Verify(t.Context(), bytes.NewReader(whole), problems(t))
	require.NoError(t, err)
	require.Equal(t, backup.Summary{Sessions: 1, Records: 2, Bytes: 73}, done)
	require.Equal(t, backup.Header{
		Version: 1, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Ends: []uint64{9},
		Log: eventlog.Info{Backend: "jetstream", Durability: "fsync", Partitions: 1, MaxRecordBytes: 1},
	}, h)
	to := newServer(t)
	require.Empty(t, to.restore(whole))
	_, got := to.copied("s")
	require.Len(t, got, 2)
	require.Equal(t, "x", string(got[1].Payload))
	require.True(t, got[1].Unlinked)
	to.verify()

	for name, lines := range map[string][]string{
		"nothing":                  {},
		"no header":                {session, first, second, ends, end},
		"no ends":                  {strings.Replace(header, "[9]", "[]", 1), `{"end":{"sessions":0,"records":0,"bytes":0}}`},
		"no JSON":                  {header, "{", session, first, second, ends, end},
		"an unknown line":          {header, `{"x":1}`, session, first, second, ends, end},
		"no session":               {header, first, second, ends, end},
		"no session's end":         {header, session, first, second, end},
		"no end":                   {header, session, first, second, ends},
		"another count":            {header, session, first, second, ends, strings.Replace(end, "73", "77", 1)},
		"another count of records": {header, session, first, second, strings.Replace(ends, "2", "1", 1), end},
		"records in disorder":      {header, session, second, first, ends, end},
		"a record below the floor": {header, `{"session":{"id":"s","floor":3}}`, first, second, ends, end},
		"a record after the end":   {strings.Replace(header, "[9]", "[4]", 1), session, first, second, ends, end},
		"a session twice":          {header, session, first, second, ends, session, first, second, ends, end},
		"a session without any":    {header, session, strings.Replace(ends, "2", "0", 1), end},
		"more":                     {header, session, first, second, ends, end, end},
		"it ends in a session":     {header, session, first},
	} {
		_, _, err := backup.Read(t.Context(), bytes.NewReader(sealed(t, lines...)), backup.Visitor{})
		require.ErrorIs(t, err, backup.ErrDamaged, name)
		_, _, err = backup.Verify(t.Context(), bytes.NewReader(sealed(t, lines...)), func(integrity.Finding) {})
		require.NoError(t, err, "%s: reported as a finding", name)
	}
	later := strings.Replace(header, `"version":1`, `"version":3`, 1)
	_, _, err = backup.Verify(t.Context(), bytes.NewReader(sealed(t, later, "")), problems(t))
	require.ErrorIs(t, err, backup.ErrVersion)
}

// TestALaterBackupIsRefused with the version that has written it, whatever else its header
// has.
func TestALaterBackupIsRefused(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		`{"backup":{"version":3,"helixd":"v9.8.7","createdAt":"2026-01-02T03:04:05Z","ends":[9]}}`: "the backup has format 3, written by helixd v9.8.7; this is helixd",
		`{"backup":{"version":4,"helixd":"v9.8.7","sections":[]}}`:                                 "the backup has format 4, written by helixd v9.8.7",
		`{"backup":{"version":3,"ends":[9]}}`:                                                      "written by helixd of a later version",
	} {
		_, err := backup.Restore(t.Context(), bytes.NewReader(sealed(t, header, "")), func(backup.Header) (backup.Target, error) {
			require.Fail(t, "nothing is opened")
			return backup.Target{}, nil
		})
		require.ErrorIs(t, err, backup.ErrVersion)
		require.ErrorContains(t, err, want)
	}
}

// TestRate: a backup is as slow as its rate requires, and no rate overflows.
func TestRate(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newStore(t, 1)
	s.append("s", logtest.Text("s", strings.Repeat("x", 160<<10)))
	began := time.Now()
	s.take(backup.Options{Rate: backup.MinRate})
	require.GreaterOrEqual(t, time.Since(began), time.Second, "160 KiB at 64 KiB/s, one second of credit")
	for _, rate := range []int64{backup.MinRate, math.MaxInt64} {
		require.NoError(t, backup.CheckRate(rate))
	}
	for _, rate := range []int64{1, backup.MinRate - 1, -1, math.MinInt64} {
		require.Error(t, backup.CheckRate(rate))
		_, err := backup.Take(t.Context(), s.log, s.states, new(bytes.Buffer), backup.Options{Rate: rate})
		require.Error(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := backup.Take(ctx, s.log, s.states, new(bytes.Buffer), backup.Options{Rate: backup.MinRate})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
