package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

const rememberingFile = `auth: {tokens: [{token: t0ken}]}
memory: {embedder: {provider: local}, executor: %s}
agents:
  waiter:
    memory: {scope: user, recall: 3}
    model:
      provider: scripted
      script:
        - toolCalls: [{name: save_memory, arguments: {content: "Ada drinks green tea without sugar."}}]
        - text: I will remember that.
  barkeeper:
    memory: {scope: user, recall: 3, save: false, search: false}
    model: {provider: scripted, script: [{text: Here you are.}]}
`

// An agent is reminded of what another session of the same user has saved, also
// when the index is made again, and not when it was erased.
func TestAnAgentRemembersAUser(t *testing.T) {
	for _, executor := range []string{"inline", "background"} {
		t.Run(executor, func(t *testing.T) {
			t.Parallel()
			d := serveFile(t, clitest.Config(t, fmt.Sprintf(rememberingFile, executor)), &logBuffer{}, make(chan os.Signal, 1))
			run := func(session, agent, user, message string) string {
				t.Helper()
				code, answer := ask(t, http.MethodPost, d.URL+"/start", "t0ken", "",
					fmt.Sprintf(`{"sessionId":%q,"agentType":%q,"userId":%q,"message":%q}`, session, agent, user, message))
				require.Equal(t, 200, code, answer)
				code, answer = ask(t, http.MethodGet, d.URL+"/sse?sessionId="+session, "t0ken", "", "")
				require.Equal(t, 200, code, answer)
				code, answer = ask(t, http.MethodGet, d.URL+"/sessions/"+session+"/state", "t0ken", "", "")
				require.Equal(t, 200, code, answer)
				return answer
			}
			run("first", "waiter", "ada", "I drink green tea without sugar.")
			const memory = "Ada drinks green tea without sugar."
			const found = "/memories?scope=user&id=ada"
			var page api.FoundMemories
			require.Eventually(t, func() bool { // the vector comes in the background, and the rows follow
				code, answer := ask(t, http.MethodGet, d.URL+found, "t0ken", "", "")
				page = api.FoundMemories{}
				return code == 200 && json.Unmarshal([]byte(answer), &page) == nil && page.Current &&
					len(page.Items) == 1 && page.Items[0].EmbeddingStatus == readmodel.EmbeddingComplete
			}, time.Minute, 10*time.Millisecond)
			require.Equal(t, "first", page.Items[0].Source.SessionID)
			require.Contains(t, run("second", "barkeeper", "ada", "Some tea, please."), memory)
			require.NotContains(t, run("third", "barkeeper", "bob", "Some tea, please."), memory)

			code, answer := ask(t, http.MethodPost, d.URL+"/memories/process", "t0ken", "", "{}")
			require.Equal(t, 200, code, answer)
			require.JSONEq(t, `{"found":0,"embedded":0,"failed":0}`, answer)
			code, answer = ask(t, http.MethodDelete, d.URL+found, "t0ken", "", "")
			require.Equal(t, 200, code, answer)
			require.NotContains(t, run("fourth", "barkeeper", "ada", "Some tea, please."), memory)
		})
	}
}

// A reload gives agents memories, names what needs a restart, and refuses
// agents whose memories nobody could find.
func TestReloadOfMemories(t *testing.T) {
	t.Parallel()
	const agents = "auth: {tokens: [{token: t0ken}]}\nagents: {a: {%smodel: {provider: scripted, script: [{text: hello}]}}}\n"
	path := clitest.Config(t, fmt.Sprintf(agents, ""))
	d := serveFile(t, path, &logBuffer{}, make(chan os.Signal, 1))
	rewrite(t, path, fmt.Sprintf(agents, "memory: {scope: session}, ")+"memory: {embedder: {provider: local}}\n")
	done, _ := reloaded(t, d, "t0ken", 200)
	require.Equal(t, []string{"memory.embedder.provider"}, done.NeedsRestart)
	rewrite(t, path, fmt.Sprintf(agents, "memory: {scope: session}, ")+"readModels: {enabled: false}\n")
	_, answer := reloaded(t, d, "t0ken", 409)
	require.Contains(t, answer, "agents.a.memory: needs readModels.enabled")

	path = clitest.Config(t, fmt.Sprintf(agents, "")+"readModels: {enabled: false}\n")
	d = serveFile(t, path, &logBuffer{}, make(chan os.Signal, 1))
	code, answer := ask(t, http.MethodGet, d.URL+"/memories?scope=user&id=ada", "t0ken", "", "")
	require.Equal(t, http.StatusNotImplemented, code, answer)
	rewrite(t, path, fmt.Sprintf(agents, "memory: {scope: session}, "))
	_, answer = reloaded(t, d, "t0ken", 409)
	require.Contains(t, answer, "agents.a.memory: needs a restart")
}

// What the configuration says is what there is; agents that are only looked at
// need no log.
func TestEquip(t *testing.T) {
	c := config.Default()
	c.Agents = map[string]config.Agent{"a": {
		MaxSteps: config.DefaultMaxSteps,
		Model:    config.Model{Provider: config.ProviderScripted, Script: []config.Turn{{Text: "x"}}},
		Memory:   &config.AgentMemory{Scope: "agent", Recall: 1, Save: true},
	}}
	agents, err := agentconfig.Agents(c)
	require.NoError(t, err)
	require.NoError(t, agentconfig.Equip(agentconfig.UnusedMemories(), c, agents))
	require.NotNil(t, agents[0].Recall)
	require.Len(t, agents[0].Tools, 1)
	require.True(t, strings.HasPrefix(agents[0].Tools[0].Name, "save"))
	require.Nil(t, embedderOf(c.Memory.Embedder))
	require.Equal(t, "m/3", embedderOf(config.Embedder{Provider: config.EmbedderOpenAI, Name: "m", Dimensions: 3}).Model())
}

// An erasure that broke off, its node having died, is finished with nobody asking
// for it again: the user can be remembered again.
func TestAnErasureOfMemoriesIsFinished(t *testing.T) {
	t.Parallel()
	_, nc := clitest.NATS(t)
	log := jetstreamtest.Open(t, nc, nil)
	memories := memory.New(memory.Options{Log: log, Index: struct{ readmodel.Memories }{}})
	draft := memory.Draft{Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "ada"}, Content: "Ada drinks green tea."}
	saved, err := memories.Save(t.Context(), draft)
	require.NoError(t, err)
	id := draft.Scope.LogID()
	begun, err := eventlog.NewFact(id, &fact.Erased{Base: fact.Base{SessionID: id}}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), id, saved.Sequence, []eventlog.Entry{begun})
	require.NoError(t, err)
	_, err = memories.Save(t.Context(), draft)
	require.ErrorIs(t, err, eventlog.ErrErasing)

	jobs := upkeep(config.Default(), log, nil, nil, nil, nil, func() bool { return true })
	finish := jobs[slices.IndexFunc(jobs, func(j job) bool { return j.name == "erasures" })]
	require.Positive(t, finish.every)
	_, err = finish.run(t.Context())
	require.NoError(t, err)
	_, err = memories.Save(t.Context(), draft)
	require.NoError(t, err)
}
