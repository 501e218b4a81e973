package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

const (
	// idleWithin is how long a connection may say nothing: heartbeats come
	// every 15 s.
	idleWithin = 45 * time.Second
	// answerWithin bounds the way to the first byte of an answer.
	answerWithin = 30 * time.Second
	// retryMost is the longest pause before another try.
	retryMost = time.Second
)

// follower is a client that follows a session. When its connection breaks it goes to the other
// node at once, and says how far it has come.
type follower struct {
	crowd   *crowd
	number  int
	session string
	nodes   []string
	home    int           // node that it comes to first
	in      chan struct{} // closed when it has been let in once

	mu        sync.Mutex
	at        int  // node
	homewards bool // its next node is home, and not the other one
	once      bool
	conn      net.Conn
	connected bool
	last      uint64 // sequence
	chunks    int    // all that there were: they are numbered from 1

	marked  time.Time // what is measured has begun
	broken  bool      // it has lost its connection since
	settled bool      // and is current again
	back    time.Time // when it was let in again
	caught  time.Time // when it got the last chunk that it had missed; zero: none
}

// follow follows for ever.
func (c *follower) follow(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		if c.connect() { // it was let in: to the other one, now
			pause = 0
			continue
		}
		pause = min(retryMost, 2*pause+20*time.Millisecond)
		_ = deployment.Sleep(ctx, rand.N(pause)) // the loop asks ctx
	}
}

// connect reads one connection to its end, and reports whether it was let in.
func (c *follower) connect() (entered bool) {
	c.mu.Lock()
	at, last := c.at, c.last
	c.mu.Unlock()
	conn, err := net.DialTimeout("tcp", c.nodes[at], answerWithin)
	if err != nil {
		c.left(false)
		return false
	}
	defer conn.Close()
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	defer func() { c.left(entered) }()
	_ = conn.SetDeadline(time.Now().Add(answerWithin)) // fails only on a closed connection
	if _, err := io.WriteString(conn, c.request(at, last)); err != nil {
		return false
	}
	in := bufio.NewReaderSize(conn, 2<<10)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode >= 500:
		return false
	default:
		c.crowd.violate("client %d of %s, after %d: %s", c.number, c.session, last, resp.Status)
		return false
	}
	c.entered()
	c.read(conn, resp.Body)
	return true
}

func (c *follower) request(at int, last uint64) string {
	resume := ""
	if last > 0 {
		resume = "Last-Event-ID: " + strconv.FormatUint(last, 10) + "\r\n"
	}
	return "GET /sse?sessionId=" + c.session + " HTTP/1.1\r\nHost: " + c.nodes[at] + "\r\nAccept: text/event-stream\r\n" + resume + "\r\n"
}

// read takes events until the connection ends.
func (c *follower) read(conn net.Conn, body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 1<<10), 64<<10)
	id := uint64(0)
	for _ = conn.SetDeadline(time.Now().Add(idleWithin)); lines.Scan(); _ = conn.SetDeadline(time.Now().Add(idleWithin)) {
		if value, ok := bytes.CutPrefix(lines.Bytes(), []byte("id: ")); ok {
			id, _ = strconv.ParseUint(string(value), 10, 64) // else it is no rising number
			continue
		}
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if err := c.take(id, data); err != nil {
				c.crowd.violate("client %d of %s: %v", c.number, c.session, err)
				return
			}
		}
	}
}

// take takes a chunk: the next one, and no other.
func (c *follower) take(id uint64, data []byte) error {
	now := time.Now()
	_, rest, _ := bytes.Cut(data, []byte(`"delta":"`))
	number, rest, _ := bytes.Cut(rest, []byte(" "))
	time1970, _, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.Atoi(string(number))
	if err != nil {
		return fmt.Errorf("what is this? %s", data)
	}
	sent, err := strconv.ParseInt(string(time1970), 10, 64)
	if err != nil {
		return fmt.Errorf("what is this? %s", data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n != c.chunks+1 || id <= c.last {
		return fmt.Errorf("chunk %d with sequence %d came after chunk %d with sequence %d", n, id, c.chunks, c.last)
	}
	c.chunks, c.last = n, id
	if !c.broken || c.settled {
		return nil
	}
	if time.Unix(0, sent).After(c.back) { // all that was missed comes before
		c.settled = true
	} else {
		c.caught = now
	}
	return nil
}

func (c *follower) entered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected, c.back, c.caught = true, time.Now(), time.Time{}
	if !c.once {
		c.once = true
		close(c.in)
	}
}

// left notes that a connection has ended, or was refused.
func (c *follower) left(entered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.connected = nil, false
	if entered {
		c.broken, c.settled = true, false
	}
	c.at = (c.at + 1) % len(c.nodes)
	if c.homewards {
		c.at, c.homewards = c.home, false
	}
}

// mark begins to measure.
func (c *follower) mark(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marked, c.broken, c.settled = at, !c.connected, false
}

// cut closes the connection, and sends the client home.
func (c *follower) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.homewards, c.broken = true, true
		c.conn.Close()
	}
}

func (c *follower) got() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chunks
}

func (c *follower) count(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.Chunks += c.chunks
	if c.connected {
		a.Connected++
	}
	if c.broken {
		a.Broken++
		if c.settled {
			a.Settled++
		}
	}
}

// times returns when a client that had lost its connection was let in again,
// and when it was current again.
func (c *follower) times() (back, current time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.broken || !c.settled {
		return 0, 0, false
	}
	back = c.back.Sub(c.marked)
	return back, max(back, c.caught.Sub(c.marked)), true
}
