package embed

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// removeTry is how long a request to remove a server waits for an answer. The servers'
	// leader answers when they have agreed.
	removeTry   = 5 * time.Second
	removePause = 200 * time.Millisecond
)

// RemoveServer removes a server that is gone for good from the cluster: most servers must
// run, which no longer count it. Other servers get its replicas, which they copy from
// those that are left. A server that has been removed can't come back with its data
// folder. It is no error if the cluster has no such server.
func (s *Server) RemoveServer(ctx context.Context, name string) error {
	o := s.opts
	switch i := s.instance(); {
	case o.Cluster == nil:
		return errors.New("embed: remove server: this one is in no cluster")
	case name == o.Name:
		return fmt.Errorf("embed: remove server: this one is %s itself: a replacement needs another name and an empty data folder", name)
	case slices.Contains(i.peers(), name):
		return fmt.Errorf("embed: remove server: %s runs: stop it first", name)
	}
	nc, err := s.Connect(nats.UserInfo(userSystem, o.password))
	if err != nil {
		return err
	}
	defer nc.Close()
	request, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Server: name, Peer: peerID(name)})
	if err != nil {
		return err
	}
	for {
		done, err := tryRemove(ctx, nc, request)
		if done {
			return err
		}
		select {
		case <-time.After(removePause):
		case <-ctx.Done():
			return fmt.Errorf("embed: remove server %s: %w: %w", name, context.Cause(ctx), err)
		}
	}
}

func tryRemove(ctx context.Context, nc *nats.Conn, request []byte) (done bool, err error) {
	try, cancel := context.WithTimeout(ctx, removeTry)
	defer cancel()
	m, err := nc.RequestWithContext(try, server.JSApiRemoveServer, request)
	if err != nil {
		return false, err
	}
	var answer server.JSApiMetaServerRemoveResponse
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return true, fmt.Errorf("embed: remove server: %w", err)
	}
	switch e := answer.Error; {
	case e == nil, e.ErrCode == uint16(server.JSClusterServerNotMemberErr):
		return true, nil
	default: // such as another change of the members
		return false, e
	}
}

// peerID is how the cluster knows a server of which it has not heard since the others
// were started: nats-server makes it from the name.
func peerID(name string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(name))
	id := make([]byte, 8)
	for i := range id {
		id[i] = digits[int(sum[i])%len(digits)]
	}
	return string(id)
}
