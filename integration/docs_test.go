package integration_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/docs"
	"github.com/helixd/helixd/integration/testkit"
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

// TestDocsNameFiles: a page says what a file is called, since a reader does not see the
// name in its block's fence.
func TestDocsNameFiles(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	readme, err := docs.Parse("README.md", string(text))
	require.NoError(t, err)
	files := 0
	for _, page := range append(readDocs(t), readme) {
		for _, b := range page.Blocks {
			if b.File != "" {
				assert.Contains(t, b.Before, "`"+b.File+"`", "%s:%d", page.Name, b.Line)
				files++
			}
		}
	}
	require.Positive(t, files)
}

// environment is for pages whose helixd is in a folder. A page builds with what is
// here, by the commands that it shows.
func environment(t *testing.T, folder string) []string {
	t.Helper()
	repository, err := filepath.Abs("..")
	require.NoError(t, err)
	env := append(os.Environ(), "PATH="+folder+string(filepath.ListSeparator)+os.Getenv("PATH"), "REPOSITORY="+repository, "GOFLAGS=", "GOPROXY=off")
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}

// runPage does what a page says, in a folder.
func runPage(t *testing.T, page docs.Page, dir string, isolated bool, env []string) {
	t.Helper()
	shell, err := docs.StartShell(t.Context(), dir, append(slices.Clip(env), "HOME="+dir), isolated)
	require.NoError(t, err)
	defer shell.Close()
	timer := time.AfterFunc(4*time.Minute, shell.Close) // a command that hangs ends the page
	defer timer.Stop()
	require.NoError(t, docs.Run(page, dir, shell))
}

// TestDocs does what each page of the documentation says, command by command,
// in an empty folder.
func TestDocs(t *testing.T) {
	testkit.With(t, "HELIX_DOCS", "docs")
	isolated := docs.Isolated()
	env := environment(t, filepath.Dir(program(t)))
	t.Logf("a separate network for each page: %v", isolated)
	skipped, ran := 0, 0
	for _, page := range readDocs(t) {
		if page.Name == filepath.Base(firstMonth) {
			continue // it needs a release: see TestFirstMonth
		}
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
			runPage(t, page, t.TempDir(), isolated, env)
		})
	}
	t.Logf("%d commands, %d blocks are not run", ran, skipped)
	require.Positive(t, ran)
}
