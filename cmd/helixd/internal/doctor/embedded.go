package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/eventlog/version"
)

// embedded looks at the data folder, or at the daemon that uses it.
func (d *exam) embedded(ctx context.Context) error {
	c := d.config
	if c.NATS.Replicas > 1 && c.NATS.Cluster.Listen == "" {
		d.Problem(checkConfig, "nats.replicas", fmt.Sprintf("nats.replicas is %d, and one embedded server keeps one", c.NATS.Replicas),
			"set nats.url or nats.cluster.listen, or nats.replicas to 1")
	}
	dir := filepath.Join(c.DataDir, "jetstream")
	if mark, err := embed.Moved(dir); err == nil && mark != nil { // another error is the folder's, too
		d.moved(dir, mark)
		return nil
	}
	folder, err := embed.OpenFolder(dir)
	_, newer := errors.AsType[*version.NewerError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.fresh(dir)
		d.disk(c.DataDir)
		return nil
	case newer:
		d.Problem(checkFolder, dir, err.Error(), "run a version of helixd that reads the folder's format, or restore a backup of this version into an empty folder")
		return nil
	case err != nil && !errors.Is(err, embed.ErrInUse):
		advice := "correct what it names, or restore a backup into an empty folder"
		if !lockable(dir) {
			advice = fmt.Sprintf("let the user that runs helixd read and write %s (chown -R)", dir)
		}
		d.Problem(checkFolder, dir, err.Error(), advice)
		return err
	case err != nil:
		d.OK(checkFolder, "%s is in use by a daemon that runs: it is asked", dir)
		d.disk(c.DataDir)
		return d.running(ctx)
	}
	folder.Close()
	d.OK(checkFolder, "%s, no daemon uses it", dir)
	d.disk(c.DataDir)
	if c.NATS.Cluster.Listen != "" {
		return errors.New("a server of a cluster is looked at while it runs: start helixd serve, then look again")
	}
	srv, err := embed.Start(ctx, embed.Options{DataDir: dir, SyncInterval: c.SyncInterval(), KeepFormat: true, Logger: d.process.Log})
	if err != nil {
		d.Problem(checkFolder, dir, err.Error(), "helixd serve would not start either: look for damage with helixd verify --data-dir "+c.DataDir)
		return err
	}
	defer srv.Stop()
	nc, err := srv.Connect(nats.ErrorHandler(settings.IgnoreAsync))
	if err != nil {
		return err
	}
	defer nc.Close()
	o := d.options()
	o.Partitions, o.Grows, o.Replicas = c.NATS.Partitions, settings.GrowsAtStart(c), c.NATS.Replicas
	o.Durability, o.Inside = eventlog.Durability(c.Durability), true
	return doctor.Examine(ctx, nc, o, d.Report)
}

// moved reports that another deployment has the data of the folder: no daemon may use it.
func (d *exam) moved(dir string, mark []byte) {
	where, _, _ := strings.Cut(string(mark), "\n")
	d.Problem(checkFolder, dir, "another deployment has the data of this folder: "+where,
		"use the configuration of that deployment, or set dataDir to an empty folder; remove this one when there is a backup of the other. "+
			"If the other one never served, helixd cluster grow --cancel makes this folder usable again")
}

// lockable reports whether this process can use the folder's lock: otherwise the folder is
// another user's.
func lockable(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "helixd.lock"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// fresh looks whether a data folder can be made.
func (d *exam) fresh(dir string) {
	if err := writable(filepath.Join(dir, "jetstream")); err != nil {
		d.Problem(checkFolder, dir, fmt.Sprintf("%s can't be made: %v", dir, err), fmt.Sprintf("let the user that runs helixd write to %s, or change dataDir", existingParent(dir)))
		return
	}
	d.OK(checkFolder, "%s does not exist yet: helixd serve creates it", dir)
}

// existingParent is the folder, or the nearest above it, that exists.
func existingParent(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "."
	}
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// running looks at the daemon that has the data folder, through HTTP and, where
// it takes NATS clients with full rights, through NATS.
func (d *exam) running(ctx context.Context) error {
	n := d.config.NATS
	if err := d.daemon(ctx, settings.Scheme(d.config)+reachable(d.config.Listen)); err != nil {
		return fmt.Errorf("%w: give the URL of the daemon that uses the data folder as --server", err)
	}
	if n.Listen == "" || n.User == "" {
		return nil
	}
	o := d.options()
	o.Partitions, o.Durability = n.Partitions, eventlog.Durability(d.config.Durability)
	if n.Cluster.Listen != "" {
		o.Replicas, o.Durability = n.Replicas, "" // the streams have it
	}
	return d.connected(ctx, "nats://"+reachable(n.Listen), []nats.Option{nats.UserInfo(n.User, n.Password.Reveal())}, o)
}

// reachable is where an address that is listened on can be connected to.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
