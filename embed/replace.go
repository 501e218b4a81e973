package embed

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// removeTry is how long a request to remove a server waits for an answer. The servers'
	// leader answers when they have agreed.
	removeTry   = 5 * time.Second
	removePause = 200 * time.Millisecond
	// removeAsks is how often a server has to be absent, when all are asked, before it is
	// removed. It may be that routes to it are not up yet: a server that fails to connect
	// tries again a second later.
	removeAsks = 5
	// removeAsk is how long answers are waited for, each time.
	removeAsk    = time.Second
	removeNotice = 10 * time.Second
	// askRoutes has all servers say to whom they have routes.
	askRoutes = "$SYS.REQ.SERVER.PING.ROUTEZ"
)

// errNotMember: the cluster has no server of that name.
var errNotMember = errors.New("it is not a member of the cluster")

// RemoveServer removes a server that is gone for good from the cluster: most servers must
// run, which no longer count it. Other servers get its replicas, which they copy from
// those that are left. A server that has been removed can't come back with its data
// folder. A server that runs is refused. RemoveServer returns false if the cluster has no
// such server. Until ctx ends it waits for most servers to agree, and while one still has a
// route to the server, and logs that every 10 seconds.
func (s *Server) RemoveServer(ctx context.Context, name string) (removed bool, err error) {
	o := s.opts
	switch {
	case o.Cluster == nil:
		return false, errors.New("embed: remove server: this one is in no cluster")
	case name == o.Name:
		return false, fmt.Errorf("embed: remove server: this one is %s itself: a replacement needs another name and an empty data folder", name)
	}
	nc, err := s.Connect(nats.UserInfo(userSystem, o.password))
	if err != nil {
		return false, err
	}
	defer nc.Close()
	r := &removal{nc: nc, name: name, every: o.removeAsk, log: o.Logger, noticed: time.Now()}
	if err := r.absent(ctx, s); err != nil {
		return false, err
	}
	return r.remove(ctx)
}

// removal is the work of RemoveServer.
type removal struct {
	nc      *nats.Conn
	name    string
	every   time.Duration // between two questions
	log     *slog.Logger
	noticed time.Time
}

// absent returns when the server has been absent for some time.
func (r *removal) absent(ctx context.Context, s *Server) error {
	var why error // it was not absent, as of the last time
	for asks := 0; asks < removeAsks; asks++ {
		runs, seenBy, err := r.ask(ctx)
		switch {
		case runs:
			return fmt.Errorf("embed: remove server: %s runs: stop it first", r.name)
		case err == nil && seenBy == "" && slices.Contains(s.instance().peers(), r.name): // perhaps for a moment, while it tries to reach it
			seenBy = s.Name()
		}
		if err == nil && seenBy != "" { // out of this one's reach, or just lost
			err = fmt.Errorf("%s has a route to it", seenBy)
			why = err
		}
		if ctx.Err() != nil && why != nil { // the question broke off
			err = why
		}
		if err == nil {
			why = nil
			continue
		}
		asks = -1
		if err := r.wait(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// ask returns whether the server answers, or else a server that has a route to it.
func (r *removal) ask(ctx context.Context) (runs bool, seenBy string, err error) {
	answers, err := r.nc.SubscribeSync(r.nc.NewInbox())
	if err != nil {
		return false, "", err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := r.nc.PublishRequest(askRoutes, answers.Subject, nil); err != nil {
		return false, "", err
	}
	asking, cancel := context.WithTimeout(ctx, r.every)
	defer cancel()
	for {
		m, err := answers.NextMsgWithContext(asking)
		switch {
		case ctx.Err() != nil:
			return false, "", context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			return false, seenBy, nil
		case err != nil:
			return false, "", err
		}
		var answer server.ServerAPIRoutezResponse
		if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Server == nil {
			return false, "", errors.Join(err, errors.New("a server's answer can't be read"))
		}
		if answer.Server.Name == r.name {
			return true, "", nil
		}
		if answer.Data != nil && slices.ContainsFunc(answer.Data.Routes, func(i *server.RouteInfo) bool { return i.RemoteName == r.name }) {
			seenBy = answer.Server.Name
		}
	}
}

// remove removes the server. A try without an answer may have done it.
func (r *removal) remove(ctx context.Context) (removed bool, err error) {
	request, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Server: r.name, Peer: peerID(r.name)})
	if err != nil {
		return false, err
	}
	for first := true; ; first = false {
		done, err := tryRemove(ctx, r.nc, request)
		switch {
		case errors.Is(err, errNotMember):
			return !first, nil
		case done:
			return err == nil, err
		}
		if err := r.wait(ctx, err); err != nil {
			return false, err
		}
	}
}

// wait waits before the next try, and says from time to time why there is one.
func (r *removal) wait(ctx context.Context, why error) error {
	if time.Since(r.noticed) >= removeNotice {
		r.noticed = time.Now()
		r.log.Warn("waiting to remove a server from the NATS cluster", slog.String("server", r.name), slog.Any("error", why))
	}
	if err := datadir.Sleep(ctx, removePause); err != nil {
		return fmt.Errorf("embed: remove server %s: %w: %w", r.name, err, why)
	}
	return nil
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
	case e == nil:
		return true, nil
	case e.ErrCode == uint16(server.JSClusterServerNotMemberErr):
		return true, errNotMember
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
