package memory_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/sqlite"
	"github.com/helixd/helixd/snapshot"
)

func recall(t *testing.T, m *memory.Manager, w agentloop.SessionInfo, p memory.Policy, query string, known ...string) []string {
	t.Helper()
	recalled, err := m.Recall(t.Context(), agentloop.RecallRequest{SessionInfo: w, Query: query, Known: known}, p)
	require.NoError(t, err)
	for _, r := range recalled {
		require.NotEmpty(t, r.MemoryID)
		require.Greater(t, r.Score, 0.0)
	}
	return contentsOf(recalled, func(r fact.RecalledMemory) string { return r.Content })
}

func TestRecall(t *testing.T) {
	m := newManager(t, memory.Options{})
	ids := save(t, m, "Ada's dog is called Rex.", "Ada is a vegetarian.", "Ada was in the capital of Peru.", "Rex, the dog, barks.")
	info := agentloop.SessionInfo{UserID: "ada", SessionID: "s", RootSessionID: "s", AgentType: "a"}
	p := memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 2}

	require.Equal(t, []string{"Ada's dog is called Rex.", "Rex, the dog, barks."}, recall(t, m, info, p, "What is my dog called?"))
	require.Equal(t, []string{"Rex, the dog, barks."}, recall(t, m, info, p, "What is my dog called?", ids[0]), "not what is known")
	require.Equal(t, []string{"Ada is a vegetarian."}, recall(t, m, info, p, "Do you have vegetarian dishes?"))
	require.Empty(t, recall(t, m, info, p, "Is it that the one was there?"), "words that all sentences share")
	require.Empty(t, recall(t, m, info, p, "How long do potatoes boil?"))
	require.Empty(t, recall(t, m, info, p, " "))
	require.Empty(t, recall(t, m, info, memory.Policy{Scope: eventlog.MemoryOfUser}, "dog"), "an agent that is not to be reminded")
	require.Len(t, recall(t, m, info, p, strings.Repeat("Rex é ", 4000)+"\xff"), 2, "of a long text its beginning counts")

	require.Empty(t, recall(t, m, agentloop.SessionInfo{SessionID: "s", RootSessionID: "s", AgentType: "a"}, p, "dog"), "nobody has said who it is")
	require.Empty(t, recall(t, m, agentloop.SessionInfo{UserID: "bob"}, p, "dog"))
}

// TestRecallFollowsTheIndex: what the index finds by a word that tells something,
// however it is written, recall may be reminded of without an embedder.
func TestRecallFollowsTheIndex(t *testing.T) {
	log := logmemory.New()
	t.Cleanup(func() { log.Close() })
	models := sqlite.Open(log, snapshot.New(log, nil), sqlite.Options{Path: filepath.Join(t.TempDir(), "index.db"), Patience: time.Minute})
	t.Cleanup(models.Close)
	m := memory.New(memory.Options{Log: log, Index: models})
	p := memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 1}
	for question, content := range map[string]string{
		"pho?": "Ada eats phở.", "елка": "ёлку, ёлка", "Ча\u0438\u0306?": "Ада пьёт чай", "ΤΣΑΪ": "τσάι", "ΔΡΟΜΟΣ": "ο δρόμος",
		"ｇｒｅｅｎ": "green", "eau": "de l'eau", "서울": "서울", "မြန်မာ": "ကမြန်မာ", "東京": "東京都", "ชา": "ชาเขียว",
		strings.Repeat("long", 20): strings.Repeat("long", 30),
	} {
		save(t, m, content)
		require.Equal(t, []string{content}, hits(search(t, m, question)), question)
		require.Equal(t, []string{content}, recall(t, m, agentloop.SessionInfo{UserID: ada.ID}, p, question), question)
	}
}

func TestScopes(t *testing.T) {
	log := logmemory.New()
	_, err := log.Append(t.Context(), "root", 0, []eventlog.Entry{logtest.Text("root", "hello")})
	require.NoError(t, err)
	m := newManager(t, memory.Options{Log: log})
	for _, s := range []eventlog.MemoryScope{{Kind: "user", ID: "u"}, {Kind: "agent", ID: "a"}, {Kind: "session", ID: "root"}} {
		_, err := m.Save(t.Context(), memory.Draft{Scope: s, Content: "It is of the " + string(s.Kind)})
		require.NoError(t, err)
	}
	info := agentloop.SessionInfo{UserID: "u", AgentType: "a", SessionID: "root/child", RootSessionID: "root"}
	for _, kind := range []eventlog.MemoryScopeKind{"user", "agent", "session"} {
		got := recall(t, m, info, memory.Policy{Scope: kind, Recall: 9}, "user agent session")
		require.Equal(t, []string{"It is of the " + string(kind)}, got)
	}
}

func TestRecallWithoutItsIndex(t *testing.T) {
	x := &index{log: logmemory.New(), down: readmodel.ErrUnavailable}
	m := newManager(t, memory.Options{Index: x})
	_, err := m.Recall(t.Context(), agentloop.RecallRequest{SessionInfo: agentloop.SessionInfo{UserID: "ada"}, Query: "dog"},
		memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 1})
	require.ErrorIs(t, err, readmodel.ErrUnavailable)
}

func TestAPolicyThatMakesNoSense(t *testing.T) {
	m := newManager(t, memory.Options{})
	for want, p := range map[string]memory.Policy{
		"memory: agent a: scope must be user, agent or session": {Recall: 1},
		"memory: agent a: recall must be between 0 and 50":      {Scope: eventlog.MemoryOfAgent, Recall: 51},
	} {
		require.EqualError(t, m.Equip(&agentloop.Agent{Name: "a"}, p), want)
	}
	var a agentloop.Agent
	a.Name = "a"
	require.NoError(t, m.Equip(&a, memory.Policy{Scope: eventlog.MemoryOfAgent}))
	require.Nil(t, a.Recall)
	require.Empty(t, a.Tools, "each part is optional")
}
