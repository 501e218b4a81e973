package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver of the read models, to lock their file

	"github.com/helixd/helixd/integration/deployment"
)

// world is all deployments.
type world struct {
	ctx      context.Context
	dir      string
	binaries deployment.Binaries
	monitor  *monitor
	wg       *sync.WaitGroup
	closers  []func()
}

// trial is a deployment with what breaks it, one after the other.
type trial struct {
	job     string
	faults  []fault
	leftOut bool // this machine can't make the deployment
}

// errNoDisk: this machine lets nobody mount a disk, or only root.
var errNoDisk = errors.New("no small disk can be mounted")

// fault is something that breaks, and the alerts that must fire then.
type fault struct {
	what  string
	do    func() error
	fires []string
}

const healthyJob = "helixd-healthy"

func (w *world) close() {
	for i := len(w.closers) - 1; i >= 0; i-- {
		w.closers[i]()
	}
}

// common is the configuration that all have.
const common = `
public: [/metrics]
modelRetryDelay: 200ms
agents:
  quick: {model: {provider: scripted, script: [{text: Good morning.}]}}
  slow: {model: {provider: scripted, scriptDelay: 1s, script: [{text: "%s"}]}}
`

// words is a text that takes a slow agent longer than the program runs.
func words() string { return string(bytes.Repeat([]byte("word "), 3600)) }

// start starts all deployments, with their load.
func (w *world) start() ([]*trial, error) {
	healthy, err := w.alone(healthyJob, "")
	if err != nil {
		return nil, err
	}
	w.load(healthy.Nodes[0], "quick")
	trials := []*trial{w.made()}
	for _, f := range []func() (*trial, error){w.cluster, w.disk, w.upstreams, w.stalls, w.tenants, w.poison} {
		t, err := f()
		if err != nil {
			return nil, err
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// alone starts one node as a deployment.
func (w *world) alone(job, config string, before ...func(folder string) error) (*deployment.Deployment, error) {
	dir := filepath.Join(w.dir, job)
	d, err := deployment.Alone(w.binaries, dir, fmt.Sprintf(common, words())+config)
	if err != nil {
		return nil, err
	}
	for _, f := range before {
		if err := f(filepath.Join(dir, "alone")); err != nil {
			return nil, err
		}
	}
	return d, w.run(job, d)
}

// run starts a deployment and has it scraped.
func (w *world) run(job string, d *deployment.Deployment) error {
	w.closers = append(w.closers, d.Close)
	if err := d.Start(w.ctx); err != nil {
		return err
	}
	for _, n := range d.Nodes {
		w.scrape(&target{job: job, instance: n.Name, url: n.URL})
	}
	return nil
}

func (w *world) scrape(t *target) {
	w.wg.Go(func() { w.monitor.scrape(w.ctx, t) })
}

// requests are of the load: what fails is a fault's doing.
var requests = &http.Client{Timeout: 30 * time.Second}

func (w *world) post(url, token, body string) error {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := requests.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return err
}

var sessions atomic.Int64 // that were begun

// begin starts a run of an agent.
func (w *world) begin(n *deployment.Node, token, agent string) error {
	return w.post(n.URL+"/start", token, fmt.Sprintf(`{"sessionId":"s%d","agentType":%q,"message":"go"}`, sessions.Add(1), agent))
}

// chunk appends to a session of an outside producer.
func (w *world) chunk(n *deployment.Node, token, session, more string) error {
	return w.post(n.URL+"/sessions/"+session+"/chunks", token,
		fmt.Sprintf(`{"agentId":%q,"agentType":"outside","step":0,"timestamp":1,%s}`, session, more))
}

const someText = `"type":"text_delta","delta":"hi"`

// load keeps a node busy: two runs and four appends of a producer a second.
func (w *world) load(n *deployment.Node, agents ...string) {
	w.wg.Go(func() {
		every := time.NewTicker(500 * time.Millisecond)
		defer every.Stop()
		for i := 0; ; i++ {
			select {
			case <-every.C:
			case <-w.ctx.Done():
				return
			}
			w.wg.Go(func() { _ = w.begin(n, "", agents[i%len(agents)]) })
			w.wg.Go(func() { _ = w.chunk(n, "", "outside-"+n.Name, someText) })
			w.wg.Go(func() { _ = w.chunk(n, "", "other-"+n.Name, someText) })
		}
	})
}

// cluster loses a node, and then its quorum.
func (w *world) cluster() (*trial, error) {
	const job = "helixd-cluster"
	d, err := deployment.Embedded(w.binaries, filepath.Join(w.dir, job), 3, fmt.Sprintf(common, words()))
	if err != nil {
		return nil, err
	}
	if err := w.run(job, d); err != nil {
		return nil, err
	}
	for _, n := range d.Nodes {
		for range 30 {
			if err := w.begin(n, "", "slow"); err != nil {
				return nil, err
			}
		}
	}
	w.load(d.Nodes[0], "quick")
	kill := func(n *deployment.Node) func() error {
		return func() error { n.Kill(); return nil }
	}
	return &trial{job: job, faults: []fault{
		{"one node of three is killed", kill(d.Nodes[2]), []string{"HelixdDown", "HelixdReplicaIsMissing", "HelixdNodeIsGone", "HelixdNodesDie"}},
		{"a second node is killed: the quorum is lost", kill(d.Nodes[1]), []string{"HelixdNotReady"}},
	}}, nil
}

// disk fills up. Where no disk can be mounted, as in most containers, its faults are left out.
func (w *world) disk() (*trial, error) {
	const job = "helixd-disk"
	const room, least = 512, 128 // MiB
	var data string
	leave := func(mib int64) func() error {
		return func() error {
			var s syscall.Statfs_t
			if err := syscall.Statfs(data, &s); err != nil {
				return err
			}
			f, err := os.Create(filepath.Join(data, fmt.Sprintf("ballast-%d", mib)))
			if err != nil {
				return err
			}
			return errors.Join(syscall.Fallocate(int(f.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-mib<<20), f.Close())
		}
	}
	t := &trial{job: job, faults: []fault{
		{"the disk fills up", leave(200), []string{"HelixdDiskFillsUp"}},
		{"the disk is full", leave(100), []string{"HelixdRefusesAppends", "HelixdAppendsFail"}},
	}}
	d, err := w.alone(job, fmt.Sprintf("disk: {minFree: %dMiB}\n", least), func(folder string) error {
		data = filepath.Join(folder, "data")
		if err := os.MkdirAll(data, 0o700); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", data, "tmpfs", 0, fmt.Sprintf("size=%dm", room)); err != nil {
			return fmt.Errorf("%w: %w", errNoDisk, err)
		}
		w.closers = append(w.closers, func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
		return nil
	})
	if errors.Is(err, errNoDisk) {
		say("left out: %s: %v", job, err)
		t.leftOut = true
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	n := d.Nodes[0]
	for range 3 {
		if err := w.begin(n, "", "slow"); err != nil {
			return nil, err
		}
	}
	w.load(n, "quick")
	return t, nil
}

// upstreams stop to answer.
func (w *world) upstreams() (*trial, error) {
	const job = "helixd-upstreams"
	model, err := deployment.Serve(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	if err != nil {
		return nil, err
	}
	tool, err := deployment.Serve(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, `{"result":1}`) }))
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, model.Stop, tool.Stop)
	d, err := w.alone(job, fmt.Sprintf(`  asks: {model: {provider: openai, name: tiny, apiKey: none, maxRetries: 1, baseURL: %q}}
  uses:
    model: {provider: scripted, script: [{toolCalls: [{name: look, arguments: {}}]}, {text: done}]}
    tools: {look: {description: Looks., inputSchema: {type: object}, http: {url: %q}}}
`, model.URL, tool.URL))
	if err != nil {
		return nil, err
	}
	w.load(d.Nodes[0], "asks", "uses")
	return &trial{job: job, faults: []fault{
		{"a model and a tool do not answer", func() error {
			model.Stop()
			tool.Stop()
			return nil
		}, []string{"HelixdModelFails", "HelixdRunsFail", "HelixdToolFails"}},
	}}, nil
}

// stalls is a process that stands still again and again, as on a disk that is slow to sync.
func (w *world) stalls() (*trial, error) {
	const job = "helixd-stalls"
	d, err := w.alone(job, "")
	if err != nil {
		return nil, err
	}
	n := d.Nodes[0]
	w.load(n, "quick")
	return &trial{job: job, faults: []fault{
		{"the process stands still for 1.5 s again and again, as on a slow disk", func() error {
			for i := range 8 { // without a pause, so that some appends are under way whenever it stands still
				w.wg.Go(func() {
					for w.ctx.Err() == nil {
						if w.chunk(n, "", fmt.Sprint("steady-", i), someText) != nil {
							_ = deployment.Sleep(w.ctx, 100*time.Millisecond)
						}
					}
				})
			}
			w.wg.Go(func() {
				defer n.Signal(syscall.SIGCONT)
				for w.ctx.Err() == nil {
					n.Signal(syscall.SIGSTOP)
					_ = deployment.Sleep(w.ctx, 1500*time.Millisecond)
					n.Signal(syscall.SIGCONT)
					_ = deployment.Sleep(w.ctx, 80*time.Millisecond)
				}
			})
			return nil
		}, []string{"HelixdAppendsAreSlow"}},
	}}, nil
}

// tenants: limits and certificates end, and listings stop.
func (w *world) tenants() (*trial, error) {
	const job = "helixd-tenants"
	cert, key := filepath.Join(w.dir, "cert.pem"), filepath.Join(w.dir, "key.pem")
	if err := deployment.WriteCertificate(cert, key, 90*24*time.Hour); err != nil {
		return nil, err
	}
	ws, err := deployment.FreeAddress()
	if err != nil {
		return nil, err
	}
	d, err := w.alone(job, fmt.Sprintf(`
auth: {tokens: [{token: red, tenant: red}, {token: all}]}
tenants: {red: {sessions: 20}}
nats: {user: u, password: p, websocket: {listen: %q, cert: %q, key: %q}}
`, ws, cert, key))
	if err != nil {
		return nil, err
	}
	n := d.Nodes[0]
	return &trial{job: job, faults: []fault{
		{"a certificate expires in two days", func() error { return deployment.WriteCertificate(cert, key, 48*time.Hour) }, []string{"HelixdCertificateExpires"}},
		{"a tenant uses 19 of its 20 sessions", func() error {
			for range 19 {
				if err := w.begin(n, "red", "quick"); err != nil {
					return err
				}
			}
			return nil
		}, []string{"HelixdQuotaIsNearlyUsed"}},
		{"a record can't be used", func() error {
			return w.chunk(n, "all", "odd", `"type":"state_patch","patches":[{"op":"remove","path":"/nothing"}]`)
		}, []string{"HelixdRecordsAreParked"}},
		{"the read models' file is locked", func() error {
			db, err := sql.Open("sqlite", filepath.Join(w.dir, job, "alone", "data", "readmodels.db"))
			if err != nil {
				return err
			}
			db.SetMaxOpenConns(1)
			if _, err := db.Exec("BEGIN EXCLUSIVE"); err != nil {
				return err
			}
			w.closers = append(w.closers, func() { db.Close() })
			return w.begin(n, "all", "quick") // something that they lack
		}, []string{"HelixdListingsAreBehind"}},
	}}, nil
}

// poison: a run's tool kills the process that calls it, again and again.
func (w *world) poison() (*trial, error) {
	const job = "helixd-poison"
	var kill atomic.Pointer[func()]
	tool, err := deployment.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if f := kill.Load(); f != nil {
			(*f)()
		}
	}))
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, tool.Stop)
	d, err := w.alone(job, fmt.Sprintf(`  bomb:
    model: {provider: scripted, script: [{toolCalls: [{name: explode, arguments: {}}]}, {text: done}]}
    tools: {explode: {description: Explodes., inputSchema: {type: object}, http: {url: %q}}}
`, tool.URL))
	if err != nil {
		return nil, err
	}
	n := d.Nodes[0]
	end := func() { n.Signal(syscall.SIGKILL) }
	kill.Store(&end)
	w.wg.Go(func() { // as a service manager
		for {
			select {
			case <-n.Ended():
			case <-w.ctx.Done():
				return
			}
			if err := n.Start(); err != nil {
				failed("%s: %v", job, err)
				return
			}
		}
	})
	return &trial{job: job, faults: []fault{
		{"a run kills each process that drives it", func() error { return w.begin(n, "", "bomb") }, []string{"HelixdPoisonousRun"}},
	}}, nil
}

// made is a target without a process. No test can set the clock of one process, and an embedded server lets
// a node read the list of sessions even without a quorum: the samples are what a daemon shows whose clock
// differs, that can't read the list, and whose list has sessions that no node drives.
func (w *world) made() *trial {
	const job = "helixd-made"
	var broken atomic.Int64 // when it was, in seconds; 0: it is not
	w.scrape(&target{job: job, instance: "made", made: func() string {
		broke, looked := 0, time.Now().Unix()
		if at := broken.Load(); at != 0 {
			broke, looked = 1, at
		}
		return fmt.Sprintf("helixd_degraded{check=\"clock\"} %d\nhelixd_queue_unheld_trees %d\nhelixd_queue_looked_timestamp_seconds %d\n", broke, broke, looked)
	}})
	return &trial{job: job, faults: []fault{
		{"a clock differs, the list can't be read, and nobody drives a session (made samples)", func() error {
			broken.Store(time.Now().Unix())
			return nil
		}, []string{"HelixdClocksDiffer", "HelixdWorkListUnreadable", "HelixdRunsWaitForANode"}},
	}}
}
