package jetstream_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// blockRecord is the place of a record in a block file; see embed/block.go.
type blockRecord struct {
	at, size int
	sequence uint64
	subject  string
}

func blockRecords(block []byte) (all []blockRecord) {
	for at := 0; at < len(block); {
		r := blockRecord{
			at: at, size: int(binary.LittleEndian.Uint32(block[at:]) &^ (1 << 31)), sequence: binary.LittleEndian.Uint64(block[at+4:]),
		}
		r.subject = string(block[at+22 : at+22+int(binary.LittleEndian.Uint16(block[at+20:]))])
		all = append(all, r)
		at += r.size
	}
	return all
}

// fields are places in a record, from its beginning or, if negative, its end. The upper
// bytes of the sequence are left out: the server fills the gap to the next message with
// entries until memory is exhausted. embed.Folder.Check finds those.
var fields = map[string]func(r blockRecord) int{
	"length":           func(blockRecord) int { return 0 },
	"sequence":         func(blockRecord) int { return 4 },
	"time":             func(blockRecord) int { return 12 },
	"subject's length": func(blockRecord) int { return 20 },
	"subject":          func(r blockRecord) int { return 22 + len(r.subject) - 1 },
	"headers' length":  func(r blockRecord) int { return 22 + len(r.subject) },
	"headers":          func(r blockRecord) int { return 22 + len(r.subject) + 30 },
	"payload":          func(r blockRecord) int { return r.size - 12 },
	"checksum":         func(r blockRecord) int { return r.size - 1 },
}

// TestAFlippedBitIsFoundAfterARestart: a server that starts on a damaged file skips a
// message, or truncates the file, and reports little. The rest of the store shows the
// damage.
func TestAFlippedBitIsFoundAfterARestart(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	s := newDiskLog(t)
	large := strings.Repeat("large ", 100_000)
	for i := range 4 {
		s.append("a", fmt.Sprint("a", i), "x")
		s.append("b", fmt.Sprint("b", i))
		if i == 2 {
			s.append("b", large, "and "+large)
		}
		require.NoError(t, s.log.Seal(t.Context(), "a"))
		require.NoError(t, s.log.Seal(t.Context(), "b"))
	}
	s.append("a", "tail", "of a")
	s.append("b", "tail of b")
	s.stop()
	healthy := t.TempDir()
	require.NoError(t, os.CopyFS(healthy, os.DirFS(s.dir)))

	names := slices.Collect(maps.Keys(fields))
	for _, stream := range []string{"HELIX_LOG_0", "HELIX_SEG_0", "HELIX_BLOBS"} {
		paths, err := filepath.Glob(filepath.Join(s.dir, "jetstream/*/streams", stream, "msgs/1.blk"))
		require.NoError(t, err)
		require.Len(t, paths, 1)
		block, err := os.ReadFile(paths[0])
		require.NoError(t, err)
		records := blockRecords(block)
		for position, r := range map[string]blockRecord{"a middle": records[len(records)/2], "the last": records[len(records)-1]} {
			for _, i := range rand.Perm(len(names))[:testkit.Times(len(names))] {
				field, offset := names[i], fields[names[i]]
				for _, index := range []bool{true, false} { // a clean stop, or a kill
					if !index && field != "payload" {
						continue
					}
					damaged := slices.Clone(block)
					damaged[r.at+offset(r)] ^= 4
					require.NoError(t, os.RemoveAll(s.dir))
					require.NoError(t, os.CopyFS(s.dir, os.DirFS(healthy)))
					require.NoError(t, os.WriteFile(paths[0], damaged, 0o640))
					if !index {
						require.NoError(t, os.Remove(filepath.Join(filepath.Dir(paths[0]), "index.db")))
					}
					what := fmt.Sprintf("%s of %s message of %s, %d on %s; index %t", field, position, stream, r.sequence, r.subject, index)
					s.start(true)
					problems, _, _ := s.verifyAll()
					s.stop()
					require.NotEmpty(t, problems, what)
					if position != "a middle" || stream == "HELIX_SEG_0" && !index {
						continue
					}
					session := strings.Split(r.subject, ".")[3]
					ofIt := slices.DeleteFunc(slices.Clone(problems), func(p place) bool { return p.session != session })
					require.NotEmpty(t, ofIt, what)
					if stream == "HELIX_LOG_0" {
						require.Equal(t, r.sequence, ofIt[0].sequence, what)
						require.NotEqual(t, integrity.FoundStore, ofIt[0].code)
					}
				}
			}
		}
	}
}

// damagedEnd returns a store whose session s has two records in a segment and
// then two only in the log, of which the server can't read the last.
func damagedEnd(t *testing.T) (s *diskLog, head uint64) {
	t.Helper()
	s = newDiskLog(t)
	s.append("s", "a", "b")
	require.NoError(t, s.log.Seal(t.Context(), "s"))
	s.append("s", "c")
	head = s.append("s", "the last one")
	s.append("other", "x")
	s.stop()
	paths, err := filepath.Glob(filepath.Join(s.dir, "jetstream/*/streams/HELIX_LOG_0/msgs/1.blk"))
	require.NoError(t, err)
	block, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	block[strings.Index(string(block), "the last one")] ^= 1
	require.NoError(t, os.WriteFile(paths[0], block, 0o640))
	s.start(false)
	return s, head
}

func TestADamagedEndIsNotTakenForTheEnd(t *testing.T) {
	t.Parallel()
	s, head := damagedEnd(t)
	s.requireProblems(place{integrity.FoundEndLost, "s", head})
	var err error
	for _, err = range s.log.Read(t.Context(), "s", 0, 0) {
	}
	require.Error(t, err, "what was read is not all")
	_, err = s.log.Head(t.Context(), "s")
	require.Error(t, err)
}

func TestASessionIsNotMadeAgainOverADamagedSegment(t *testing.T) {
	t.Parallel()
	s := newDiskLog(t)
	s.append("s", "a", "b")
	s.append("other", "x")
	_, err := s.log.Purge(t.Context(), now)
	require.NoError(t, err)
	s.append("behind", "x")
	require.NoError(t, s.log.Seal(t.Context(), "behind"))
	s.stop()
	paths, err := filepath.Glob(filepath.Join(s.dir, "jetstream/*/streams/HELIX_SEG_0/msgs/1.blk"))
	require.NoError(t, err)
	block, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	records := blockRecords(block)
	i := slices.IndexFunc(records, func(r blockRecord) bool { return r.subject == "helix.seg.0.s" })
	block[records[i].at+fields["payload"](records[i])] ^= 1
	require.NoError(t, os.WriteFile(paths[0], block, 0o640))
	s.start(false)
	s.requireProblems(place{integrity.FoundSegmentGap, "s", 1})
	_, err = s.log.Head(t.Context(), "s")
	require.Error(t, err)
	require.NotErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = s.log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a new session")})
	require.Error(t, err)
}

func TestASubjectOfNoSessionHidesNoOther(t *testing.T) {
	t.Parallel()
	s := newDiskLog(t)
	s.append("s", "a")
	s.publish("helix.log.0.%zz", nil, []byte("x"))
	s.requireProblems(place{code: integrity.FoundForeignSubject})
	for session, err := range s.log.Sessions(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, "s", session)
	}
	_, err := s.log.Purge(t.Context(), now)
	require.NoError(t, err)
}
