package node

// drivenTree is a tree that this node is driving. What the node's lock
// guards is marked so.
type drivenTree struct {
	again   bool     // guarded: there was a request for it since
	pauses  bool     // guarded: it broke off, and is taken up again after a pause
	agreed  bool     // guarded: what its tickets announced is in the log, or never will be
	tickets []uint64 // guarded: places on the list that this node answers for
	force   bool     // guarded: it is taken also from a node that lives
	to      string   // guarded: the node that is less busy and continues; empty: none
	taken   bool     // it was found on the list, without a request here
	// asked signals the driving goroutine that ask was called.
	asked chan struct{}
	// held is the head after which this node has claimed the tree, 0 if it
	// has not. It is the driving goroutine's.
	held    uint64
	claimed bool   // since then, the driving goroutine's
	agent   string // the root's, the driving goroutine's
	id      string // of the run that it was held for last, the driving goroutine's
}

func newDriven() *drivenTree { return &drivenTree{asked: make(chan struct{}, 1)} }

// ask has the tree looked at once more. The ticket may be 0.
func (run *drivenTree) ask(ticket uint64) {
	run.again, run.agreed = true, true
	if ticket > 0 {
		run.tickets = append(run.tickets, ticket)
	}
	select {
	case run.asked <- struct{}{}:
	default:
	}
}
