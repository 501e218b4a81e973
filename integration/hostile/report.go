//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// What must hold.
const (
	// An attack may make the victim's p99, or median, so many times what it is without one,
	// or so much, whichever is more.
	slower = 2
	leeway = 100 * time.Millisecond
	// The longest time in which no listing of the victim's is up to date.
	maxBehind = 5 * time.Second
	// The most memory that the daemon may take, MiB.
	maxMemory = 1024
	// How long the daemon may take to stop.
	stopWithin = 30 * time.Second
)

// within is an error unless the victim was served as it should be. In a short run
// the medians are compared: its p99 is of some hundred chunks, and tells of whatever
// else the machine does.
func (r row) within(calm seen, short bool) error {
	quantile, chunks, listings := "p99", [2]time.Duration{r.seen.p99, calm.p99}, [2]time.Duration{r.seen.listedP99, calm.listedP99}
	if short {
		quantile, chunks, listings = "median", [2]time.Duration{r.seen.p50, calm.p50}, [2]time.Duration{r.seen.listedP50, calm.listedP50}
	}
	for _, x := range []struct {
		what       string
		got, bound time.Duration
	}{
		{quantile + " of the victim's chunks", chunks[0], max(slower*chunks[1], chunks[1]+leeway)},
		{quantile + " of the victim's listings", listings[0], max(slower*listings[1], listings[1]+leeway)},
		{"the time without a current listing", r.seen.longestWithoutCurrent, maxBehind},
	} {
		if x.got > x.bound {
			return fmt.Errorf("%s: %s, more than %s", x.what, ms(x.got), ms(x.bound))
		}
	}
	if r.seen.chunks == 0 || r.seen.listings == 0 {
		return fmt.Errorf("the victim got nothing")
	}
	if r.peak > maxMemory {
		return fmt.Errorf("the daemon took %.0f MiB, more than %d", r.peak, maxMemory)
	}
	return nil
}

// report prints what was seen.
func (w *world) report(out io.Writer, durability string) {
	fmt.Fprintf(out, "%d sessions of the victim's, a chunk every %s each, durability %s, %d cores\n\n", w.sessions, w.every, durability, runtime.NumCPU())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "attack\tchunks\tp50\tp99\tworst\tlistings\tp50\tp99\tnot current\tmemory, MiB\t")
	for _, r := range w.rows {
		s := r.seen
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%.0f\t\n", r.attack, s.chunks, ms(s.p50), ms(s.p99), ms(s.worst),
			s.listings, ms(s.listedP50), ms(s.listedP99), ms(s.longestWithoutCurrent), r.peak)
	}
	t.Flush()
	for _, r := range w.rows {
		for _, note := range r.notes {
			fmt.Fprintf(out, "%s: %s\n", r.attack, note)
		}
	}
	for _, note := range w.taken() {
		fmt.Fprintln(out, note)
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// logged looks through the daemon's log: refusals name the caller, and nothing
// secret is there.
func (w *world) logged() error {
	raw, err := os.ReadFile(w.node.Log())
	if err != nil {
		return err
	}
	for _, secret := range []string{attackerToken, victimToken, marker} {
		if i := bytes.Index(raw, []byte(secret)); i >= 0 {
			return fmt.Errorf("the log holds %q: %s", secret, raw[max(0, i-200):i])
		}
	}
	if w.forbidden.Load() == 0 {
		return nil
	}
	refused := regexp.MustCompile(`(?m)^.*status"?[=:]"?403.*$`).FindAllString(string(raw), -1)
	for _, line := range refused {
		if strings.Contains(line, "evil") {
			return nil
		}
	}
	return fmt.Errorf("no line of the log says that evil was refused (%d with 403)", len(refused))
}

// websocket is the address of the daemon's WebSocket listener, as its log says.
func (w *world) websocket() (string, error) {
	raw, err := os.ReadFile(w.node.Log())
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`websocket"?[=:]"?ws://([0-9.:]+)`).FindSubmatch(raw)
	if found == nil {
		return "", fmt.Errorf("the daemon does not say where its WebSocket is")
	}
	return string(found[1]), nil
}

// configuration is the daemon's. The two tenants may do all, each with its own.
const configuration = `
auth:
  tokens:
    - {token: ` + victimToken + `, name: good, user: ` + victimUser + `, tenant: good, operations: ["*"], sessions: ["` + victimPrefix + `*"]}
    - {token: ` + attackerToken + `, name: evil, user: mallory, tenant: evil, operations: ["*"], sessions: ["` + attackerPrefix + `*"]}
tenants: {evil: {sessions: 100, bytes: 1GiB, runs: 20, streams: 64}}
limits: {connections: 300}
nats: {websocket: {listen: "127.0.0.1:0"}}
agents:
  speaker: {model: {provider: scripted, script: [{text: Here is what I have to say.}]}}
`
