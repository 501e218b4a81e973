//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// What an operator does to a deployment while it is in use. Each chapter begins with what
// the one before has left.
const (
	chapterGrow    = "grow"    // a single node's data becomes a cluster of three
	chapterJoin    = "join"    // a fourth and a fifth node join
	chapterReplace = "replace" // a node is lost for good, and another one takes its place
	// the log gets more partitions by a reload, after a first attempt whose node is killed
	chapterPartitions = "partitions"
)

var chapters = []string{chapterGrow, chapterJoin, chapterReplace, chapterPartitions}

// tellable reports whether the chapters are known, and fit the nodes that there are.
func tellable(o options) bool {
	for i, c := range o.story {
		if !slices.Contains(chapters, c) || (c == chapterGrow) != (i == 0 && o.nodes == 1) {
			return false
		}
	}
	return true
}

// calmBetween is how long clients use a deployment before the next chapter.
const calmBetween = 2 * time.Second

// tell goes through the chapters, one after the other.
func (t *trial) tell() {
	for _, c := range t.story {
		if !t.Sleep(calmBetween) {
			return
		}
		began := time.Now()
		err := map[string]func() error{chapterGrow: t.grow, chapterJoin: t.join, chapterReplace: t.replaceLost, chapterPartitions: t.morePartitions}[c]()
		if err == nil {
			err = errors.Join(t.allReady(readyWithin), t.asDurable())
		}
		if err != nil {
			t.Violate("", nil, "%s: %v", c, err)
			return
		}
		deployment.Say("%s: done in %s", c, time.Since(began).Round(time.Millisecond))
	}
	t.Sleep(calmBetween)
}

// command is a helixd command that runs.
type command struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once it has ended

	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (c *command) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(b)
}

func (c *command) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// begin runs a command in a node's folder.
func (t *trial) begin(n *node, args ...string) (*command, error) {
	c := &command{cmd: exec.Command(t.binaries.Helixd, args...), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = filepath.Dir(n.data), c, c
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	context.AfterFunc(t.ctx, func() { _ = c.cmd.Process.Kill() }) // it may have ended
	return c, nil
}

// until waits until the command says something.
func (c *command) until(t *trial, text string) error {
	for !strings.Contains(c.text(), text) {
		select {
		case <-c.ended:
			if strings.Contains(c.text(), text) {
				return nil
			}
			return fmt.Errorf("%v ended and did not say %q: %s", c.cmd.Args, text, c.text())
		default:
		}
		if !t.Sleep(5 * time.Millisecond) {
			return context.Cause(t.ctx)
		}
	}
	return nil
}

// line returns the line that has a text.
func (c *command) line(text string) string {
	for line := range strings.Lines(c.text()) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func (c *command) wait() error {
	<-c.ended
	if c.err != nil {
		return fmt.Errorf("%v: %w: %s", c.cmd.Args, c.err, c.text())
	}
	return nil
}

// grow has the data of the only node become a cluster of three. The first attempt is
// killed while it copies, and the node goes back to work; the second one succeeds.
func (t *trial) grow() error {
	old := t.members()[0]
	members, err := t.newMembers("member", 3, nil)
	if err != nil {
		return err
	}
	for _, n := range members[1:] {
		n.More = []string{"--join"}
		if err := n.start(); err != nil {
			return err
		}
	}
	args := []string{"cluster", "grow", "--from", old.data, "--config", "helix.yaml"}
	for _, broken := range []bool{true, false} {
		c, err := t.begin(members[0], args...)
		if err != nil {
			return err
		}
		if err := c.until(t, "stop the single node now"); err != nil {
			return err
		}
		began := time.Now()
		if err := old.interrupt(); err != nil {
			return err
		}
		deployment.Say("grow: the single node took %s to stop", time.Since(began).Round(time.Millisecond))
		if broken {
			if err := c.until(t, "copying"); err != nil {
				return err
			}
			t.Sleep(100 * time.Millisecond)
			_ = c.cmd.Process.Kill() // it may have ended, which the next attempt reports
			<-c.ended
			deployment.Say("grow: the copy broke off: the single node serves again")
			if err := errors.Join(old.start(), t.allReady(readyWithin)); err != nil {
				return err
			}
			t.Sleep(calmBetween)
			continue
		}
		t.setMembers(members[1:])
		if err := c.wait(); err != nil {
			return err
		}
		copied := time.Since(began)
		if err := t.allReady(readyWithin); err != nil {
			return err
		}
		deployment.Say("grow: no node served for %s, of which copying took %s: %s", time.Since(began).Round(time.Millisecond),
			copied.Round(time.Millisecond), c.line("are in cluster"))
	}
	if err := members[0].start(); err != nil {
		return err
	}
	t.setMembers(members)
	return t.fenced(old)
}

// fenced checks that a node whose data has moved does not start any more.
func (t *trial) fenced(old *node) error {
	c, err := t.begin(old, "serve", "--config", "helix.yaml")
	if err != nil {
		return err
	}
	if err := c.wait(); err == nil || !strings.Contains(err.Error(), "another deployment has the data") {
		return fmt.Errorf("the single node is not refused: %w", err)
	}
	return nil
}

// join adds two nodes. They serve and drive runs; the replicas stay where they are.
func (t *trial) join() error {
	there := t.members()
	before, err := t.holders()
	if err != nil {
		return err
	}
	for range 2 {
		more, err := t.newMembers("member", 1, t.clusterEver())
		if err != nil {
			return err
		}
		n := more[0]
		n.replicas = there[0].replicas
		n.More = []string{"--join"}
		if err := n.start(); err != nil {
			return err
		}
		t.setMembers(append(slices.Clone(t.members()), n))
		if err := t.allReady(readyWithin); err != nil {
			return err
		}
	}
	after, err := t.holders()
	if err != nil {
		return err
	}
	slices.Sort(before)
	slices.Sort(after)
	if !slices.Equal(before, after) {
		return fmt.Errorf("the log's replicas were on %v and are on %v", before, after)
	}
	deployment.Say("join: %d nodes, the log's replicas stay on %v", len(t.members()), after)
	return nil
}

// replaceLost loses a node with a replica for good, and has another one take its place.
func (t *trial) replaceLost() error {
	there := t.members()
	holders, err := t.holders()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(there, func(n *node) bool { return n.Name == holders[0] })
	lost := there[at]
	lost.kill()
	if err := os.RemoveAll(lost.data); err != nil {
		return err
	}
	rest := slices.Delete(slices.Clone(there), at, at+1)
	t.setMembers(rest)
	began := time.Now()
	if err := t.allReady(readyWithin); err != nil {
		return err
	}
	more, err := t.newMembers("member", 1, t.clusterEver())
	if err != nil {
		return err
	}
	n := more[0]
	n.replicas, n.More = lost.replicas, []string{"--join", "--replace", lost.Name}
	if err := n.start(); err != nil {
		return err
	}
	t.setMembers(append(rest, n))
	if err := t.allReady(readyWithin); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(t.ctx, began.Add(readyWithin))
	defer cancel()
	return deployment.Retry(ctx, 100*time.Millisecond, func() error {
		now, err := t.holders()
		if err == nil && (slices.Contains(now, lost.Name) || len(now) != lost.replicas) {
			err = fmt.Errorf("the replicas are on %v", now)
		}
		if err = errors.Join(err, t.streams().Healthy(ctx)); err == nil {
			deployment.Say("replace: the log has all replicas again after %s, on %v", time.Since(began).Round(time.Millisecond), now)
		}
		return err
	})
}

// clusterEver are all nodes of the cluster that there have ever been.
func (t *trial) clusterEver() (all []*node) {
	for _, n := range t.everybody() {
		if n.route != "" {
			all = append(all, n)
		}
	}
	return all
}

// streams are the servers of the members.
func (t *trial) streams() (all deployment.Streams) {
	for _, n := range t.members() {
		all = append(all, n.NATS)
	}
	return all
}

// holders are the names of the nodes with a replica of the log, its leader first.
func (t *trial) holders() ([]string, error) {
	return t.streams().Holders(t.ctx, deployment.Log)
}

// asDurable checks that each node says of its acknowledgements what the cluster makes of them.
func (t *trial) asDurable() error {
	for _, n := range t.members() {
		r, err := n.Ready(t.ctx)
		if want := fmt.Sprintf("replicated×%d", n.replicas); err != nil || r.Durability != want {
			return errors.Join(err, fmt.Errorf("%s says that its durability is %q, not %q", n.Name, r.Durability, want))
		}
	}
	return nil
}
