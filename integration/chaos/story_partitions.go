//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// partitionsBefore and partitionsAfter are those of the chapter.
const partitionsBefore, partitionsAfter = 1, 4

// natsClients are the keys that let NATS clients write to the server. A log to which others
// write does not grow.
var natsClients = regexp.MustCompile(`(?m)^  (listen|user|password): .*\n`)

// morePartitions has the log grow while it serves. The operator takes away the NATS clients'
// access, one node after the other, has the log grow by a reload of one node, which is killed
// while the log grows and then reloaded again, and gives the access back.
func (t *trial) morePartitions() error {
	files := map[*node]string{}
	for _, n := range t.members() {
		raw, err := os.ReadFile(n.configuration())
		if err != nil {
			return err
		}
		files[n] = string(raw)
	}
	if err := t.rewrite(func(n *node) string { return natsClients.ReplaceAllString(files[n], "") }, true); err != nil {
		return err
	}
	grown := func(text string) string {
		return regexp.MustCompile(`(?m)^  partitions: .*$`).ReplaceAllString(text, fmt.Sprint("  partitions: ", partitionsAfter))
	}
	if err := t.rewrite(func(n *node) string { return grown(natsClients.ReplaceAllString(files[n], "")) }, false); err != nil {
		return err
	}
	began := time.Now()
	dies := t.members()[0]
	if _, err := dies.clients.Reload(t.ctx); err != nil {
		return err
	}
	t.Sleep(time.Second)
	dies.kill()
	deployment.Say("partitions: the node that has the log grow was killed after a second")
	if err := errors.Join(dies.start(), t.allReady(readyWithin)); err != nil { // it begins again by itself
		return err
	}
	ctx, cancel := context.WithDeadline(t.ctx, began.Add(readyWithin))
	defer cancel()
	for _, n := range t.members() {
		err := deployment.Retry(ctx, 50*time.Millisecond, func() error {
			r, err := n.Ready(ctx)
			if err == nil && r.Partitions != partitionsAfter {
				err = fmt.Errorf("%s has %d partitions", n.Name, r.Partitions)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	deployment.Say("partitions: the log grew from %d to %d in %s", partitionsBefore, partitionsAfter, time.Since(began).Round(time.Millisecond))
	if err := t.rewrite(func(n *node) string { return grown(files[n]) }, true); err != nil {
		return err
	}
	return t.streams().WaitHealthy(t.ctx)
}

// configuration is the node's file.
func (n *node) configuration() string { return filepath.Join(filepath.Dir(n.data), "helix.yaml") }

// rewrite writes the members' files and, if that is wanted, starts one after the other again.
func (t *trial) rewrite(text func(*node) string, restart bool) error {
	for _, n := range t.members() {
		if err := os.WriteFile(n.configuration(), []byte(text(n)), 0o600); err != nil {
			return err
		}
		if !restart {
			continue
		}
		if err := errors.Join(n.interrupt(), n.start(), t.allReady(readyWithin)); err != nil {
			return err
		}
	}
	return nil
}
