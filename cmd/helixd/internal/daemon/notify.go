package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// notifyMargin is what a start or a stop may take beyond its known limits
// before the service manager takes the daemon for stuck.
const notifyMargin = time.Minute

// notifier reports the state of the daemon to the service manager (sd_notify(3)). Without a
// service manager, and if it is nil, it reports nothing.
//
// The manager restarts a daemon that has not called it for the watchdog's
// time. It is called while the daemon's own HTTP server answers GET /healthz:
// a log that can't be reached is nothing that a restart would help.
type notifier struct {
	conn     *net.UnixConn // nil: no service manager
	watchdog time.Duration // 0: none
	every    time.Duration // of waiting
	log      *slog.Logger
	stop     context.CancelFunc
	ended    sync.WaitGroup
}

// newNotifier reads the environment that systemd gives to a service of
// Type=notify.
func newNotifier(getenv func(string) string, log *slog.Logger) (*notifier, error) {
	n := &notifier{log: log, every: joinNotice, stop: func() {}}
	name := getenv("NOTIFY_SOCKET")
	if name == "" {
		return n, nil
	}
	if strings.HasPrefix(name, "@") {
		name = "\x00" + name[1:] // an abstract one
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	n.conn = conn
	if pid := getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		micros, _ := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
		n.watchdog = time.Duration(micros) * time.Microsecond
	}
	return n, nil
}

// starting says that the start may take so long.
func (n *notifier) starting(within time.Duration) {
	n.say("STATUS=Starting", extend(within))
}

// waiting repeats starting until done is called: nothing limits how long other nodes take.
func (n *notifier) waiting(within time.Duration) (done func()) {
	if n == nil || n.conn == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for eventlog.Sleep(ctx, n.every) == nil {
			n.starting(within)
		}
	})
	return func() {
		cancel()
		ended.Wait()
	}
}

// ready says that the daemon serves at a URL, and begins to call the watchdog.
func (n *notifier) ready(url string) {
	n.say("READY=1", "STATUS=Serving "+url)
	if n.conn == nil || n.watchdog <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	n.ended.Go(func() { n.watch(ctx, url) })
}

// reloading says that the configuration is read again, until reloaded.
func (n *notifier) reloading() { n.say("RELOADING=1", "STATUS=Reading the configuration") }

func (n *notifier) reloaded(url string) { n.say("READY=1", "STATUS=Serving "+url) }

// stopping says that the daemon stops, and that this may take so long. The
// watchdog waits as long: the server that it is called for goes away.
func (n *notifier) stopping(within time.Duration) {
	n.stop()
	n.ended.Wait()
	last := []string{"STOPPING=1", "STATUS=Stopping", extend(within)}
	if n.watchdog > 0 {
		last = append(last, fmt.Sprintf("WATCHDOG_USEC=%d", max(n.watchdog, within).Microseconds()))
	}
	n.say(last...)
}

func extend(within time.Duration) string {
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds())
}

// close ends the watchdog's calls.
func (n *notifier) close() {
	n.stop()
	n.ended.Wait()
	if n.conn != nil {
		n.conn.Close()
	}
}

// watch calls the watchdog some times in its time while the daemon answers.
func (n *notifier) watch(ctx context.Context, url string) {
	ticker := time.NewTicker(n.watchdog / 4)
	defer ticker.Stop()
	for {
		if err := alive(ctx, url, n.watchdog/2); err == nil {
			n.say("WATCHDOG=1")
		} else if ctx.Err() == nil {
			n.log.Warn("the daemon does not answer itself; the watchdog is not called", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// direct asks this process, without a proxy even if the environment names one, and
// by a new connection each time, to check the listener, too. The certificate
// is of a name, and not of the address that is listened on: nothing but a status is
// read, and no token is sent.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// alive returns nil if the daemon at a URL answers in time.
func alive(ctx context.Context, url string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := direct.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("healthz: %s", resp.Status)
	}
	return nil
}

// say sends assignments. The daemon continues if they are not received.
func (n *notifier) say(assignments ...string) {
	if n == nil || n.conn == nil {
		return
	}
	if _, err := n.conn.Write([]byte(strings.Join(assignments, "\n"))); err != nil {
		n.log.Warn("the service manager can't be notified", "error", err)
	}
}
