// Package queue is what the nodes of one log share beside it: the list of the
// trees that may have work, and word of who lives and drives what (design 8).
//
// The list is the stream HELIX_RUNS. A tree that is given work has a message
// on helix.runs.<agent type>.<session>, stored before the work is appended to
// the log and deleted when the tree is at rest. There is no consumer: nobody
// has to acknowledge, to beat for each run, or to wait for a time-out, and there
// is no consumer's leader whose death would have healthy runs delivered again.
// The list is read where it matters: when a node starts, when another one dies
// or leaves, when a node asks for it, and every ScanEvery for what all that has
// missed.
//
// Nodes know of each other by core NATS. Each says every beat that it lives,
// which agents it hosts, and whether it drains; one that is silent and does not
// answer either is dead. Of the trees on the list that no node holds, each live
// node that hosts the agent takes up its share: all of them rank a tree's
// candidates alike. Where they disagree for a moment, two claim a tree, and the
// log's order decides; or none does, until the next look.
//
// None of this is needed for safety. A node that is taken for dead and is not
// loses its runs to a claim that fences it.
package queue
