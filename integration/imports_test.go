package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/helixd/helixd/"

// goPackage is what `go list` tells of a package, its tests left out.
type goPackage struct {
	ImportPath, Dir, Name  string
	GoFiles, Imports, Deps []string
}

// folder is the package's path within the repository.
func (p goPackage) folder() string { return strings.TrimPrefix(p.ImportPath, module) }

// listOnce lists the repository's packages, once for all tests.
var listOnce = sync.OnceValues(func() (packages []goPackage, err error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,GoFiles,Imports,Deps", "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
})

// listed returns the repository's packages.
func listed(t *testing.T) []goPackage {
	t.Helper()
	packages, err := listOnce()
	require.NoError(t, err)
	return packages
}

// within reports whether a folder is one of the given ones or below it.
func within(folder string, parents ...string) bool {
	return slices.ContainsFunc(parents, func(p string) bool {
		return folder == p || strings.HasPrefix(folder, p+"/")
	})
}

// ofRepo returns the repository's folders among import paths.
func ofRepo(imports []string) (folders []string) {
	for _, i := range imports {
		if f, ok := strings.CutPrefix(i, module); ok {
			folders = append(folders, f)
		}
	}
	return folders
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	order := []string{"eventlog", "projector", "snapshot", "agentloop", "httpapi", "cmd/helixd"}
	rank := func(folder string) int {
		return slices.IndexFunc(order, func(p string) bool { return within(folder, p) })
	}
	for _, p := range listed(t) {
		for _, imported := range ofRepo(p.Imports) {
			if from, to := rank(p.folder()), rank(imported); from >= 0 && to >= 0 {
				require.LessOrEqual(t, to, from, "%s imports %s", p.folder(), imported)
			}
			if p.folder() == "eventlog" && imported != "eventlog/fact" || p.folder() == "eventlog/fact" || within(p.folder(), "embed") && !within(imported, "embed", "eventlog/version") {
				require.Fail(t, "must stand alone", "%s imports %s", p.folder(), imported)
			}
			if within(p.folder(), "agentloop/model") {
				require.True(t, within(imported, "agentloop/model", "eventlog/fact") || imported == "eventlog", "%s imports %s", p.folder(), imported)
			}
			if within(imported, "embed") {
				require.True(t, p.ImportPath+"/" == module || within(p.folder(), "cmd/helixd", "embed", "eventlog/jetstream/internal/storetest"), "%s imports embed: a server is wiring", p.folder())
			}
		}
	}
}

// What agents are made of needs no engine, and what decides does nothing.
func TestTheLoopsPartsPointOneWay(t *testing.T) {
	t.Parallel()
	order := []string{
		"agentloop/internal/locks", "agentloop/internal/patch", "agentloop", "agentloop/internal/shorten", "agentloop/internal/plan", "agentloop/internal/decide",
		"agentloop/verify",
		"agentloop/engine/internal/runs", "agentloop/engine/internal/backlog", "agentloop/engine/internal/tracing",
		"agentloop/engine/internal/retrying", "agentloop/engine/internal/remoteids", "agentloop/conversation",
		"agentloop/engine/internal/record", "agentloop/engine/internal/metrics",
		"agentloop/engine/internal/files", "agentloop/engine/internal/admission", "agentloop/engine/internal/drive", "agentloop/engine/internal/node", "agentloop/engine/internal/request",
		"agentloop/engine/timetravel", "agentloop/engine/admin", "agentloop/engine",
	}
	for _, p := range listed(t) {
		from := slices.Index(order, p.folder())
		for _, imported := range ofRepo(p.Imports) {
			if to := slices.Index(order, imported); from >= 0 {
				require.Less(t, to, from, "%s imports %s", p.folder(), imported)
			}
			require.False(t, imported == "agentloop/engine" && within(p.folder(), "agentloop") && p.folder() != "agentloop/lab", "%s imports the engine", p.folder())
		}
		if p.folder() != "agentloop/internal/decide" {
			continue
		}
		for _, dep := range p.Deps {
			require.False(t, dep == "net/http" || within(dep, "github.com/nats-io", "github.com/prometheus", "go.opentelemetry.io", module+"agentloop/engine"), "%s reaches %s", p.folder(), dep)
		}
		for _, name := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, name))
			require.NoError(t, err)
			for _, act := range []string{"time.Now", "time.Since", "time.After", "context.", "go func"} {
				require.NotContains(t, string(source), act, "%s/%s", p.folder(), name)
			}
		}
	}
}

// A part of the log on JetStream knows the parts before it.
func TestTheLogsPartsPointOneWay(t *testing.T) {
	const root = "eventlog/jetstream"
	order := []string{
		"layout", "internal/wire", "internal/metrics", "internal/link", "internal/streams", "internal/store", "internal/maintenance",
		"internal/live", "internal/feed", "internal/verify", "doctor", "restore", "", "jetstreamtest", "internal/storetest",
	}
	rank := func(folder string) int {
		return slices.Index(order, strings.TrimPrefix(strings.TrimPrefix(folder, root), "/"))
	}
	for _, p := range listed(t) {
		for _, imported := range ofRepo(p.Imports) {
			require.NotContains(t, []string{root + "/internal/storetest", root + "/jetstreamtest"}, imported, "%s imports what is for tests", p.folder())
			if !within(p.folder(), root) || !within(imported, root) || within(p.folder(), root+"/subscriber", root+"/daily") {
				continue
			}
			require.GreaterOrEqual(t, rank(p.folder()), 0, "%s is in no order", p.folder())
			require.Less(t, rank(imported), rank(p.folder()), "%s imports %s", p.folder(), imported)
		}
	}
}

// A part of the server knows the parts before it, and the client none of them.
func TestTheServersPartsPointOneWay(t *testing.T) {
	t.Parallel()
	order := []string{
		"httpapi/api", "httpapi/auth", "httpapi/internal/web", "httpapi/internal/stream", "httpapi/internal/inspect",
		"httpapi/internal/control", "httpapi/internal/operate", "httpapi/chat", "httpapi/responses", "httpapi/agui", "httpapi",
	}
	for _, p := range listed(t) {
		from := slices.Index(order, p.folder())
		for _, imported := range ofRepo(p.Imports) {
			if to := slices.Index(order, imported); from >= 0 {
				require.Less(t, to, from, "%s imports %s", p.folder(), imported)
			}
			if p.folder() == "httpapi/client" && within(imported, "httpapi") {
				require.Equal(t, "httpapi/api", imported, "imported by the client")
			}
		}
	}
}

// The parts of the command import only parts that are above them here, and none
// imports main, which has the command line.
func TestTheCommandsPartsPointOneWay(t *testing.T) {
	t.Parallel()
	const root = "cmd/helixd"
	order := []string{
		"config", "sizing", "internal/terminal", "internal/flags", "internal/source", "internal/settings", "internal/agentconfig",
		"internal/demo", "internal/beside", "internal/doctor", "internal/clitest", "internal/cli/inspect", "internal/cli/control", "internal/cli/operate",
		"internal/daemon", "internal/cli/lab", "",
	}
	rank := func(folder string) int {
		return slices.Index(order, strings.TrimPrefix(strings.TrimPrefix(folder, root), "/"))
	}
	for _, p := range listed(t) {
		if !within(p.folder(), root) {
			continue
		}
		if within(p.folder(), root+"/examples") { // they stand for programs outside of the repository
			for _, imported := range ofRepo(p.Imports) {
				require.False(t, within(imported, root), "%s imports %s", p.folder(), imported)
			}
			continue
		}
		require.GreaterOrEqual(t, rank(p.folder()), 0, "%s is in no order", p.folder())
		if p.folder() != root+"/config" { // one vocabulary
			require.LessOrEqual(t, len(p.GoFiles), 25, "%s has too many files", p.folder())
		}
		for _, imported := range ofRepo(p.Imports) {
			if within(imported, root) {
				require.Less(t, rank(imported), rank(p.folder()), "%s imports %s", p.folder(), imported)
			}
			require.NotEqual(t, root+"/internal/clitest", imported, "%s imports what is for tests", p.folder())
		}
	}
}

func TestNATSStaysAtTheEdge(t *testing.T) {
	t.Parallel()
	const client, server = "github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2"
	for _, p := range listed(t) {
		for _, i := range p.Imports {
			if within(i, client) {
				require.True(t, within(p.folder(), "eventlog/jetstream", "snapshot/jetstream", "agentloop/worklist", "agentloop/workspace/objects", "embed", "cmd/helixd"), "%s imports %s", p.folder(), i)
			}
			if within(i, server) {
				require.True(t, within(p.folder(), "embed"), "%s imports %s", p.folder(), i)
			}
		}
	}
}

// A database is one adapter's: rows are derived from folds elsewhere.
func TestSQLiteStaysInItsAdapter(t *testing.T) {
	t.Parallel()
	for _, p := range listed(t) {
		for _, i := range p.Imports {
			if i == "database/sql" || within(i, "modernc.org") {
				require.Equal(t, "projector/sqlite", p.folder(), "imports %s", i)
			}
		}
	}
}

// What is measured is counted where it happens: at the edges, not in the types
// that all share, and not in the fold.
func TestMetricsStayWhereThingsHappen(t *testing.T) {
	t.Parallel()
	for _, p := range listed(t) {
		for _, i := range p.Imports {
			if within(i, "github.com/prometheus") {
				require.True(t, slices.Contains([]string{
					"eventlog/jetstream", "eventlog/jetstream/internal/metrics", "snapshot", "agentloop/engine", "agentloop/engine/internal/metrics", "agentloop/memory", "agentloop/worklist", "httpapi", "cmd/helixd/internal/daemon", "cmd/helixd/internal/cli/lab",
				}, p.folder()), "%s imports %s", p.folder(), i)
			}
		}
	}
}

// Spans are made by the loop's shell with OpenTelemetry's interfaces, and
// contexts travel in HTTP headers; how spans are exported is wiring.
func TestTracingStaysAtTheEdge(t *testing.T) {
	t.Parallel()
	const otel = "go.opentelemetry.io/otel"
	for _, p := range listed(t) {
		for _, i := range p.Imports {
			if within(i, otel) {
				require.True(t, within(p.folder(), "agentloop/engine", "agentloop/httptool", "agentloop/remote/remotehttp", "httpapi", "cmd/helixd"), "%s imports %s", p.folder(), i)
			}
			if within(i, otel+"/sdk", otel+"/exporters") {
				require.True(t, within(p.folder(), "cmd/helixd"), "%s imports %s", p.folder(), i)
			}
		}
	}
}

func TestProjectorIsPure(t *testing.T) {
	t.Parallel()
	for _, p := range listed(t) {
		if !within(p.folder(), "projector") || p.folder() == "projector/sqlite" { // an adapter: to a file
			continue
		}
		if p.folder() == "projector/timeline/timelinetest" { // laws, with testify: for tests
			continue
		}
		if p.folder() == "projector/cache" { // forgets after a time: for adapters, not for folds
			continue
		}
		for _, dep := range p.Deps {
			require.NotEqual(t, module+"projector/cache", dep, "%s reaches a clock", p.folder())
			require.False(t, dep == "net" || dep == "net/http", "%s reaches %s", p.folder(), dep)
			require.False(t, within(dep, "github.com/nats-io"), "%s reaches %s", p.folder(), dep)
		}
		for _, name := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, name))
			require.NoError(t, err)
			for _, clock := range []string{"time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "math/rand", "crypto/rand"} {
				require.NotContains(t, string(source), clock, "%s/%s", p.folder(), name)
			}
		}
	}
}

// The list of folders is the architecture, and each says what it is for.
func TestTopFolders(t *testing.T) {
	code := []string{"agentloop", "cmd", "embed", "eventlog", "httpapi", "integration", "projector", "snapshot"}
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		// helix-data is left by a server that was started here, dist by a release.
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "helix-data" && e.Name() != "dist" {
			got = append(got, e.Name())
		}
		if filepath.Ext(e.Name()) == ".go" { // helixd.Open
			require.Contains(t, []string{"helixd.go", "helixd_test.go"}, e.Name(), "of the root")
		}
	}
	require.ElementsMatch(t, append([]string{"docs"}, code...), got)
	for _, folder := range code {
		if folder == "cmd" {
			folder = "cmd/helixd"
		}
		require.FileExists(t, filepath.Join("..", folder, "doc.go"))
	}
}
