package worklist

import (
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// Serve begins to take trees up, for a loop that has this work list. It returns when
// other nodes had time to say that they are there, at once if the server of this process
// takes no others.
func (l *Worklist) Serve(loop Loop) error {
	l.loop = loop
	if err := l.listen(); err != nil {
		return err
	}
	l.mu.Lock()
	l.heard = time.Now()
	l.mu.Unlock()
	l.publish(stateHello)
	if s, ok := l.nc.Opts.InProcessServer.(jetstream.Server); !ok || !s.GroupSync() {
		if err := eventlog.Sleep(l.ctx, askTimeout); err != nil {
			return err
		}
	}
	l.lookSoon()
	l.wg.Go(l.live)
	l.wg.Go(l.scan)
	l.wg.Go(l.answerWakes)
	return nil
}

// Leave announces that this node drains, so that other nodes drive its share.
func (l *Worklist) Leave() {
	l.mu.Lock()
	l.leaving = true
	l.mu.Unlock()
	l.unhost()
	if l.loop != nil {
		l.publish(stateLeaving)
	}
}

// Close says that this node drives nothing any more, and ends. It is
// idempotent.
func (l *Worklist) Close() {
	if l.ctx.Err() == nil && l.loop != nil {
		l.publish(stateGone)
		_ = l.nc.FlushTimeout(askTimeout) // best effort: it is missed soon
	}
	l.stop()
	l.unhost()
	for _, s := range l.subs {
		_ = s.Unsubscribe() // fails only on a closed connection
	}
	l.wg.Wait()
}
