package integration_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/docs"
)

// docsFolder has the documentation's pages, in subfolders by their kind.
const docsFolder = "../docs"

// markdown returns the Markdown files below a folder, without those of
// installed npm packages.
func markdown(t *testing.T, folder string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(t, files)
	return files
}

func readDocs(t *testing.T) []docs.Page {
	t.Helper()
	var out []docs.Page
	for _, file := range markdown(t, docsFolder) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		page, err := docs.Parse(filepath.Base(file), string(text))
		require.NoError(t, err)
		out = append(out, page)
	}
	return out
}

// TestDocs does what each page of the documentation says, command by command,
// in an empty folder.
func TestDocs(t *testing.T) {
	if os.Getenv("HELIX_DOCS") == "" {
		t.Skip("set HELIX_DOCS=1, as `make docs` does")
	}
	path, err := binary()
	require.NoError(t, err)
	repository, err := filepath.Abs("..")
	require.NoError(t, err)
	isolated := docs.Isolated()
	caches := []string{"GOFLAGS=", "GOPROXY=off"} // a page builds with what is here, by the commands that it shows
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		caches = append(caches, name+"="+strings.TrimSpace(string(value)))
	}
	t.Logf("a separate network for each page: %v", isolated)
	skipped, ran := 0, 0
	for _, page := range readDocs(t) {
		name := strings.TrimSuffix(page.Name, ".md")
		for _, b := range page.Blocks {
			if b.NotRun != "" {
				t.Logf("%s:%d is not run: %s", page.Name, b.Line, b.NotRun)
				skipped++
			}
			ran += len(b.Commands())
		}
		t.Run(name, func(t *testing.T) {
			if isolated {
				t.Parallel() // each waits more than it computes
			}
			dir := t.TempDir()
			env := append(os.Environ(), "PATH="+filepath.Dir(path)+string(filepath.ListSeparator)+os.Getenv("PATH"),
				"HOME="+dir, "REPOSITORY="+repository)
			env = append(env, caches...)
			shell, err := docs.StartShell(t.Context(), dir, env, isolated)
			require.NoError(t, err)
			defer shell.Close()
			timer := time.AfterFunc(4*time.Minute, shell.Close) // a command that hangs ends the page
			defer timer.Stop()
			if err := docs.Run(page, dir, shell); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d commands, %d blocks are not run", ran, skipped)
	require.Positive(t, ran)
}
