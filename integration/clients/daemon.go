package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/helixd/helixd/integration/deployment"
)

// daemon is the helixd that is measured.
type daemon struct{ *deployment.Node }

// startDaemon builds and starts a daemon whose agent's model is at the URL, and
// waits until it is ready.
func startDaemon(ctx context.Context, folder string, o options, model string) (*daemon, error) {
	binaries, err := deployment.Build(ctx, folder, o.Helixd, false)
	if err != nil {
		return nil, err
	}
	all, err := deployment.Alone(binaries, folder, fmt.Sprintf(
		"durability: %s\nagents:\n  writer:\n    model: {provider: openai, name: paced, apiKey: \"none\", baseURL: %q}\n", o.durability, model))
	if err != nil {
		return nil, err
	}
	d := &daemon{all.Nodes[0]}
	d.Env = []string{"GODEBUG=gctrace=1"} // the heap's size, a line a collection
	if err := all.Start(ctx); err != nil {
		all.Close()
		return nil, err
	}
	return d, nil
}

// stop ends the process as its operator would, or, if that takes long, for good.
func (d *daemon) stop() {
	if err := d.Stop(deployment.Within); err != nil {
		deployment.Say("%v", err)
	}
}

// logs is what the process has written so far.
func (d *daemon) logs() string {
	raw, _ := os.ReadFile(d.Log()) // an error: nothing yet
	return string(raw)
}

// dump ends the process, which tells of all its goroutines then.
func (d *daemon) dump() string {
	d.Signal(syscall.SIGQUIT)
	<-d.Ended()
	return d.logs()
}
