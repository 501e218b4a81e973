package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/helixd/helixd/integration/deployment"
)

var errNoRedis = errors.New("redis-server is not in the PATH; on Debian: apt-get install -y --no-install-recommends redis-server")

const (
	// redisWait is how long Redis may take to start or to stop.
	redisWait = 30 * time.Second
	// redisClients is what the most followers need, and room.
	redisClients = 2000
	// followerBuffer is the size of a follower's buffers, in bytes.
	followerBuffer = 4 << 10
)

// redisServer is a redis-server of our own, on a socket in its data folder.
type redisServer struct {
	mode
	process *deployment.Process
	dir     string
	rdb     *redis.Client
}

// startRedis starts on a folder, which may hold data already, and returns
// when all of it is loaded.
func startRedis(ctx context.Context, dir string, m mode) (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errNoRedis
	}
	socket := filepath.Join(dir, "s")
	r := &redisServer{mode: m, dir: dir}
	r.process, err = deployment.NewProcess("redis", dir, path,
		"--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--dir", dir, "--daemonize", "no",
		"--save", "", "--appendonly", "yes", "--appendfsync", m.appendFsync,
		// A rewrite in the middle of a measurement would hurt Redis only.
		"--auto-aof-rewrite-percentage", "0",
		"--maxclients", fmt.Sprint(redisClients),
	)
	if err == nil {
		err = r.process.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	r.rdb = redis.NewClient(&redis.Options{
		Network: "unix", Addr: socket, MaxRetries: -1,
		DisableIdentity: true, ReadTimeout: redisWait, PoolTimeout: redisWait,
	})
	if err := r.ready(ctx); err != nil {
		r.stop()
		return nil, fmt.Errorf("redis: %w", err)
	}
	return r, nil
}

func (r *redisServer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redisWait)
	defer cancel()
	for {
		err := r.rdb.Ping(ctx).Err() // refused while it is loading
		if err == nil {
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-r.process.Ended():
			return fmt.Errorf("it ended: %w: %s", err, r.process.LastWords())
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// client returns another client of the server, with that many connections.
// Small buffers are for followers, who are many and read little.
func (r *redisServer) client(connections int, smallBuffers bool) *redis.Client {
	o := *r.rdb.Options()
	o.PoolSize = connections
	if smallBuffers {
		o.ReadBufferSize, o.WriteBufferSize = followerBuffer, followerBuffer
	}
	return redis.NewClient(&o)
}

// newRedis starts on a fresh folder.
func (b *bench) newRedis(ctx context.Context, m mode) (*redisServer, error) {
	dir, err := b.tempDir("redis")
	if err != nil {
		return nil, err
	}
	return startRedis(ctx, dir, m)
}

// stop ends the process that startRedis started, and keeps its data.
func (r *redisServer) stop() {
	r.rdb.Close()
	_ = r.process.Stop(redisWait) // else it was killed
}

// discard ends the server and removes its data.
func (r *redisServer) discard() {
	r.stop()
	os.RemoveAll(r.dir)
}

func (r *redisServer) figure(value float64) figure {
	return figure{System: "Redis Streams", Durability: r.appendFsync, Value: value}
}

// info returns a number of Redis's INFO.
func (r *redisServer) info(ctx context.Context, section, key string) (n int64, err error) {
	text, err := r.rdb.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			_, err := fmt.Sscan(v, &n)
			return n, err
		}
	}
	return 0, fmt.Errorf("redis: INFO has no %s", key)
}
