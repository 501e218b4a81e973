package node

import (
	"context"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/engine/internal/drive"
	"github.com/helixd/helixd/projector"
)

const (
	// suspectAfter is from how many silent deaths on, the last claim's included,
	// a tree is suspected. A
	// node takes up one suspect, and then one more for each that turns out not
	// to be the culprit: trees that were only driven beside it are cleared.
	suspectAfter = 2
	// suspectTime is the time after which a suspect that has neither produced output nor
	// ended the process is cleared.
	suspectTime = 2 * time.Second
	// maxSuspects is how many suspects at most are taken up at once.
	maxSuspects = 64
)

func suspected(c *projector.Claim) bool {
	return c != nil && c.Silent+1 >= suspectAfter && !c.Spoke && !c.Progress
}

// newSuspects returns the places for suspected trees, one of them free.
func newSuspects() chan struct{} {
	places := make(chan struct{}, maxSuspects)
	places <- struct{}{}
	return places
}

// awaitProbation waits until a suspected tree may be driven on probation. While it
// does, the tree is not held. A request for it ends the wait, as does the end of
// the loop, and what is to be done is decided again. Then there is no probation.
func (n *Node) awaitProbation(run *drivenTree) (*drive.Probation, error) {
	run.underWay(n)
	n.pauses(run, true)
	defer n.pauses(run, false)
	for drains, waits := n.drains, true; waits; {
		select {
		case <-n.suspects:
			waits = false
		case <-run.asked:
			return nil, nil
		case <-drains:
			if n.HandsOver(run.agent) {
				return nil, drive.ErrHandedOver
			}
			drains = nil // no other node would take it up
		case <-n.Ctx.Done():
			return nil, context.Cause(n.Ctx)
		}
	}
	var once sync.Once
	free := func(places int) {
		once.Do(func() {
			for range places {
				select {
				case n.suspects <- struct{}{}:
				default: // there are enough
				}
			}
		})
	}
	return &drive.Probation{Clear: func() { free(2) }, Leave: func() { free(1) }, Over: time.After(suspectTime)}, nil
}
