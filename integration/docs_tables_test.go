package integration_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/integration/docs"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

var updateDocs = flag.Bool("update-docs", false, "write the tables of the documentation")

// operation is a route as openapi.yaml describes it.
type operation struct {
	Summary   string `yaml:"summary"`
	Operation string `yaml:"x-helix-operation"`
}

// routeOf names a row of the routes' table.
type routeOf struct {
	method, path string
	operation
}

func openAPI(t *testing.T) (out []routeOf) {
	t.Helper()
	text, err := os.ReadFile("../httpapi/openapi.yaml")
	require.NoError(t, err)
	var document struct {
		Paths map[string]struct {
			Get    operation `yaml:"get"`
			Post   operation `yaml:"post"`
			Delete operation `yaml:"delete"`
		} `yaml:"paths"`
	}
	require.NoError(t, yaml.Unmarshal(text, &document))
	for path, at := range document.Paths {
		for method, op := range map[string]operation{"GET": at.Get, "POST": at.Post, "DELETE": at.Delete} {
			if op.Summary != "" {
				out = append(out, routeOf{method, path, op})
			}
		}
	}
	slices.SortFunc(out, func(a, b routeOf) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method)) })
	require.NotEmpty(t, out)
	return out
}

func routesTable(t *testing.T) string {
	var rows [][]string
	for _, r := range openAPI(t) {
		tag := "everybody"
		switch {
		case r.Operation != "":
			tag = "`" + r.Operation + "`"
		case r.path == "/": // it looks at its caller by itself
			tag = "everybody; `" + string(httpapi.OpDebugger) + "` for who is known"
		case r.path == "/readyz": // so does this
			tag = "everybody; `" + string(httpapi.OpStatus) + "` for all but `ready`"
		}
		rows = append(rows, []string{"`" + r.method + " " + r.path + "`", r.Summary, tag})
	}
	return docs.Table([]string{"route", "what", "operation"}, rows)
}

func operationsTable(t *testing.T) string {
	allows := map[string][]string{}
	for _, r := range openAPI(t) {
		if r.Operation != "" {
			allows[r.Operation] = append(allows[r.Operation], "`"+r.method+" "+r.path+"`")
		}
	}
	var rows [][]string
	for op, routes := range allows {
		rows = append(rows, []string{"`" + op + "`", strings.Join(routes, ", ")})
	}
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return docs.Table([]string{"operation", "allows"}, rows)
}

func configKeys(t *testing.T) []docs.Key {
	keys, err := docs.Keys("../cmd/helixd/config", "Config")
	require.NoError(t, err)
	require.Greater(t, len(keys), 50)
	return keys
}

func keysTable(t *testing.T) string {
	var rows [][]string
	for _, key := range configKeys(t) {
		rows = append(rows, []string{"`" + key.Path + "`", key.Text})
	}
	return docs.Table([]string{"key", "what"}, rows)
}

func limitsTable(*testing.T) string {
	size := func(n int) string {
		switch {
		case n >= 1<<20 && n%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", n>>20)
		case n >= 1<<10 && n%(1<<10) == 0:
			return fmt.Sprintf("%d KiB", n>>10)
		}
		return fmt.Sprintf("%d B", n)
	}
	return docs.Table([]string{"what", "limit"}, [][]string{
		{"a session's id", size(eventlog.MaxSessionID) + " of UTF-8, no control characters"},
		{"another id or name, an idempotency key", size(eventlog.MaxID)},
		{
			"requests with an idempotency key whose answers a session remembers, at least; keys before those that it still refuses",
			fmt.Sprintf("%d; %d", projector.LeastKnownAppends, projector.LeastOldKeys),
		},
		{"records in one append", fmt.Sprint(eventlog.MaxAppendRecords, ", all or none")},
		{"one record", size(eventlog.MaxPayload)},
		{"JSON within JSON", fmt.Sprint(eventlog.MaxDepth, " deep")},
		{"a session's custom state; arrays and objects within each other after a patch", fmt.Sprintf("%s; %d", size(projector.MaxState), jsondoc.MaxDepth)},
		{"work of the patches of a session's state, at once; and again with each record", size(projector.MaxPatchWork) + "; " + size(projector.PatchWorkBack)},
		{"HTTP connections of a node", fmt.Sprintf("`limits.connections`, else half of the files that it may open, at most %d", config.DefaultConnections)},
		{"body of a request; members of the object that it is", fmt.Sprintf("%s; %d", size(httpapi.MaxBody), httpapi.MaxMembers)},
		{"… of `/chunks`", size(httpapi.MaxChunksBody)},
		{"… of `/submit-tool-result`", size(httpapi.MaxSubmitBody)},
		{"request bodies under way as far as they have arrived, of one caller or tenant; of all; the same of answers over 64 KiB", size(httpapi.MaxCallerBodies) + "; " + size(httpapi.MaxBodies)},
		{"a line of `/import`", size(httpapi.MaxImportLine)},
		{"a submitted result; error, reason", size(engine.MaxSubmittedResult) + "; " + size(engine.MaxSubmittedError)},
		{"error text of a tool or a provider", size(agentloop.MaxErrorText)},
		{"tool calls of one answer", fmt.Sprint(agentloop.MaxCalls)},
		{"sub-agents within sub-agents", fmt.Sprint(agentloop.MaxDepth)},
		{"steps of a turn, repetitions of a failed model call", fmt.Sprintf("%d, %d by default", agentloop.DefaultMaxSteps, agentloop.DefaultMaxRetries)},
		{"processes that may die with a run, before a word of its model's and after", fmt.Sprintf("%d, %d in a row", agentloop.MaxSilentClaims, agentloop.MaxFruitlessClaims)},
		{"a hook", agentloop.MaxHookTime.String()},
		{"what a writer queues while an append is in flight", fmt.Sprintf("%d records, %s", eventlog.MaxQueuedRecords, size(eventlog.MaxQueuedBytes))},
		{
			"a search; texts that one looks at whose caller may not see all sessions, or that names a user or a session, the newest first",
			readmodel.SearchTime.String() + "; " + size(readmodel.MaxSearched),
		},
		{"types that records can be asked for by", fmt.Sprint(httpapi.MaxRecordTypes)},
		{"a replay: its speed; its longest pause", fmt.Sprintf("%v to %v; %v, %v by default", httpapi.MinReplaySpeed, httpapi.MaxReplaySpeed, httpapi.MaxReplayPause, httpapi.DefaultReplayPause)},
		{"a session's states and timeline in memory, for who looks at it again", fmt.Sprintf("%s and %s of all sessions together; %s",
			size(snapshot.MaxAnchorBytes), size(snapshot.MaxTimelineBytes), strings.TrimSuffix(snapshot.AnchorIdle.String(), "0s"))},
		{"a file of a workspace that is read or written whole; its path", size(workspace.MaxFile) + "; " + size(workspace.MaxPath) + ", each part " + size(workspace.MaxElement)},
		{"files and folders of a workspace in `memory` or `objects`", fmt.Sprint(filetree.MaxFiles)},
		{"… in `local`; within each other; the paths of all together", fmt.Sprintf("%d; %d; %s", local.MaxFiles, local.MaxDepth, size(local.MaxPaths))},
		{"all bytes of a workspace", size(inmemory.MaxBytes) + " in `memory`, else `workspaces.….maxBytes`"},
		{"all workspaces in `memory` of a node, each file 4 KiB or more; of those that no run has open, the one used longest ago makes room", size(inmemory.MaxTotal)},
		{"what the snapshots of a session and its sub-agents keep, each content once", fmt.Sprintf("%d × `workspaces.….maxBytes`", filetree.MaxKept(1))},
		{"what a model is shown of a file, a list, or each of a command's two outputs", size(workspace.MaxText)},
		{"entries of a list; matches of a search, in how much; its pattern", fmt.Sprintf("%d; %d, in %s; %s", workspace.MaxEntries, workspace.MaxMatches, size(workspace.MaxSearched), size(workspace.MaxPattern))},
		{"a memory; its metadata; its tags", fmt.Sprintf("%s; %s; %d, each %s", size(eventlog.MaxMemory), size(eventlog.MaxMemoryMetadata), eventlog.MaxMemoryTags, size(eventlog.MaxID))},
		{"memories that a turn is reminded of, or that a search finds; its question", fmt.Sprintf("%d, %s; %d; %s", agentloop.MaxRecalled, size(agentloop.MaxRecalledText), memory.MaxHits, size(memory.MaxQuestion))},
		{"dimensions of an embedder's vectors", fmt.Sprint(eventlog.MaxDimensions)},
		{"a NATS client's right to hear a session", "up to " + subscriber.MaxTTL.String()},
		{
			"NATS connections of a node with an embedded server; with rights to hear one session; with one right",
			fmt.Sprintf("%d; %d; %d", embed.DefaultMaxConnections, embed.MaxSessionConnections, embed.MaxRightConnections),
		},
	})
}

// The tables of the documentation say what the code says.
func TestDocsTables(t *testing.T) {
	for _, table := range []struct {
		page, name string
		text       string
	}{
		{"http.md", "routes", routesTable(t)},
		{"security.md", "operations", operationsTable(t)},
		{"security.md", "access", accessTable(t)},
		{"configuration.md", "keys", keysTable(t)},
		{"limits.md", "limits", limitsTable(t)},
	} {
		t.Run(table.name, func(t *testing.T) {
			path := filepath.Join(docsFolder, table.page)
			page, err := os.ReadFile(path)
			require.NoError(t, err)
			want, err := docs.Fill(string(page), table.name, table.text)
			require.NoError(t, err)
			if *updateDocs {
				require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
				return
			}
			require.Equal(t, want, string(page), "go test ./integration -run TestDocsTables -args -update-docs")
		})
	}
}

// Every key has words of its own.
func TestDocsDescribeEveryKey(t *testing.T) {
	for _, key := range configKeys(t) {
		assert.NotEmpty(t, key.Text, "%s: its field in cmd/helixd/config has no comment", key.Path)
	}
}

var links = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links within the repository lead somewhere, and to headings that are there.
func TestDocsLinks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(docsFolder, "*.md"))
	require.NoError(t, err)
	for _, file := range append(files, "../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			to, err := os.ReadFile(path)
			if info, stat := os.Stat(path); stat == nil && info.IsDir() {
				continue
			}
			if !assert.NoError(t, err, "%s: %s", file, link[1]) || anchor == "" {
				continue
			}
			assert.Contains(t, anchors(string(to)), anchor, "%s: %s", file, link[1])
		}
	}
}

// anchors are the headings of a page as links name them.
func anchors(page string) (out []string) {
	for line := range strings.Lines(page) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			heading = strings.ToLower(strings.TrimSpace(heading))
			heading = regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(heading, "")
			out = append(out, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return out
}
