package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/integration/testkit"
)

// TestBackupAndRestore takes a backup of a daemon at work, and continues with it in
// another folder: with every sequence, a run that was under way, one that waits
// for an approval, a fork, large payloads and a history that begins later.
func TestBackupAndRestore(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newBackupWorld(t)
	dir, restored := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "restored")
	serve := func(dir string) *daemon {
		return newDaemon(t, "serve", "--config", w.config, "--data-dir", dir, "--allow-unauthenticated", "--durability", "interval=100ms")
	}
	d := serve(dir)
	d.start()
	w.start(d, "told", "tell", "completed")
	w.start(d, "asks", "approve", "paused")
	d.ok("/sessions/asks/fork", map[string]any{"sessionId": "fork"})
	large := noise(400 << 10)
	require.NotZero(t, appendTexts(t.Context(), d.url, "large", large, "behind"))
	require.NotZero(t, appendTexts(t.Context(), d.url, "erased", "gone"))
	helixd(t, "erase", "erased", "--yes", "--server", d.url)
	d.stop()
	floor := trimmedSession(t, dir, "trimmed")
	d.start()
	w.start(d, "live", "live", "running")
	<-w.asked
	require.Eventually(t, func() bool { return strings.Contains(text(d.records("live")), "Half ") }, time.Minute, 10*time.Millisecond)

	l := startLoad(t, d, 4)
	before := l.acknowledged()
	file := filepath.Join(t.TempDir(), "b.helix")
	require.Contains(t, helixd(t, "backup", "--server", d.url, "--out", file, "--json"), `"sessions":`)
	l.stop()
	require.Contains(t, refusedCommand(t, 1, "backup", "--server", d.url, "--out", file), "exists: give --force")
	source := map[string][]eventlog.Record{}
	h := readBackup(t, file)
	require.Equal(t, floor, h.floors["trimmed"])
	for session := range h.records {
		if session != "trimmed" {
			source[session] = d.records(session)
		}
	}
	_, trimmed := d.get("/sessions/trimmed/state")
	d.kill()

	// It is of one moment.
	for session, last := range before {
		require.GreaterOrEqual(t, h.records[session][len(h.records[session])-1].Sequence, last, "what was acknowledged before is in it")
	}
	for session, all := range source {
		got := h.records[session]
		require.Equal(t, content(all[:len(got)]), content(got), session)
		require.True(t, len(got) == len(all) || all[len(got)].Sequence > h.ends[0], "%s: all up to there", session)
	}
	require.NotContains(t, h.records, "erased")

	// It comes back.
	helixd(t, "verify", "--backup", file)
	require.Contains(t, helixd(t, "restore", file, "--data-dir", restored, "--json"), `"working":3`)
	require.Contains(t, refusedCommand(t, 1, "restore", file, "--data-dir", restored), "not empty")
	helixd(t, "verify", "--data-dir", restored)
	d = serve(restored)
	d.start()
	for session := range source {
		got := d.records(session)
		require.Equal(t, h.records[session], got[:len(h.records[session])], session)
		require.Equal(t, "session_imported", got[len(h.records[session])].Type, session)
	}
	require.Eventually(t, func() bool { // its read models are made again
		_, page := d.get("/sessions?limit=200")
		return page["total"] == float64(len(h.records))
	}, time.Minute, 10*time.Millisecond)
	_, got := d.get("/sessions/trimmed/state")
	was, is := trimmed["state"].(map[string]any), got["state"].(map[string]any)
	require.Greater(t, is["head"], float64(h.ends[0]+restore.SequencesBehind), "after the others is a record of who has restored it")
	for _, key := range []string{"head", "bytes"} {
		delete(was, key)
		delete(is, key)
	}
	require.Equal(t, was, is)
	status, answer := d.get("/sessions/trimmed/records")
	require.Equal(t, http.StatusGone, status)
	require.Equal(t, float64(floor), answer["detail"].(map[string]any)["floor"])
	require.Contains(t, text(d.records("large")), large)
	status, _ = d.get("/sessions/erased")
	require.Equal(t, http.StatusNotFound, status)

	// It continues.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := follow(ctx, d.url, "live")
	close(w.free)
	<-f.done
	f.checkAgainst(t, d.records("live"))
	d.waitFor("live", "completed")
	require.Greater(t, d.records("live")[len(d.records("live"))-1].Sequence, h.ends[0]+restore.SequencesBehind)
	for session, approved := range map[string]bool{"asks": true, "fork": false} {
		status, answer := d.post("/submit-tool-result", map[string]any{"sessionId": session, "kind": "approval-response", "toolCallId": "c", "approved": approved})
		require.Equal(t, "accepted", answer["status"], "%d %v", status, answer)
		d.ok("/resume", map[string]any{"sessionId": session})
		d.waitFor(session, "completed")
	}
	require.NotZero(t, appendTexts(t.Context(), d.url, "load-0", "more"))
	d.stop()
	helixd(t, "verify", "--data-dir", restored)
}

// TestBackupThatBreaksOff: what a backup has left that was killed passes for none.
func TestBackupThatBreaksOff(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	d := newDaemon(t, "dev", "--data-dir", filepath.Join(t.TempDir(), "data"), "--durability", "interval=100ms")
	d.start()
	require.NotZero(t, appendTexts(t.Context(), d.url, "large", noise(900<<10)))
	require.NotZero(t, appendTexts(t.Context(), d.url, "next", noise(900<<10)))
	dir := t.TempDir()
	file := filepath.Join(dir, "b.helix")
	path := program(t)
	cmd := exec.Command(path, "backup", "--server", d.url, "--out", file, "--rate", "64KiB")
	require.NoError(t, cmd.Start())
	var part string
	require.Eventually(t, func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, ".b.helix.*.part"))
		if len(found) == 0 {
			return false
		}
		part = found[0]
		info, err := os.Stat(part)
		return err == nil && info.Size() > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoFileExists(t, file)
	require.Contains(t, refusedCommand(t, 2, "verify", "--backup", part), "backup_damaged")
	require.Contains(t, refusedCommand(t, 1, "restore", part, "--data-dir", filepath.Join(dir, "data")), "cut, damaged or no backup")
	require.NoDirExists(t, filepath.Join(dir, "data"))

	// So does one that is interrupted, which is no success.
	cmd = exec.Command(path, "backup", "--server", d.url, "--out", file, "--rate", "64KiB")
	require.NoError(t, os.Remove(part))
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, ".b.helix.*.part"))
		return len(found) > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.NoFileExists(t, file)

	// The daemon dies in mid-backup: there is no file.
	cmd = exec.Command(path, "backup", "--server", d.url, "--out", file, "--rate", "64KiB")
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, ".b.helix.*.part"))
		return len(found) > 0
	}, time.Minute, time.Millisecond)
	d.kill()
	require.Error(t, cmd.Wait())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Contains(t, refusedCommand(t, 1, "backup", "--server", d.url, "--out", file, "--rate", "1KiB"), "65536")
}

// noise is a text of so many bytes that can't be compressed much.
func noise(n int) string {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%016x", rnd.Uint64())
	}
	return b.String()[:n]
}

// text is what the text deltas of records say.
func text(records []eventlog.Record) string {
	var b strings.Builder
	for _, r := range records {
		var c struct{ Type, Delta string }
		if json.Unmarshal(r.Payload, &c) == nil && c.Type == "text_delta" {
			b.WriteString(c.Delta)
		}
	}
	return b.String()
}

// content is records without their times: a sealed one may have that of its
// acknowledgement.
func content(records []eventlog.Record) []eventlog.Record {
	out := make([]eventlog.Record, len(records))
	for i, r := range records {
		r.Time = time.Time{}
		out[i] = r
	}
	return out
}
