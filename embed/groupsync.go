package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"github.com/helixd/helixd/embed/internal/blocks"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// groupSync writes what an embedded server has stored to the disk, once for all callers
// that wait. The server itself runs without a sync for each message: it writes a message
// to its block before it answers, so a sync of that file after the answer covers it.
//
// One round of syncs is under way at a time. A caller that comes meanwhile waits for
// the next one, which begins when the round ends. A round finds what has changed since the one
// before: streams and blocks that are new change their folder's time, appends change the
// size of a stream's last block. Index files need no sync, the server rebuilds them.
//
// Blocks are synced in the order of what they hold: a power loss in between must not
// keep an append's end and take its beginning.
//
// When the server removes messages it may rewrite a block: it renames the new file over
// the old one, without a sync. syncStreams, which is called after each removal, syncs
// that. In the milliseconds in between, file systems differ, see datadir.OrdersRenames.
type groupSync struct {
	dir  string // of the account's streams
	sync func(*os.File) error

	mu      sync.Mutex
	next    *syncRound // that callers join; nil: no caller waits
	running bool
	failed  error // of a sync: nothing is acknowledged after it
	stopped bool
	wg      sync.WaitGroup

	// Of the round that is under way.
	at      stamp
	streams map[string]*syncedStream

	whole sync.Mutex               // held by syncStreams
	seen  map[string]*syncedStream // as syncStreams has left them
}

// syncRound is one sync for all that joined it.
type syncRound struct {
	joined int           // callers
	done   chan struct{} // closed when err is set
	err    error
}

// syncedStream is a stream's folder as a sync has found it.
type syncedStream struct {
	dir    string
	at     stamp // of the folder of messages
	meta   stamp // of the settings
	blocks map[int]stamp
	last   int // the newest block's number
}

// stamp identifies a state of a file or a folder.
type stamp struct {
	info os.FileInfo
	// unsure: it may have changed since and still look the same.
	unsure bool
}

// stampGrain is more than the unit of a file system's times.
const stampGrain = 50 * time.Millisecond

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info, time.Since(info.ModTime()) < stampGrain}, nil
}

// same reports whether nothing has changed between s and a later stamp.
func (s stamp) same(now stamp) bool {
	return !s.appended(now) && !s.unsure && s.info.ModTime().Equal(now.info.ModTime())
}

// appended reports whether something was appended to s since, or another file is there.
func (s stamp) appended(now stamp) bool {
	return s.replaced(now) || s.info.Size() != now.info.Size()
}

// replaced reports whether another file is there.
func (s stamp) replaced(now stamp) bool { return s.info == nil || !os.SameFile(s.info, now.info) }

func newGroupSync(dataDir string) *groupSync {
	return &groupSync{
		dir: filepath.Join(dataDir, "jetstream", blocks.Account, "streams"), sync: (*os.File).Sync,
		streams: map[string]*syncedStream{}, seen: map[string]*syncedStream{},
	}
}

var errSyncStopped = errors.New("embed: the server takes no more writes")

// wait returns when all that was appended before the call is on the disk.
func (g *groupSync) wait(ctx context.Context) error {
	g.mu.Lock()
	if err := g.failed; err != nil || g.stopped {
		g.mu.Unlock()
		return cmp.Or(err, errSyncStopped)
	}
	if g.next == nil {
		g.next = &syncRound{done: make(chan struct{})}
	}
	r := g.next
	r.joined++
	if !g.running {
		g.running = true
		g.wg.Go(g.run)
	}
	g.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop ends g when the round under way has ended.
func (g *groupSync) stop() {
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	g.wg.Wait()
}

// failure is why nothing may be stored any more; nil: there is no reason.
func (g *groupSync) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// fail makes an error of a sync final: the kernel may have dropped what it could not
// write, so a later sync that succeeds says nothing about it.
func (g *groupSync) fail(err error) error {
	err = fmt.Errorf("embed: sync: %w", err)
	if errors.Is(err, errDisk) {
		g.mu.Lock()
		g.failed = cmp.Or(g.failed, err)
		g.mu.Unlock()
	}
	return err
}

// errDisk says that the disk did not take something. Other errors, such as of too many
// open files, fail one sync only.
var errDisk = errors.New("the disk failed")

// run does rounds for as long as a caller waits.
func (g *groupSync) run() {
	for {
		g.mu.Lock()
		r := g.next
		g.next = nil
		if r == nil {
			g.running = false
			g.mu.Unlock()
			return
		}
		err := g.failed
		g.mu.Unlock()
		if err == nil {
			if err = g.round(); err != nil {
				err = g.fail(err)
				g.at, g.streams = stamp{}, map[string]*syncedStream{} // the next round syncs everything
			}
		}
		r.err = err
		close(r.done)
	}
}

// round syncs what has changed since the round before.
func (g *groupSync) round() error {
	now, err := stampOf(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no stream yet
	}
	if err != nil {
		return err
	}
	var todo [][]string
	if !g.at.same(now) {
		if err := g.findStreams(); err != nil {
			return err
		}
		// The folders above are as old as the first stream.
		todo = append(todo, []string{g.dir, filepath.Dir(g.dir), filepath.Dir(filepath.Dir(g.dir))})
	}
	g.at = now
	for _, s := range g.streams {
		paths, err := s.look()
		if err != nil {
			return err
		}
		if len(paths) > 0 {
			todo = append(todo, paths)
		}
	}
	return g.syncAll(todo)
}

// findStreams looks for streams that are new or gone.
func (g *groupSync) findStreams() error {
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return err
	}
	found := map[string]*syncedStream{}
	for _, e := range entries {
		if e.IsDir() {
			found[e.Name()] = cmp.Or(g.streams[e.Name()], &syncedStream{dir: filepath.Join(g.dir, e.Name())})
		}
	}
	g.streams = found
	return nil
}

// syncStreams returns when all that some streams hold is on the disk, also blocks that
// were rewritten, overwritten or removed and not just appended to, and their settings.
// It compares every block, so it is not a part of a round, which appends wait for.
func (g *groupSync) syncStreams(ctx context.Context, streams []string) error {
	g.whole.Lock()
	defer g.whole.Unlock()
	for _, name := range streams {
		if err := cmp.Or(g.failure(), context.Cause(ctx)); err != nil {
			return err
		}
		s := cmp.Or(g.seen[name], &syncedStream{dir: filepath.Join(g.dir, name)})
		delete(g.seen, name)
		paths, err := s.lookAtAll()
		if err == nil {
			err = g.syncAll([][]string{paths})
		}
		if err != nil {
			return g.fail(err)
		}
		g.seen[name] = s
	}
	return nil
}

// Paths in a stream's folder.
func (s *syncedStream) messages() string { return filepath.Join(s.dir, "msgs") }
func (s *syncedStream) block(number int) string {
	return filepath.Join(s.dir, "msgs", strconv.Itoa(number)+".blk")
}

// created are the files and folders, but for blocks, of a stream that was just made.
func (s *syncedStream) created() []string {
	return []string{filepath.Join(s.dir, "meta.inf"), filepath.Join(s.dir, "meta.sum"), s.messages(), s.dir}
}

// fewBlocks is up to how many blocks a round compares each of them when their folder has
// changed. Of more it looks for new ones only: that messages were removed is the concern
// of syncStreams, and 10,000 blocks would hold up appends for 50 ms.
const fewBlocks = 64

// look returns what appends have changed in a stream, in the order in which it is to be
// synced.
func (s *syncedStream) look() ([]string, error) {
	now, err := stampOf(s.messages())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the stream was deleted, or is just being made
	}
	if err != nil {
		return nil, err
	}
	switch {
	case s.at.replaced(now) || len(s.blocks) <= fewBlocks && !s.at.same(now):
		return s.lookAtAll()
	case s.at.same(now) && s.last == 0:
		return nil, nil
	}
	// The last block, and those that have come since.
	var paths []string
	for number := s.last; ; number++ {
		at, err := stampOf(s.block(number))
		switch {
		case errors.Is(err, fs.ErrNotExist) && number == s.last: // it was removed
			return s.lookAtAll()
		case errors.Is(err, fs.ErrNotExist):
			if !s.at.same(now) {
				paths = append(paths, s.messages())
			}
			s.at = now
			return paths, nil
		case err != nil:
			return nil, err
		}
		if s.blocks[number].appended(at) {
			paths = append(paths, s.block(number))
		}
		s.blocks[number], s.last = at, number
		if s.at.same(now) { // there are no others
			return paths, nil
		}
	}
}

// lookAtAll compares everything of the stream. A block that was overwritten in place
// keeps its size, so its time counts.
func (s *syncedStream) lookAtAll() (paths []string, err error) {
	meta, err := stampOf(filepath.Join(s.dir, "meta.inf"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	now, err := stampOf(s.messages())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.messages())
	if err != nil {
		return nil, err
	}
	found, last := map[int]stamp{}, 0
	for _, e := range entries {
		number := blocks.Number(e.Name())
		if number == 0 {
			continue
		}
		at, err := stampOf(s.block(number))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed just now
		}
		if err != nil {
			return nil, err
		}
		found[number], last = at, max(last, number)
	}
	for _, number := range slices.Sorted(maps.Keys(found)) {
		if !s.blocks[number].same(found[number]) {
			paths = append(paths, s.block(number))
		}
	}
	switch {
	case s.at.replaced(now), meta.info != nil && !s.meta.same(meta):
		paths = append(paths, s.created()...)
	case !s.at.same(now):
		paths = append(paths, s.messages())
	}
	s.at, s.meta, s.blocks, s.last = now, meta, found, last
	return paths, nil
}

// syncsAtOnce is how many streams are synced at a time: file systems write the journal
// once for several.
const syncsAtOnce = 8

// syncAll syncs lists of files and folders, each in its order. What is gone needs nothing.
func (g *groupSync) syncAll(lists [][]string) error {
	each := func(paths []string) error {
		for _, path := range paths {
			if err := g.syncOne(path); err != nil {
				return err
			}
		}
		return nil
	}
	if len(lists) == 1 {
		return each(lists[0])
	}
	errs := make([]error, len(lists))
	places := make(chan struct{}, syncsAtOnce)
	var wg sync.WaitGroup
	for i, paths := range lists {
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = each(paths)
			<-places
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// syncFolder syncs everything below a folder.
func (g *groupSync) syncFolder(ctx context.Context, dir string) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed just now
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !e.IsDir() && !e.Type().IsRegular():
			return nil
		}
		return g.syncOne(path)
	})
	if err != nil {
		return fmt.Errorf("embed: sync: %w", err)
	}
	return nil
}

func (g *groupSync) syncOne(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := g.sync(f); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	return nil
}
