package embed

import (
	"context"
	"time"

	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/nats-io/nats-server/v2/server"
)

const (
	// maxUnread is what all clients from outside together may leave unread, in bytes:
	// with maxPending alone, all of a node's connections could take 256 GiB.
	maxUnread = 256 << 20
	// unreadLook is how often that is looked at.
	unreadLook = 250 * time.Millisecond
)

// watchUnread ends connections from outside while they leave too much unread, until
// ctx ends.
func (i *instance) watchUnread(ctx context.Context) {
	for datadir.Sleep(ctx, unreadLook) == nil {
		i.dropSlow()
	}
}

// dropSlow ends the connections from outside that leave the most unread, until all
// others together leave at most what they may.
func (i *instance) dropSlow() {
	all, err := i.srv.Connz(&server.ConnzOptions{Sort: server.ByPending, Limit: i.opts.MaxConnections})
	if err != nil {
		return
	}
	unread := 0
	for _, c := range all.Conns {
		if c.Port != 0 { // a pipe has no port
			unread += c.Pending
		}
	}
	for _, c := range all.Conns { // the most first
		if unread <= i.opts.maxUnread {
			return
		}
		if c.Port == 0 {
			continue
		}
		unread -= c.Pending
		_ = i.srv.DisconnectClientByID(c.Cid) // an error: it has left
		i.opts.Logger.Warn("NATS client ended: it reads too slowly", "address", c.IP, "unread", c.Pending)
	}
}
