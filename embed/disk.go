package embed

import (
	"context"
	"fmt"
	"github.com/helixd/helixd/embed/internal/datadir"
	"log/slog"
	"sync"
	"time"
)

const (
	// diskLook is how often the free space is read.
	diskLook = time.Second
	// diskFull is the number of free bytes below which a disk counts as full:
	// nats-server does not always report what it could not store.
	diskFull = 1 << 20
	// mostReserve bounds the space, in bytes, that even erasure and retention leave
	// free: half of Options.MinFree, at most this. They rewrite files of some
	// MiB to make room, and damage a file that they can't write.
	mostReserve = 64 << 20
)

// disk watches the free space of a server's folder.
type disk struct {
	s      *Server
	cancel context.CancelFunc
	wg     sync.WaitGroup
	free   func() (uint64, bool)

	mu    sync.Mutex
	bytes uint64 // that were free at the last look
	low   bool   // less than MinFree, until there is a tenth more
	full  bool   // something could not be stored: the server has to restart
}

func watchDisk(s *Server) *disk {
	ctx, cancel := context.WithCancel(context.Background())
	d := &disk{s: s, cancel: cancel, free: func() (uint64, bool) { return FreeBytes(s.opts.DataDir) }}
	d.look(ctx)
	d.wg.Go(func() {
		for datadir.Sleep(ctx, diskLook) == nil {
			d.look(ctx)
		}
	})
	return d
}

func (d *disk) end() {
	d.cancel()
	d.wg.Wait()
}

// look reads the free space, and restarts the server if it met a full disk and there is
// room again.
func (d *disk) look(ctx context.Context) {
	free, ok := d.free()
	if !ok {
		return
	}
	least := uint64(d.s.opts.MinFree)
	now := d.s.instance()
	d.mu.Lock()
	was := d.low || d.full
	d.bytes = free
	d.low = free < least || d.low && free < least+least/10
	d.full = d.full || free < diskFull || now.log.full.Load() || !now.srv.JetStreamEnabled()
	low, full := d.low, d.full
	d.mu.Unlock()
	switch {
	case !was && full:
		d.say(slog.LevelError, "the disk was full: nothing is stored until there is room", free)
	case !was && low:
		d.say(slog.LevelError, "little room is left on the disk: nothing is stored until there is more", free)
	case full && !low:
		if err := d.s.restart(ctx); err != nil {
			if ctx.Err() == nil {
				d.say(slog.LevelError, "the embedded server could not be restarted, and will be tried again", free, slog.Any("error", err))
			}
			return
		}
		d.mu.Lock()
		d.full = false
		d.mu.Unlock()
		d.say(slog.LevelWarn, "there is room on the disk again: the embedded server has restarted", free)
	case was && !low:
		d.say(slog.LevelWarn, "there is room on the disk again", free)
	}
}

func (d *disk) say(level slog.Level, text string, free uint64, more ...slog.Attr) {
	attrs := append([]slog.Attr{slog.Uint64("free", free), slog.Int64("minFree", d.s.opts.MinFree)}, more...)
	d.s.opts.Logger.LogAttrs(context.Background(), level, text, attrs...)
}

// Refuses returns why the server should store nothing now; empty: it may. Work that
// frees room, such as erasure, may continue for longer: up to half of
// Options.MinFree, at most mostReserve.
func (s *Server) Refuses(frees bool) string {
	if s.group != nil {
		if err := s.group.failure(); err != nil {
			return "the disk of the data folder failed, and it is not known what it has stored: check it, and restart the machine before this server (" + err.Error() + ")"
		}
	}
	d := s.disk
	if d == nil {
		return ""
	}
	full := s.instance().log.full.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	least := uint64(s.opts.MinFree)
	reserve := min(least/2, mostReserve)
	switch {
	case d.full || full:
		return "the disk of the data folder was full: when there is room, this server continues by itself"
	case d.low && (!frees || d.bytes < reserve):
		return fmt.Sprintf("%.1f MiB are free on the disk of the data folder, less than %.1f MiB", float64(d.bytes)/(1<<20), float64(least)/(1<<20))
	}
	return ""
}

// FreeBytes returns how many bytes a user may still store in a folder. ok is false if the
// operating system can't say.
func FreeBytes(dir string) (n uint64, ok bool) { return datadir.FreeBytes(dir) }
