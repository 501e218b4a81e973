package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
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
	sync, err := syncCost(dir)
	if err != nil {
		return nil, err
	}
	return []fact{
		{"cores", fmt.Sprintf("%d (%s/%s)", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)},
		{"Go", runtime.Version()},
		{"nats-server", fmt.Sprintf("%s in this process, nats.go %s", server.VERSION, nats.Version)},
		{"redis-server", fmt.Sprintf("%s on a Unix socket, go-redis %s", redisVersion, redis.Version())},
		{"disk", fmt.Sprintf("write and fsync of 4 KiB takes %s µs (median)", number(float64(sync)/1e3))},
		{"payload", fmt.Sprintf("%d bytes, a text_delta chunk", payloadBytes)},
	}, nil
}

// syncCost is the median of some small synced writes; nearly nothing means
// that the folder is not on a disk, and that no fsync figure means anything.
func syncCost(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took samples
	for range 100 {
		begin := time.Now()
		if _, err := f.Write(make([]byte, 4<<10)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	return took.at(0.5), nil
}
