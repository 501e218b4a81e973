package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// States folds sessions; *snapshot.Store does.
type States interface {
	// Head returns the state at a session's head. Errors: as
	// eventlog.Log.Read.
	Head(ctx context.Context, session string) (*projector.Tree, error)
}

// Options configure read models. Zero values mean the defaults.
type Options struct {
	// Path is the path of the file. Its folder is created if needed.
	Path string
	// Prices are what models' tokens cost, by model.
	Prices map[string]readmodel.Price
	// MaxFolds and MaxFoldBytes bound the folds that are kept in memory; 0: 2,000, and
	// about 64 MiB. All sessions that stream at the same time should fit: a session that
	// was evicted is folded again when it has new records.
	MaxFolds, MaxFoldBytes int
	// Patience is how long a query waits for the rows to be current; 0: 2 s.
	Patience time.Duration
	// Logger gets a line when the file is built again and when something fails; nil: no
	// logging.
	Logger *slog.Logger

	// How many memories of erased scopes are overwritten at a time, and the pause in
	// between; 0: clearMemories, clearPause.
	clearMemories int
	clearPause    time.Duration
}

func (o Options) withDefaults() Options {
	if o.MaxFolds <= 0 {
		o.MaxFolds = 2_000
	}
	if o.MaxFoldBytes <= 0 {
		o.MaxFoldBytes = 64 << 20
	}
	if o.Patience <= 0 {
		o.Patience = 2 * time.Second
	}
	if o.clearMemories <= 0 {
		o.clearMemories = clearMemories
	}
	if o.clearPause <= 0 {
		o.clearPause = clearPause
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Models are the read models of a node; Open makes them.
type Models struct {
	opts   Options
	feed   eventlog.ChangeFeed
	states States
	cancel context.CancelFunc
	wg     sync.WaitGroup
	prices atomic.Pointer[map[string]readmodel.Price]

	// use is locked for reading by queries, and for writing by the goroutine that opens
	// or closes the file.
	use  sync.RWMutex
	file *file // nil: none is open

	mu    sync.Mutex
	state state
	moved chan struct{} // closed and replaced when state changes
	kick  chan struct{} // notifies the writer that a query waits
	large atomic.Bool   // a large record is being folded
	bad   chan error    // passes a reader's error about the file to the writer
}

// state is how far the file has followed the log.
type state struct {
	positions []uint64 // of the file, by partition; nil: no file yet
	// untidy: sessions may have been removed without a record in the feed; the writer
	// looks for them.
	untidy     bool
	rebuilding bool
	problem    string
}

var _ readmodel.Models = (*Models)(nil)

// Open begins to keep the file in step with the feed, until Close. It does not wait:
// problems with the file or the log are fixed or retried in the background, and until
// then answers report them. It panics without a path.
func Open(feed eventlog.ChangeFeed, states States, o Options) *Models {
	if o.Path == "" {
		panic("sqlite: Options.Path is missing")
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Models{
		opts: o.withDefaults(), feed: feed, states: states, cancel: cancel,
		moved: make(chan struct{}), kick: make(chan struct{}, 1), bad: make(chan error, 1),
	}
	m.SetPrices(o.Prices)
	m.wg.Go(func() { m.run(ctx) })
	return m
}

// SetPrices replaces the prices; answers from then on use them.
func (m *Models) SetPrices(prices map[string]readmodel.Price) { m.prices.Store(&prices) }

// Close stops the writer and waits for it; it is idempotent. Afterwards queries return
// ErrUnavailable.
func (m *Models) Close() {
	m.cancel()
	m.wg.Wait()
}

const (
	// retryLeast and retryMost bound the pause before a retry.
	retryLeast = 50 * time.Millisecond
	retryMost  = 5 * time.Second
)

// run projects until ctx ends and retries after errors. Meanwhile queries are answered
// from the existing rows, unless the file can't be used.
func (m *Models) run(ctx context.Context) {
	defer m.closeFile()
	wait := retryLeast
	for {
		began := time.Now()
		err := m.try(ctx)
		if ctx.Err() != nil {
			return
		}
		_, ahead := errors.AsType[*eventlog.CursorAheadError](err)
		switch {
		case errors.Is(err, errGrown): // the file is kept
			wait = retryLeast
			continue
		case ahead, errors.Is(err, errDiscard):
			m.closeFile()
			m.opts.Logger.Warn("the read models are built again", "file", m.opts.Path, "error", err)
			if err := removeFile(m.opts.Path); err != nil {
				m.opts.Logger.Error("the read models' file can't be removed", "file", m.opts.Path, "error", err)
			}
			m.set(func(s *state) { s.rebuilding, s.problem = true, "" })
		case errors.Is(err, sql.ErrConnDone), errors.Is(err, driver.ErrBadConn):
			m.closeFile()
			fallthrough
		default:
			m.opts.Logger.Warn("the read models can't follow the log; helixd retries", "error", err)
			m.set(func(s *state) { s.problem = err.Error() })
		}
		if time.Since(began) > retryMost {
			wait = retryLeast
		}
		if eventlog.Sleep(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, retryMost)
	}
}

// try projects into the file, which it opens if none is open.
func (m *Models) try(ctx context.Context) error {
	if m.file == nil { // only this goroutine changes it
		f, err := openFile(m.opts.Path)
		if err != nil {
			return err
		}
		m.use.Lock()
		m.file = f
		m.use.Unlock()
	}
	return m.project(ctx, m.file)
}

// closeFile waits for the readers.
func (m *Models) closeFile() {
	m.use.Lock()
	defer m.use.Unlock()
	if m.file != nil {
		m.file.close()
		m.file = nil
	}
	m.set(func(s *state) { s.positions = nil })
}

func (m *Models) set(change func(*state)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.state)
	close(m.moved)
	m.moved = make(chan struct{})
}
