package inspect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// listed runs a command against a daemon that answers so, and returns what it
// asked and printed.
func listed(t *testing.T, answer any, args ...string) (asked, stdout, stderr string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := url.QueryUnescape(r.URL.Query().Encode())
		require.NoError(t, err)
		asked = r.URL.Path + "?" + query
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer srv.Close()
	stdout, stderr, err := clitest.Run[Commands](t, "", append(args, "--server", srv.URL)...)
	require.NoError(t, err)
	return asked, stdout, stderr
}

func TestListings(t *testing.T) {
	used := readmodel.Used{
		ModelCalls: 2, ToolCalls: 3, FailedToolCalls: 1,
		Tokens: fact.TokenUsage{Prompt: 100, Completion: 50, Reasoning: 10, Cached: 20, Total: 150},
	}
	for name, c := range map[string]struct {
		args                 []string
		answer               any
		asked, stdout, notes string
	}{
		"sessions": {
			args: []string{"sessions", "--user", "u", "--agent", "a", "--status", "paused", "--tag", "t", "--parent", "p", "--forks", "f", "--limit", "1", "--offset", "2"},
			answer: clitest.Listing(clitest.Current, api.Summary{
				SessionID: "s", AgentType: "a\x1b[31m", Status: projector.SessionActive, StreamStatus: eventlog.StreamWaiting, UpdatedAt: 1767225600000, HeadSequence: 7,
				Counts: api.Counts{Messages: 3, Runs: 2},
			}),
			asked: "/sessions?agentType=a&forkedFrom=f&limit=1&offset=2&parentSessionId=p&status=paused&tag=t&userId=u",
			stdout: "SESSION  AGENT   STATUS  USER  MESSAGES  RUNS  UPDATED               HEAD\n" +
				"s        a�[31m  paused  -     3         2     2026-01-01T00:00:00Z  7\n",
			notes: "1 of 9 are shown; --offset 3 shows more\n",
		},
		"runs": {
			args: []string{"runs", "--session", "s", "--user", "u", "--agent", "a", "--status", "failed", "--from", "2026-01-01", "--to", "2026-02-01"},
			answer: clitest.Listing(readmodel.Fresh{Lag: 12}, readmodel.Run{
				SessionID: "s", AgentType: "a", Used: used,
				Run: projector.Run{RunID: "r", Status: fact.RunFailed, StartedAt: 1767225600000, CompletedAt: 1767225601500, StepCount: 4},
			}, readmodel.Run{SessionID: "s", AgentType: "a", Run: projector.Run{RunID: "r2", Status: fact.RunRunning, StartedAt: 1767225600000}}),
			asked: "/runs?agentType=a&from=2026-01-01&limit=50&offset=0&sessionId=s&status=failed&to=2026-02-01&userId=u",
			stdout: "RUN  SESSION  AGENT  STATUS   BEGAN                 TOOK  STEPS  TOKENS  TOOLS\n" +
				"r    s        a      failed   2026-01-01T00:00:00Z  1.5s  4      150     3\n" +
				"r2   s        a      running  2026-01-01T00:00:00Z  -     0      0       0\n",
			notes: "2 of 9 are shown; --offset 2 shows more\nnot current: about 12 records of the log are not in yet\n",
		},
		"usage": {
			args: []string{"usage", "--by", "model", "--session", "s", "--user", "u", "--agent", "a", "--from", "1"},
			answer: api.UsageReport{Fresh: clitest.Current, UsageReport: readmodel.UsageReport{
				Rows: []readmodel.UsageRow{
					{Key: "m", Sessions: 1, Runs: 2, Used: used, CostUSD: 0.12345}, {Key: "n", Sessions: 1, Runs: 1, Unpriced: []string{"n"}},
				},
				Total: readmodel.UsageRow{Sessions: 1, Runs: 2, Used: used, CostUSD: 0.12345, Unpriced: []string{"n"}},
			}},
			asked: "/usage?agentType=a&by=model&from=1&sessionId=s&userId=u",
			stdout: "MODEL   SESSIONS  RUNS  CALLS  PROMPT  CACHED  COMPLETION  REASONING  TOOLS  FAILED  USD\n" +
				"m       1         2     2      100     20      50          10         3      1       0.1235\n" +
				"n       1         1     0      0       0       0           0          0      0       0.0000*\n" +
				"in all  1         2     2      100     20      50          10         3      1       0.1235*\n",
			notes: "* without what these have cost, which have no price: n\n",
		},
		"search": {
			args: []string{"search", "fog", "San Francisco", `"as it is"`, "--session", "s", "--user", "u", "--agent", "a"},
			answer: clitest.Listing(readmodel.Fresh{Rebuilding: true, Problem: "the disk\nis full"}, readmodel.Hit{
				SessionID: "s", Sequence: 3, Timestamp: 1767225600000, Kind: readmodel.HitMessage, Role: projector.RoleUser, Snippet: "fog\nin San Francisco",
			}, readmodel.Hit{
				SessionID: "s", Sequence: 5, Timestamp: 1767225600000, Kind: readmodel.HitToolCall, Role: projector.RoleAssistant, ToolName: "look", Snippet: "x",
			}),
			asked: `/search?agentType=a&limit=50&offset=0&q=fog "San Francisco" "as it is"&sessionId=s&userId=u`,
			stdout: "SESSION  SEQUENCE  TIME                  WHAT            TEXT\n" +
				"s        3         2026-01-01T00:00:00Z  user            fog in San Francisco\n" +
				"s        5         2026-01-01T00:00:00Z  tool_call look  x\n",
			notes: "2 of 9 are shown; --offset 2 shows more\nnot current: the read models are being rebuilt; sessions may be missing\n" +
				"the read models are stuck: the disk is full\n",
		},
		"checkpoints": {
			args: []string{"checkpoints", "s", "--offset", "1"},
			answer: api.Page[projector.Checkpoint]{Total: 3, HasMore: true, Items: []projector.Checkpoint{
				{ID: "cp-1", RunID: "r", StepCount: 1, Status: projector.SessionActive, Timestamp: 1767225600000, MessageCount: 4, StreamSequence: 50},
			}},
			asked: "/sessions/s/checkpoints?limit=50&offset=1",
			stdout: "CHECKPOINT  SEQUENCE  STEP  MESSAGES  STATUS  TIME                  RUN\n" +
				"cp-1        50        1     4         active  2026-01-01T00:00:00Z  r\n",
			notes: "1 of 3 are shown; --offset 2 shows more\n",
		},
		"parked": {
			args:   []string{"parked", "--session", "s"},
			answer: clitest.Listing(clitest.Current, readmodel.Parked{SessionID: "s", Sequence: 3, Type: "odd", Reason: "it can't be read", Stuck: true}),
			asked:  "/parked?limit=50&offset=0&sessionId=s",
			stdout: "SESSION  SEQUENCE  TYPE  STUCK  REASON\ns        3         odd   true   it can't be read\n",
			notes:  "1 of 9 are shown; --offset 1 shows more\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, stdout, notes := listed(t, c.answer, c.args...)
			require.Equal(t, c.asked, asked)
			require.Equal(t, c.stdout, stdout)
			require.Equal(t, c.notes, notes)

			want, err := json.Marshal(c.answer)
			require.NoError(t, err)
			_, stdout, notes = listed(t, c.answer, append(c.args, "--json")...)
			require.Equal(t, string(want)+"\n", stdout, "as the daemon answers")
			require.Empty(t, notes)
		})
	}
}
