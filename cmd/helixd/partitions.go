package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/jetstream"
)

type partitionsCmd struct {
	Config string `help:"Configuration file of the nodes: nats.url, and nats.partitions as it shall be." type:"path" required:""`
}

// Run grows the log to nats.partitions and prints how many there are.
func (c partitionsCmd) Run(p *flags.Process) error {
	from, err := config.Load(c.Config, os.LookupEnv)
	if err == nil {
		err = from.Validate()
	}
	if err != nil {
		return err
	}
	n := from.NATS
	switch {
	case n.URL == "" && n.Cluster.Listen != "":
		return errors.New("the log of servers that form a cluster (nats.cluster) can't grow")
	case n.URL == "":
		return errors.New("nats.url is empty: an embedded server grows its log when helixd serve starts with more nats.partitions")
	case n.Partitions == 0:
		return errors.New("nats.partitions is 0: set how many there shall be")
	}
	opts, err := settings.NATSOptions(n)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(n.URL, opts...)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(p.Ctx, settings.OpenTimeout(from))
	defer cancel()
	log, err := jetstream.Open(ctx, nc, &jetstream.Options{Partitions: n.Partitions, Grow: true, Replicas: n.Replicas})
	if err != nil {
		return err
	}
	defer log.Close()
	return json.NewEncoder(p.Stdout).Encode(map[string]int{"partitions": log.Partitions()})
}
