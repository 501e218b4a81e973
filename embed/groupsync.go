package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// groupSync writes what an embedded server has stored to the disk, once for everybody
// who waits. The server itself runs without a sync for each message: it writes a message
// to its block before it answers, so a sync of that file after the answer covers it.
//
// One round of syncs is under way at a time. Whoever comes meanwhile waits for the next
// one, which begins when the round ends. A round finds what has changed since the one
// before: streams and blocks that are new, gone or replaced change their folder's time;
// appends change the size of a stream's last block. Index files need no sync, the server
// rebuilds them.
//
// When the server rewrites a block it renames the new file over the old one, without a
// sync. That is safe only on file systems that write the new file before the rename, see
// ordersRenames.
type groupSync struct {
	dir  string // of the account's streams
	sync func(*os.File) error

	mu      sync.Mutex
	next    *syncRound // that callers join; nil: nobody waits
	running bool
	failed  error // of a sync: nothing is acknowledged after it
	stopped bool
	wg      sync.WaitGroup

	// Of the round that is under way.
	at      stamp
	streams map[string]*syncedStream
}

// syncRound is one sync for all that joined it.
type syncRound struct {
	every  bool          // also blocks that were overwritten in place
	joined int           // callers
	done   chan struct{} // closed when err is set
	err    error
}

// syncedStream is a stream's folder of messages as a round has found it.
type syncedStream struct {
	dir    string
	at     stamp
	blocks map[string]stamp
	last   string // the newest block
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

// same reports whether nothing has changed between s and a later stamp. Appends
// change the size, so a file's time is looked at only if its unit is over.
func (s stamp) same(now stamp) bool {
	if s.info == nil || !os.SameFile(s.info, now.info) || s.info.Size() != now.info.Size() {
		return false
	}
	return !s.unsure && s.info.ModTime().Equal(now.info.ModTime())
}

// appended reports whether something was appended to s since, or another file is there.
func (s stamp) appended(now stamp) bool {
	return s.info == nil || !os.SameFile(s.info, now.info) || s.info.Size() != now.info.Size()
}

func newGroupSync(dataDir string) *groupSync {
	return &groupSync{
		dir: filepath.Join(dataDir, "jetstream", accountHelix, "streams"), sync: (*os.File).Sync, streams: map[string]*syncedStream{},
	}
}

// wait returns when all that was stored before the call is on the disk; with every, also
// what was overwritten in place.
func (g *groupSync) wait(ctx context.Context, every bool) error {
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
	r.every = r.every || every
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

var errSyncStopped = errors.New("embed: the server takes no more writes")

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

// run does rounds for as long as somebody waits.
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
			if err = g.round(r.every); err != nil {
				// The kernel may have dropped what it could not write: a later sync
				// that succeeds says nothing about it.
				err = fmt.Errorf("embed: sync: %w", err)
				g.mu.Lock()
				g.failed = err
				g.mu.Unlock()
			}
		}
		r.err = err
		close(r.done)
	}
}

// round syncs what has changed since the round before.
func (g *groupSync) round(every bool) error {
	var todo syncList
	now, err := stampOf(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no stream yet
	}
	if err != nil {
		return err
	}
	if !g.at.same(now) {
		if err := g.findStreams(&todo); err != nil {
			return err
		}
	}
	for _, s := range g.streams {
		if err := s.look(every, &todo); err != nil {
			return err
		}
	}
	if err := todo.do(g.sync); err != nil {
		return err
	}
	g.at = now
	return nil
}

// findStreams looks for streams that are new or gone.
func (g *groupSync) findStreams(todo *syncList) error {
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return err
	}
	found := map[string]*syncedStream{}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if s := g.streams[e.Name()]; s != nil {
			found[e.Name()] = s
			continue
		}
		dir := filepath.Join(g.dir, e.Name())
		found[e.Name()] = &syncedStream{dir: filepath.Join(dir, "msgs"), blocks: map[string]stamp{}}
		todo.add(filepath.Join(dir, "meta.inf"), filepath.Join(dir, "meta.sum"), dir)
	}
	g.streams = found
	// The folders above are as old as the first stream.
	todo.add(g.dir, filepath.Dir(g.dir), filepath.Dir(filepath.Dir(g.dir)))
	return nil
}

// look adds what has changed in a stream.
func (s *syncedStream) look(every bool, todo *syncList) error {
	now, err := stampOf(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the stream was deleted, or is just being made
	}
	if err != nil {
		return err
	}
	if every || !s.at.same(now) {
		return s.lookAtAll(now, todo)
	}
	if s.last == "" {
		return nil
	}
	at, err := stampOf(filepath.Join(s.dir, s.last))
	if errors.Is(err, fs.ErrNotExist) {
		return s.lookAtAll(now, todo)
	}
	if err != nil {
		return err
	}
	if was := s.blocks[s.last]; was.appended(at) {
		todo.add(filepath.Join(s.dir, s.last))
		s.blocks[s.last] = at
	}
	return nil
}

// lookAtAll compares every block of the stream. A block that was overwritten in place
// keeps its size, so its time counts.
func (s *syncedStream) lookAtAll(now stamp, todo *syncList) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	blocks, last, newest := map[string]stamp{}, "", 0
	for _, e := range entries {
		index := blockNumber(e.Name())
		if index == 0 {
			continue
		}
		at, err := stampOf(filepath.Join(s.dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed just now
		}
		if err != nil {
			return err
		}
		if was := s.blocks[e.Name()]; !was.same(at) {
			todo.add(filepath.Join(s.dir, e.Name()))
		}
		blocks[e.Name()] = at
		if index > newest {
			last, newest = e.Name(), index
		}
	}
	todo.add(s.dir)
	s.at, s.blocks, s.last = now, blocks, last
	return nil
}

// syncList is what a round has to sync.
type syncList []string

func (l *syncList) add(paths ...string) { *l = append(*l, paths...) }

// syncsAtOnce is how many files a round syncs at a time: file systems write the journal
// once for several.
const syncsAtOnce = 8

// do syncs all of them. One that is gone needs nothing more.
func (l syncList) do(sync1 func(*os.File) error) error {
	one := func(path string) error {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(sync1(f), f.Close())
	}
	if len(l) == 1 {
		return one(l[0])
	}
	errs := make([]error, len(l))
	places := make(chan struct{}, syncsAtOnce)
	var wg sync.WaitGroup
	for i, path := range l {
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = one(path)
			<-places
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
