package daemon

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/integration/testkit"
)

// TestPricesAreThoseOfNow: a reload takes over prices.
func TestPricesAreThoseOfNow(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	path := clitest.Config(t, fmt.Sprintf(agentsFile, "t0ken", "a"))
	d := serveFile(t, path, &logBuffer{}, make(chan os.Signal, 1))
	code, answer := ask(t, http.MethodPost, d.URL+"/start", "t0ken", "", `{"sessionId":"s","agentType":"a","message":"go"}`)
	require.Equal(t, 200, code, answer)
	priced := func(want bool) bool {
		code, answer := ask(t, http.MethodGet, d.URL+"/usage?by=model", "t0ken", "", "")
		require.Equal(t, 200, code, answer)
		return strings.Contains(answer, `"key":"scripted"`) && strings.Contains(answer, `"unpriced":["scripted"]`) != want
	}
	require.Eventually(t, func() bool { return priced(false) }, time.Minute, 10*time.Millisecond)
	code, answer = ask(t, http.MethodGet, d.URL+"/sessions/s/diff", "t0ken", "", "")
	require.Equal(t, 200, code, answer)
	require.Contains(t, answer, `"unpriced":["scripted"]`)
	rewrite(t, path, fmt.Sprintf(agentsFile, "t0ken", "a")+"prices: {scripted: {input: 1, output: 2}}\n")
	done, _ := reloaded(t, d, "t0ken", 200)
	require.Empty(t, done.NeedsRestart)
	require.True(t, priced(true))
	code, answer = ask(t, http.MethodGet, d.URL+"/sessions/s/diff", "t0ken", "", "")
	require.Equal(t, 200, code, answer)
	require.Contains(t, answer, `"cost":`)
}
