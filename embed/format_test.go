package embed_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/version"
)

// usedFolder returns a data folder with a stream, whose server is stopped.
func usedFolder(t *testing.T) string {
	dir := t.TempDir()
	srv := embedtest.Server(t, embed.Options{DataDir: dir})
	_, js := connect(t, srv)
	_, err := js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s", []byte("kept"))
	require.NoError(t, err)
	srv.Stop()
	return dir
}

// files returns the content of all files of a folder.
func files(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all[path] = string(raw)
		return err
	}))
	return all
}

// formatIn returns what a folder says of its format.
func formatIn(t *testing.T, dir string) (f struct {
	Format int
	Helixd string
}) {
	raw, err := os.ReadFile(filepath.Join(dir, "format"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &f))
	return f
}

func TestALaterFormatIsRefused(t *testing.T) {
	t.Parallel()
	dir := usedFolder(t)
	require.Equal(t, version.Format, formatIn(t, dir).Format)
	require.Equal(t, version.Current(), formatIn(t, dir).Helixd)
	for content, want := range map[string]string{
		`{"format":99,"helixd":"v9.8.7"}`:                dir + " has format 99, written by helixd v9.8.7; this is helixd " + version.Current() + ", which reads formats up to 2: use helixd v9.8.7 or later",
		`{"format":99,"helixd":"v9.8.7","more":{"a":1}}`: "written by helixd v9.8.7",
		`{"format":99}`:                "written by helixd of a later version",
		"":                             "format is damaged, so the folder may be of a later version",
		`{"format":2,"hel`:             "remove the file",
		`{"format":0}`:                 "is damaged",
		`{"format":"3"}`:               "is damaged",
		"\x00\x00\x00\x00\x00\x00\x00": "is damaged",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "format"), []byte(content), 0o600))
		before := files(t, dir)
		for name, open := range map[string]func() error{
			"server": func() error { _, err := embed.Start(t.Context(), embed.Options{DataDir: dir}); return err },
			"only reads": func() error {
				_, err := embed.Start(t.Context(), embed.Options{DataDir: dir, KeepFormat: true})
				return err
			},
			"of a cluster": func() error {
				_, err := embed.Start(t.Context(), embed.Options{DataDir: dir, Cluster: &embed.Cluster{Listen: "127.0.0.1:0"}})
				return err
			},
			"folder": func() error { _, err := embed.OpenFolder(dir); return err },
		} {
			require.ErrorContains(t, open(), want, "%s: %q", name, content)
			require.Equal(t, before, files(t, dir), "%s changes nothing", name)
		}
	}
}

// TestAnEarlierFormatIsContinued, and a reader does not raise its number: the version that
// wrote the folder can still use it afterwards.
func TestAnEarlierFormatIsContinued(t *testing.T) {
	t.Parallel()
	dir := usedFolder(t)
	path := filepath.Join(dir, "format")
	const older = `{"format":1,"helixd":"v0.0.9"}`
	for name, make := range map[string]func() error{
		"without a number": func() error { return os.Remove(path) },
		"older":            func() error { return os.WriteFile(path, []byte(older), 0o600) },
		"a write of the number was interrupted": func() error {
			return os.WriteFile(path+".new", []byte(`{"for`), 0o600)
		},
	} {
		require.NoError(t, make(), name)
		before, _ := os.ReadFile(path)
		folder, err := embed.OpenFolder(dir)
		require.NoError(t, err, name)
		folder.Close()
		embedtest.Server(t, embed.Options{DataDir: dir, KeepFormat: true}).Stop()
		after, _ := os.ReadFile(path)
		require.Equal(t, before, after, name)

		srv := embedtest.Server(t, embed.Options{DataDir: dir})
		_, js := connect(t, srv)
		s, err := js.Stream(t.Context(), "S")
		require.NoError(t, err, name)
		require.Equal(t, uint64(1), s.CachedInfo().State.Msgs, name)
		srv.Stop()
		require.Equal(t, version.Format, formatIn(t, dir).Format, name)
	}
}
