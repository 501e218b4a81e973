package embed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/embed/internal/blocks"
	"github.com/helixd/helixd/embed/internal/datadir"
)

// staging keeps in memory what a server stages of atomic batches.
//
// A server alone makes a store of files for each batch, writes and syncs the batch there, then
// stores the messages in the stream and removes the files: 2 ms, whatever the batch has. The
// files serve one case: a process that is killed while it stores the messages. When it starts
// again, the server stores the rest. So they may as well be on a file system in memory, which a
// killed process leaves as it is. The server has no option for that; a link takes the place of
// the folder in which it makes those files.
//
// A power loss takes the memory. The messages of a batch that were on the disk are then the
// beginning of an append that nobody has acknowledged, at the end of the stream, and the next
// start removes them. It knows from a file in the data folder, which names the folder in
// memory, that such a batch may be there.
type staging struct {
	data    string // the data folder
	streams string // the folder of the account's streams

	mu     sync.Mutex
	dir    string // in memory; empty: nothing is staged there
	staged []string
}

const (
	stagingFile = "helixd.staging" // in the data folder
	// memoryFolder is a file system in memory, on Linux.
	memoryFolder = "/dev/shm"
	stagingName  = "helixd-staging-"
	// stagingRoom is the free memory without which batches are staged on the disk, in bytes:
	// more than a batch has, and than containers offer by default.
	stagingRoom = 512 << 20
	// stagingLeast is what has to stay free, in bytes; with less, batches go to the disk again.
	stagingLeast = 64 << 20

	headerBatch = "Nats-Batch-Id"
)

func newStaging(dataDir string) *staging {
	return &staging{data: dataDir, streams: filepath.Join(dataDir, "jetstream", blocks.Account, "streams")}
}

// last returns the folder of the last process, if that was not stopped orderly, and whether
// it is gone.
func (s *staging) last() (dir string, gone bool, err error) {
	b, err := os.ReadFile(filepath.Join(s.data, stagingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	dir = string(b)
	if filepath.Dir(dir) != memoryFolder || !strings.HasPrefix(filepath.Base(dir), stagingName) {
		return "", false, fmt.Errorf("%s does not name a folder for batches", stagingFile)
	}
	_, err = os.Stat(dir)
	return dir, errors.Is(err, fs.ErrNotExist), nil
}

// forget removes a folder that is not needed any more.
func (s *staging) forget(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.Remove(filepath.Join(s.data, stagingFile)), datadir.Sync(s.data))
}

// errNoMemory says that batches are staged on the disk.
var errNoMemory = fmt.Errorf("%s is no file system in memory with %d MiB free that may be used", memoryFolder, stagingRoom>>20)

// stage has streams stage their batches in memory from now on, else it returns errNoMemory.
func (s *staging) stage(streams []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		s.dir = "" // as when a system removes what its users have left in memory
	}
	free, ok := datadir.FreeMemory(memoryFolder)
	if !ok || free < stagingLeast || s.dir == "" && free < stagingRoom {
		s.unlink()
		return errNoMemory
	}
	if s.dir == "" {
		dir, err := os.MkdirTemp(memoryFolder, stagingName)
		if err != nil {
			return errNoMemory
		}
		if err := datadir.Replace(filepath.Join(s.data, stagingFile), []byte(dir)); err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		s.dir = dir
	}
	for _, stream := range streams {
		if !slices.Contains(s.staged, stream) {
			s.staged = append(s.staged, stream)
		}
	}
	return s.link()
}

// link puts the links in their places; a server that starts removes them.
func (s *staging) link() error {
	for _, stream := range s.staged {
		target, link := filepath.Join(s.dir, stream), filepath.Join(s.streams, stream, "batches")
		if err := os.Mkdir(target, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		_ = os.Remove(link) // an empty folder of batches that were on the disk, or an old link
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// relink does that for a server that was restarted.
func (s *staging) relink() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link()
}

// end removes everything, after the server has stopped.
func (s *staging) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return nil
	}
	s.unlink()
	dir := s.dir
	s.dir = ""
	return s.forget(dir)
}

// unlink has the server stage further batches on the disk.
func (s *staging) unlink() {
	for _, stream := range s.staged {
		_ = os.Remove(filepath.Join(s.streams, stream, "batches")) // gone with its stream
	}
	s.staged = nil
}

// Stage has streams stage their atomic batches in memory from now on, which makes a batch some
// 2 ms quicker. It has an effect with GroupSync, on a machine with a file system in memory that
// has room; a stream that does not exist is ignored. After a batch that the server could not
// stage, it repairs what is amiss, without streams. Errors are the file system's.
func (s *Server) Stage(streams ...string) error {
	if !s.grouped {
		return nil
	}
	err := s.staging.stage(streams)
	if errors.Is(err, errNoMemory) {
		s.opts.Logger.Info("appends of several records take some milliseconds more than they could", slog.String("reason", err.Error()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("embed: staging of batches: %w", err)
	}
	return nil
}

// finishBatches does what the last process has left to do for its batches. The server, which
// runs, has completed those whose rest was there.
func (s *Server) finishBatches(ctx context.Context) error {
	dir, gone, err := s.staging.last()
	if dir == "" || err != nil {
		return err
	}
	if gone {
		if err := s.removeCutBatches(ctx); err != nil {
			return err
		}
	}
	return s.staging.forget(dir)
}

// removeCutBatches removes from the end of each stream what a power loss has left of a batch.
func (s *Server) removeCutBatches(ctx context.Context) error {
	nc, err := s.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	var cut []string
	for names := js.StreamNames(ctx); ; {
		name, ok := <-names.Name()
		if !ok {
			if names.Err() != nil {
				return names.Err()
			}
			break
		}
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		n, err := removeCutBatch(ctx, stream)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if n > 0 {
			cut = append(cut, name)
			s.opts.Logger.Warn("removed the beginning of a batch that the power loss has cut off; it was not acknowledged",
				slog.String("stream", name), slog.Int("messages", n))
		}
	}
	if len(cut) == 0 {
		return nil
	}
	return s.SyncStreams(ctx, cut...)
}

// removeCutBatch removes the messages at the end of a stream that are a batch without its end,
// and returns how many there were. The server stores nothing else while it stores a batch, so
// that nothing can follow them.
func removeCutBatch(ctx context.Context, stream jetstream.Stream) (n int, err error) {
	last := stream.CachedInfo().State.LastSeq
	if last == 0 {
		return 0, nil
	}
	message, err := stream.GetMsg(ctx, last)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil // removed since: it was stored with its whole batch
	}
	if err != nil {
		return 0, err
	}
	batch := message.Header.Get(headerBatch)
	position, err := strconv.ParseUint(message.Header.Get("Nats-Batch-Sequence"), 10, 64)
	if batch == "" || message.Header.Get("Nats-Batch-Commit") != "" || err != nil || position > last {
		return 0, nil
	}
	for first := last - position + 1; last >= first; last-- {
		message, err := stream.GetMsg(ctx, last)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err == nil && message.Header.Get(headerBatch) != batch {
			err = errors.New("it is of another batch")
		}
		if err == nil {
			err = stream.DeleteMsg(ctx, last)
		}
		if err != nil {
			return n, fmt.Errorf("message %d: %w", last, err)
		}
		n++
	}
	return n, nil
}
