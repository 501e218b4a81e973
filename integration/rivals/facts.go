package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/helixd/helixd/integration/deployment"
)

// fact is something about the machine that figures depend on.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// machineFacts also finds out whether all that is needed is there.
func machineFacts(ctx context.Context, dir string) ([]fact, error) {
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return nil, errNoRedis
	}
	redisVersion := "unknown"
	if m := regexp.MustCompile(`v=(\S+)`).FindSubmatch(out); m != nil {
		redisVersion = string(m[1])
	}
	sync, err := deployment.SyncCost(dir)
	if err != nil {
		return nil, err
	}
	return []fact{
		{"cores", fmt.Sprintf("%d (%s/%s)", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)},
		{"Go", runtime.Version()},
		{"nats-server", fmt.Sprintf("%s in this process, nats.go %s", server.VERSION, nats.Version)},
		{"redis-server", fmt.Sprintf("%s on a Unix socket, go-redis %s", redisVersion, redis.Version())},
		{"disk", fmt.Sprintf("write and fsync of 4 KiB takes %s µs (median)", number(1e3*sync.MS(0.5)))},
		{"payload", fmt.Sprintf("%d bytes, a text_delta chunk", payloadBytes)},
	}, nil
}
