package integration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// rememberers is a configuration with a waiter, who saves what a user tells to
// be remembered, and a barkeeper, who is only reminded of it. Both say what they
// were reminded of in the conversation.
func rememberers(t *testing.T, rest string) (file string) {
	t.Helper()
	model := newModel(t, func(c conversation) modeltest.Stream {
		text, answers := c.asked()
		fact, tells := strings.CutPrefix(text, "Remember: ")
		switch {
		case tells && answers == 0:
			return reply("", call{memory.SaveTool, map[string]any{"content": fact}})
		case tells:
			return reply("I will remember that.")
		}
		return reply("I remember: " + strings.Join(c.reminded(), " "))
	})
	file = configFile(t, fmt.Sprintf(`%s
agents:
  waiter:
    memory: {scope: user, recall: 3}
    model: {provider: openai, name: some-model, apiKey: none, baseURL: %[2]q}
  barkeeper:
    memory: {scope: user, recall: 3, save: false, search: false}
    model: {provider: openai, name: some-model, apiKey: none, baseURL: %[2]q}
`, rest, model))
	return file
}

// tell has a user tell the waiter a fact.
func (d *daemon) tell(session, user, fact string) {
	d.t.Helper()
	require.Equal(d.t, "I will remember that.", d.say(session, "waiter", user, "Remember: "+fact))
}

// knows waits until the node knows these memories of a user and no others, each
// with or without its vector.
func (d *daemon) knows(user string, want map[string]readmodel.EmbeddingStatus) {
	d.t.Helper()
	var has map[string]readmodel.EmbeddingStatus
	require.Eventually(d.t, func() bool {
		has = map[string]readmodel.EmbeddingStatus{}
		found, ok := d.memories("scope=user&id=" + user)
		for _, m := range found.Items {
			has[m.Content] = m.EmbeddingStatus
		}
		return ok && found.Current && maps.Equal(has, want)
	}, 2*time.Minute, 10*time.Millisecond, "%s remembers %v", user, want)
}

// memories are those that a query finds. ok is false while the rows can't be
// asked, as they are made on a busy machine.
func (d *daemon) memories(query string) (found api.FoundMemories, ok bool) {
	resp, err := client.Get(d.url + "/memories?" + query)
	if err != nil {
		return found, false
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&found)
	return found, err == nil && resp.StatusCode == http.StatusOK
}

const (
	pending  = readmodel.EmbeddingPending
	complete = readmodel.EmbeddingComplete
)

// What a user tells an agent at one node, another agent knows at another node,
// in its own conversation; nobody else's agents do; and it outlives the
// nodes.
func TestAgentsRememberAUserOnAllNodes(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	file := rememberers(t, `
nats: {url: "`+newServer(t, "outside", nil).ClientURL()+`", partitions: 1}
memory: {embedder: {provider: local}}`)
	one := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated")
	other := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated")
	one.start()
	other.start()

	// At lunch Ada tells the waiter, at one node.
	const tea = "Ada drinks green tea without sugar."
	one.tell("lunch", "ada", tea)
	other.knows("ada", map[string]readmodel.EmbeddingStatus{tea: complete})
	found, ok := other.memories("scope=user&id=ada")
	require.True(t, ok)
	require.Equal(t, "lunch", found.Items[0].Source.SessionID)

	// In the evening the barkeeper knows it, at the other one; of Bob, nothing.
	require.Equal(t, "I remember: "+tea, other.say("evening", "barkeeper", "ada", "Some tea, please."))
	require.Equal(t, "I remember: ", other.say("stranger", "barkeeper", "bob", "Some tea, please."))
	require.Equal(t, "I remember: ", other.say("nobody", "barkeeper", "", "Some tea, please."))

	// The conversation continues at the first node, and has been reminded once.
	require.Equal(t, "I remember: "+tea, one.say("evening", "barkeeper", "ada", "More tea, please."))

	// That node is killed. What Ada tells meanwhile it knows when it is back,
	// with an index that is made from nothing but the log.
	const dog = "Ada has a dog called Byron."
	one.kill()
	other.tell("walk", "ada", dog)
	one.start() // in an empty folder
	one.knows("ada", map[string]readmodel.EmbeddingStatus{tea: complete, dog: complete})
	require.Equal(t, "I remember: "+dog, one.say("park", "barkeeper", "ada", "What is the dog called?"))
	require.Contains(t, helixd(t, "memories", "search", "--user", "ada", "Byron", "--server", one.url), dog)
}
