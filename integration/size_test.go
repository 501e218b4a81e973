//go:build linux

package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/cmd/helixd/sizing"
	httpclient "github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// TestSize measures what a token, a run, a follower and a node cost, and compares a load with
// what helixd size says of it. The model is part of the daemon, so its time counts.
func TestSize(t *testing.T) {
	testkit.With(t, "HELIX_SIZE", "size")
	const runs, words, rate = 150, 250, 25
	prose, err := os.ReadFile(filepath.Join(docsFolder, "concepts.md"))
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(prose))[:words], " ")
	dir := t.TempDir()
	d, err := deployment.Alone(deployment.Binaries{Helixd: program(t)}, dir, fmt.Sprintf(`
agents:
  teller:
    model: {provider: scripted, scriptDelay: %s, script: [{text: %q}]}
`, time.Second/rate, text))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	require.NoError(t, d.Start(t.Context()))
	n := d.Nodes[0]

	time.Sleep(3 * time.Second) // what it does at its start
	idle := deployment.Spent(n.PID())
	time.Sleep(5 * time.Second)
	t.Logf("a node: %.0f MiB, %.3f cores", deployment.Resident(n.PID()), (deployment.Spent(n.PID())-idle).Seconds()/5)

	// load starts the runs with so many followers each, and returns the processor time of
	// the node, its memory at the end of the text, and how many tokens were delivered.
	load := func(name string, followers int) (spent time.Duration, memory float64, delivered int) {
		began := deployment.Spent(n.PID())
		var readers, starters sync.WaitGroup
		var mu sync.Mutex
		for i := range runs {
			id := fmt.Sprint(name, i)
			starters.Go(func() {
				_, err := n.API.Start(t.Context(), httpclient.StartRequest{SessionID: id, AgentType: "teller", Messages: []httpclient.Message{{Content: "go"}}})
				if err != nil {
					t.Error(err)
				}
			})
			starters.Wait() // the sessions begin one after the other
			for range followers {
				readers.Go(func() {
					deltas := 0
					err := deployment.Read(t.Context(), n.API, id, 0, time.Minute, func(e remotehttp.RawEvent) bool {
						deltas += strings.Count(string(e.Data), `"type":"text_delta"`)
						return strings.Contains(string(e.Data), `"type":"end"`)
					})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					delivered += deltas
					mu.Unlock()
				})
			}
		}
		time.Sleep(time.Second * words / rate * 3 / 4)
		memory = deployment.Resident(n.PID())
		readers.Wait()
		require.Eventually(t, func() bool {
			for i := range runs {
				s, err := n.API.Session(t.Context(), fmt.Sprint(name, i))
				if err != nil || s.Status != "completed" {
					return false
				}
			}
			return true
		}, 2*time.Minute, time.Second)
		return deployment.Spent(n.PID()) - began, memory, delivered
	}
	before := deployment.Resident(n.PID())
	spent, memory, _ := load("alone", 0)
	token := float64(spent.Microseconds()) / runs / words
	t.Logf("a token of a run: %.0f µs; a run: %.2f MiB", token, (memory-before)/runs)
	const followers = 5
	with, more, delivered := load("followed", followers)
	delivery := float64((with - spent).Microseconds()) / float64(delivered)
	t.Logf("a delivered token: %.0f µs of %d; a client: %.3f MiB", delivery, delivered, (more-memory)/runs/followers)

	raw, err := deployment.Get(t.Context(), n.API, "/sessions/alone0/records?dead=1")
	require.NoError(t, err)
	records := strings.Count(string(raw), `"kind":`)
	file, err := os.Stat(filepath.Join(dir, "alone", "data", "readmodels.db"))
	require.NoError(t, err)
	t.Logf("%d records a session of %d tokens; read models: %.0f B a record", records, words, float64(file.Size())/float64(2*runs*records))

	e, err := sizing.Of(sizing.Load{
		Sessions: runs * 86400 * rate / words, Tokens: words, Rate: rate, Peak: 1, Followers: followers, Days: 0, LogDays: 0, Nodes: 1, Replicas: 1,
	})
	require.NoError(t, err)
	cores := with.Seconds() / (words / rate)
	t.Logf("%.0f runs at once with %d followers each: %.2f cores and %.0f MiB measured; helixd size: %.2f cores and %.0f MiB",
		e.Runs, followers, cores, more, e.Node.Cores, e.Node.Memory/(1<<20))
	require.Less(t, cores, e.Node.Cores, "helixd size promises too much")
	require.Less(t, more, e.Node.Memory/(1<<20), "helixd size promises too much")
	require.Less(t, e.Node.Cores, 8*cores, "helixd size asks for too much")
}
