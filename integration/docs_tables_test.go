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
	durablelog "github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/durable"
	"github.com/helixd/helixd/integration/docs"
	"github.com/helixd/helixd/projector"
	fold "github.com/helixd/helixd/projector/durable"
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
			tag = "everybody; callers with credentials need `" + string(auth.OpDebugger) + "`"
		case r.path == "/readyz": // so does this
			tag = "everybody for `ready`; `" + string(auth.OpStatus) + "` for the rest"
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
			"idempotency keys whose answers a session remembers, at least; older keys that it refuses",
			fmt.Sprintf("%d; %d", projector.LeastKnownAppends, projector.LeastOldKeys),
		},
		{"records in one append", fmt.Sprint(eventlog.MaxAppendRecords, ", all or none")},
		{"one record", size(eventlog.MaxPayload)},
		{"nesting of JSON", fmt.Sprint(eventlog.MaxDepth, " levels")},
		{"a session's custom state; its nesting after a patch", fmt.Sprintf("%s; %d levels", size(projector.MaxState), jsondoc.MaxDepth)},
		{"[work](#patches) of patches of a session's state, at once; added with each record", size(projector.MaxPatchWork) + "; " + size(projector.PatchWorkBack)},
		{"HTTP connections of a node", fmt.Sprintf("`limits.connections`, else half of the files that the process may open, at most %d", config.DefaultConnections)},
		{"body of a request; members of its object", fmt.Sprintf("%s; %d", size(api.MaxBody), api.MaxMembers)},
		{"… of `/chunks`", size(api.MaxChunksBody)},
		{"… to a durable stream; messages in it; the stream's name", size(durable.MaxBody) + "; " + fmt.Sprint(durablelog.MaxMessages) + "; " + size(eventlog.MaxDurableName)},
		{"… of `/submit-tool-result`", size(api.MaxSubmitBody)},
		{"producers that a durable stream remembers; its forks; streams before a fork", fmt.Sprintf("%d; %d; %d", fold.MaxProducers*3/4, fold.MaxForks, durablelog.MaxDepth)},
		{"bytes of request bodies under way, of one caller or tenant; of all callers; the same for answers over 64 KiB", size(api.MaxCallerBodies) + "; " + size(api.MaxBodies)},
		{"a line of `/import`", size(api.MaxImportLine)},
		{"a submitted result; its error or reason", size(engine.MaxSubmittedResult) + "; " + size(engine.MaxSubmittedError)},
		{"the error text of a tool or a provider", size(agentloop.MaxErrorText)},
		{"tool calls in one answer", fmt.Sprint(agentloop.MaxCalls)},
		{"nesting of sub-agents", fmt.Sprint(agentloop.MaxDepth, " levels")},
		{"steps of a turn; repetitions of a failed model call", fmt.Sprintf("%d; %d by default", agentloop.DefaultMaxSteps, agentloop.DefaultMaxRetries)},
		{"processes in a row that may die with a run, without output; without progress", fmt.Sprintf("%d; %d", agentloop.MaxSilentClaims, agentloop.MaxFruitlessClaims)},
		{"the time of a hook", agentloop.MaxHookTime.String()},
		{"records that a writer queues while an append is in flight", fmt.Sprintf("%d records, %s", eventlog.MaxQueuedRecords, size(eventlog.MaxQueuedBytes))},
		{
			"the time of a search; text that it looks through, newest first, if its caller may not see all sessions or it names a user or a session",
			readmodel.SearchTime.String() + "; " + size(readmodel.MaxSearched),
		},
		{"types in a filter of records", fmt.Sprint(api.MaxRecordTypes)},
		{"the speed of a replay; its longest pause", fmt.Sprintf("%v to %v; %v, by default %v", api.MinReplaySpeed, api.MaxReplaySpeed, api.MaxReplayPause, api.DefaultReplayPause)},
		{"cached states and timelines of all sessions; how long after the last use", fmt.Sprintf("%s and %s; %s",
			size(snapshot.MaxKeyframeBytes), size(snapshot.MaxTimelineBytes), strings.TrimSuffix(snapshot.KeyframeIdle.String(), "0s"))},
		{"a file of a workspace that is read or written whole; its path; each part of the path", size(workspace.MaxFile) + "; " + size(workspace.MaxPath) + "; " + size(workspace.MaxElement)},
		{"files and folders of a workspace in `memory` or `objects`", fmt.Sprint(filetree.MaxFiles)},
		{"… in `local`; their nesting; all their paths together", fmt.Sprintf("%d; %d; %s", local.MaxFiles, local.MaxDepth, size(local.MaxPaths))},
		{"all bytes of a workspace", size(inmemory.MaxBytes) + " in `memory`, else `workspaces.….maxBytes`"},
		{"all workspaces in `memory` of a node, each file counted as at least 4 KiB; the least recently used one that no run has open makes room", size(inmemory.MaxTotal)},
		{"all snapshots of a session and its sub-agents, each content once", fmt.Sprintf("%d × `workspaces.….maxBytes`", filetree.MaxKept(1))},
		{"a file, a list, or each of a command's two outputs, as the model is shown it", size(workspace.MaxText)},
		{"entries of a list; matches of a search, and the text it looks through; its pattern, and what that compiles to; its time", fmt.Sprintf("%d; %d, in %s; %s, %d instructions; %.0f s", workspace.MaxEntries, workspace.MaxMatches, size(workspace.MaxSearched), size(workspace.MaxPattern), workspace.MaxInstructions, workspace.SearchTimeout.Seconds())},
		{"a memory; its metadata; its tags", fmt.Sprintf("%s; %s; %d of %s", size(fact.MaxMemory), size(fact.MaxMemoryMetadata), fact.MaxMemoryTags, size(eventlog.MaxID))},
		{"memories that a turn recalls; that a search finds; the question", fmt.Sprintf("%d, %s; %d; %s", agentloop.MaxRecalled, size(agentloop.MaxRecalledText), memory.MaxHits, size(memory.MaxQuestion))},
		{"dimensions of a vector", fmt.Sprint(fact.MaxDimensions)},
		{"the lifetime of a NATS client's right to a session", "up to " + subscriber.MaxTTL.String()},
		{
			"NATS connections of a node with an embedded server; with rights to one session; with one right",
			fmt.Sprintf("%d; %d; %d", embed.DefaultMaxConnections, embed.MaxSessionConnections, embed.MaxRightConnections),
		},
	})
}

// The tables of the documentation say what the code says.
func TestDocsTables(t *testing.T) {
	t.Parallel()
	for _, table := range []struct {
		page, name string
		text       string
	}{
		{"reference/http.md", "routes", routesTable(t)},
		{"operations/security.md", "operations", operationsTable(t)},
		{"operations/security.md", "access", accessTable(t)},
		{"reference/configuration.md", "keys", keysTable(t)},
		{"reference/limits.md", "limits", limitsTable(t)},
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

// Every key has its own words.
func TestDocsDescribeEveryKey(t *testing.T) {
	for _, key := range configKeys(t) {
		assert.NotEmpty(t, key.Text, "%s: its field in cmd/helixd/config has no comment", key.Path)
	}
}

var links = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links within the repository lead somewhere, and to headings that are there.
func TestDocsLinks(t *testing.T) {
	for _, file := range markdown(t, "..") {
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
