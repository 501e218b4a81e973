package integration_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/docs"
)

// firstHour are the pages that a newcomer follows, one after the other: run, kill, debug,
// an agent and a tool, a second turn, an approval, a chat page, the library.
var firstHour = []string{
	"../README.md", "tutorials/tour.md", "guides/debugging.md", "tutorials/getting-started.md",
	"guides/conversations.md", "guides/chat-ui.md", "guides/embedding.md",
}

// webPages opens what these pages show in a browser, with the release's package for web pages.
const webPages = "```sh\n" + `npm install --silent ./helixd-client-*.tgz
helixd dev > dev.log 2>&1 & daemon=$!
helixd healthy --wait 60s
HELIX_CLIENT=$PWD/node_modules/@helixd/client node "$REPOSITORY/integration/readme/hour.mjs" 3000 http://127.0.0.1:8080
kill $daemon; wait $daemon
` + "```\n"

// library runs the README's program twice, with the repository in place of a release.
const library = "```sh\n" + `cd trip
go mod init trip
go mod edit -require github.com/helixd/helixd@v0.0.0 -replace "github.com/helixd/helixd=$REPOSITORY"
cp "$REPOSITORY/go.sum" .
go get .
go build -o trip .
` + "```\n```console\n$ ./trip\nThere is fog in Lisbon.\n$ ./trip\nThere is fog in Lisbon.\n```\n"

// platform is what an archive's name has.
const platform = runtime.GOOS + "_" + runtime.GOARCH

// releaseFolder returns a folder that has nothing but files of a release, and a folder of
// programs, into which its sudo copies, since a test must not install anything.
func releaseFolder(t *testing.T, release string, patterns ...string) (dir, bin string) {
	t.Helper()
	dir = t.TempDir()
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(release, pattern))
		require.NoError(t, err)
		require.Len(t, files, 1, pattern)
		raw, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(files[0])), raw, 0o600))
	}
	bin = filepath.Join(dir, ".local", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\n[ \"$1\" = cp ] && cp \"$2\" "+bin+"/\n"), 0o755))
	return dir, bin
}

// releasePage returns a page that names the archive of this platform: the pages name one.
func releasePage(t *testing.T, file string) docs.Page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docsFolder, file))
	require.NoError(t, err)
	page, err := docs.Parse(filepath.Base(file), strings.ReplaceAll(string(text), "linux_amd64", platform))
	require.NoError(t, err)
	return page
}

// TestFirstHour does what the pages of a newcomer's first hour say, one after the other
// in one folder that has nothing but the files of a release.
func TestFirstHour(t *testing.T) {
	release := os.Getenv("HELIX_RELEASE")
	if release == "" {
		t.Skip("set HELIX_RELEASE to a folder with a release, as `make hour` does")
	}
	browser := chromium(t)
	dir, bin := releaseFolder(t, release, "helixd_*_"+platform+".tar.gz", "helixd-client-*.tgz")
	env := append(environment(t, bin), "CHROMIUM="+browser)
	isolated := docs.Isolated()
	for _, file := range firstHour {
		page := releasePage(t, file)
		if !t.Run(page.Name, func(t *testing.T) { runPage(t, page, dir, isolated, env) }) {
			return // the next pages use what this one has left
		}
	}
	for name, text := range map[string]string{"web pages": webPages, "library": library} {
		page, err := docs.Parse(name, text)
		require.NoError(t, err)
		runPage(t, page, dir, isolated, env)
	}
}
