package lab_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/integration/testkit"
)

// killedLab is the lab of a folder: two of its agents have changed.
func killedLab(t *testing.T, dir string) lab.Options {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "cohort"))
	require.NoError(t, err)
	defer f.Close()
	c, err := cohort.Read(f)
	require.NoError(t, err)
	candidate := tried(&world{})
	candidate[0].SystemPrompt += " Be brief."
	candidate[4].MaxSteps = 2
	return lab.Options{Name: "c", Cohort: c, Candidate: candidate, Baseline: tried(&world{}), Parallel: 2}
}

// TestTheKilledLab is the process that the test below kills.
func TestTheKilledLab(t *testing.T) {
	dir := os.Getenv("HELIX_TEST_LAB")
	if dir == "" {
		t.Skip("it is the process of another test")
	}
	o := killedLab(t, dir)
	node, err := helixd.Open(t.Context(), filepath.Join(dir, "data"))
	require.NoError(t, err)
	defer node.Close()
	o.Log, o.State = node.Log, "1"
	done, err := os.Create(filepath.Join(dir, "done"))
	require.NoError(t, err)
	defer done.Close()
	o.Progress = func(int, int) { _, _ = done.WriteString(".") }
	r := run(t, o)
	r.Seconds = 0
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report"), []byte(text(t, r)), 0o600))
}

// A process that is killed again and again, each time after it has done a little more, ends with the
// report of one that was not.
func TestAProcessThatIsKilled(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "cohort"))
	require.NoError(t, err)
	require.NoError(t, recordAll(t, 30).Write(f))
	require.NoError(t, f.Close())
	want := run(t, killedLab(t, dir))
	want.Seconds = 0
	require.NotEmpty(t, want.Regressions)
	require.NotEmpty(t, want.Unjudged)

	kills, more := 0, int64(9)
	if testkit.InFull() {
		more = 2
	}
	for size := int64(1); killAt(t, dir, size); size += more {
		kills++
	}
	require.Greater(t, kills, 2)
	got, err := os.ReadFile(filepath.Join(dir, "report"))
	require.NoError(t, err)
	require.Equal(t, text(t, want), string(got))
	t.Logf("killed %d times", kills)
}

// killAt runs the lab and kills it when it has judged so many sessions, those that it continues from
// included. It reports whether it had before the lab has ended.
func killAt(t *testing.T, dir string, size int64) (killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheKilledLab$")
	cmd.Env = append(os.Environ(), "HELIX_TEST_LAB="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			require.True(t, killed || err == nil, "%s", out.String())
			return killed
		case <-look.C:
			info, err := os.Stat(filepath.Join(dir, "done"))
			if err == nil && info.Size() >= size && !killed {
				killed = true
				require.NoError(t, cmd.Process.Kill())
			}
		}
	}
}
